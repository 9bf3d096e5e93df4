# SPDX-License-Identifier: BSD-3-Clause
"""Watch: what becomes of the objects of a name prefix. Node.watch() makes it, aio has its own loop around
the same events. Events wait in the extension, which drops what waits too long, and says so."""

from __future__ import annotations

import errno
import time
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Type

from . import _sarissa
from ._errors import TimedOut
from ._names import FOREVER, timeout_ns
from ._waits import SLICE_NS

KINDS = ("", "appeared", "complete", "gone", "missed")


class Event(NamedTuple):
    """appeared: a node is creating the object, or has a part of it; complete: a node has all of it; gone:
    deleted, expired, or lost with its nodes. missed, of no object: events are missing, so list again
    (ls). The events of one object come in order; a change that is undone at once may not be told."""

    kind: str
    id: bytes
    name: str
    size: int


def events(ended: List[Tuple[int, Any]]) -> Iterator[Event]:
    """Of what a queue has brought. Raises the watch's end."""
    for _, result in ended:
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                del ended, result  # which would keep this frame and its callers' in a cycle
        kind, ident, name, size = result
        yield Event(KINDS[kind], ident, name, size)


class Watch:
    """An iterator of Event, without an end but close(). For one thread at a time."""

    def __init__(self, handle: _sarissa.Handle, prefix: str) -> None:
        self._handle = handle
        self._queue: Optional[_sarissa.Queue] = handle.queue(1)
        self._queue.watch(0, prefix)
        self._events: Iterator[Event] = iter(())

    def get(self, timeout: Optional[float] = None) -> Event:
        """The next event. TimedOut when none comes in timeout seconds."""
        limit = timeout_ns(timeout)
        until = time.monotonic_ns() + limit if limit < FOREVER else FOREVER
        while (event := next(self._events, None)) is None:
            if self._queue is None:
                raise ValueError("the watch is closed: begin another one")
            self._handle.check()
            left = until - time.monotonic_ns() if until < FOREVER else SLICE_NS
            ended = self._queue.wait(max(0, min(left, SLICE_NS)))
            if left <= 0 and not ended:
                raise TimedOut(errno.ETIMEDOUT, f"nothing has become of these objects in {timeout} s: wait longer")
            self._events = events(ended)
        return event

    def close(self) -> None:
        self._queue = None
        self._events = iter(())

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Event:
        if self._queue is None:
            raise StopIteration
        return self.get()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()
