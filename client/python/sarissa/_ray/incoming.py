# SPDX-License-Identifier: BSD-3-Clause
"""An object on its way into the memory of this process, for the tensor transport of Ray (transport.py): it is copied
while it arrives, can be given up at any moment by another thread, and ends with an error when no node has it any more.
It knows neither Ray nor tensors."""

from __future__ import annotations

import errno
import time
from concurrent import futures
from typing import Any, List, Optional, Sequence

from .. import _results as results
from .. import _sarissa
from .._errors import Cancelled, Error, Lost, NotFound, Restarted, StoreFull, TimedOut, TooLarge
from .._futures import future_of
from .._names import FOREVER
from .._node import Node
from .memory import Layout, parts

SLICE_NS = 50_000_000  # an abort is seen so soon
PIECE_BYTES = 2 << 20  # arrive before the next copy
LOOK_S = 1.0  # without a new byte; then the directory is asked
GONE_S = 2.0  # that it knows of no copy, before that is believed
RESTARTS_MAX = 8


class Incoming:
    """One thread waits for it; any thread may abort() it. targets: writable memory of each tensor, as arrays of u1."""

    def __init__(self, node: Node, name: str, layout: Layout, targets: Sequence[Any]) -> None:
        self._node, self._name, self._layout, self._targets = node, name, layout, targets
        self._aborted = self._ended = False
        self._copied = self._restarts = 0
        self._view: Optional[_sarissa.View] = None
        self._left: List[int] = []  # tensors that are brought by themselves
        self._gone: Optional[float] = None  # since when no copy is known
        self._asked: Any = None  # the directory's answer, until it comes
        self._queue: Optional[_sarissa.Queue] = None
        self._room = node._connections.room()
        handle = self._room.__enter__()
        try:
            self._queue = handle.queue(1)
            self._queue.begin(0, name, FOREVER)
        except BaseException:
            self._queue = None
            self._room.__exit__()
            raise

    def abort(self) -> None:
        self._aborted = True

    def wait(self, timeout: Optional[float] = None) -> None:
        """Until all targets are full. TimedOut leaves it under way; every other error ends it."""
        until = None if timeout is None else time.monotonic() + timeout
        seen = time.monotonic()
        try:
            while not self._ended:
                if self._aborted:
                    raise Cancelled(errno.ECANCELED, f"the receive of {self._name} was aborted")
                now = time.monotonic()
                if until is not None and now >= until:
                    raise TimedOut(errno.ETIMEDOUT, f"{self._copied} of {self._layout.size} bytes of {self._name} have come")
                if self._turn(SLICE_NS if until is None else min(SLICE_NS, int((until - now) * 1e9))):
                    seen = time.monotonic()
                elif now > seen + LOOK_S:
                    seen = now
                    self._look()
        except TimedOut:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives up what is under way. The targets are not written to after that."""
        self._ended, self._view = True, None
        if self._queue is not None:
            self._queue = None  # which waits for the end of its operation
            self._room.__exit__()

    __del__ = close

    def _turn(self, limit_ns: int) -> bool:
        """Whether something has come."""
        assert self._queue is not None
        ended = self._queue.wait(limit_ns)
        for _, result in ended:
            self._gone = None
            if isinstance(result, (StoreFull, TooLarge)):
                self._bring_parts()
            elif isinstance(result, Restarted):
                self._restart(result)
            elif isinstance(result, BaseException):
                raise result
            elif self._left:
                self._next_part()
            else:
                self._view = self._view or result
                self._copy()
        return bool(ended)

    def _copy(self) -> None:
        """What has arrived; then waits for more."""
        import numpy
        assert self._view is not None and self._queue is not None
        if self._view.nbytes != self._layout.size:
            raise Lost(errno.ENODATA, f"{self._name} has {self._view.nbytes} bytes, not {self._layout.size}: another "
                                      "program has put it")
        ready = self._view.ready
        source = numpy.frombuffer(self._view, "u1", ready)  # type: ignore[call-overload]
        for number, at, first, last in parts(self._layout, self._copied, ready):
            numpy.copyto(self._targets[number][at:at + last - first], source[first:last])
        del source
        self._copied = ready
        if ready == self._layout.size:
            self.close()
        else:
            self._queue.wait_for(0, self._view, min(ready + PIECE_BYTES, self._layout.size), FOREVER)

    def _restart(self, error: Restarted) -> None:
        assert self._queue is not None
        self._restarts += 1
        if self._restarts > RESTARTS_MAX:
            raise error
        self._view, self._copied = None, 0
        self._queue.begin(0, self._name, FOREVER)

    def _bring_parts(self) -> None:
        """Without a copy in the store of this node, which has no room for it."""
        self._view, self._copied = None, 0
        self._left = [number for number, size in enumerate(self._layout.sizes) if size]
        self._bring_part()

    def _bring_part(self) -> None:
        assert self._queue is not None
        number = self._left[0]
        self._queue.get_ranges(0, self._name, self._targets[number],
                               [(self._layout.offsets[number], self._layout.sizes[number])], FOREVER)

    def _next_part(self) -> None:
        self._copied += self._layout.sizes[self._left.pop(0)]
        if self._left:
            self._bring_part()
        else:
            self.close()

    def _look(self) -> None:
        """Nothing has come for a while: an object that no node has will not come. The node may be down, and an abort
        does not wait for its answer."""
        asked, self._asked = self._asked or future_of(self._node, results.info, "info", self._name), None
        futures.wait([asked], SLICE_NS / 1e9)
        if not asked.done():
            self._asked = asked
            return
        try:
            info = asked.result()
            there = info.copies + info.partial > 0
            error: Error = Lost(errno.ENODATA, f"{self._name} is lost with node {info.lost_node}")
        except NotFound:
            there, error = False, NotFound(errno.ENOENT, f"{self._name} exists no more: its process has ended, or its "
                                                         "node is of another cluster")
        now = time.monotonic()
        self._gone = None if there else self._gone or now
        if self._gone is not None and now >= self._gone + GONE_S:
            raise error
