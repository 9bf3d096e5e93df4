# SPDX-License-Identifier: BSD-3-Clause
"""Calls that wait. What they are asked with is the operation of a queue, as aio's; signals end them
(extension/wait.c)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from . import _sarissa

SLICE_NS = 10**8


def finish(handle: _sarissa.Handle, submit: Callable[[_sarissa.Queue], None], capacity: int = 1,
           look: Callable[[], None] = lambda: None) -> Any:
    """Submits one operation and waits for its end. When a signal's handler or look, which is called
    several times a second, raises, the operation goes, and what it has got."""
    queue = handle.queue(capacity, True)
    submit(queue)
    return queue.run(look)


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
                        del result, results, queue  # they would keep this frame, and the callers' with it, in a cycle
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
