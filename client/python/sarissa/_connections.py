# SPDX-License-Identifier: BSD-3-Clause
"""The connections of one Node. A connection has 1,024 views and writers at a time; a program that holds more, or
waits for more, gets further connections, which are opened here as they are needed and go when they have none."""

from __future__ import annotations

import threading
from typing import Any, List, Optional

from . import _sarissa
from ._errors import Closed

VIEWS_MAX = 1000  # the others are for the pulls of groups


class Connection:
    """asked: the views that calls under way may bring."""

    def __init__(self, handle: _sarissa.Handle) -> None:
        self.handle, self.asked = handle, 0

    @property
    def room(self) -> int:
        return VIEWS_MAX - self.handle.views - self.asked


class Room:
    """Room for the views of one call in one connection, until the call has ended."""

    def __init__(self, connections: Connections, count: int) -> None:
        self._connections, self._count = connections, count

    def __enter__(self) -> _sarissa.Handle:
        self._taken = self._connections.take(self._count)
        return self._taken.handle

    def __exit__(self, *_: Any) -> None:
        self._connections.give_back(self._taken, self._count)


class Connections:
    """Any thread. The first one serves all calls that bring no view."""

    def __init__(self, path: Optional[str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opens = threading.Lock()  # taken before _lock, by the thread that opens a connection
        self._lease = 0
        self._further: List[Connection] = []
        self._first: Optional[Connection] = Connection(_sarissa.Handle(path))

    def first(self) -> _sarissa.Handle:
        if self._first is None:
            raise Closed
        return self._first.handle

    def _all(self) -> List[Connection]:
        """Under the lock."""
        if self._first is None:
            raise Closed
        return [self._first, *self._further]

    def at_once(self) -> Optional[_sarissa.Handle]:
        """The first one while it has room, for one view and a call that does not wait."""
        first = self._first
        return first.handle if first is not None and first.handle.views + first.asked < VIEWS_MAX else None

    def room(self, count: int = 1) -> Room:
        """For so many views more."""
        return Room(self, count)

    def take(self, count: int) -> Connection:
        """One with room. A further connection is opened where none has it."""
        taken = self._try(count)
        if taken is None:
            with self._opens:
                while (taken := self._try(count)) is None:
                    self._open()
                with self._lock:  # those that nobody uses go
                    self._further = [one for one in self._further if one.handle.views or one.asked]
        return taken

    def _try(self, count: int) -> Optional[Connection]:
        with self._lock:
            for one in self._all():
                if one.room >= count:
                    one.asked += count
                    return one
            return None

    def give_back(self, taken: Connection, count: int) -> None:
        with self._lock:
            taken.asked -= count

    def _open(self) -> None:
        made = Connection(self.another())
        with self._lock:
            if self._first is None:  # closed meanwhile
                raise Closed
            self._further.append(made)

    def another(self) -> _sarissa.Handle:
        """One that the caller has for itself."""
        self.first()  # else it is closed
        made = _sarissa.Handle(self._path)
        if self._lease:
            made.use_lease(self._lease)
        return made

    def use_lease(self, lease: int) -> None:
        """It holds what they make from now on."""
        with self._lock:
            self._lease = lease
            for one in self._all():
                one.handle.use_lease(lease)

    def end(self) -> None:
        """Ends waits, and refuses new calls. Each goes with its last view."""
        with self._lock:
            ended = [] if self._first is None else self._all()
            self._first, self._further = None, []
        for one in ended:
            one.handle.end()
