# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.dask changes in Dask's messages: a frame of 1 MiB and more goes as the id of its object, when
its value has several readers. The places of Dask that are replaced are here, undone by unpatch(), and in
scheduler.py.

A value with one reader goes Dask's own way, which is the shorter one. It has several when the scheduler says
that two workers have tasks which read it, or when it was asked for before.
Who cannot get an object, whatever the reason, asks the worker that has sent the id for the bytes
(send_bytes). So a full store, or a node that has died, costs time but no result."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import warnings
from contextvars import ContextVar
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

import dask.config
import dask.utils
import distributed
import distributed.comm.tcp
from dask.sizeof import sizeof
from distributed.protocol import pickle
from distributed.protocol.serialize import Serialize, Serialized
from distributed.protocol.utils import frame_split_size
from distributed.utils import has_keyword

from .store import Arrived, Store
from .._errors import Error

protocol = importlib.import_module("distributed.protocol.serialize")  # a function has the same name
LARGE_BYTES = 1 << 20
MARK = b"sarissa object: "  # then the id; a frame of our messages
HANDSHAKE = "sarissa"
TOLD = "sarissa"  # in the header of a value: which of its frames are ids, and the worker they are from
SEND_BYTES, SEND_IDS = "sarissa_bytes", "sarissa_ids"  # handlers of the workers
SEVERAL = "sarissa_several"  # a handler of the scheduler
ENCRYPTED = ("tls://", "wss://")
FAMILIES = ("dask", "pickle")
SIMPLE = (int, float, complex, bool, str, type(None))
relay: ContextVar[Optional[str]] = ContextVar("sarissa-relay", default=None)  # address of a scheduler
confirmed: ContextVar[bool] = ContextVar("sarissa-confirmed", default=False)  # what is sent is kept until it is there
plain: ContextVar[bool] = ContextVar("sarissa-plain", default=False)  # Dask's own way
several: ContextVar[FrozenSet[int]] = ContextVar("sarissa-several", default=frozenset())  # values with more readers
dumps_of: Dict[str, Callable[..., Any]] = {}  # Dask's own, by family; empty: nothing is patched
workers: Dict[str, Any] = {}  # of this process that take part, by address
NOT_PUT = (Error, BufferError, TypeError, ValueError)  # memory that no object is made of raises the latter
_undo: List[Callable[[], None]] = []
_warned = set()


def current() -> Optional[Store]:
    """That of this process."""
    from .. import dask as plugin
    return plugin._store


