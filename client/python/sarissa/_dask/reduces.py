# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.dask.reduce() and allreduce(): the results of futures are added up in the network, as tasks finish.

A source that finds no room in its store is carried: it goes Dask's own way to the task that ends the reduce, which
adds it to the others."""

from __future__ import annotations

import contextlib
import functools
import time
import uuid
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import distributed
import numpy

from .. import _sarissa
from .messages import current, warn_once
from .store import Store
from .._errors import Error, Exists, StoreFull, TimedOut
from .._names import dtype_of, op_of, timeout_ns
from .._operations import reduce_request
from .._results import mine, shaped

SOURCES_MAX = 1024
ROOM_S = 60.0  # for room in a full store
SOON_S = 10.0  # for sources whose arrays are there; the reduce begins without them then
LOOK_S = 0.1
COMBINE: Dict[str, Any] = {"sum": numpy.add, "avg": numpy.add, "prod": numpy.multiply, "min": numpy.minimum,
                           "max": numpy.maximum}
REDUCE_S = 3600.0  # of a reduce without a timeout: so long it stays when all workers are killed


def _need_store() -> Store:
    store = current()
    if store is None:
        raise RuntimeError("this worker does not use the object store: register the plugin with "
                           "client.register_plugin(sarissa.dask.Plugin()); its log says when it has no node, "
                           "or when its encryption or its version of Dask is in the way")
    return store


class _Described:
    """What a source is. The object of the source lives as long as this does, or a copy that Dask has made of it at
    another worker. array: the source itself, when it is not in the store."""

    def __init__(self, name: str, dtype: str, shape: Tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.array: Any = None

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        store = current()
        if store is not None:
            store.share(self, _sarissa.id_from(self.name))


class _Undone:
    """In the place of a result: why there is none."""

    def __init__(self, error: Optional[Error] = None) -> None:
        self.error = error


def source_of(value: Any, name: str) -> _Described:
    """Puts a task's result as a source, where it is."""
    memory, meaning = mine(value, [name], 0)
    described = _Described(name, dtype_of(meaning.dtype), meaning.shape)
    if not _is_on_a_worker():
        described.array = value
        return described
    store = _need_store()
    try:
        store.put_for(described, name, memory)
    except StoreFull as error:
        warn_once(f"an array goes Dask's own way, not through the object store: {error}", "source: StoreFull")
        store.counts["not put"] += 1
        described.array = value
        if memoryview(memory).nbytes > 1:
            _put_mark(store, described, name)
    return described


def _put_mark(store: Store, described: _Described, name: str) -> None:
    """One byte in the place of the source, which ends the reduce: it does not fit to the others."""
    until = time.monotonic() + ROOM_S
    while True:
        try:
            return store.put_for(described, name, b"\0")
        except StoreFull:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _is_on_a_worker() -> bool:
    try:
        distributed.get_worker()
        return True
    except ValueError:  # in a thread of dask.threaded
        return False


class Forgotten(Exception):
    """Dask does not want the result of a task any more: its future was released, or a source cancelled."""


def _unless_forgotten() -> Callable[[], None]:
    """For the task that calls this: raises Forgotten when that holds."""
    worker = distributed.get_worker()
    key = worker.get_current_task()

    def look() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise Forgotten(f"nobody wants {key} any more")
    return look


def _reduced(handle: _sarissa.Handle, request: _sarissa.Reduce, look: Callable[[], None]) -> None:
    """Begins a reduce and waits for its end. It has begun already when an earlier worker had this task."""
    with contextlib.suppress(Exists):
        handle.reduce(*request, look=look)
    handle.reduce_sources(request[0], request[6], look=look)


def _gather(store: Store, base: str, soon: Sequence[str], until: float, look: Callable[[], None]) -> None:
    """Waits for sources that are being put. A reduce that knows them sends one sum from each node; what comes
    later costs links another one."""
    left = set(soon)
    with contextlib.suppress(Error), store.node.watch(f"{base}/") as watch:  # else the reduce waits for them
        while left and time.monotonic() < until:
            look()
            with contextlib.suppress(TimedOut):
                event = watch.get(LOOK_S)
                if event.kind == "complete":
                    left.discard(event.name)


