# SPDX-License-Identifier: BSD-3-Clause
"""Operations as futures of concurrent.futures. One thread of a Node, which is begun with the first of them, ends them
all: it watches the queues of the node's connections."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _arrays, _objects, _sarissa
from . import _results as results
from ._connections import Connections, Room
from ._errors import Closed
from ._names import Name, timeout_ns
from ._operations import reduce_request

if TYPE_CHECKING:
    from ._node import Node

CAPACITY = 1024  # of a queue; the room of its connection is less
BEGINS = threading.Lock()


class NodeFuture(Future):  # type: ignore[type-arg]
    """cancel() ends the operation, unless it has ended. Callbacks run in the node's thread."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node: Optional[Node] = node  # which lives as long as something is under way
        self._pump: Optional[Pump] = None
        self._ticket = 0
        self._settled = False  # under the pump's lock: somebody says how it ends

    def cancel(self) -> bool:
        if self._pump is None or not self._pump.give_up(self):
            return self.cancelled()
        super().cancel()
        self.set_running_or_notify_cancel()  # those who wait() for several
        self._node = self._pump = None
        return True

    def end(self, convert: Callable[[Any], Any], result: Any) -> None:
        self._node = self._pump = None
        self.set_running_or_notify_cancel()
        try:
            if isinstance(result, BaseException):
                raise result
            value = convert(result)
        except BaseException as error:
            self.set_exception(error.with_traceback(None))
        else:
            self.set_result(value)


class Line:
    """A connection's queue, and how many operations are under way there."""

    def __init__(self, handle: _sarissa.Handle) -> None:
        self.handle, self.queue, self.busy = handle, handle.queue(CAPACITY), 0
        self.fd = self.queue.fd()


class Operation(NamedTuple):
    future: NodeFuture
    convert: Callable[[Any], Any]
    line: Line
    room: Room


class Pump:
    """It knows no Node, whose end ends it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._tickets = itertools.count()
        self._lines: Dict[int, Line] = {}
        self._waiting: Dict[int, Operation] = {}
        self._closed = False
        self._epoll = select.epoll()
        self._ends, end = os.pipe()
        self._stops = [end]
        self._epoll.register(self._ends, select.EPOLLIN)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="sarissa-futures")
        self._thread.start()

    def begin(self, future: NodeFuture, convert: Callable[[Any], Any], operation: str, *arguments: Any) -> None:
        room = self._connections.room()
        handle = room.__enter__()
        try:
            with self._lock:
                line = self._line(handle)
                future._pump, future._ticket = self, next(self._tickets)
                self._waiting[future._ticket] = Operation(future, convert, line, room)
                try:
                    getattr(line.queue, operation)(future._ticket, *arguments)
                except BaseException:
                    del self._waiting[future._ticket]
                    raise
                line.busy += 1
        except BaseException:
            room.__exit__()
            raise

    def _line(self, handle: _sarissa.Handle) -> Line:
        """Under the lock."""
        if self._closed:
            raise Closed
        for line in self._lines.values():
            if line.handle is handle:
                return line
        for line in [line for line in self._lines.values() if not line.busy]:
            self._epoll.unregister(line.fd)
            del self._lines[line.fd]  # its connection may go
        made = Line(handle)
        self._lines[made.fd] = made
        self._epoll.register(made.fd, select.EPOLLIN)
        return made

    def give_up(self, future: NodeFuture) -> bool:
        """Whether its operation is being cancelled."""
        with self._lock:
            operation = self._waiting.get(future._ticket)
            if future._settled or operation is None:
                return False
            future._settled = True
            operation.line.queue.cancel(future._ticket)
            return True

    def _serve(self) -> None:
        while self._turn():
            pass
        self._finish()
        self._epoll.close()
        os.close(self._ends)

    def _turn(self) -> bool:
        """Keeps nothing of what has come."""
        ready = [fd for fd, _ in self._epoll.poll()]
        if self._ends in ready:
            return False
        for operation, result in self._ended(ready):
            operation.future.end(operation.convert, result)
        return True

    def _ended(self, ready: Sequence[int]) -> List[Tuple[Operation, Any]]:
        ended = []
        with self._lock:
            for line in [self._lines[fd] for fd in ready if fd in self._lines]:
                for ticket, result in line.queue.poll():
                    operation = self._waiting.pop(ticket)
                    line.busy -= 1
                    operation.room.__exit__()
                    if not operation.future._settled:
                        operation.future._settled = True
                        ended.append((operation, result))
        return ended

    def stop(self) -> None:
        """Takes no lock: the garbage collector calls it in the middle of anything."""
        with contextlib.suppress(IndexError):
            os.close(self._stops.pop())

    def close(self) -> None:
        """What is under way ends: Closed."""
        self.stop()
        if threading.current_thread() is self._thread:
            self._finish()
        else:
            self._thread.join()

    def _finish(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            left = [operation for operation in self._waiting.values() if not operation.future._settled]
            for operation in left:
                operation.future._settled = True
            self._waiting, self._lines = {}, {}
        for operation in left:
            operation.future.end(operation.convert, Closed())


def pump_of(node: Node) -> Pump:
    with BEGINS:
        node._open()  # else it is closed
        if node._pump is None:
            node._pump = Pump(node._connections)
            weakref.finalize(node, node._pump.stop)
        return node._pump


def future_of(node: Node, convert: Callable[[Any], Any], operation: str, *arguments: Any) -> Future[Any]:
    future = NodeFuture(node)
    pump_of(node).begin(future, convert, operation, *arguments)
    return future


def get_future(self: Node, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Future[Any]:
    """get() as a concurrent.futures.Future, thousands at a time on one thread.

    >>> future = node.get_future("later")
    >>> node.put("later", b"abc")
    >>> bytes(future.result(timeout=10))
    b'abc'
    """
    def convert(view: Any) -> Any:
        return memoryview(view) if raw else results.as_put(name, view)
    return future_of(self, convert, "get", name, timeout_ns(timeout))


def get_object_future(self: Node, name: Name, timeout: Optional[float] = None) -> Future[Any]:
    """get_object() as a future. Unpickling runs code of the program that put the object."""
    return future_of(self, lambda view: _objects.value_of(name, memoryview(view)), "get", name, timeout_ns(timeout))


def put_future(self: Node, name: Name, data: Any) -> Future[Any]:
    """put() as a future. Data may not change before its end."""
    given = _arrays.given_array(data)
    if given is None:
        _arrays.check_bytes(data)
        return future_of(self, lambda _: None, "put", name, data, None)
    return future_of(self, lambda _: None, "put", name, given.contiguous().memory, None, _arrays.write(given.meaning))


def allreduce_future(self: Node, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                     shape: Any = None, timeout: Optional[float] = None) -> Future[Any]:
    """allreduce() of sources that are put, or will be, as a future of the result."""
    request = reduce_request(target, sources, op, dtype, 0, False, timeout_ns(timeout))
    return future_of(self, lambda view: results.summed(target, view, dtype, shape), "allreduce", *request)
