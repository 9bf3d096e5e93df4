# SPDX-License-Identifier: BSD-3-Clause
"""A wait that goes on for five seconds says once, as a warning, what it waits for: that nobody has put the object,
that it is lost with a node, or that the node of this host has gone."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from typing import Any, List, Optional, Sequence, Tuple

from . import _sarissa
from ._errors import Error, WaitWarning
from ._names import FOREVER, Name

AFTER_S = 5.0
NAMED_MAX = 3  # of several waits that are told at a time


def caller() -> Tuple[str, int, str]:
    """File, line and module of the program that is in a call of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__package__")).split(".")[0] == "sarissa":
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__"))


def words(handle: _sarissa.Handle, names: Sequence[Name]) -> Optional[str]:
    """What the first of these that is not here waits for. Takes up to some seconds; for a thread of its own."""
    try:
        missing = next((name for name in names if handle.here(name) is None), names[0])
        said = handle.waits_for(missing)
    except Error:
        return None
    return f"{missing!r}: {said}" if said else None


def warn(said: str, waited: float, limited: bool, where: Tuple[str, int, str]) -> None:
    """Each is shown, however often a program waits at the same place."""
    rest = "" if limited else " (timeout= limits a wait)"
    warnings.warn_explicit(f"waiting for {waited:.0f} s: {said}{rest}", WaitWarning, where[0], where[1], where[2], {})


class Patience:
    """For one wait of a thread, which calls it several times a second."""

    def __init__(self, handle: _sarissa.Handle, names: Sequence[Name], limit_ns: int) -> None:
        self._handle, self._names, self._limited = handle, names, limit_ns < FOREVER
        self._began = time.monotonic()
        self._asking: Optional[threading.Thread] = None
        self._said: List[Optional[str]] = []
        self._done = not names

    def __call__(self) -> None:
        if self._done or time.monotonic() < self._began + AFTER_S:
            return
        if self._asking is None:
            self._asking = threading.Thread(target=self._ask, daemon=True, name="sarissa-waits")
            self._asking.start()
        elif self._said:
            self._done = True
            if self._said[0] is not None:
                warn(self._said[0], time.monotonic() - self._began, self._limited, caller())

    def _ask(self) -> None:
        self._said.append(words(self._handle, self._names))


def many(said: Sequence[Any], total: int) -> str:
    """Of several waits of one event loop."""
    rest = f"; and {total - len(said)} more wait" if total > len(said) else ""
    return "; ".join(said) + rest