def result_of(first: _Described, target: str, sources: List[str], op: str,
              everywhere: bool, timeout: Optional[float], soon: Sequence[str] = ()) -> Any:
    """Begins the reduce as soon as one source says what they are, and those of soon are there. Waits for the result."""
    if first.array is not None:
        return _Undone()
    store, look = _need_store(), _unless_forgotten()
    distributed.secede()  # it waits, and other tasks want the thread
    given, began = REDUCE_S if timeout is None else timeout, time.monotonic()
    try:
        if len(soon) > 1:
            _gather(store, target, soon, began + min(given, SOON_S), look)
    except Forgotten:
        return None
    dtype, limit = first.dtype, timeout_ns(max(0.0, given - (time.monotonic() - began)))
    request = reduce_request(target, sources, op, dtype, 0, False, limit)
    handle = store.node._open()
    try:
        if everywhere:
            view = handle.allreduce(*request, look=look)
        else:
            _reduced(handle, request, look)  # only what has ended is held; says why there is no result
            view = handle.get(target, limit, look=look)
    except Forgotten:  # Dask would keep an exception, and with it the arguments
        _delete(target)
        return None
    except Error as error:  # a source may have found no room
        return _Undone(error.with_traceback(None))
    result = shaped(target, view, dtype, first.shape)
    store.adopt(result, _sarissa.id_from(target))
    return result


def end(result: Any, sources: Sequence[_Described], op: str, base: str) -> Any:
    """Dask keeps the sources until here."""
    kinds = sorted(set(map(str, sources)))
    if len(kinds) != 1:
        raise ValueError(f"the arrays of a reduce have one type and shape, not {', '.join(kinds)}")
    carried = [one.array for one in sources if one.array is not None]
    if not carried:
        if isinstance(result, _Undone):
            raise result.error or RuntimeError("a reduce was not begun")
        return result
    total = carried[0].copy()
    for array in carried[1:]:
        COMBINE[op](total, array, out=total)
    _add_one_by_one(total, [one for one in sources if one.array is None], COMBINE[op])
    return (total / len(sources)).astype(total.dtype) if op == "avg" else total


def _add_one_by_one(total: Any, sources: Sequence[_Described], combine: Any) -> None:
    """What is in the store, where there is no room for a reduce. Each goes as soon as it is in the sum."""
    if not sources:
        return
    store, look = _need_store(), _unless_forgotten()
    distributed.secede()
    handle = store.node._open()
    until = time.monotonic() + ROOM_S
    for source in sorted(sources, key=lambda one: handle.here(_sarissa.id_from(one.name)) is None):
        while True:
            try:
                view = handle.get(source.name, timeout_ns(ROOM_S), look=look)
                break
            except StoreFull:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        combine(total, shaped(source.name, view, source.dtype, source.shape), out=total)
        del view
        _delete(source.name)
        until = time.monotonic() + ROOM_S


def _begin(futures: Sequence[Any], op: str, timeout: Optional[float]) -> Tuple[Any, str, List[str], List[Any]]:
    op_of(op)
    timeout_ns(timeout)
    for future in futures:
        if not isinstance(future, distributed.Future):
            raise TypeError(f"{future!r} is no future: submit() or scatter() it, or use numpy's sum")
    if not 1 <= len(futures) <= SOURCES_MAX:
        raise ValueError(f"a reduce has 1 to {SOURCES_MAX} futures, not {len(futures)}: reduce in steps")
    client = futures[0].client
    base = f"dask-reduce/{uuid.uuid4().hex}"
    sources = [f"{base}/{i}" for i in range(len(futures))]
    described = [client.submit(source_of, future, name, pure=False) for future, name in zip(futures, sources)]
    for one in described:
        one.add_done_callback(functools.partial(_stop, client, base))
    return client, base, sources, described


def _stop(client: Any, target: str, source: Any) -> None:
    """A task that fails ends the reduce that waits for it."""
    if source.status == "error":
        distributed.fire_and_forget(client.submit(_delete, target, pure=False))


def _delete(target: str) -> None:
    store = current()
    if store is not None:
        with contextlib.suppress(Error):  # it has not begun, or has ended
            store.node.delete(target, raw=True)


def reduce(futures: Sequence[Any], op: str = "sum", timeout: Optional[float] = None) -> Any:
    """A future of the sum (or another of sarissa.OPS) of the arrays of futures, which all have one type and
    shape. It is made in the network, from each array as its task finishes, until timeout seconds (an hour)
    after the first one. It ends when its future is released, or one of futures is cancelled."""
    client, base, sources, described = _begin(futures, op, timeout)
    soon = [name for name, future in zip(sources, futures) if future.status == "finished"]
    result = client.submit(result_of, described[0], base, sources, op, False, timeout, soon, pure=False)
    return client.submit(end, result, described, op, base, pure=False)


def allreduce(futures: Sequence[Any], op: str = "sum", timeout: Optional[float] = None) -> List[Any]:
    """The same with a future of the result for each of futures: every worker that has one of the arrays
    gets the result while it is made."""
    client, base, sources, described = _begin(futures, op, timeout)
    results = [client.submit(result_of, one, base, sources, op, True, timeout, pure=False) for one in described]
    return [client.submit(end, result, described, op, base, pure=False) for result in results]
