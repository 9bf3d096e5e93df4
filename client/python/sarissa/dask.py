# SPDX-License-Identifier: BSD-3-Clause
"""Dask's large arrays through the object store.

    client = distributed.Client(...)
    client.register_worker_plugin(sarissa.dask.Plugin())

From then on arrays of numpy and bytes of 1 MiB and more do not travel inside Dask's messages between
workers, nor in those of scatter() when the client's host has a node. The message has an id; the receiver
maps the object, read-only and without a copy. Many receivers of one array, of scatter(broadcast=True) and
of replicate() as well, form the store's tree.
Dask decides as before where what goes and how long it lives: when it has let an array go, its object
is deleted; what a killed worker held ends with its lease. Where no node runs, or the other side does
not speak this, arrays travel Dask's own way.

reduce() and allreduce() add up the results of futures in the network, as tasks finish."""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
import warnings
from array import array
from contextvars import ContextVar
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import distributed
import distributed.comm.core
import distributed.comm.tcp
import distributed.comm.ws
from distributed.protocol import dask_deserialize, dask_serialize, pickle
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized
from distributed.utils import has_keyword

from . import _sarissa
from ._dask_store import Store
from ._errors import Error, Exists, Refused, TimedOut
from ._leases import ttl_ns
from ._names import dtype_of, op_of, timeout_ns
from ._node import mine, reduce_request, shaped
from ._waits import SLICE_NS, finish

__all__ = ["Plugin", "allreduce", "reduce"]

LARGE_BYTES = 1 << 20
MARK = b"sarissa object: "  # then the id; a frame of our messages
HANDSHAKE = "sarissa"
BRANCHES = 1 << 10
SOURCES_MAX = 1024
REDUCE_S = 3600.0  # of a reduce without a timeout: so long it stays when all workers are killed
_store: Optional[Store] = None
_dumps: Dict[type, Callable[..., Any]] = {}  # Dask's own, by what they take
_relay: ContextVar[Optional[str]] = ContextVar("sarissa-relay", default=None)  # address of a scheduler
_warned = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


# --- messages


def _bytes_of(thing: Any) -> int:
    """Also of numpy's dates, which have no memoryview."""
    return int(thing.nbytes) if hasattr(thing, "nbytes") else memoryview(thing).nbytes


def _put(store: Store, thing: Any, frame: Any) -> Optional[bytes]:
    """Its id, or None: it has to go Dask's way."""
    try:
        return store.ident_of(thing, frame)
    except Error as error:
        _warn_once(f"an array goes Dask's own way, not through the object store: {error}")
        return None


def _ours(ident: bytes, inner: Any) -> Tuple[Dict[str, Any], List[bytes]]:
    return {"sarissa": ident, "inner": inner}, [MARK + ident]


def _takes(store: Store, recipient: Dict[str, Any]) -> bool:
    """Whether the recipient can do with an id, or passes it on to workers that can."""
    relay = _relay.get()
    return store.knows(recipient.get(HANDSHAKE)) or relay is not None and recipient.get("address") == relay


def _serializer(dumps: Callable[..., Any]) -> Callable[..., Any]:
    with_context = has_keyword(dumps, "context")

    def serialize(thing: Any, context: Optional[Dict[str, Any]] = None) -> Any:
        header, frames = dumps(thing, context=context) if with_context else dumps(thing)
        store = _store
        if store is None or not context or len(frames) != 1 or _bytes_of(thing) < LARGE_BYTES:
            return header, frames
        if not _takes(store, context.get("recipient", {})):
            return header, frames
        ident = _put(store, thing, frames[0])
        return (header, frames) if ident is None else _ours(ident, header)
    return serialize


class Arriving:
    """Stands in a message for what has not come yet."""

    def __init__(self, ident: bytes, inner: Dict[str, Any], loads: Callable[..., Any], keeps: bool) -> None:
        self.ident, self.inner, self.loads, self.keeps = ident, inner, loads, keeps

    async def arrive(self) -> Any:
        if _store is None:
            raise RuntimeError("an object came to a process that has not registered sarissa.dask.Plugin")
        return await _store.arrive(self.ident, self.make, self.keeps)

    def make(self, memory: Any) -> Any:
        inner = {**self.inner, "writeable": [False]} if "writeable" in self.inner else self.inner
        return self.loads(inner, [memory])