def warn_once(text: str, kind: str = "") -> None:
    if (kind or text) not in _warned:
        _warned.add(kind or text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def is_encrypted(address: Any) -> bool:
    return isinstance(address, str) and address.startswith(ENCRYPTED)


# --- what goes out


def bytes_in(frame: Any) -> int:
    """0 for what has no memory of this host."""
    try:
        return memoryview(frame).nbytes
    except TypeError:
        return 0


def put(store: Store, thing: Any, index: int, frame: Any, kept: bool = True) -> Optional[bytes]:
    """The id of a frame of a value, or None: it has to go Dask's way."""
    try:
        return store.ident_of(thing, index, frame, confirmed=kept)
    except NOT_PUT as error:
        store.counts["not put"] += 1
        warn_once(f"an array goes Dask's own way, not through the object store: {error}",
                  f"put: {type(error).__name__}")
        return None


def with_ids(store: Store, thing: Any, header: Dict[str, Any], frames: List[Any], kept: bool = True) -> Any:
    """The header and the frames of a value, with ids in the place of large frames."""
    idents = {}
    for index, frame in enumerate(frames):
        if bytes_in(frame) >= LARGE_BYTES:
            ident = put(store, thing, index, frame, kept)
            if ident is not None:
                idents[index] = ident
    if not idents:
        return header, frames
    told = {"at": list(idents), "from": next(iter(workers), None)}
    return {**header, TOLD: told}, [MARK + idents[i] if i in idents else frame for i, frame in enumerate(frames)]


def is_mark(frame: Any) -> bool:
    return len(frame) == len(MARK) + 16 and bytes(frame[:len(MARK)]) == MARK


def _takes(store: Store, recipient: Dict[str, Any]) -> bool:
    """Whether the recipient can do with an id, or passes it on to who can."""
    address, by = recipient.get("address"), relay.get()
    if is_encrypted(address) and not store.in_clear:
        return False
    return store.knows(recipient.get(HANDSHAKE)) or by is not None and address == by


def _has_several_readers(store: Store, thing: Any) -> bool:
    return relay.get() is not None or id(thing) in several.get() or store.asks(thing) > 1


def _dumper(dumps: Callable[..., Any]) -> Callable[..., Any]:
    with_context = has_keyword(dumps, "context")

    def dumped(thing: Any, context: Optional[Dict[str, Any]] = None) -> Any:
        header, frames = dumps(thing, context=context) if with_context else dumps(thing)
        store = current()
        if store is None or not context or plain.get() or all(bytes_in(frame) < LARGE_BYTES for frame in frames):
            return header, frames
        if not _takes(store, context.get("recipient", {})) or not _has_several_readers(store, thing):
            return header, frames
        return with_ids(store, thing, header, frames, confirmed.get() and relay.get() is None)
    return dumped


def frames_of(thing: Any) -> Tuple[Dict[str, Any], List[Any]]:
    """Dask's header and frames of a value, without ids."""
    for family in FAMILIES:
        try:
            header, frames = dumps_of[family](thing)
            return header, frames
        except NotImplementedError:
            continue
    raise TypeError(f"Dask does not write a {type(thing).__name__}")


# --- handlers of the workers


def _values_in(value: Any, found: List[int]) -> None:
    """What is written by itself: Dask writes the elements of a collection one by one."""
    found.append(id(value))
    if type(value) is dict:
        value = list(value.values())
    if type(value) in (list, tuple, set):
        for one in value:
            _values_in(one, found)


class _Answer:
    """The connection that an answer to get_data is written to: it sees which value belongs to which key."""

    def __init__(self, comm: Any, keys: FrozenSet[Any]) -> None:
        self._comm, self._keys = comm, keys

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    async def write(self, message: Any, *args: Any, **how: Any) -> Any:
        found: List[int] = []
        for key, value in message["data"].items():
            if key in self._keys and isinstance(value, Serialize):
                _values_in(value.data, found)
        token = several.set(frozenset(found))
        try:
            return await self._comm.write(message, *args, **how)
        finally:
            several.reset(token)


def _may_be_large(task: Any) -> bool:
    """Dask does not know the size of a tensor, or of an object of a user's class."""
    kind = task.type or object
    return (task.nbytes or 0) >= LARGE_BYTES or kind not in SIMPLE and \
        sizeof.dispatch(kind) is sizeof.dispatch(object)


async def _read_by_several(worker: Any, comm: Any, keys: Any) -> FrozenSet[Any]:
    """Those of the large results that several workers will read."""
    if HANDSHAKE not in (getattr(comm, "remote_info", None) or {}):
        return frozenset()
    tasks = worker.state.tasks
    large = [key for key in keys or () if key in tasks and _may_be_large(tasks[key])]
    if not large:
        return frozenset()
    try:
        return frozenset(await getattr(worker.scheduler, SEVERAL)(keys=large))
    except Exception:
        return frozenset()  # the scheduler has gone, or takes no part


def confirming(worker: Any) -> Callable[..., Any]:
    """The handler of a worker that keeps what it sends until the receiver says that it is there."""
    @functools.wraps(worker.get_data)
    async def got(comm: Any, keys: Any = None, **how: Any) -> Any:
        token = confirmed.set(True)
        try:
            answer = _Answer(comm, await _read_by_several(worker, comm, keys))
            return await worker.get_data(answer, keys=keys, **how)
        finally:
            confirmed.reset(token)
    return got


def sending_ids(worker: Any) -> Callable[..., Any]:
    """The handler of a worker that gives ids to a scheduler, for a client on a node of ours."""
    async def given(comm: Any, keys: Any, reader: str) -> Any:
        store = current()
        if store is None or not store.knows(reader) or is_encrypted(comm.peer_address) and not store.in_clear:
            return {"status": "no ids"}
        token = relay.set(comm.peer_address)
        try:
            return await worker.get_data(comm, keys=keys, who=reader)
        finally:
            relay.reset(token)
    return given


def send_bytes(ident: bytes) -> Any:
    """Handler of a worker: the bytes of an object that it has sent the id of; None: it has let it go."""
    store = current()
    found = store.bytes_of(ident) if store is not None else None
    if isinstance(found, tuple):
        thing, index = found
        found = frames_of(thing)[1][index]
    if found is None:
        return None
    frames = frame_split_size(memoryview(found).cast("B"))
    return Serialized({"type": "builtins.memoryview", "type-serialized": pickle.dumps(memoryview),
                       "serializer": "dask", "sub-header": {"format": "B", "shape": (memoryview(found).nbytes,)},
                       "split-num-sub-frames": (len(frames),), "split-offsets": (0,),
                       "compression": (None,) * len(frames)}, frames)


# --- what comes in


def patience_s() -> float:
    return float(dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp", "30s"), default="s"))


async def _bytes_from(origin: str, ident: bytes) -> Any:
    """Those of an object, from the worker that has sent its id; a client asks by way of the scheduler."""
    loop = asyncio.get_running_loop()

    def runs_here(one: Any) -> bool:
        return getattr(one.loop, "asyncio_loop", None) is loop
    for worker in filter(runs_here, list(workers.values())):
        return await getattr(worker.rpc(origin), SEND_BYTES)(ident=ident)
    for client in filter(runs_here, list(distributed.Client._instances)):
        return await client.scheduler.proxy(worker=origin, msg={"op": SEND_BYTES, "ident": ident})
    raise EOFError("no worker and no client runs here")


class Arriving:
    """Stands in a message for a value whose frames have not come yet."""

    def __init__(self, header: Dict[str, Any], frames: List[Any], loads: Callable[..., Any]) -> None:
        told = header.pop(TOLD)
        self.header, self.frames, self.loads, self.origin = header, list(frames), loads, told["from"]
        self.idents = {index: bytes(frames[index])[len(MARK):] for index in told["at"]}
        self.arrived: Dict[int, Arrived] = {}  # through the store

    async def arrive(self) -> Any:
        come = await asyncio.gather(*[self._frame(*one) for one in self.idents.items()], return_exceptions=True)
        for index, frame in zip(self.idents, come):
            if isinstance(frame, BaseException):
                raise frame
            self.frames[index] = self._fitting(index, frame)
        store = current()
        if store is None:
            return self.loads(self.header, self.frames)
        thing = await store.call(self.loads, self.header, self.frames)
        if self.arrived and workers:  # a client passes nothing on
            await store.keep(thing, {index: self.idents[index] for index in self.arrived}, self.arrived)
        return thing

    async def _frame(self, index: int, ident: bytes) -> Any:
        store = current()
        try:
            if store is not None:
                arrived = self.arrived[index] = await store.arrive(ident, patience_s())
                return arrived.memory
        except Error as error:
            warn_once(f"an array comes Dask's own way, not through the object store: {error}",
                      f"arrive: {type(error).__name__}")
        if self.origin is None:
            raise EOFError("its sender takes no questions")
        memory = await _bytes_from(self.origin, ident)
        if memory is None:
            raise EOFError(f"{self.origin} has let it go")
        if store is not None:
            store.counts["as bytes"] += 1
        return memory

    def _fitting(self, index: int, memory: Any) -> Any:
        """Memory that may be written, or may not, as the loads of Dask expects it: else that copies."""
        writeable = self.header.get("writeable")
        if writeable is not None and index > 0 and not writeable[index - 1]:  # a buffer of pickle
            return memoryview(memory).toreadonly()
        if self.header.get("type") == "builtins.memoryview" and memoryview(memory).readonly:
            return memoryview(bytearray(memory))
        return memory


def _loader(loads: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(header: Dict[str, Any], frames: List[Any]) -> Any:
        return loads(header, frames) if TOLD not in header else Arriving(header, frames, loads)
    return loaded


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
            warn_once(f"an object of a message is lost, so the connection counts as broken: {end}", "lost")
            raise EOFError(str(end))  # as after a message that was cut off: Dask asks elsewhere
    return _filled(message, {id(one): end for one, end in zip(found, ends)})


def _reader(from_frames: Callable[..., Any]) -> Callable[..., Any]:
    async def read(frames: Any, deserialize: bool = True, **how: Any) -> Any:
        message = await from_frames(frames, deserialize=deserialize, **how)
        if deserialize and any(is_mark(frame) for frame in frames):
            return await _fill(message)
        return message
    return read


def _handshake(info: Callable[..., Dict[str, Any]]) -> Callable[..., Dict[str, Any]]:
    def described(*its: Any) -> Dict[str, Any]:
        store = current()
        return {**info(*its), HANDSHAKE: store.address} if store is not None and not store.retires else info(*its)
    return described


# --- the places in Dask


def replace(owner: Any, name: str, made: Any) -> None:
    """Until unpatch()."""
    own, former = name in owner.__dict__, getattr(owner, name)
    kept = owner.__dict__.get(name, former)
    setattr(owner, name, made)
    _undo.append(lambda: setattr(owner, name, kept) if own else delattr(owner, name))


def _replace_family(name: str) -> None:
    dumps, loads, _ = former = protocol.families[name]
    protocol.register_serialization_family(name, _dumper(dumps), _loader(loads))

    def back() -> None:
        protocol.families[name] = former
    _undo.append(back)
    dumps_of[name] = dumps


def missing() -> str:
    """What the plugin needs of this distributed and does not find; "": nothing."""
    wanted = [(protocol, "families"), (protocol, "register_serialization_family"), (distributed.comm.tcp, "from_frames"),
              (distributed.comm.tcp.TCP, "handshake_info"), (distributed.Client, "_scatter"),
              (distributed.Scheduler, "scatter"), (distributed.Scheduler, "replicate"),
              (distributed.Scheduler, "gather"), (distributed.Worker, "get_data")]
    return ", ".join(f"{owner.__name__}.{name}" for owner, name in wanted if not hasattr(owner, name))


def patch() -> None:
    """How values are written and read, and that we say so to the others."""
    if _undo:
        return
    try:
        for name in FAMILIES:
            _replace_family(name)
        tcp = distributed.comm.tcp
        replace(tcp, "from_frames", _reader(tcp.from_frames))
        described = _handshake(tcp.TCP.handshake_info)
        is_static = isinstance(inspect.getattr_static(tcp.TCP, "handshake_info"), staticmethod)
        replace(tcp.TCP, "handshake_info", staticmethod(described) if is_static else described)
    except BaseException:
        unpatch()
        raise


def unpatch() -> None:
    while _undo:
        _undo.pop()()
    dumps_of.clear()
