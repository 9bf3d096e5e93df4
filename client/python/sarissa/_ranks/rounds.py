# SPDX-License-Identifier: BSD-3-Clause
"""What a communicator's calls are made of: rounds, in which each rank leaves objects for others. Under .comm/NAME/:

    rank/R              the claim of rank R, from its beginning to its end: size, a random word, and who it is
    SESSION/N/m/R       the mark of rank R: it has come to round N, and what it does there
    SESSION/N/...       the data of round N
    SESSION/p/A-B-T/N   message N with tag T of rank A for rank B, which deletes it

SESSION is a hash of all claims. So a communicator that is opened again has other names.

A rank goes to round N + 1 after it has seen all marks of round N. All ranks were past round N - 1 then, and what it has
made in that round goes. So two rounds live at a time. A lease holds everything; it goes with the process."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import time
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from .._errors import Deleted, Exists, InUse, InvalidArgument, Lost, TimedOut, Unavailable
from .._names import id_of, timeout_ns
from .._waits import SLICE_NS, end_block

if TYPE_CHECKING:
    from .. import _sarissa
    from .._node import Node

LEASE_S = 10.0  # after this process, others have the rank again
LAST_S = 30.0  # the last mark, after all have come
NAME_BYTES = 150


class Deadline:
    """Of one call."""

    def __init__(self, seconds: Optional[float]) -> None:
        timeout_ns(seconds)
        self.seconds, self._until = seconds, None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> Optional[float]:
        return None if self._until is None else max(0.0, self._until - time.monotonic())


def delete_all(handle: _sarissa.Handle, names: Sequence[str]) -> None:
    """Side by side. What cannot be deleted goes with the lease."""
    if not names:
        return
    queue, ended = handle.queue(len(names)), 0
    for number, name in enumerate(names):
        queue.delete(number, name)
    while ended < len(names):
        handle.check()
        ended += len(queue.wait(SLICE_NS))


class Rounds:
    """One rank's."""

    def __init__(self, node: Node, name: str, rank: int, size: int, limit: Deadline) -> None:
        if not 0 <= rank < size:
            raise InvalidArgument(errno.EINVAL, f"rank {rank} of {size}: ranks are 0 to size - 1")
        if not name or len(name.encode()) > NAME_BYTES:
            raise InvalidArgument(errno.EINVAL, f"the name of a communicator has 1 to {NAME_BYTES} bytes, "
                                                f"not {len(name.encode())}")
        self.node, self.name, self.rank, self.size = node, name, rank, size
        self.number = 0
        self._met = 0  # the last round whose marks have all been seen
        self._refused = 0  # the last one of which an error has told
        self._what = ""
        self._made: Dict[int, List[str]] = {}
        self._lease = node.lease(ttl=LEASE_S)
        self.maker = self._lease._maker  # of objects that the lease holds
        self.open = True
        try:
            self._base = f".comm/{name}/{self._join(limit)}"
        except BaseException:
            self.abort()
            raise

    # --- who takes part

    def _claim(self, rank: int) -> str:
        return f".comm/{self.name}/rank/{rank}"

    def _join(self, limit: Deadline) -> str:
        """The session, when all ranks are there."""
        mine = f"{self.size} {secrets.token_hex(8)} process {os.getpid()} of {socket.gethostname()}"
        try:
            self.maker.put(self._claim(self.rank), mine.encode())
        except Exists:
            raise InUse(errno.EBUSY, f"rank {self.rank} of communicator {self.name!r} is taken{self._holder()}: each "
                                     f"rank is one process's, until it closes or {LEASE_S:.0f} s after its death") from None
        claims: List[str] = []
        for ranks in (range(min(self.size, 2)), range(2, self.size)):  # one that has another size finds out by the first
            for rank, claim in zip(ranks, self._texts(self._claim, ranks, range(self.size), "joined", limit)):
                if claim.split()[0] != str(self.size):
                    raise InvalidArgument(errno.EINVAL, f"communicator {self.name!r}: size is {claim.split()[0]} for rank "
                                                        f"{rank}, and {self.size} for rank {self.rank}")
                claims.append(claim)
        return id_of("\n".join(claims).encode()).hex()[:16]

    def _holder(self) -> str:
        try:
            return " by " + bytes(self.node.get(self._claim(self.rank), timeout=0, raw=True)).decode().split(" ", 2)[2]
        except (Unavailable, Deleted, Lost):
            return ""

    # --- rounds

    def begin(self, what: str, limit: Deadline) -> None:
        """The next round, in which all are to do the same."""
        if not self.open:
            raise InvalidArgument(errno.EINVAL, f"communicator {self.name!r} is closed")
        if self._met < self.number:
            self.meet(limit)
        for number in [number for number in self._made if number < self.number]:
            delete_all(self.node._open(), self._made.pop(number))
        self.number += 1
        self._what, self._made[self.number] = what, []

    def path(self, part: str) -> str:
        return f"{self._base}/{self.number}/{part}"

    def mine(self, part: str) -> str:
        """A name of this round. This rank deletes what has it."""
        self._made[self.number].append(self.path(part))
        return self.path(part)

    def hold(self, part: str) -> None:
        """An object of this round that a reduce has made goes as those that this rank has put."""
        self._lease.hold(self.mine(part))

    def arrive(self) -> None:
        self.maker.put(self.mine(f"m/{self.rank}"), self._what.encode())

    def meet(self, limit: Deadline) -> None:
        """All have come to this round, and do the same."""
        unlike = self._unlike(range(self.size), limit)
        self._met = self.number
        self._refuse(unlike)

    def see(self, ranks: Iterable[int], limit: Deadline) -> None:
        """These have."""
        self._refuse(self._unlike(ranks, limit))

    def _unlike(self, ranks: Iterable[int], limit: Deadline) -> List[Tuple[int, str]]:
        others = [rank for rank in ranks if rank != self.rank]
        doing = f"come to round {self.number} ({self._what})"
        texts = self._texts(lambda rank: self.path(f"m/{rank}"), others, others, doing, limit)
        return [(rank, text) for rank, text in zip(others, texts) if text != self._what]

    def _refuse(self, unlike: List[Tuple[int, str]]) -> None:
        if unlike and self._refused < self.number:
            self._refused = self.number
            rank, theirs = unlike[0]
            raise InvalidArgument(errno.EINVAL, f"communicator {self.name!r}, round {self.number}: rank {rank} calls "
                                                f"{theirs}, and rank {self.rank} {self._what}")

    def _texts(self, name_of: Callable[[int], str], ranks: Sequence[int], wanted: Sequence[int], doing: str,
               limit: Deadline) -> List[str]:
        """The objects of these ranks. wanted: what an error names, as far as it is not there."""
        if not ranks:
            return []
        try:
            return [bytes(text).decode() for text in self.node.gather(list(map(name_of, ranks)), limit.left, raw=True)]
        except (Unavailable, Deleted, Lost):
            missing = [rank for rank in wanted if not self._is(name_of(rank))]
            raise self.late(missing or ranks, doing, limit) from None

    def _is(self, name: str) -> bool:
        try:
            return self.node.info(name).copies > 0
        except (Unavailable, Deleted, Lost):
            return False

    def late(self, ranks: Sequence[int], doing: str, limit: Deadline) -> TimedOut:
        who = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
        within = "" if limit.seconds is None else f" within {limit.seconds:g} s"
        return TimedOut(errno.ETIMEDOUT, f"communicator {self.name!r}: {who} not {doing}{within}: look whether the "
                                         "process runs, or has failed")

    # --- messages

    def message(self, source: int, dest: int, tag: int, number: int) -> str:
        return f"{self._base}/p/{source}-{dest}-{tag}/{number}"

    # --- the end

    def end(self, limit: Deadline) -> None:
        """All ranks end together. The last mark goes by itself, as some may still have to see it."""
        try:
            self.begin("close", limit)
            delete_all(self.node._open(), [self._claim(self.rank)])
            last = self.path(f"m/{self.rank}")
            self.node.put(last, b"close", ttl=24 * 3600)
            self.meet(limit)
            self.node.expire(last, LAST_S)
        finally:
            self.abort()

    def abort(self) -> None:
        if self.open:
            self.open = False
            self._lease.end()

    def leave(self, failed: bool, limit: Deadline) -> None:
        """The end of a with block."""
        if self.open:
            end_block(self.abort if failed else lambda: self.end(limit), failed)