def _deserializer(loads: Callable[..., Any], keeps: bool) -> Callable[..., Any]:
    def deserialize(header: Dict[str, Any], frames: List[Any]) -> Any:
        if "sarissa" in header:
            return Arriving(header["sarissa"], header["inner"], loads, keeps)
        return loads(header, frames)
    return deserialize


def _walk(value: Any, found: List[Arriving]) -> None:
    if isinstance(value, Arriving):
        found.append(value)
    elif type(value) is dict:
        for one in value.values():
            _walk(one, found)
    elif type(value) in (list, tuple, set):
        for one in value:
            _walk(one, found)


def _filled(value: Any, come: Dict[int, Any]) -> Any:
    if isinstance(value, Arriving):
        return come[id(value)]
    if type(value) is dict:
        return {key: _filled(one, come) for key, one in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_filled(one, come) for one in value)
    return value


async def _fill(message: Any) -> Any:
    """The message, when all that is on its way to it has come."""
    found: List[Arriving] = []
    _walk(message, found)
    ends = await asyncio.gather(*[one.arrive() for one in found], return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            _warn_once(f"an object of a message is lost, so the connection counts as broken: {end}")
            raise EOFError(str(end))  # as after a message that was cut off: Dask asks elsewhere
    return _filled(message, {id(one): end for one, end in zip(found, ends)})


def _is_mark(frame: Any) -> bool:
    return len(frame) == len(MARK) + 16 and bytes(frame[:len(MARK)]) == MARK


def _reader(from_frames: Callable[..., Any]) -> Callable[..., Any]:
    async def read(frames: Any, deserialize: bool = True, **how: Any) -> Any:
        message = await from_frames(frames, deserialize=deserialize, **how)
        if deserialize and any(_is_mark(frame) for frame in frames):
            return await _fill(message)
        return message
    return read


def _handshake(info: Callable[[], Dict[str, Any]]) -> Callable[[], Dict[str, Any]]:
    def described() -> Dict[str, Any]:
        return {**info(), HANDSHAKE: _store.address} if _store is not None else info()
    return described


@functools.lru_cache(maxsize=None)
def _register() -> None:
    """Once in a process: how arrays are written and read, and that we say so to the others."""
    import numpy
    for kind, keeps in ((numpy.ndarray, True), (memoryview, True), (bytes, False), (bytearray, False),
                        (array, False)):
        dumps, loads = dask_serialize.dispatch(kind), dask_deserialize.dispatch(kind)
        _dumps[kind] = dumps
        dask_serialize.register(kind)(_serializer(dumps))
        dask_deserialize.register(kind)(_deserializer(loads, keeps))
    for module in (distributed.comm.tcp, distributed.comm.ws):
        module.from_frames = _reader(module.from_frames)
    core = distributed.comm.core.Comm
    core.handshake_info = staticmethod(_handshake(core.handshake_info))
    distributed.Client._scatter = _scatterer(distributed.Client._scatter)


# --- a client whose host has a node


def _large(data: Any) -> List[Any]:
    values = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else [data]
    return [one for one in values if type(one) in _dumps and _bytes_of(one) >= LARGE_BYTES]


async def _relays(client: Any, store: Store) -> List[str]:
    """The nodes of all workers, when the scheduler passes ids on and all are of our cluster."""
    try:
        answer = await client.scheduler.run_function(
            function=pickle.dumps(_nodes), args=pickle.dumps(()), kwargs=pickle.dumps({}), wait=True)
    except Exception:
        return []  # it may not run functions: the scatter tells what else is wrong
    nodes: Optional[List[str]] = answer.get("result") if answer.get("status") == "OK" else None
    return nodes if nodes and all(store.knows(node) for node in nodes) else []


def _put_early(store: Store, thing: Any, nodes: Sequence[str]) -> None:
    """While Dask computes a hash of it for its key."""
    header, frames = _dumps[type(thing)](thing)
    if len(frames) == 1:
        try:
            store.ident_of(thing, frames[0], nodes)
        except Error:
            pass  # as when it is asked for, which warns


def _scatterer(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """What is scattered goes into the store of the client's host; the scheduler gets the ids."""
    async def scattered(client: Any, data: Any, workers: Any = None, broadcast: Any = False, *args: Any,
                        **how: Any) -> Any:
        store, large = _store, _large(data)
        nodes = await _relays(client, store) if store is not None and large else []
        if store is None or not nodes:
            return await scatter(client, data, workers, broadcast, *args, **how)
        for one in large:
            store.scatter_begins(one)
        spread = nodes if broadcast is True and not workers else []
        loop, token = asyncio.get_running_loop(), _relay.set(client.scheduler.address)
        puts = [loop.run_in_executor(None, _put_early, store, one, spread) for one in large]
        try:
            return await scatter(client, data, workers, broadcast, *args, **how)
        except NotRelayed:
            pass
        finally:
            _relay.reset(token)
            await asyncio.gather(*puts, return_exceptions=True)
            for one in large:
                store.scatter_ends(one)
        return await scatter(client, data, workers, broadcast, *args, **how)
    return scattered


class NotRelayed(RuntimeError):
    """A worker has joined meanwhile that cannot do with ids."""


# --- the scheduler


class _Scheduler:
    """What scatter() and replicate() do when the workers speak this. What a client has put on its host is
    passed on. Else, where the scheduler's own host has a node, it puts there what is to be broadcast.
    All workers get it at once."""

    def __init__(self, scheduler: Any, ttl: float) -> None:
        self.scheduler = scheduler
        self.workers: Dict[str, str] = {}  # and their nodes
        try:
            self.store: Optional[Store] = Store(ttl)
        except Error:
            self.store = None
        self.scatter_plain, self.replicate_plain = scheduler.scatter, scheduler.replicate
        scheduler.scatter, scheduler.replicate = self.scatter, self.replicate
        scheduler.handlers.update(scatter=self.scatter, replicate=self.replicate)

    def join(self, worker: str, node: str) -> None:
        self.workers = {one: its for one, its in self.workers.items() if one in self.scheduler.workers}
        self.workers[worker] = node

    def nodes(self) -> Optional[List[str]]:
        """Of all workers; None: one has none."""
        found = [self.workers.get(worker.address) for worker in self.scheduler.running]
        return None if None in found else sorted(set(found))  # type: ignore[arg-type]

    def all_speak(self) -> bool:
        return self.nodes() is not None

    def reached(self) -> bool:
        """Whether all workers get what this process puts."""
        nodes = self.nodes()
        return self.store is not None and nodes is not None and all(map(self.store.knows, nodes))

    async def replicate(self, comm: Any = None, branching_factor: int = 2, **how: Any) -> Any:
        """In one step, because receivers pass on what they get while they get it."""
        if self.all_speak():
            branching_factor = BRANCHES
        return await self.replicate_plain(comm=comm, branching_factor=branching_factor, **how)

    async def scatter(self, comm: Any = None, data: Any = None, workers: Any = None, client: Any = None,
                      broadcast: Any = False, timeout: float = 2) -> Any:
        relayed = any(isinstance(value, Serialized) and any(map(_is_mark, value.frames)) for value in data.values())
        if relayed and not self.all_speak():
            raise NotRelayed("a worker has no node")
        objects = self.objects(data) if broadcast is True and self.reached() else {}
        targets = [worker.address for worker in self.scheduler.running
                   if not workers or worker.address in
                   {self.scheduler.coerce_address(one) for one in workers}]
        if broadcast is not True or not (objects or relayed) or not targets:
            return await self.scatter_plain(comm=comm, data=data, workers=workers, client=client,
                                            broadcast=broadcast, timeout=timeout)
        answers = await asyncio.gather(*[self.scheduler.rpc(target).update_data(data={**data, **objects},
                                                                             report=False)
                                      for target in targets])
        self.scheduler.update_data(who_has={key: targets for key in data}, nbytes=answers[0]["nbytes"],
                                   client=client)
        return list(data)

    def objects(self, data: Dict[str, Any]) -> Dict[str, Any]:
        """Those of the values that are large, with an id in the place of their bytes."""
        found = {}
        for key, value in data.items():
            if isinstance(value, Serialized) and sum(map(len, value.frames)) >= LARGE_BYTES:
                made = self.converted(value)
                if made is not None:
                    found[key] = made
        return found

    def converted(self, value: Serialized) -> Optional[Serialized]:
        header = value.header
        if header.get("serializer") != "dask" or header.get("is-collection") or \
                len(header.get("split-num-sub-frames", (1,))) != 1 or \
                "sarissa" in header["sub-header"] or header["sub-header"].get("pickle"):
            return None
        frames = decompress(header, value.frames) if "compression" in header else value.frames
        frame = frames[0] if len(frames) == 1 else b"".join(frames)
        assert self.store is not None
        ident = _put(self.store, value, frame)
        if ident is None:
            return None
        inner, frames = _ours(ident, header["sub-header"])
        made = Serialized({**{key: header[key] for key in ("type", "type-serialized", "serializer")},
                           "sub-header": inner, "split-num-sub-frames": (1,), "split-offsets": (0,),
                           "compression": (None,)}, frames)
        return made


def _join(dask_scheduler: Any, address: str, node: str, ttl: float) -> None:
    """Runs on the scheduler, for a worker that speaks this."""
    found = dask_scheduler.extensions.get("sarissa")
    if found is None:
        found = dask_scheduler.extensions["sarissa"] = _Scheduler(dask_scheduler, ttl)
    found.join(address, node)


def _nodes(dask_scheduler: Any) -> Optional[List[str]]:
    """Runs on the scheduler, for a client."""
    found = dask_scheduler.extensions.get("sarissa")
    return found.nodes() if found is not None else None


# --- the plugin


def _open_store(ttl: float) -> Store:
    """That of this process."""
    global _store
    if _store is None:
        _store = Store(ttl)
        _register()
    return _store


class Plugin(distributed.WorkerPlugin):
    """For client.register_worker_plugin(). ttl: so many seconds after a worker was killed its objects
    go. A worker on a host without a node warns, and works as without the plugin. On a host without a
    node, what the client scatters goes to the scheduler Dask's own way."""

    name = "sarissa"

    def __init__(self, ttl: float = 10.0) -> None:
        self.ttl, self.version = ttl, _sarissa.version
        ttl_ns(ttl)
        try:
            _open_store(ttl)
        except Refused:
            pass
        except Error as error:
            _warn_once(f"what this client scatters goes Dask's own way: {error}")

    async def setup(self, worker: Any) -> None:
        if self.version != _sarissa.version:
            raise RuntimeError(f"sarissa.dask.Plugin is of version {self.version} (the client), and the "
                               f"package of worker {worker.address} of version {_sarissa.version}: install "
                               "one version on both")
        try:
            store = _open_store(self.ttl)  # another version of the node: VersionMismatch, to the client
        except Refused as error:
            _warn_once(f"worker {worker.address}: arrays go Dask's own way: {error}")
            return
        try:
            answer = await worker.scheduler.run_function(
                function=pickle.dumps(_join), args=pickle.dumps(()),
                kwargs=pickle.dumps({"address": worker.address, "node": store.address, "ttl": self.ttl}),
                wait=True)
            if answer.get("status") != "OK":
                raise RuntimeError(answer.get("text", "it does not say why"))
        except Exception as error:
            _warn_once("the scheduler cannot take part, so scatter(broadcast=True) sends arrays Dask's own "
                       f"way: {error}")


def _need_store() -> Store:
    if _store is None:
        raise RuntimeError("this worker has no node, or sarissa.dask.Plugin() is not registered: "
                           "client.register_worker_plugin(sarissa.dask.Plugin())")
    return _store


# --- reduces


class _Described:
    """What a source is. The object of the source lives as long as this does, which Dask decides."""

    def __init__(self, dtype: str, shape: Tuple[int, ...]) -> None:
        self.dtype, self.shape = dtype, shape

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def _source(value: Any, name: str) -> _Described:
    """Puts a task's result as a source, where it is."""
    memory, meaning = mine(value, [name], 0)
    described = _Described(dtype_of(meaning.dtype), meaning.shape)
    _need_store().put_for(described, name, memory)
    return described


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
    try:
        finish(handle, lambda queue: queue.reduce(0, request), 1, look)
        return
    except Exists:
        target, late = request[0], time.monotonic() + request[6] / 1e9
    while True:
        look()
        asked = time.monotonic()
        try:
            handle.reduce_sources(target, SLICE_NS)
            return
        except TimedOut:
            if asked > late or time.monotonic() - asked < SLICE_NS / 1e9:
                raise  # the reduce's own time


def _result(first: _Described, target: str, sources: List[str], op: str,
            everywhere: bool, timeout: Optional[float]) -> Any:
    """Begins the reduce as soon as one source says what they are, and waits for the result."""
    store, look = _need_store(), _unless_forgotten()
    distributed.secede()  # it waits, and other tasks want the thread
    dtype, limit = first.dtype, timeout_ns(REDUCE_S if timeout is None else timeout)
    request = reduce_request(target, sources, op, dtype, 0, False, limit)
    handle = store.node._open()
    try:
        if everywhere:
            view = finish(handle, lambda queue: queue.allreduce(0, request), 3, look)
        else:
            _reduced(handle, request, look)  # only what has ended is held; says why there is no result
            view = finish(handle, lambda queue: queue.get(0, target, limit), 1, look)
    except Forgotten:  # Dask would keep an exception, and with it the arguments
        _delete(target)
        return None
    result = shaped(target, view, dtype, first.shape)
    store.adopt(result, _sarissa.id_from(target))
    return result


def _end(result: Any, sources: Sequence[_Described]) -> Any:
    """Dask keeps the sources until here."""
    kinds = sorted(set(map(str, sources)))
    if len(kinds) != 1:
        raise ValueError(f"the arrays of a reduce have one type and shape, not {', '.join(kinds)}")
    return result


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
    described = [client.submit(_source, future, name, pure=False) for future, name in zip(futures, sources)]
    for one in described:
        one.add_done_callback(functools.partial(_stop, client, base))
    return client, base, sources, described


def _stop(client: Any, target: str, source: Any) -> None:
    """A task that fails ends the reduce that waits for it."""
    if source.status == "error":
        distributed.fire_and_forget(client.submit(_delete, target, pure=False))


def _delete(target: str) -> None:
    try:
        _need_store().node.delete(target, raw=True)
    except Error:
        pass  # it has not begun, or has ended


def reduce(futures: Sequence[Any], op: str = "sum", timeout: Optional[float] = None) -> Any:
    """A future of the sum (or another of sarissa.OPS) of the arrays of futures, which all have one type and
    shape. It is made in the network, from each array as its task finishes, until timeout seconds (an hour)
    after the first one. It ends when its future is released, or one of futures is cancelled."""
    client, base, sources, described = _begin(futures, op, timeout)
    result = client.submit(_result, described[0], base, sources, op, False, timeout, pure=False)
    return client.submit(_end, result, described, pure=False)


def allreduce(futures: Sequence[Any], op: str = "sum", timeout: Optional[float] = None) -> List[Any]:
    """The same with a future of the result for each of futures: every worker that has one of the arrays
    gets the result while it is made."""
    client, base, sources, described = _begin(futures, op, timeout)
    results = [client.submit(_result, one, base, sources, op, True, timeout, pure=False) for one in described]
    return [client.submit(_end, result, described, pure=False) for result in results]
