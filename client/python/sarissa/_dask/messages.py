# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.dask changes in Dask's messages: an array of 1 MiB and more goes as the id of its object. The
places of Dask that are replaced are all here, and undone by unpatch().

Who cannot get an object, whatever the reason, asks the worker that has sent the id for the bytes
(send_bytes). So a full store, or a node that has died, costs time but no result."""

from __future__ import annotations

import asyncio
import functools
import warnings
from array import array
from contextvars import ContextVar
from typing import Any, Callable, Dict, List, Optional, Tuple

import dask.config
import dask.utils
import distributed
import distributed.comm.core
import distributed.comm.tcp
import distributed.comm.ws
from distributed.protocol import dask_deserialize, dask_serialize, pickle
from distributed.protocol.serialize import Serialized
from distributed.protocol.utils import frame_split_size
from distributed.utils import has_keyword

from .store import Store
from .._errors import Error

LARGE_BYTES = 1 << 20
MARK = b"sarissa object: "  # then the id; a frame of our messages
HANDSHAKE = "sarissa"
SEND_BYTES = "sarissa_bytes"  # a handler of the workers
ENCRYPTED = ("tls://", "wss://")
relay: ContextVar[Optional[str]] = ContextVar("sarissa-relay", default=None)  # address of a scheduler
confirmed: ContextVar[bool] = ContextVar("sarissa-confirmed", default=False)  # what is sent is kept until it is there
plain: ContextVar[bool] = ContextVar("sarissa-plain", default=False)  # Dask's own way
dumps_of: Dict[type, Callable[..., Any]] = {}  # Dask's own, by what they take; empty: nothing is patched
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


def bytes_in(thing: Any) -> int:
    """Also of numpy's dates, which have no memoryview."""
    return int(thing.nbytes) if hasattr(thing, "nbytes") else memoryview(thing).nbytes


def put(store: Store, thing: Any, frame: Any, kept: bool = True) -> Optional[bytes]:
    """Its id, or None: it has to go Dask's way."""
    try:
        return store.ident_of(thing, frame, confirmed=kept)
    except NOT_PUT as error:
        store.counts["not put"] += 1
        warn_once(f"an array goes Dask's own way, not through the object store: {error}",
                  f"put: {type(error).__name__}")
        return None


def ours(ident: bytes, inner: Any) -> Tuple[Dict[str, Any], List[bytes]]:
    return {"sarissa": ident, "from": next(iter(workers), None), "inner": inner}, [MARK + ident]


def is_mark(frame: Any) -> bool:
    return len(frame) == len(MARK) + 16 and bytes(frame[:len(MARK)]) == MARK


def _takes(store: Store, recipient: Dict[str, Any]) -> bool:
    """Whether the recipient can do with an id, or passes it on to workers that can."""
    address, by = recipient.get("address"), relay.get()
    if is_encrypted(address) and not store.in_clear:
        return False
    return store.knows(recipient.get(HANDSHAKE)) or by is not None and address == by


def _serializer(dumps: Callable[..., Any]) -> Callable[..., Any]:
    with_context = has_keyword(dumps, "context")

    def serialize(thing: Any, context: Optional[Dict[str, Any]] = None) -> Any:
        header, frames = dumps(thing, context=context) if with_context else dumps(thing)
        store = current()
        if store is None or not context or plain.get() or len(frames) != 1 or bytes_in(thing) < LARGE_BYTES:
            return header, frames
        if not _takes(store, context.get("recipient", {})):
            return header, frames
        ident = put(store, thing, frames[0], confirmed.get() or relay.get() is not None)
        return (header, frames) if ident is None else ours(ident, header)
    return serialize


