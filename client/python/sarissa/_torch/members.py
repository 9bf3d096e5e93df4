# SPDX-License-Identifier: BSD-3-Clause
"""Members: what this rank knows of the others of its process group, from small objects that each puts below BASE/e/,
which all watch. The channel's thread calls it.

    rank/R/N           rank R lives, on node N; held by a lease that ends soon after the process
    left/R/NUMBER      R has left the group, after collective NUMBER
    did/R/NUMBER       R is past all collectives up to NUMBER
    at/R/NUMBER/S/W    R waits in collective NUMBER, which is W (of signature S) there
    bad/R/NUMBER/W     collective NUMBER has failed at R: W

What the others say of a collective is compared with what this rank does there. So ranks that differ find out when one
of them waits, and nothing is asked where nobody does."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Callable, Dict, Optional, Set, Tuple

from .._errors import Error, NoNode, PartialError
from .errors import CollectiveError, RankDied, RanksDiffer, RanksMissing
from .operation import Operation

if TYPE_CHECKING:
    from .channel import Channel

ALIVE_S = 0.3  # an end of the process: then its lease ends, and
SUSPECT_S = 0.2  # after the process the others hear of it
MARK_S = 0.3  # a collective that waits so long tells what it is
LOOK_S = 0.25  # between looks at the nodes, while something waits
LISTED_S = 2.0  # after a death all names are known again
ANSWER_S = 3.0  # of the node of this rank, else it has gone
PROGRESS_BYTES = 8 << 20
PROGRESS_COUNT = 16
HISTORY = 1000
WORDS = 160  # of what a rank tells others, in the name of an object
APPEARED, COMPLETE, GONE, MISSED = 1, 2, 3, 4  # events of a watch


def cut(words: str) -> str:
    """As a part of a name."""
    part = words.replace("/", "|")
    return part if len(part) <= WORDS else part[:WORDS - 4].rsplit(" ", 1)[0] + " ..."


class Members:
    """did, left: by rank. marks: what others say of collectives, by number and rank."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.rank, self.size, self.label = channel.rank, channel.size, channel.label
        self._base = f"{channel.base}/e/"
        self.dead: Dict[int, RankDied] = {}
        self.did = {rank: 0 for rank in range(self.size)}
        self.left: Dict[int, int] = {}
        self._nodes: Dict[int, Tuple[int, str]] = {}  # of each rank that was seen, and the name that it lives by
        self._mine: Dict[int, Tuple[str, str]] = {}  # number: signature and words
        self._ended: Set[int] = set()
        self._marks: Dict[int, Dict[int, Tuple[str, str]]] = {}
        self._bad: Dict[int, CollectiveError] = {}
        self._announced: Set[int] = set()
        self._differs: Set[int] = set()  # collectives whose error is raised
        self._next_error: Optional[BaseException] = None
        self._since = [0, 0]  # bytes and collectives since the last word of progress
        self._word = ""
        self.eager = False
        self.suspects: Dict[int, float] = {}  # since when; that they have left may still be on its way
        self._looked = 0.0
        self._died = 0.0
        self._asked: Optional[float] = None  # since when the node has not answered
        self.alone: Optional[CollectiveError] = None  # the node of this rank has gone
        self._useful = 0  # the last collective that has ended well
        node = channel.node
        self._lease = node.lease(ttl=ALIVE_S)
        self._watch = channel._handle.queue(1)
        self._watch.watch(0, self._base)
        self.fd = self._watch.fd()
        self._node = node.nodes()[0].node
        self._lease.put(f"{self._base}rank/{self.rank}/{self._node}", b"")

    # --- what the others tell

    def events(self) -> None:
        for _, result in self._watch.poll():
            if isinstance(result, BaseException):
                continue
            kind, _, name, _ = result
            if kind == MISSED:
                self._look(True)
            elif kind in (COMPLETE, GONE) and name.startswith(self._base):
                self._event(name, kind == GONE)

    def _event(self, name: str, gone: bool) -> None:
        kind, rank, number, *rest = name[len(self._base):].split("/", 4)
        who = int(rank)
        if kind == "rank":
            self._lives(who, int(number), name, gone)
        elif gone or who == self.rank:
            return
        elif kind == "left":
            self._has_left(who, int(number))
        elif kind == "did":
            self.did[who] = max(self.did[who], int(number))
            self._forget()
        elif kind == "at":
            self._says(who, int(number), rest[0], rest[1].replace("|", "/"))
        elif kind == "bad":
            self._has_failed(who, int(number), "/".join(rest).replace("|", "/"))

    def _lives(self, rank: int, node: int, name: str, gone: bool) -> None:
        if not gone:
            self._nodes[rank] = node, name
        elif rank in self._nodes and rank not in self.left and rank != self.rank:
            self.suspects.setdefault(rank, time.monotonic())

    def _dies(self, rank: int, why: str) -> None:
        if rank in self.dead or rank in self.left:
            return
        self._died = time.monotonic()
        self.dead[rank] = RankDied(f"{self.label(rank)} has died: {why}", rank)
        self._fail_those(lambda operation: rank in operation.needs, self.dead[rank])
        self._channel.give_up_targets()
        self._forget()

    def _fail_those(self, fits: Callable[[Operation], bool], error: CollectiveError) -> None:
        channel = self._channel
        for operation in [*channel.under_way, *channel._pending]:
            if fits(operation):
                channel.fail(operation, self._of(operation, error))

    @staticmethod
    def _of(operation: Operation, error: CollectiveError) -> CollectiveError:
        text = f"{operation.what}: {error}"
        return RankDied(text, error.rank) if isinstance(error, RankDied) else type(error)(text)

    def _has_left(self, rank: int, number: int) -> None:
        self.left[rank] = number
        self.eager = True
        self.tell_progress()
        self._fail_those(lambda operation: operation.number is not None and operation.number > number, self._gone(rank))
        self._forget()

    def _gone(self, rank: int) -> CollectiveError:
        return CollectiveError(f"{self.label(rank)} has left the group: it has called destroy_process_group, or its "
                               "program has ended")

    def _has_failed(self, rank: int, number: int, words: str) -> None:
        if number <= self._channel.number - HISTORY:
            return
        self._bad[number] = CollectiveError(f"it has failed at {self.label(rank)}: {words}")
        self._fail_those(lambda operation: operation.number == number, self._bad[number])

    # --- ranks that differ

    def note(self, operation: Operation) -> None:
        """A collective of this rank begins."""
        assert operation.number is not None
        self._mine[operation.number] = operation.signature, operation.what
        operation.error, self._next_error = self._next_error, None
        self._mine.pop(operation.number - HISTORY, None)
        self._marks.pop(operation.number - HISTORY, None)
        self._bad.pop(operation.number - HISTORY, None)

    def refused(self, number: int, signature: str, what: str) -> None:
        """A collective of this number that the rank has not begun."""
        self._mine[number] = signature, what
        self._differs.add(number)
        for rank, (theirs, words) in self._marks.get(number, {}).items():
            self._compare(rank, number, theirs, words)
        self._ended.add(number)
        self._move()

    def _says(self, rank: int, number: int, signature: str, words: str) -> None:
        self._marks.setdefault(number, {})[rank] = signature, words
        self._compare(rank, number, signature, words)

    def _compare(self, rank: int, number: int, signature: str, words: str) -> Optional[RanksDiffer]:
        mine = self._mine.get(number)
        if mine is None or mine[0] == signature:
            return None
        error = RanksDiffer(f"collective {number} of this group: {self.label(rank)} calls {words}, and "
                            f"{self.label(self.rank)} {mine[1]}: all ranks make the same calls in the same order")
        self._tell_mark(number)
        if number in self._differs:
            return error
        self._differs.add(number)
        found = [operation for operation in self._channel.under_way if operation.number == number]
        for operation in found:
            self._channel.fail(operation, error)
        if not found:
            self._next_error = error
        return error

    def refusal(self, operation: Operation) -> Optional[Exception]:
        """Why it cannot be done."""
        if self.alone:
            if not self._asked:
                self._look(False)
            return self._of(operation, self.alone)
        for rank in operation.needs:
            if rank in self.dead:
                return self._of(operation, self.dead[rank])
            if rank in self.left and (operation.number is None or operation.number > self.left[rank]):
                return self._of(operation, self._gone(rank))
        number = operation.number
        if number is None:
            return None
        if number in self._bad:
            return self._of(operation, self._bad[number])
        for rank, (signature, words) in self._marks.get(number, {}).items():
            error = self._compare(rank, number, signature, words)
            if error is not None:
                self._next_error = None
                return error
        return None

    def missing(self, operation: Operation, seconds: float) -> RanksMissing:
        number = operation.number
        came = self._marks.get(number, {}) if number is not None else {}
        ranks = [rank for rank in sorted(operation.needs)
                 if rank != self.rank and rank not in came and (number is None or self.did[rank] < number)]
        if not ranks:
            words = "all ranks have come, and it takes longer"
        else:
            words = ", ".join(map(self.label, ranks)) + (" has" if len(ranks) == 1 else " have") + " not come"
        return RanksMissing(f"{operation.what}: not done within {seconds:g} s: {words}", ranks)

    # --- what this rank tells

    def _tell(self, name: str, number: Optional[int] = None) -> str:
        name = self._base + name
        self._channel.side("put", name, b"", None, None)
        if number is not None:
            self._channel._made.append((number, name))
        return name

    def _tell_mark(self, number: int) -> None:
        if number not in self._announced:
            self._announced.add(number)
            signature, words = self._mine[number]
            self._tell(f"at/{self.rank}/{number}/{signature}/{cut(words)}", number)

    def tell_failed(self, operation: Operation, error: BaseException) -> None:
        if operation.number is not None:
            words = str(error).removeprefix(f"{operation.what}: ")
            self._tell(f"bad/{self.rank}/{operation.number}/{cut(words)}", operation.number)

    def past(self, operation: Operation) -> None:
        assert operation.number is not None
        self._ended.add(operation.number)
        if operation.work.is_success():
            self._useful = max(self._useful, operation.number)
        self._since[0] += operation.bytes
        self._since[1] += 1
        self._move()

    def _move(self) -> None:
        done = self.did[self.rank]
        while done + 1 in self._ended:
            done += 1
            self._ended.discard(done)
            self._announced.discard(done - HISTORY)
            self._differs.discard(done - HISTORY)
        self.did[self.rank] = done
        if self.eager or self._since[0] >= PROGRESS_BYTES or self._since[1] >= PROGRESS_COUNT:
            self.tell_progress()

    def tell_progress(self) -> None:
        """Up to which collective this rank has no use for the objects of others."""
        word = f"did/{self.rank}/{self.did[self.rank]}"
        if self.size > 1 and word != self._word:
            if self._word:
                self._channel.side("delete", self._base + self._word)
            self._tell(word)
            self._word, self._since = word, [0, 0]
            self._forget()

    def _forget(self) -> None:
        gone = {*self.dead, *self.left}
        self._channel.forget(min(number for rank, number in self.did.items() if rank not in gone or rank == self.rank))

    # --- looks

    def tick(self, now: float) -> None:
        for rank, since in list(self.suspects.items()):
            if now - since > SUSPECT_S:
                del self.suspects[rank]
                self._dies(rank, "its process has ended")
        if self._asked and now - self._asked > ANSWER_S:
            self._is_alone(f"it has not answered for {ANSWER_S:g} s: look whether its two processes run")
        old = False
        for operation in self._channel.under_way:
            age = now - operation.begun
            old = old or age > LOOK_S
            if operation.number is not None and age > MARK_S and self.size > 1:
                self._tell_mark(operation.number)
        if old and now - self._looked > LOOK_S and not self._asked:
            self._looked = now
            self._look(False)

    def _look(self, lists: bool) -> None:
        """lists: events are missing. The node's answers come in the thread for chores."""
        channel = self._channel
        self._asked = self._asked or time.monotonic()

        def look() -> None:
            try:
                nodes = channel.node.nodes()
            except NoNode as error:
                channel.post(partial(self._no_node, str(error)))
                return
            channel.post(lambda: self._see({one.node for one in nodes if one.state == "down"}))
            if lists:
                with contextlib.suppress(Error):
                    names = {info.name for info in channel.node.ls(self._base)}
                    channel.post(lambda: self._listed(names))
        channel.chore(look)

    def _see(self, down: Set[int]) -> None:
        self._asked = self.alone = None
        for rank, (node, _) in list(self._nodes.items()):
            if node in down and rank != self.rank:
                self._dies(rank, f"node {node}, where it ran, has died")

    def _listed(self, names: Set[str]) -> None:
        for name in names:
            self._event(name, False)
        for rank, (_, name) in list(self._nodes.items()):
            if name not in names:
                self._lives(rank, 0, name, True)

    def _no_node(self, words: str) -> None:
        self._asked = None
        self._is_alone(words)

    def _is_alone(self, words: str) -> None:
        self.alone = CollectiveError(f"the node of this rank has gone: {words}")
        self._fail_those(lambda _: True, self.alone)

    # --- the end

    def leave(self, seconds: float) -> None:
        """In another thread: this rank begins nothing any more. Waits until the others need nothing of it, that is are
        past the last collective that has ended well here."""
        number = self._channel.number
        self._channel.post(lambda: self._tell(f"left/{self.rank}/{number}"))
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._channel._closed:
            others = [rank for rank in range(self.size) if rank != self.rank and rank not in self.dead]
            if self.alone or all(self.did[rank] >= self._useful or rank in self.left for rank in others):
                return
            time.sleep(0.005)

    def clear(self) -> None:
        """Of several survivors the first deletes what a dead rank has left. Its lease does not where the owner of a name
        has died with it (guarantees.md, section 4)."""
        live = [rank for rank in range(self.size) if rank not in self.dead and rank not in self.left]
        if not self.dead or self.alone or self.rank != min(live, default=-1):
            return
        time.sleep(max(0.0, self._died + LISTED_S - time.monotonic()))
        channel = self._channel
        try:
            names = [info.name for info in channel.node.ls(f"{channel.base}/")]
        except PartialError as error:
            names = [info.name for info in error.found]
        except Error:
            return
        for name in names:
            with contextlib.suppress(Error):
                channel.node.delete(name)

    def close(self) -> None:
        with contextlib.suppress(Error):
            self._lease._maker.close() if self.alone else self._lease.end()
        self._watch = None  # type: ignore[assignment]
