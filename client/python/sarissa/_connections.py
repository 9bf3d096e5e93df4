# SPDX-License-Identifier: BSD-3-Clause
"""The connections of one Node. A connection has 1,024 views and writers at a time; a program that holds more
gets further connections, which are opened here as they are needed and go when they have none."""

from __future__ import annotations

import threading
from typing import List, Optional, Tuple

from . import _sarissa
from ._errors import Closed

VIEWS_MAX = 1000  # the others are for what is under way: puts, pulls of groups


class Connections:
    """Any thread. The first one serves all calls that bring no view."""

    def __init__(self, path: Optional[str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._lease = 0
        self._further: List[_sarissa.Handle] = []
        self._first: Optional[_sarissa.Handle] = _sarissa.Handle(path)

    def first(self) -> _sarissa.Handle:
        if self._first is None:
            raise Closed
        return self._first

    def with_room(self, count: int = 1) -> _sarissa.Handle:
        """One with room for so many views more."""
        first = self.first()
        if first.views + count <= VIEWS_MAX:
            return first
        with self._lock:
            for handle in self._further:
                if handle.views + count <= VIEWS_MAX:
                    return handle
            return self._another()

    def rooms(self, count: int) -> List[Tuple[_sarissa.Handle, int]]:
        """Several with room for so many views together."""
        found = []
        with self._lock:
            for handle in [self.first(), *self._further]:
                room = min(VIEWS_MAX - handle.views, count)
                if room > 0:
                    found.append((handle, room))
                    count -= room
            while count > 0:
                room = min(VIEWS_MAX, count)
                found.append((self._another(), room))
                count -= room
        return found

    def _another(self) -> _sarissa.Handle:
        """Under the lock."""
        made = self.another()
        self._further = [handle for handle in self._further if handle.views] + [made]
        return made

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
            for handle in [self.first(), *self._further]:
                handle.use_lease(lease)

    def end(self) -> None:
        """Ends waits, and refuses new calls. Each goes with its last view."""
        with self._lock:
            ended = [self._first, *self._further]
            self._first, self._further = None, []
        for handle in ended:
            if handle is not None:
                handle.end()
