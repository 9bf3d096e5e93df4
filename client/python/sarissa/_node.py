# SPDX-License-Identifier: BSD-3-Clause
"""Node: a connection to the local node, and what can be done with it. The calls of the extension with
Python's types, and arrays with what they mean."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Type, Union

from . import _arrays, _communicator, _futures, _objects, _sarissa
from ._arrays import Given, Meaning, Tensor
from ._connections import VIEWS_MAX, Connections
from ._errors import Error, Exists, NotFound, PartialError
from ._names import DTYPES, NUMPY, Name, dtype_of, numpy_name, op_of, timeout_ns, unsigned
from ._groups import Group, creation
from ._leases import Lease, ttl_ns
from ._patience import Patience
from ._streams import Reader, Writer
from ._types import item_bytes, type_text
from ._waits import finish, together
from ._watch import Watch

NOWHERE = 2**64 - 1
SPREAD = 1
COPIED_BYTES = 1 << 20  # of strided arrays: from here on without a copy beside the store
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Shape = Union[int, Sequence[int]]


class Info(NamedTuple):
    """What the directory knows of an object; local_ready is None without a copy here. lost: complete
    copies on dead nodes; lost_node: the one of these that died last, or None; down: so many seconds
    ago, or None. leases: so many hold it; 0: it lives until it is deleted. expires: in so many seconds,
    or None. meta: the metadata that its creator gave."""

    id: bytes
    name: str
    size: int
    generation: int
    local_ready: Optional[int]
    copies: int
    partial: int
    lost: int = 0
    lost_node: Optional[int] = None
    down: Optional[float] = None
    leases: int = 0
    expires: Optional[float] = None
    meta: bytes = b""


class Member(NamedTuple):
    """A node of the cluster, as the local one sees it."""

    node: int
    is_self: bool
    state: str  # "never seen", "up", "down"
    address: str
    workers: int


def info(raw: _sarissa.Info) -> Info:
    (ident, name, size, generation, local, copies, partial, lost, node, down_ns, leases, expires_ns,
     meta) = raw
    return Info(ident, name, size, generation, None if local == NOWHERE else local, copies, partial,
                lost, node if lost else None, down_ns / 1e9 if lost else None, leases,
                expires_ns / 1e9 if expires_ns else None, meta)


def _member(raw: Tuple[int, int, int, bytes, int, int]) -> Member:
    import ipaddress
    number, is_self, state, address, port, workers = raw
    ip = ipaddress.IPv6Address(address)
    text = str(ip.ipv4_mapped) if ip.ipv4_mapped else f"[{ip}]"
    return Member(number, bool(is_self), ("never seen", "up", "down")[state], f"{text}:{port}",
                  workers)


def meaning_of(name: Name, view: _sarissa.View) -> Optional[Meaning]:
    """What an object is an array of; None: it is bytes."""
    meaning = _arrays.read(view.meta) if view.meta else _from_json(name, view)
    return meaning if meaning is not None and _arrays.fits(view, meaning) else None


def _from_json(name: Name, view: _sarissa.View) -> Optional[Meaning]:
    """The same of an array that an earlier version has put: NAME#array, where it is here."""
    try:
        text = view.handle.here(_arrays.description_id(_sarissa.id_from(name)))
    except Error:
        return None
    if text is None or text.nbytes > _arrays.DESCRIPTION_MAX:
        return None
    return _arrays.read_json(bytes(memoryview(text)))  # type: ignore[arg-type]


def as_put(name: Name, view: _sarissa.View) -> Any:
    """The array that was put, or the bytes."""
    meaning = meaning_of(name, view)
    if meaning is not None:
        return _arrays.as_array(view, meaning)
    return memoryview(view)  # type: ignore[arg-type]


