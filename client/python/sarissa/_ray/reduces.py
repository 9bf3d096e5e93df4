# SPDX-License-Identifier: BSD-3-Clause
"""reduce() and allreduce() over Refs, also of tasks that have not run yet. When the reduce has ended, the process that
asked for it holds the result, and cancels the Ray tasks that were not used."""

from __future__ import annotations

import contextlib
from typing import Any, List, Optional, Sequence

import ray

from .._futures import future_of
from .._names import FOREVER, Name
from . import owned, place
from .refs import Origin, Ref, new
from .waits import naming_pickles

SOURCES_MAX = 1024


def reduce(refs: Sequence[Any], op: str, num: Optional[int], dtype: Any, timeout: Optional[float], spread: bool,
           cancel: bool) -> Ref:
    if isinstance(refs, (str, bytes)) or not hasattr(refs, "__iter__"):
        raise TypeError("a list of Refs is wanted")
    sources: List[Any] = list(refs)
    for one in sources:
        if not hasattr(one, "name"):
            raise TypeError("this is a reference of Ray's: a reduce takes what put(), task and reduce() of sarissa.ray return"
                            if isinstance(one, ray.ObjectRef) else
                            f"a Ref is wanted, and not {type(one).__name__}: put() gives one")
    if not 1 <= len(sources) <= SOURCES_MAX:
        raise ValueError(f"a reduce of {len(sources)} Refs: give 1 to {SOURCES_MAX}")
    if num is not None and not 1 <= num <= len(sources):
        raise ValueError(f"num={num} of {len(sources)} Refs: it is 1 to {len(sources)}")
    target = new(Origin(sources=tuple(sources), need=len(sources) if num is None else num))
    owned.coming(target.name, ())
    with naming_pickles(target, sources):
        place.node().reduce(target.name, [one.name for one in sources], op, dtype, num or 0, spread, timeout)
    done = future_of(place.node(), list, "reduce_sources", target.name, FOREVER)
    name, tasks = target.name, sources
    done.add_done_callback(lambda ended: owned.later(lambda: _end(name, tasks, ended, cancel)))
    return target


def _end(name: Name, sources: Sequence[Any], ended: Any, cancel: bool) -> None:
    """In the thread of the Refs, which keeps the sources until now."""
    if ended.cancelled() or ended.exception() is not None:
        return
    owned.hold(name, True)
    if cancel:
        used = set(ended.result())
        cancel_tasks([one for one in sources if one.id not in used])


def cancel_tasks(refs: Sequence[Any]) -> None:
    for ref in refs:
        task = ref._origin.task if isinstance(ref, Ref) else None
        if task is not None and not ray.wait([task], timeout=0)[0]:
            with contextlib.suppress(Exception):  # a running method of an actor goes on
                ray.cancel(task)