def confirming(get_data: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of a worker that keeps what it sends until the receiver says that it is there."""
    @functools.wraps(get_data)
    async def got(*args: Any, **how: Any) -> Any:
        token = confirmed.set(True)
        try:
            return await get_data(*args, **how)
        finally:
            confirmed.reset(token)
    return got


def send_bytes(ident: bytes) -> Any:
    """Handler of a worker: the bytes of an object that it has sent the id of; None: it has let it go."""
    store = current()
    found = store.bytes_of(ident) if store is not None else None
    if isinstance(found, tuple):
        found = dumps_of[type(found[0])](found[0])[1][0]
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


def _pool() -> Any:
    """The connections of the worker, or client, whose loop runs this."""
    loop = asyncio.get_running_loop()
    for one in [*workers.values(), *distributed.Client._instances]:
        if getattr(one.loop, "asyncio_loop", None) is loop:
            return one.rpc
    raise EOFError("no worker and no client runs here")


class Arriving:
    """Stands in a message for what has not come yet."""

    def __init__(self, header: Dict[str, Any], loads: Callable[..., Any], keeps: bool) -> None:
        self.ident, self.origin, self.inner = header["sarissa"], header["from"], header["inner"]
        self.loads, self.keeps = loads, keeps

    async def arrive(self) -> Any:
        store = current()
        try:
            if store is not None:
                return await store.arrive(self.ident, self.make, self.keeps, patience_s())
        except Error as error:
            warn_once(f"an array comes Dask's own way, not through the object store: {error}",
                      f"arrive: {type(error).__name__}")
        if self.origin is None:
            raise EOFError("its sender takes no questions")
        memory = await getattr(_pool()(self.origin), SEND_BYTES)(ident=self.ident)
        if memory is None:
            raise EOFError(f"{self.origin} has let it go")
        if store is not None:
            store.counts["as bytes"] += 1
        return self.make(memory)

    def make(self, memory: Any) -> Any:
        if self.loads is _loads.get(memoryview) and memory.readonly:
            memory = memoryview(bytearray(memory))
        return self.loads(self.inner, [memory])


_loads: Dict[type, Callable[..., Any]] = {}


def _deserializer(loads: Callable[..., Any], keeps: bool) -> Callable[..., Any]:
    def deserialize(header: Dict[str, Any], frames: List[Any]) -> Any:
        if "sarissa" in header:
            return Arriving(header, loads, keeps)
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


def _handshake(info: Callable[[], Dict[str, Any]]) -> Callable[[], Dict[str, Any]]:
    def described() -> Dict[str, Any]:
        store = current()
        return {**info(), HANDSHAKE: store.address} if store is not None and not store.retires else info()
    return described


# --- the places in Dask


def replace(owner: Any, name: str, made: Any) -> None:
    """Until unpatch()."""
    former = owner.__dict__[name]
    setattr(owner, name, made)
    _undo.append(lambda: setattr(owner, name, former))


def _replace_families(kind: type, keeps: bool) -> None:
    dumps_of[kind], _loads[kind] = dask_serialize.dispatch(kind), dask_deserialize.dispatch(kind)
    for family, own, made in ((dask_serialize, dumps_of[kind], _serializer(dumps_of[kind])),
                              (dask_deserialize, _loads[kind], _deserializer(_loads[kind], keeps))):
        family.register(kind)(made)
        _undo.append(lambda family=family, own=own, made=made: family._lookup.update(  # type: ignore[misc]
            {one: own for one, its in family._lookup.items() if its is made}))  # also of subclasses


def patch() -> None:
    """How arrays are written and read, and that we say so to the others."""
    import numpy
    if _undo:
        return
    try:
        for kind, keeps in ((numpy.ndarray, True), (memoryview, True), (bytes, False), (bytearray, False),
                            (array, False)):
            _replace_families(kind, keeps)
        for module in (distributed.comm.tcp, distributed.comm.ws):
            replace(module, "from_frames", _reader(module.from_frames))
        core = distributed.comm.core.Comm
        replace(core, "handshake_info", staticmethod(_handshake(core.handshake_info)))
    except BaseException:
        unpatch()
        raise


def unpatch() -> None:
    while _undo:
        _undo.pop()()
    dumps_of.clear()
    _loads.clear()