def shaped(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Any:
    """An object as the array that the caller says it is: a Tensor where numpy has no such type (bf16)."""
    return _arrays.as_array(view, fitting(name, view, dtype, shape))


def summed(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Any:
    """The result of an allreduce: the array that its sources were, or as the caller says."""
    return shaped(name, view, dtype, shape) if dtype is not None and (shape is not None or not view.meta) else \
        as_put(name, view)


def fitting(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Meaning:
    text = created_type(dtype)
    each = item_bytes(text)
    if not each or view.nbytes % each:
        raise ValueError(f"{name!r} has {view.nbytes} bytes: they are no array of {dtype}")
    count = view.nbytes // each
    lengths = (count,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    if lengths.count(-1) == 1:
        rest = Meaning(text, tuple(length for length in lengths if length != -1)).elements
        lengths = tuple(count // rest if length == -1 and rest else length for length in lengths)
    meaning = Meaning(text, lengths)
    if meaning.elements != count or any(length < 0 for length in lengths):
        raise ValueError(f"{name!r} has {count} elements of {dtype}: they have no shape {shape}")
    return as_described(name, _arrays.read(view.meta) if view.meta else None, meaning)


def as_described(name: Name, stored: Optional[Meaning], wanted: Meaning) -> Meaning:
    """What the caller wants, in the order of what was put."""
    if stored is None or stored.order == "C":
        return wanted
    if (stored.dtype, stored.shape) != (wanted.dtype, wanted.shape):
        raise ValueError(f"{name!r} is an {stored}, in Fortran order, and not an {wanted}: get it as it is, or with "
                         "raw=True")
    return stored


def exists(name: Name, stored: Meaning, meaning: Meaning) -> Exists:
    return Exists(errno.EEXIST, f"{name!r} exists as an {stored}, not as an {meaning}: delete it first, "
                                "or put it by another name")


def names_of(names: Sequence[Name]) -> List[Name]:
    if isinstance(names, (str, bytes)):
        raise TypeError("a list of names is wanted, not one name")
    return list(names)


def mine(array: Any, sources: Sequence[Name], rank: Optional[int]) -> Tuple[Any, Meaning]:
    """The array of one participant of a reduce, in C order: its memory, and what it means."""
    if rank is None or not 0 <= rank < len(sources):
        raise ValueError("allreduce(array=...) needs rank=, the place of the array in sources")
    given = _arrays.given_array(array)
    if given is None:
        raise TypeError("an array of numpy, or of another library that speaks DLPack, takes part in an "
                        "allreduce; bytes do not say what they are: put them, and name dtype=")
    dtype_of(given.meaning.dtype)
    return given.in_c_order(), given.meaning._replace(order="C")


def created_type(dtype: Any) -> str:
    """The text of a type that the caller names: numpy's way, or ours."""
    named = numpy_name(dtype)
    if isinstance(named, str) and named in NUMPY:
        return named
    import numpy
    try:
        return type_text(numpy.dtype(named))
    except TypeError as error:
        raise ValueError(f"no object can be an array of {dtype!r}: {error}") from None


def gather_many(rooms: Sequence[Tuple[_sarissa.Handle, int]], names: List[Name], limit_ns: int) -> List[_sarissa.View]:
    """A gather over several connections."""
    def part(at: int, room: int) -> Callable[[_sarissa.Queue], None]:
        return lambda queue: queue.gather(0, names[at:at + room], limit_ns)
    asked, at = [], 0
    for handle, room in rooms:
        asked.append((handle, part(at, room), room + 1))
        at += room
    look = Patience(rooms[0][0], names, limit_ns)
    return [view for views in together(asked, look) for view in views]


def reduce_request(target: Name, sources: Sequence[Name], op: str, dtype: Any, num: int, spread: bool,
                   limit_ns: int, min: int = 0, deadline: Optional[float] = None) -> _sarissa.Reduce:
    """As the extension takes it."""
    if (min > 0) != (deadline is not None):
        raise ValueError(f"min={min}, deadline={deadline}: a reduce has both or none of them: when it does with "
                         "fewer sources, and with how many at least")
    return (target, names_of(sources), op_of(op), 0 if dtype is None else DTYPES[dtype_of(dtype)], unsigned(num, 32),
            SPREAD if spread else 0, limit_ns, unsigned(min, 32), timeout_ns(deadline or 0, "deadline"))


class Node:
    """A connection to the local node. Objects are named by a str, or by an id of 16 bytes.

    It serves any number of threads. The interpreter runs on while a call waits, and Ctrl-C ends any
    call. After fork a child opens its own."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self._path = path
        self._connections = Connections(None if path is None else os.fsdecode(path))
        self._pump: Optional[_futures.Pump] = None

    @property
    def address(self) -> Optional[str]:
        """The socket path that it was opened by; None: the default one."""
        return os.environ.get("SARISSA_SOCKET") if self._path is None else os.fsdecode(self._path)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Another process opens its own, by the same path."""
        return type(self), (self.address,)

    def _open(self) -> _sarissa.Handle:
        return self._connections.first()

    # --- bytes and arrays

    def put(self, name: Name, data: Any, ttl: Optional[float] = None) -> None:
        """Stores a copy of data: bytes, a memoryview, array.array..., or an array of numpy or of
        another library that speaks DLPack, with its type and shape. One of that name with the same
        bytes may exist already; with others: FileExistsError. What would not come back as it was is refused
        with a TypeError that says what to put: Python objects, masked arrays and other subclasses of
        ndarray, types with metadata or of more than 120 bytes in words, more than eight dimensions.
        ttl: expire() so many seconds from now."""
        given = _arrays.given_array(data)
        lifetime = None if ttl is None else ttl_ns(ttl)
        if given is None:
            _arrays.check_bytes(data)
            with self._connections.room() as handle:
                handle.put(name, data)
        else:
            self._put_array(name, given)
        if lifetime is not None:
            with contextlib.suppress(NotFound):  # somebody has deleted it already
                self._open().expire(name, lifetime)

    def _put_array(self, name: Name, given: Given) -> None:
        meta = _arrays.write(given.meaning)
        try:
            # of records the padding would stay as it was
            if given.memory is None and given.nbytes >= COPIED_BYTES and given.strided.dtype.names is None and \
                    self._put_strided(name, given, meta):
                return
            with self._connections.room() as handle:
                handle.put(name, given.contiguous().memory, None, meta)
        except Exists as error:
            raise self._exists(name, given.meaning, error) from None

    def _put_strided(self, name: Name, given: Given, meta: bytes) -> bool:
        """Copies once, into the store. False: there is an object of that name, and put() has to compare."""
        import numpy
        try:
            with self._connections.room() as handle:
                creation = handle.create(name, given.nbytes, meta)
        except Exists:
            return False
        with Writer(creation, given.nbytes, lambda memory: _arrays.as_numpy(memory, given.meaning)) as writer:
            numpy.copyto(writer.array, given.strided)
        return True

    def _exists(self, name: Name, meaning: Meaning, error: Exists) -> Exists:
        """The error of a put, in Python's words where the arrays differ."""
        try:
            stored = _arrays.read(self._open().info(name)[12])
        except Error:
            stored = None
        return error if stored is None or stored == meaning else exists(name, stored, meaning)

    def _view(self, name: Name, timeout: Optional[float]) -> _sarissa.View:
        limit, first = timeout_ns(timeout), self._connections.at_once()
        view = None if first is None else first.here(name)
        if view is not None:
            return view
        with self._connections.room() as handle:
            view = handle.here(name)
            if view is None:
                view = finish(handle, lambda queue: queue.get(0, name, limit), 1, Patience(handle, [name], limit))
            return view

    def get(self, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Any:
        """The object, waiting up to timeout seconds for it (None: no limit). An array comes as a
        read-only numpy array, everything else as a read-only memoryview; nothing is copied, and the
        object stays pinned in the node's memory until the last view of it has gone. raw: always a
        memoryview."""
        view = self._view(name, timeout)
        return memoryview(view) if raw else as_put(name, view)  # type: ignore[arg-type]

    def get_array(self, name: Name, dtype: Any, shape: Optional[Shape] = None,
                  timeout: Optional[float] = None) -> Any:
        """An object that is not described as a read-only numpy array. bf16, and what else numpy has not: a
        Tensor, for torch.from_dlpack() and others. With ml_dtypes installed numpy has bf16."""
        return shaped(name, self._view(name, timeout), dtype, shape)

    def get_tensor(self, name: Name, timeout: Optional[float] = None, dtype: Any = None,
                   shape: Optional[Shape] = None) -> Tensor:
        """An array for a library that speaks DLPack. TypeError when the object is no array, unless dtype says
        what it is."""
        view = self._view(name, timeout)
        if dtype is not None:
            return Tensor(view, fitting(name, view, dtype, shape))
        meaning = meaning_of(name, view)
        if meaning is None:
            raise TypeError(f"{name!r} was not put as an array: use get() or get_array()")
        return Tensor(view, meaning)

    put_object, get_object = _objects.put_object, _objects.get_object

    def delete(self, name: Name, raw: bool = False) -> None:
        """Removes every copy in the cluster. Views in use stay as they are. raw does nothing any more."""
        self._open().delete(name)

    # --- how long objects live

    def lease(self, name: Optional[str] = None, ttl: float = 10.0) -> Lease:
        """Opens a lease, or continues the one of that name. It ends so many seconds after this process,
        or the connection, or after the last of those that have opened it by its name."""
        return Lease(self, Node(self._path), name, ttl)

    def expire(self, name: Name, ttl: Optional[float]) -> None:
        """The object is deleted everywhere after so many seconds from now. None: not any more."""
        self._open().expire(name, 0 if ttl is None else ttl_ns(ttl))

    # --- piece by piece

    def create(self, name: Name, size: Optional[int] = None, dtype: Any = None,
               shape: Optional[Shape] = None) -> Writer:
        """Room for an object of size bytes, or for an array of that dtype and shape, to be filled
        piece by piece."""
        if dtype is None or shape is None:
            if size is None:
                raise TypeError("say how large it is: create(name, size), or create(name, "
                                "dtype=..., shape=...)")
            with self._connections.room() as handle:
                return Writer(handle.create(name, unsigned(size, 64)), size)
        named = created_type(dtype)
        lengths = (shape,) if isinstance(shape, int) else tuple(int(length) for length in shape)
        meaning = Meaning(named, lengths)
        if any(length < 0 for length in lengths):
            raise ValueError(f"no object can be an {meaning}")
        size, meta = unsigned(item_bytes(named) * meaning.elements, 64), _arrays.write(meaning)
        with self._connections.room() as handle:
            creation = handle.create(name, size, meta)
        return Writer(creation, size, lambda memory: _arrays.as_numpy(memory, meaning))

    def reader(self, name: Name, timeout: Optional[float] = None) -> Reader:
        """The object while it still arrives or is written: returns as soon as its size is known. Each
        wait for more takes up to timeout seconds."""
        limit = timeout_ns(timeout)
        with self._connections.room() as handle:
            view = finish(handle, lambda queue: queue.begin(0, name, limit), 1, Patience(handle, [name], limit))
        return Reader(handle, view, timeout, name)

    # --- reduce

    def reduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
               num: int = 0, spread: bool = False, timeout: Optional[float] = None, min: int = 0,
               deadline: Optional[float] = None) -> None:
        """Begins to make the object target from sources, element by element, as they come into
        being on any nodes: op is one of OPS, dtype of DTYPES or a type of numpy's. Arrays must be of one
        type and shape, and the target is one as well; dtype, where it is given, must be theirs. Sources that
        are bytes need a dtype.
        With num the first num to arrive suffice. With min and deadline the sources that exist after
        deadline seconds do, or else the first min to arrive; reduce_sources() tells which. spread:
        every node with a source will get the result too. Returns as soon as nothing that is known
        speaks against it: get the target for the result. After timeout seconds the reduce ends
        without one.

        >>> node.put("a", numpy.full(3, 1.0))
        >>> node.put("b", numpy.full(3, 2.0))
        >>> node.reduce("a or b", ["a", "b"], dtype="f64", min=1, deadline=60, timeout=120)
        >>> node.get_array("a or b", "f64").tolist()
        [3.0, 3.0, 3.0]
        >>> node.reduce_sources("a or b") == [sarissa.id_of("a"), sarissa.id_of("b")]
        True
        """
        self._open().reduce(*reduce_request(target, sources, op, dtype, num, spread, timeout_ns(timeout), min, deadline))

    def reduce_sources(self, target: Name, timeout: Optional[float] = None) -> List[bytes]:
        """Waits until the reduce into target has ended: the ids of the sources in the result."""
        return self._open().reduce_sources(target, timeout_ns(timeout))

    def reduce_progress(self, target: Name) -> Tuple[List[bytes], List[bytes]]:
        """How far the reduce into target is: the ids of the sources that exist, and of those that
        are missing. Does not wait."""
        found, present = self._open().reduce_progress(target)
        return found[:present], found[present:]

    # --- collectives

    def allreduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                  shape: Optional[Shape] = None, timeout: Optional[float] = None,
                  array: Any = None, rank: Optional[int] = None) -> Any:
        """A reduce whose result every participant gets: each calls it with the same target, sources
        and op. With array and rank, array is put first, as sources[rank], and says dtype and shape.
        The result is a read-only array, or a Tensor where numpy has no such type, as get_array() has it."""
        if array is not None:
            memory, meaning = mine(array, sources, rank)
            with self._connections.room() as handle:
                handle.put(sources[rank or 0], memory, None, _arrays.write(meaning))
            dtype, shape = meaning.dtype, meaning.shape
        request = reduce_request(target, sources, op, dtype, 0, False, timeout_ns(timeout))
        with self._connections.room() as handle:
            view = finish(handle, lambda queue: queue.allreduce(0, request), 3, Patience(handle, [target], request[6]))
        return summed(target, view, dtype, shape)

    def gather(self, names: Sequence[Name], timeout: Optional[float] = None, raw: bool = False) -> List[Any]:
        """get() of all of them, side by side: all or none. Any number of names."""
        wanted, limit = names_of(names), timeout_ns(timeout)
        if len(wanted) <= VIEWS_MAX:
            with self._connections.room(len(wanted)) as handle:
                views = finish(handle, lambda queue: queue.gather(0, wanted, limit), len(wanted) + 1,
                               Patience(handle, wanted, limit))
        else:
            with self._connections.rooms(len(wanted)) as rooms:
                views = gather_many(rooms, wanted, limit)
        if raw:
            return [memoryview(view) for view in views]
        return [as_put(name, view) for name, view in zip(wanted, views)]

    def broadcast(self, name: Name, nodes: Optional[Sequence[int]] = None,
                  timeout: Optional[float] = None) -> None:
        """Brings a copy to nodes (numbers; None: all that are up) before anybody there asks for it.
        Returns when each has one."""
        numbers, limit = list(nodes) if nodes is not None else [], timeout_ns(timeout)
        if nodes is not None and not numbers:
            return
        handle = self._open()
        finish(handle, lambda queue: queue.broadcast(0, name, numbers, limit), 1, Patience(handle, [name], limit))

    # --- futures

    get_future, get_object_future = _futures.get_future, _futures.get_object_future
    put_future, allreduce_future = _futures.put_future, _futures.allreduce_future

    # --- groups

    communicator = _communicator.communicator

    def create_group(self, name: str, dtype: Any, count: int, op: str = "sum", policy: str = "bsp",
                     members: int = 0, results: str = "round", switch: Optional[str] = None) -> Group:
        """A group of count elements of dtype, whose rounds begin when members have joined. results:
        "round", of one round; "total", of all rounds so far. switch: addresses of switches that make
        rounds (sarissa-switch(8)), with commas between them. It exists until Group.remove()."""
        self._open().group_create(*creation(name, dtype, count, op, policy, members, results, switch))
        return Group(self, name)

    def group(self, name: str) -> Group:
        """One that exists."""
        return Group(self, name)

    def explain_policy(self, text: str) -> str:
        """The table that a policy of groups is compiled to."""
        return str(self._open().policy_explain(text))

    # --- the cluster

    def watch(self, prefix: str = "") -> Watch:
        """Tells what becomes of the objects whose names begin so, anywhere in the cluster. Those that
        exist come first.

        >>> watch = node.watch("jobs/")
        >>> node.put("jobs/1", b"do this")
        >>> event = next(watch)
        >>> event.kind, event.name, event.size
        ('complete', 'jobs/1', 7)
        >>> watch.close()
        """
        return Watch(self._open(), prefix)

    def info(self, name: Name) -> Info:
        return info(self._open().info(name))

    def ls(self, prefix: str = "") -> List[Info]:
        """The objects whose names begin so, of the whole cluster. PartialError when a part of the
        directory does not answer: its found is the list without what that part knows."""
        try:
            return [info(raw) for raw in self._open().list(prefix)]
        except PartialError as error:
            error.found = [info(raw) for raw in error.found]
            raise

    def nodes(self) -> List[Member]:
        """Every node, the local one first."""
        return [_member(raw) for raw in self._open().nodes()]

    def close(self) -> None:
        """Ends the connection, once the last view has gone. So does the last reference to this.
        What waits in other threads ends at once: Closed."""
        if self._pump is not None:
            self._pump.close()
        self._connections.end()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()


def open(path: Optional[Path] = None) -> Node:  # as in the C library: sarissa.open()
    """Connects to the node at a socket path, or $SARISSA_SOCKET, or the default one."""
    return Node(path)
