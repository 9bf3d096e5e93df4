# SPDX-License-Identifier: BSD-3-Clause
"""Waits that a signal may end. Handlers of signals, Ctrl-C's among them, run in the main thread and
not while it waits in C: what takes long there goes on in another thread."""

from __future__ import annotations

import errno
import threading
import time
from typing import Callable, Generic, Optional, TypeVar

from ._errors import Error
from ._names import FOREVER

T = TypeVar("T")
INLINE_NS = 10**9


class Waiter(threading.Thread, Generic[T]):
    """Waits in place of another thread. What it brings to one that has left goes with it."""

    answer: T

    def __init__(self, ask: Callable[[int], T], timeout_ns: int) -> None:
        super().__init__(daemon=True)
        self.ask, self.timeout_ns = ask, timeout_ns
        self.error: Optional[BaseException] = None

    def run(self) -> None:
        try:
            self.answer = self.ask(self.timeout_ns)
        except BaseException as error:
            self.error = error


def wait(ask: Callable[[int], T], timeout_ns: int) -> T:
    """ask(timeout_ns)"""
    if timeout_ns <= INLINE_NS or threading.current_thread() is not threading.main_thread():
        return ask(timeout_ns)
    begin = time.monotonic_ns()
    try:
        return ask(INLINE_NS)
    except Error as error:
        if error.errno not in (errno.ETIMEDOUT, errno.ENOTCONN):
            raise
    if timeout_ns < FOREVER:
        timeout_ns = max(1, timeout_ns - (time.monotonic_ns() - begin))
    waiter = Waiter(ask, timeout_ns)
    try:
        waiter.start()
    except RuntimeError:  # no more threads, or none any more: the interpreter is about to end
        return ask(timeout_ns)
    waiter.join()
    if waiter.error:
        raise waiter.error
    return waiter.answer
