# SPDX-License-Identifier: BSD-3-Clause
"""Communicator: ranks that call the same things in the same order, as in MPI. rounds.py has what they leave for one
another; sums are reduces."""

from __future__ import annotations

import contextlib
import errno
import functools
import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from . import buffers as _buffers
from .. import _arrays, _objects
from .._arrays import Given
from .._errors import Deleted, Exists, InvalidArgument, Lost, Unavailable
from .._names import dtype_of, op_of
from .rounds import Deadline, Rounds, delete_all

if TYPE_CHECKING:
    from .._node import Node

FOLDS: Dict[str, Callable[[Any, Any], Any]] = {"sum": operator.add, "prod": operator.mul, "min": min, "max": max}


def fold(values: Sequence[Any], op: str) -> Any:
    """Of Python objects, in the order of the ranks."""
    if op == "avg":
        return functools.reduce(operator.add, values) / len(values)
    return functools.reduce(FOLDS[op], values)


def array_of(value: Any) -> Optional[Given]:
    """What reduces add up, if it is that."""
    given = _arrays.given_array(value)
    if given is not None:
        dtype_of(given.meaning.dtype)
    return given


class Communicator:
    """One of size ranks. Made by Node.communicator(). Every rank makes the same calls in the same order; a call that
    others do not make is InvalidArgument, and one that they do not come to in time is TimedOut, which names them.
    timeout= of a call, or else that of the communicator, limits it.

    Calls in lower case take any objects; arrays come as read-only views into the node's memory, without a copy.
    Unpickling runs code of the other ranks. Calls with a capital letter take buffers as mpi4py does, and fill the
    caller's. op is one of sum, prod, min, max and avg.

    >>> with node.communicator("job", rank=0, size=1) as comm:
    ...     comm.allreduce(numpy.ones(2)).tolist()
    [1.0, 1.0]

    The end of the with block is a call that all ranks make, as close() is. One thread at a time uses it."""

    IN_PLACE = -1  # as the buffer to send: what is in the other one; mpi4py's does as well

    def __init__(self, node: Node, name: str, rank: int, size: int, timeout: Optional[float]) -> None:
        self.name, self.rank, self.size, self.timeout = name, rank, size, timeout
        self._node = node
        self._rounds = Rounds(node, name, rank, size, Deadline(timeout))
        self._numbers: Dict[Tuple[str, int, int], int] = {}  # of messages sent and received

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def _limit(self, timeout: Optional[float]) -> Deadline:
        return Deadline(self.timeout if timeout is None else timeout)

    def _rank(self, rank: int, what: str) -> int:
        if not 0 <= rank < self.size:
            raise InvalidArgument(errno.EINVAL, f"communicator {self.name!r} has ranks 0 to {self.size - 1}: "
                                                f"{what}={rank} is none")
        return rank

    # --- what rounds are made of

    def _put(self, part: str, value: Any) -> None:
        """An object of this round."""
        self._rounds.maker.put_object(self._rounds.mine(part), value)

    def _put_array(self, part: str, array: Any) -> None:
        self._rounds.maker.put(self._rounds.mine(part), array)

    def _views(self, parts: Sequence[str], limit: Deadline) -> List[Any]:
        return self._node.gather([self._rounds.path(part) for part in parts], limit.left, raw=True)

    def _values(self, parts: Sequence[str], limit: Deadline) -> List[Any]:
        return [_objects.value_of(part, view) for part, view in zip(parts, self._views(parts, limit))]

    def _each(self, kind: str = "d") -> List[str]:
        """The data of all ranks."""
        return [f"{kind}/{rank}" for rank in range(self.size)]

    def _together(self, what: str, limit: Deadline, put: Callable[[], None]) -> None:
        """A round that ends when all are in it."""
        self._rounds.begin(what, limit)
        put()
        self._rounds.arrive()
        self._rounds.meet(limit)

    # --- all with all

    def barrier(self, timeout: Optional[float] = None) -> None:
        """Returns when all ranks have called it."""
        self._together("barrier", self._limit(timeout), lambda: None)

    def allreduce(self, value: Any, op: str = "sum", timeout: Optional[float] = None) -> Any:
        """Arrays: the sum (or op) of all, element by element. Other objects: + of all in the order of the ranks."""
        op_of(op)
        given = array_of(value)
        if given is None:
            return fold(self._exchange(f"allreduce {op} of objects", value, timeout), op)
        total = self._sum(f"allreduce {op} of {given.meaning}", given.in_c_order(), given, op, self._limit(timeout))
        return total if hasattr(type(value), "__setitem__") or not hasattr(total, "ndim") or total.ndim else total[()]

    def _sum(self, what: str, memory: Any, given: Given, op: str, limit: Deadline) -> Any:
        meta = _arrays.write(given.meaning._replace(order="C"))

        def put() -> None:
            with self._rounds.maker._connections.room() as handle:
                handle.put(self._rounds.mine(f"d/{self.rank}"), memory, None, meta)
        self._together(what, limit, put)
        total = self._reduced("r", self._each(), op, limit)
        if self.rank == 0:
            self._rounds.hold("r")
        return total

    def _reduced(self, target: str, parts: Sequence[str], op: str, limit: Deadline) -> Any:
        name = self._rounds.path(target)
        try:
            return self._node.allreduce(name, [self._rounds.path(part) for part in parts], op, timeout=limit.left)
        except Exists:  # the reduce has ended before this rank asked; nothing else has such a name
            return self._node.get(name, limit.left)

    def allgather(self, value: Any, timeout: Optional[float] = None) -> List[Any]:
        """What all ranks give, in their order."""
        return self._exchange("allgather", value, timeout)

    def _exchange(self, what: str, value: Any, timeout: Optional[float]) -> List[Any]:
        limit = self._limit(timeout)
        self._together(what, limit, lambda: self._put(f"d/{self.rank}", value))
        return self._values(self._each(), limit)

    def reduce_scatter(self, value: Any, op: str = "sum", timeout: Optional[float] = None) -> Any:
        """value: a list of an array or object for each rank, or an array whose first dimension is cut into as many. Rank
        i gets the sum (or op) of what all have given for i."""
        op_of(op)
        blocks, limit = self._blocks(value), self._limit(timeout)
        if any(array_of(block) is None for block in blocks):
            def put() -> None:
                for rank, block in enumerate(blocks):
                    self._put(f"d/{self.rank}-{rank}", block)
            self._together(f"reduce_scatter {op} of objects", limit, put)
            return fold(self._values([f"{part}-{self.rank}" for part in self._each()], limit), op)
        kinds = ", ".join(str(_arrays.given_array(block).meaning) for block in blocks)  # type: ignore[union-attr]
        return self._sum_of_mine(f"reduce_scatter {op} of {kinds}", blocks, op, limit)

    def _blocks(self, value: Any) -> Sequence[Any]:
        if hasattr(value, "shape"):
            if not value.shape or value.shape[0] % self.size:
                raise ValueError(f"an array of shape {tuple(value.shape)} is not cut into {self.size} along its first "
                                 "dimension: give a list of arrays")
            each = value.shape[0] // self.size
            return [value[rank * each:(rank + 1) * each] for rank in range(self.size)]
        if len(value) != self.size:
            raise ValueError(f"{len(value)} things are not one for each of {self.size} ranks")
        return list(value)

    def _sum_of_mine(self, what: str, blocks: Sequence[Any], op: str, limit: Deadline) -> Any:
        def put() -> None:
            for rank, block in enumerate(blocks):
                self._put_array(f"d/{self.rank}-{rank}", block)
        self._together(what, limit, put)
        total = self._reduced(f"r/{self.rank}", [f"{part}-{self.rank}" for part in self._each()], op, limit)
        self._rounds.hold(f"r/{self.rank}")
        return total

    # --- one and all

    def broadcast(self, value: Any = None, root: int = 0, timeout: Optional[float] = None) -> Any:
        """What root gives, to all."""
        limit = self._limit(timeout)
        self._rounds.begin(f"broadcast of rank {self._rank(root, 'root')}", limit)
        if self.rank == root:
            self._put("d", value)
        self._rounds.arrive()
        return value if self.rank == root else self._from_root(root, "d", limit)

    bcast = broadcast

    def _from_root(self, root: int, part: str, limit: Deadline) -> Any:
        self._rounds.see([root], limit)
        return self._values([part], limit)[0]

    def scatter(self, values: Optional[Sequence[Any]] = None, root: int = 0, timeout: Optional[float] = None) -> Any:
        """What root gives for this rank: there values has something for each."""
        limit = self._limit(timeout)
        blocks = self._blocks(values) if self.rank == self._rank(root, "root") else []
        self._rounds.begin(f"scatter of rank {root}", limit)
        for rank, block in enumerate(blocks):
            if rank != root:
                self._put(f"d/{rank}", block)
        self._rounds.arrive()
        return blocks[root] if self.rank == root else self._from_root(root, f"d/{self.rank}", limit)

    def gather(self, value: Any, root: int = 0, timeout: Optional[float] = None) -> Optional[List[Any]]:
        """What all ranks give, in their order, at root; None elsewhere."""
        limit = self._limit(timeout)
        self._rounds.begin(f"gather to rank {self._rank(root, 'root')}", limit)
        self._put(f"d/{self.rank}", value)
        self._rounds.arrive()
        if self.rank != root:
            return None
        self._rounds.meet(limit)
        return self._values(self._each(), limit)

    # --- one with one

    def send(self, value: Any, dest: int, tag: int = 0) -> None:
        """Returns when the object is stored: dest need not have called recv()."""
        self._send(dest, tag, lambda name: self._rounds.maker.put_object(name, value))

    def _send(self, dest: int, tag: int, put: Callable[[str], None]) -> None:
        key = ("to", self._rank(dest, "dest"), tag)
        with contextlib.suppress(Deleted):  # dest has it already, before it has a second copy
            put(self._rounds.message(self.rank, dest, tag, self._numbers.get(key, 0)))
        self._numbers[key] = self._numbers.get(key, 0) + 1

    def recv(self, source: int, tag: int = 0, timeout: Optional[float] = None) -> Any:
        """The next object that source has sent with this tag, in the order of its calls."""
        return self._recv(source, tag, self._limit(timeout), lambda name: self._node.get_object(name, timeout=0))

    def _recv(self, source: int, tag: int, limit: Deadline, get: Callable[[str], Any]) -> Any:
        key = ("from", self._rank(source, "source"), tag)
        name = self._rounds.message(source, self.rank, tag, self._numbers.get(key, 0))
        try:
            view = self._node.get(name, limit.left, raw=True)
        except (Unavailable, Deleted, Lost):
            raise self._rounds.late([source], f"sent to rank {self.rank} with tag {tag}", limit) from None
        got = get(name)
        del view
        self._numbers[key] = self._numbers.get(key, 0) + 1
        delete_all(self._node._open(), [name])
        return got

    # --- buffers

    def Barrier(self, timeout: Optional[float] = None) -> None:
        self.barrier(timeout)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: str = "sum", timeout: Optional[float] = None) -> None:
        op_of(op)
        into = _buffers.vector(recvbuf, True)
        array = into if isinstance(sendbuf, int) else _buffers.vector(sendbuf)
        self._fits(array, into, 1)
        given = array_of(array)
        assert given is not None
        into[...] = self._sum(f"Allreduce {op} of {given.meaning}", given.memory, given, op, self._limit(timeout))

    def Bcast(self, buf: Any, root: int = 0, timeout: Optional[float] = None) -> None:
        limit, array = self._limit(timeout), _buffers.vector(buf, self.rank != root)
        self._rounds.begin(f"Bcast of rank {self._rank(root, 'root')}, {_buffers.shown(array)}", limit)
        if self.rank == root:
            self._put_array("d", array)
        self._rounds.arrive()
        if self.rank != root:
            self._fill_from_root(array, root, "d", limit)

    def _fill_from_root(self, array: Any, root: int, part: str, limit: Deadline) -> None:
        self._rounds.see([root], limit)
        array[...] = self._node.get(self._rounds.path(part), limit.left)

    def Allgather(self, sendbuf: Any, recvbuf: Any, timeout: Optional[float] = None) -> None:
        limit, into = self._limit(timeout), _buffers.vector(recvbuf, True)
        array = self._block(into, self.rank) if isinstance(sendbuf, int) else _buffers.vector(sendbuf)
        self._fits(array, into, self.size)
        self._together(f"Allgather of {_buffers.shown(array)}", limit, lambda: self._put_array(f"d/{self.rank}", array))
        self._fill(into, limit)

    def _fill(self, into: Any, limit: Deadline) -> None:
        names = [self._rounds.path(part) for part in self._each()]
        for rank, block in enumerate(self._node.gather(names, limit.left)):
            self._block(into, rank)[...] = block

    def _block(self, array: Any, rank: int) -> Any:
        each = len(array) // self.size
        return array[rank * each:(rank + 1) * each]

    def _fits(self, array: Any, into: Any, ranks: int) -> None:
        if len(array) * ranks != len(into) or array.dtype != into.dtype:
            raise InvalidArgument(errno.EINVAL, f"{ranks} times {_buffers.shown(array)} do not fill {_buffers.shown(into)}")

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: str = "sum", timeout: Optional[float] = None) -> None:
        op_of(op)
        array, into = _buffers.vector(sendbuf), _buffers.vector(recvbuf, True)
        self._fits(into, array, self.size)
        array_of(array)
        into[...] = self._sum_of_mine(f"Reduce_scatter_block {op} of {_buffers.shown(array)}", self._blocks(array), op,
                                      self._limit(timeout))

    def Gather(self, sendbuf: Any, recvbuf: Any = None, root: int = 0, timeout: Optional[float] = None) -> None:
        limit, array = self._limit(timeout), _buffers.vector(sendbuf)
        if self.rank == self._rank(root, "root"):
            into = _buffers.vector(recvbuf, True)
            self._fits(array, into, self.size)
        self._rounds.begin(f"Gather of {_buffers.shown(array)} to rank {root}", limit)
        self._put_array(f"d/{self.rank}", array)
        self._rounds.arrive()
        if self.rank == root:
            self._rounds.meet(limit)
            self._fill(into, limit)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0, timeout: Optional[float] = None) -> None:
        limit, into = self._limit(timeout), _buffers.vector(recvbuf, True)
        if self.rank == self._rank(root, "root"):
            array = _buffers.vector(sendbuf)
            self._fits(into, array, self.size)
        self._rounds.begin(f"Scatter of {_buffers.shown(into)} from rank {root}", limit)
        for rank in range(self.size) if self.rank == root else ():
            if rank != root:
                self._put_array(f"d/{rank}", self._block(array, rank))
        self._rounds.arrive()
        if self.rank != root:
            self._fill_from_root(into, root, f"d/{self.rank}", limit)
        else:
            into[...] = self._block(array, root)

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        array = _buffers.vector(buf)
        self._send(dest, tag, lambda name: self._rounds.maker.put(name, array))

    def Recv(self, buf: Any, source: int, tag: int = 0, timeout: Optional[float] = None) -> int:
        """Fills the buffer from its beginning; how many elements have come."""
        into = _buffers.vector(buf, True)

        def fill(name: str) -> int:
            got = self._node.get(name, timeout=0)
            if isinstance(got, memoryview) or got.dtype != into.dtype or len(got) > len(into):
                came = "an object" if isinstance(got, memoryview) else _buffers.shown(got)
                raise InvalidArgument(errno.EINVAL, f"rank {source} has sent {came}, which does not go into "
                                                    f"{_buffers.shown(into)}: the message is still there")
            into[:len(got)] = got
            return len(got)
        return int(self._recv(source, tag, self._limit(timeout), fill))

    # --- the end

    def close(self, timeout: Optional[float] = None) -> None:
        """All ranks call it; what the communicator has stored goes. Messages that nobody has received are lost."""
        self._rounds.leave(False, self._limit(timeout))

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self._rounds.leave(kind is not None, self._limit(None))


def communicator(self: Node, name: str, rank: int, size: int, timeout: Optional[float] = None) -> Communicator:
    """Joins the communicator of that name as one of size ranks, and returns when all have; each has a process or
    thread, on any node. InUse when another one has this rank. timeout: of this call, and of each later one that
    names none."""
    return Communicator(self, name, rank, size, timeout)
