# SPDX-License-Identifier: BSD-3-Clause
"""Feed: how a rank of an ElasticGroup gives its state to ranks that join, and how a joiner gets it. It knows names and
leases, and not what the state is for.

    PREFIX/s/RANK        this rank has a state; goes with the rank
    PREFIX/first         the rank whose own state begins the group; goes with the rank
    PREFIX/want/CLOCK/RANK.TRY    a joiner asks for a state of this clock or a later one; goes when it has it
    PREFIX/state/CLOCK   a state, which any rank stores that has it; the others find that it exists

Many joiners of one step load one object, along the store's tree, while it is written. When the rank dies that writes
it the object goes, and the joiner asks again."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .._errors import Closed, Deleted, Error, Exists, Lost, NotFound, Restarted, StoreFull, TimedOut
from .._leases import Lease
from .._node import Node
from . import state as states

RETRY_S = 1.0  # of a joiner


class Taken(NamedTuple):
    """What has come with a state."""

    step: int
    round: int
    rank: int
    base: Any


class Feed:
    def __init__(self, node: Node, lease: Lease, prefix: str, rank: int, fed: Callable[[], None]) -> None:
        self._node, self._lease, self._prefix, self._rank, self._fed = node, lease, prefix, rank, fed
        self._lock = threading.Condition()
        self._clock: Optional[int] = None  # of the state, while nothing changes it
        self._closed = False
        self._state: Optional[Callable[[], Dict[str, Any]]] = None
        self._wants: Dict[str, int] = {}
        self._stored: List[str] = []
        self._threads: List[threading.Thread] = []

    # --- a rank that has a state

    def offer(self, state: Callable[[], Dict[str, Any]]) -> None:
        """From now on joiners can ask this rank."""
        self._state = state
        self._lease.put(f"{self._prefix}/s/{self._rank:x}", b"")
        self._threads = [threading.Thread(target=one, name="sarissa-elastic", daemon=True) for one in (self._watch, self._serve)]
        for thread in self._threads:
            thread.start()

    @contextlib.contextmanager
    def open(self, clock: int) -> Iterator[None]:
        """Within the block the state is that of clock, and nothing changes it. The end waits for a state that is being stored."""
        with self._lock:
            self._clock = clock
            self._lock.notify_all()
        try:
            yield
        finally:
            with self._lock:
                self._clock = None

    def _watch(self) -> None:
        prefix = f"{self._prefix}/want/"
        with contextlib.suppress(Closed, Error), self._node.watch(prefix) as watch:
            while not self._closed:
                try:
                    event = watch.get(timeout=0.5)
                except TimedOut:
                    continue
                with self._lock:
                    if event.kind == "complete":
                        self._wants[event.name] = int(event.name[len(prefix):].partition("/")[0])
                        self._lock.notify_all()
                    elif event.kind == "gone":
                        self._wants.pop(event.name, None)
                        self._lock.notify_all()

    def _serve(self) -> None:
        while not self._closed:
            with self._lock:
                self._lock.wait(timeout=0.5)
                if not self._wants:
                    self._drop()
                elif self._clock is not None and not self._closed and min(self._wants.values()) <= self._clock:
                    self._store(f"{self._prefix}/state/{self._clock}")

    def _store(self, name: str) -> None:
        assert self._state is not None
        if name in self._stored:
            return
        try:
            states.save(self._state(), name, node=self._lease)
        except Exists:
            self._lock.wait(timeout=0.1)  # another rank stores it, or has begun and died
        except StoreFull:
            self._drop()
        except Error:
            self._lock.wait(timeout=0.1)
        else:
            self._stored.append(name)
            self._fed()

    def _drop(self) -> None:
        for name in self._stored:
            with contextlib.suppress(Error):
                self._lease.drop(name)
        self._stored = []

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for thread in self._threads[1:]:  # the other one ends by itself, after its wait
            thread.join()

    # --- a joiner

    def take(self, given: Dict[str, Any], clock: int, timeout: Optional[float]) -> Optional[Taken]:
        """Loads a state of clock or a later one. None: no rank has one, and the group begins with this rank's own."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._node.watch(f"{self._prefix}/state/") as watch:
            for attempt in itertools.count():
                if self._is_first():
                    return None
                with self._wanted(clock, attempt):
                    if (taken := self._load_next(watch, given, clock)) is not None:
                        return taken
                if until is not None and time.monotonic() > until:
                    raise TimedOut(errno.ETIMEDOUT, f"group {self._prefix!r}: no rank has given its state of clock {clock} in {timeout} s: a "
                                                    "rank gives it when it is in allreduce()")
        raise AssertionError

    def _is_first(self) -> bool:
        if self._node.ls(f"{self._prefix}/s/"):
            return False
        try:
            self._lease.put(f"{self._prefix}/first", f"{os.uname().nodename} {os.getpid()} {self._rank}".encode())
        except Exists:
            return False
        return not self._node.ls(f"{self._prefix}/s/")  # the one before has died since the look

    @contextlib.contextmanager
    def _wanted(self, clock: int, attempt: int) -> Iterator[None]:
        name = f"{self._prefix}/want/{clock}/{self._rank:x}.{attempt}"
        self._lease.put(name, b"")
        try:
            yield
        finally:
            with contextlib.suppress(Error):
                self._lease.drop(name)

    def _load_next(self, watch: Any, given: Dict[str, Any], clock: int) -> Optional[Taken]:
        until = time.monotonic() + RETRY_S
        while (left := until - time.monotonic()) > 0:
            try:
                event = watch.get(timeout=left)
            except TimedOut:
                return None
            if event.kind in ("appeared", "complete") and int(event.name.rpartition("/")[2]) >= clock:
                with contextlib.suppress(Deleted, Lost, NotFound, Restarted, TimedOut):
                    return self._load(event.name, given)
        return None

    def _load(self, name: str, given: Dict[str, Any]) -> Taken:
        got = states.load(name, node=self._node, timeout=30)
        for key, thing in given.items():
            if key not in got["given"]:
                raise KeyError(f"the ranks of {self._prefix!r} have no state of {key!r}: give sync() the same names on all ranks")
            thing.load_state_dict(got["given"][key])
        return Taken(got["step"], got["round"], got["rank"], got["base"])
