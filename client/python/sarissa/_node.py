# SPDX-License-Identifier: BSD-3-Clause
"""Node: a connection to the local node, and what can be done with it. Its methods run the operations of
_operations.py in the thread that calls; only a get looks first whether the object is here."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Sequence, Tuple, Type, Union

from ._ranks import communicator as _communicator
from . import _futures, _objects, _sarissa
from . import _operations as operations
from . import _results as results
from ._arrays import Tensor
from ._connections import Connections
from ._errors import Error
from ._groups import Group
from ._leases import Lease
from ._names import Name, timeout_ns
from ._operations import Step, Steps, T
from ._patience import Patience
from ._results import Holder, Info, Member, Shape
from ._streams import Reader, Writer
from ._watch import Watch

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


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

    def _run(self, steps: Steps[T]) -> T:
        """Makes one step after the other."""
        try:
            step = next(steps)
            while True:
                try:
                    brought = self._do(step)
                except Error as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(brought)
                    del brought
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _do(self, step: Step) -> Any:
        what, arguments, views, about, limit_ns = step
        if not isinstance(what, str):
            return what(*arguments)
        if not views:
            return self._call(self._open(), what, arguments, about, limit_ns)
        with self._connections.room(views) as handle:
            return self._call(handle, what, arguments, about, limit_ns)

    @staticmethod
    def _call(handle: _sarissa.Handle, what: str, arguments: Tuple[Any, ...], about: Sequence[Name], limit_ns: int) -> Any:
        if not about:
            return getattr(handle, what)(*arguments)
        return getattr(handle, what)(*arguments, look=Patience(handle, about, limit_ns))

    # --- bytes and arrays

    def put(self, name: Name, data: Any, ttl: Optional[float] = None) -> None:
        """Stores a copy of data: bytes, a memoryview, array.array..., or an array of numpy or of
        another library that speaks DLPack, with its type and shape. One of that name with the same
        bytes may exist already; with others: FileExistsError. What would not come back as it was is refused
        with a TypeError that says what to put: Python objects, masked arrays and other subclasses of
        ndarray, types with metadata or of more than 120 bytes in words, more than eight dimensions.
        ttl: expire() so many seconds from now."""
        self._run(operations.put(name, data, ttl))

    def _view(self, name: Name, timeout: Optional[float]) -> _sarissa.View:
        timeout_ns(timeout)
        first = self._connections.at_once()
        view = None if first is None else first.here(name)
        return self._run(operations.view(name, timeout)) if view is None else view

    def get(self, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Any:
        """The object, waiting up to timeout seconds for it (None: no limit). An array comes as a
        read-only numpy array, everything else as a read-only memoryview; nothing is copied, and the
        object stays pinned in the node's memory until the last view of it has gone. raw: always a
        memoryview."""
        view = self._view(name, timeout)
        return memoryview(view) if raw else results.as_put(name, view)  # type: ignore[arg-type]

    def get_array(self, name: Name, dtype: Any, shape: Optional[Shape] = None,
                  timeout: Optional[float] = None) -> Any:
        """An object that is not described as a read-only numpy array. bf16, and what else numpy has not: a
        Tensor, for torch.from_dlpack() and others. With ml_dtypes installed numpy has bf16."""
        return results.shaped(name, self._view(name, timeout), dtype, shape)

    def get_tensor(self, name: Name, timeout: Optional[float] = None, dtype: Any = None,
                   shape: Optional[Shape] = None) -> Tensor:
        """An array for a library that speaks DLPack. TypeError when the object is no array, unless dtype says
        what it is."""
        return results.tensor(name, self._view(name, timeout), dtype, shape)

    def get_into(self, name: Name, buffer: Any, timeout: Optional[float] = None) -> int:
        """Copies the object's bytes into a writable buffer, such as a numpy array: how many they are. OutOfRange when
        the object has more. The buffer must not be used before the call returns."""
        return self._run(operations.get_into(name, buffer, timeout))

    def get_ranges(self, name: Name, ranges: Sequence[operations.Range], timeout: Optional[float] = None,
                   into: Any = None) -> List[memoryview]:
        """Bytes of one object, without all of it on this node, which may have less memory than the object: a read-only
        memoryview for each (offset, bytes). into: writable memory that takes the bytes, one range after the other."""
        return self._run(operations.get_ranges(name, ranges, timeout, into))

    def put_object(self, name: Name, value: Any, ttl: Optional[float] = None) -> None:
        """Stores any object that pickle takes. What has a buffer of its own in the pickle's protocol 5, such as
        arrays of numpy at any depth, is copied once, into the store. One of that name with the same bytes may
        exist already; with others: FileExistsError. ttl: expire() so many seconds from now.

        >>> node.put_object("model", {"weights": numpy.ones(3), "step": 7})
        >>> node.get_object("model")["weights"].tolist()
        [1.0, 1.0, 1.0]
        """
        self._run(operations.put_object(name, value, ttl))

    def get_object(self, name: Name, timeout: Optional[float] = None) -> Any:
        """The object that put_object() has stored, waiting up to timeout seconds for it (None: no limit). Its
        arrays are read-only views into the node's memory: nothing is copied, and the object stays pinned until
        the last of them has gone. NotPickled when it was put by another call.

        Unpickling runs code that the program that put the object has chosen: get objects of programs that you trust."""
        return _objects.value_of(name, memoryview(self._view(name, timeout)))  # type: ignore[arg-type]

    def delete(self, name: Name, raw: bool = False) -> None:
        """Removes every copy in the cluster. Views in use stay as they are. NotFound when there is none. raw does
        nothing."""
        self._run(operations.delete(name))

    # --- how long objects live

    def lease(self, name: Optional[str] = None, ttl: float = 10.0) -> Lease:
        """Opens a lease, or continues the one of that name. It ends so many seconds after this process,
        or the connection, or after the last of those that have opened it by its name."""
        return Lease(self, Node(self._path), self._run(operations.lease(name, ttl)), name, ttl)

    def expire(self, name: Name, ttl: Optional[float]) -> None:
        """The object is deleted everywhere after so many seconds from now. None: not any more."""
        self._run(operations.expire(name, ttl))

    # --- piece by piece

    def create(self, name: Name, size: Optional[int] = None, dtype: Any = None,
               shape: Optional[Shape] = None) -> Writer:
        """Room for an object of size bytes, or for an array of that dtype and shape, to be filled
        piece by piece."""
        return self._run(operations.create(name, size, dtype, shape))

    def reader(self, name: Name, timeout: Optional[float] = None) -> Reader:
        """The object while it still arrives or is written: returns as soon as its size is known. Each
        wait for more takes up to timeout seconds."""
        return Reader(self._run(operations.view(name, timeout, "begin")), timeout, name)

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
        self._run(operations.reduce(target, sources, op, dtype, num, spread, timeout, min, deadline))

    def reduce_sources(self, target: Name, timeout: Optional[float] = None) -> List[bytes]:
        """Waits until the reduce into target has ended: the ids of the sources in the result."""
        return self._run(operations.reduce_sources(target, timeout))

    def reduce_progress(self, target: Name) -> Tuple[List[bytes], List[bytes]]:
        """How far the reduce into target is: the ids of the sources that exist, and of those that
        are missing. Does not wait."""
        return self._run(operations.reduce_progress(target))

    # --- collectives

    def allreduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                  shape: Optional[Shape] = None, timeout: Optional[float] = None,
                  array: Any = None, rank: Optional[int] = None) -> Any:
        """A reduce whose result every participant gets: each calls it with the same target, sources
        and op. With array and rank, array is put first, as sources[rank], and says dtype and shape.
        The result is a read-only array, or a Tensor where numpy has no such type, as get_array() has it."""
        return self._run(operations.allreduce(target, sources, op, dtype, shape, timeout, array, rank))

    def gather(self, names: Sequence[Name], timeout: Optional[float] = None, raw: bool = False) -> List[Any]:
        """get() of all of them: all or none. Any number of names, a thousand at a time."""
        return self._run(operations.gather(names, timeout, raw))

    def broadcast(self, name: Name, nodes: Optional[Sequence[int]] = None,
                  timeout: Optional[float] = None) -> None:
        """Brings a copy to nodes (numbers; None: all that are up) before anybody there asks for it.
        Returns when each has one."""
        self._run(operations.broadcast(name, nodes, timeout))

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
        return Group(self, name, self._run(operations.create_group(name, dtype, count, op, policy, members, results,
                                                                   switch)))

    def group(self, name: str) -> Group:
        """One that exists."""
        return Group(self, name, self._run(operations.group_info(name)))

    def explain_policy(self, text: str) -> str:
        """The table that a policy of groups is compiled to."""
        return self._run(operations.explain_policy(text))

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
        """What the directory knows of an object."""
        return self._run(operations.info(name))

    def holders(self, name: Name) -> List[Holder]:
        """The copies of an object, one of each node that has some of it."""
        return self._run(operations.holders(name))

    def ls(self, prefix: str = "") -> List[Info]:
        """The objects whose names begin so, of the whole cluster. PartialError when a part of the
        directory does not answer: its found is the list without what that part knows."""
        return self._run(operations.ls(prefix))

    def nodes(self) -> List[Member]:
        """Every node, the local one first."""
        return self._run(operations.nodes())

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
