# SPDX-License-Identifier: BSD-3-Clause
"""Waits that a signal may end. Handlers of signals, Ctrl-C's among them, run in the main thread between
two steps of Python. So a wait there is an operation of a queue that is looked at in slices."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple, TypeVar

from . import _sarissa
from ._errors import NoNode, TimedOut
from ._names import FOREVER, Name
from ._patience import AFTER_S, Patience

T = TypeVar("T")
SLICE_NS = 10**8
FIRST_NS = int(AFTER_S * 1e9)


def interruptible(timeout_ns: int) -> bool:
    """Whether a wait of this thread is to be in slices."""
    return timeout_ns > SLICE_NS and threading.current_thread() is threading.main_thread()


def finish(handle: _sarissa.Handle, submit: Callable[[_sarissa.Queue], None], capacity: int = 1,
           look: Callable[[], None] = lambda: None) -> Any:
    """Submits one operation and waits for its end. When a signal's handler or look, which is called
    several times a second, raises, the queue goes, and with it the operation and what it has got."""
    return collect(handle, submit, 1, capacity, look)[0][1]


def collect(handle: _sarissa.Handle, submit: Callable[[_sarissa.Queue], None], count: int,
            capacity: int, look: Callable[[], None] = lambda: None) -> List[Tuple[int, Any]]:
    """The same with count operations; raises the first exception, unless the tickets are told apart by
    the caller (count above 1)."""
    queue = handle.queue(capacity)
    submit(queue)
    ended: List[Tuple[int, Any]] = []
    while len(ended) < count:
        handle.check()  # close() of another thread
        look()
        ended += queue.wait(SLICE_NS)
    if count == 1 and isinstance(ended[0][1], BaseException):
        try:
            raise ended[0][1]
        finally:
            del ended  # which would keep this frame, and through it those of all callers, in a cycle
    return ended


def long_wait(handle: _sarissa.Handle, names: Sequence[Name], limit_ns: int, begin: Callable[[int], T],
            submit: Callable[[_sarissa.Queue, int], None]) -> T:
    """A wait for objects that says after some time what it waits for. begin(limit_ns): the call of C, for other
    threads than the main one, and for short waits; submit(queue, limit_ns): its operation."""
    look = Patience(handle, names, limit_ns)
    if interruptible(limit_ns):
        main: T = finish(handle, lambda queue: submit(queue, limit_ns), 1, look)
        return main
    began = time.monotonic_ns()
    try:
        return begin(min(limit_ns, FIRST_NS))
    except (TimedOut, NoNode):
        if limit_ns <= FIRST_NS or time.monotonic_ns() - began < FIRST_NS:
            raise
    left = limit_ns - FIRST_NS if limit_ns < FOREVER else FOREVER
    got: T = finish(handle, lambda queue: submit(queue, left), 1, look)
    return got


def together(asked: Sequence[Tuple[_sarissa.Handle, Callable[[_sarissa.Queue], None], int]],
             look: Callable[[], None] = lambda: None) -> List[Any]:
    """finish() of several, side by side: (connection, submit, capacity) each. The first exception ends all."""
    queues = []
    for handle, submit, capacity in asked:
        queues.append(handle.queue(capacity))
        submit(queues[-1])
    results: Dict[int, Any] = {}
    while len(results) < len(queues):
        asked[0][0].check()
        look()
        first = min(set(range(len(queues))) - results.keys())
        for number, queue in enumerate(queues):
            for _, result in queue.wait(SLICE_NS if number == first else 0) if number not in results else ():
                if isinstance(result, BaseException):
                    try:
                        raise result
                    finally:
                        queues.clear()
                        del result, results, queue  # as in collect()
                results[number] = result
    return [results[number] for number in range(len(queues))]


def end_block(end: Callable[[], None], failed: bool) -> None:
    """The end of a with block. failed: an exception passes. It is the one that the program gets, and waits half a
    second at most for the node, which does the rest in its own time."""
    if not failed:
        end()
        return
    try:
        _sarissa.brief(end)
    except Exception:
        pass


def ask(question: Callable[[int], T], timeout_ns: int) -> T:
    """question(timeout_ns), which may be asked again: in slices where that is needed."""
    until = time.monotonic_ns() + timeout_ns if timeout_ns < FOREVER else FOREVER
    while interruptible(left := until - time.monotonic_ns() if until < FOREVER else FOREVER):
        begin = time.monotonic_ns()
        try:
            return question(SLICE_NS)
        except (TimedOut, NoNode):  # a call waits for another control until its time is over
            if time.monotonic_ns() - begin < SLICE_NS:
                raise  # not our time, but that of what was asked about
    return question(left if left > 0 else min(timeout_ns, 1))  # 0 would be another question
