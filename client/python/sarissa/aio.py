# SPDX-License-Identifier: BSD-3-Clause
"""The package for asyncio: the waits of sarissa.Node as coroutines, thousands at a time on one thread.

    >>> import asyncio, sarissa.aio
    >>> async def main(names):
    ...     async with sarissa.aio.open() as node:
    ...         await asyncio.gather(*[node.put(name, name.encode()) for name in names])
    ...         return await asyncio.gather(*[node.get(name) for name in names])
    >>> [bytes(one) for one in asyncio.run(main(["aio/a", "aio/b"]))]
    [b'aio/a', b'aio/b']

The event loop watches one descriptor, the queue's. A task that is cancelled ends its operation. Each
loop opens its own node."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, AsyncIterator, Dict, List, Optional, Sequence, Type

from . import _arrays, _node, _sarissa
from ._aio_groups import Group, GroupMember, Result
from ._connections import VIEWS_MAX
from ._errors import Busy, Closed, Error, Exists
from ._groups import creation
from ._names import Name, timeout_ns
from ._node import Info, Path, Shape
from ._watch import Event, events

__all__ = ["Group", "GroupMember", "Node", "Result", "open"]
CAPACITY = 16384  # operations under way; more wait for one of them to end
PIECE_BYTES = 1 << 20
BRINGS = {"get": 1, "begin": 1, "allreduce": 1, "put": 1}  # views, or a writer for a while
GATHERS = 250  # names of one operation, where there are more than a connection has views for


class Line:
    """A connection and its queue."""

    def __init__(self, handle: _sarissa.Handle) -> None:
        self.handle, self.queue = handle, handle.queue(CAPACITY)
        self.fd = self.queue.fd()
        self.views: Dict[int, int] = {}  # that operations under way bring, by ticket
        self.asked = 0  # the sum of them

    @property
    def room(self) -> int:
        return VIEWS_MAX - self.handle.views - self.asked

    @property
    def idle(self) -> bool:
        return not self.views and not self.handle.views


class Node:
    """As sarissa.Node; `node` is one, for calls that do not wait."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self.node = _node.Node(path)
        self._loop = asyncio.get_running_loop()
        self._lines: Optional[List[Line]] = [Line(self.node._open())]
        self._tickets = itertools.count()
        self._waiting: Dict[int, asyncio.Future[Any]] = {}
        self._room: List[asyncio.Future[None]] = []
        self._leaving: Dict[int, asyncio.Event] = {}  # cancelled operations that have not ended
        self._watch(self._lines[0])

    def _watch(self, line: Line) -> None:
        self._loop.add_reader(line.fd, self._ready, line)

    def _line(self, views: int) -> Line:
        """A connection with room for so many views."""
        lines = self._lines
        if lines is None:
            raise Closed
        for line in lines:
            if views == 0 or line.room >= views:
                return line
        if views > VIEWS_MAX:
            raise ValueError(f"{views} views are more than one operation can bring")
        for line in lines[1:]:
            if line.idle:  # its connection goes
                self._loop.remove_reader(line.fd)
                lines.remove(line)
        lines.append(Line(self.node._connections.another()))
        self._watch(lines[-1])
        return lines[-1]

    def _line_of(self, view: _sarissa.View) -> Line:
        for line in self._lines or ():
            if line.handle is view.handle:
                return line
        raise Closed

    def _ready(self, line: Line) -> None:
        if self._lines is None:
            return
        for ticket, result in line.queue.poll():
            line.asked -= line.views.pop(ticket)
            future = self._waiting.pop(ticket)
            if ticket in self._leaving:
                self._leaving.pop(ticket).set()
            if future.done():
                continue  # its task was cancelled, and what it has got goes
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)
        room, self._room = self._room, []
        for waiter in room:
            if not waiter.done():
                waiter.set_result(None)

    async def _do(self, operation: str, *arguments: Any, ended: Optional[asyncio.Event] = None) -> Any:
        """One operation of a queue. When its task is cancelled, ended is set once it is over."""
        ticket = next(self._tickets)
        views = len(arguments[0]) if operation == "gather" else BRINGS.get(operation, 0)
        while True:
            line = self._line(views) if operation != "wait_for" else self._line_of(arguments[0])
            try:
                getattr(line.queue, operation)(ticket, *arguments)
                break
            except Busy:
                if not self._waiting:
                    raise
                waiter = self._loop.create_future()
                self._room.append(waiter)
                await waiter
        line.views[ticket] = views
        line.asked += views
        future = self._waiting[ticket] = self._loop.create_future()
        try:
            return await future
        except asyncio.CancelledError:
            if self._lines is not None:
                line.queue.cancel(ticket)
                if ended is not None and ticket in self._waiting:
                    ended.clear()
                    self._leaving[ticket] = ended
            raise
        finally:
            del future  # an exception of it would keep this frame in a cycle

    # --- bytes and arrays

    async def put(self, name: Name, data: Any) -> None:
        given = _arrays.given_array(data)
        if given is None:
            _arrays.check_bytes(data)
            await self._do("put", name, data, None)
            return
        memory, meaning, _ = given.contiguous()
        text, ident = _arrays.write(meaning), _arrays.description_id(_sarissa.id_from(name))
        older = False
        try:
            await self._do("put", ident, text, _arrays.description_name(name))
        except Exists:
            older = True
        try:
            await self._do("put", name, memory, None)
        except Error:
            if not older:
                await self._forget(name)
            raise
        if older:
            stored = await self._description(name)
            if stored is not None and stored.sample == meaning.sample:
                raise _node.exists(name, stored, meaning)
            await self._forget(name)
            await self._do("put", ident, text, _arrays.description_name(name))

    async def get(self, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Any:
        view = await self._do("get", name, timeout_ns(timeout))
        return memoryview(view) if raw else _node.as_put(view, await self._description(name))

    async def _description(self, name: Name) -> Optional[_arrays.Meaning]:
        try:
            answer = await self._do("get", _arrays.description_id(_sarissa.id_from(name)), 0)
        except Error as error:
            answer = error
        return _node.described(name, answer)

    async def get_array(self, name: Name, dtype: Any, shape: Optional[Shape] = None,
                        timeout: Optional[float] = None) -> Any:
        return _node.shaped(name, await self._do("get", name, timeout_ns(timeout)), dtype, shape)

    async def delete(self, name: Name, raw: bool = False) -> None:
        await self._do("delete", name)
        if not raw:
            await self._forget(name)

    async def _forget(self, name: Name) -> None:
        try:
            await self._do("delete", _arrays.description_id(_sarissa.id_from(name)))
        except Error:
            pass

    async def pieces(self, name: Name, timeout: Optional[float] = None,
                     room: int = PIECE_BYTES) -> AsyncIterator[memoryview]:
        """The object while it arrives, as read-only views of at most room bytes. Each wait takes up to
        timeout seconds."""
        limit = timeout_ns(timeout)
        view = await self._do("begin", name, limit)
        memory, at = memoryview(view), 0
        while at < view.nbytes:
            ready = view.ready
            if ready <= at:
                ready = await self._do("wait_for", view, at + 1, limit)
            end = min(ready, at + room)
            yield memory[at:end]
            at = end

    # --- collectives

    async def reduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                     num: int = 0, spread: bool = False, timeout: Optional[float] = None, min: int = 0,
                     deadline: Optional[float] = None) -> int:
        """Makes target from sources; how many of them the result holds, when it is there."""
        request = _node.reduce_request(target, sources, op, dtype, num, spread, timeout_ns(timeout), min,
                                       deadline)
        return int(await self._do("reduce", request))

    async def allreduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                        shape: Optional[Shape] = None, timeout: Optional[float] = None,
                        array: Any = None, rank: Optional[int] = None) -> Any:
        if array is not None:
            memory, meaning = _node.mine(array, sources, rank)
            dtype, shape = meaning.dtype, meaning.shape
            await self._do("put", sources[rank or 0], memory, None)
        request = _node.reduce_request(target, sources, op, dtype, 0, False, timeout_ns(timeout))
        return _node.shaped(target, await self._do("allreduce", request), dtype, shape)

    async def gather(self, names: Sequence[Name], timeout: Optional[float] = None,
                     raw: bool = False) -> List[Any]:
        wanted, limit = _node.names_of(names), timeout_ns(timeout)
        if len(wanted) <= VIEWS_MAX:
            views = await self._do("gather", wanted, limit)
        else:
            parts = await asyncio.gather(*[self._do("gather", wanted[at:at + GATHERS], limit)
                                           for at in range(0, len(wanted), GATHERS)])
            views = [view for part in parts for view in part]
        if raw:
            return [memoryview(view) for view in views]
        meanings = await asyncio.gather(*[self._description(name) for name in names])
        return [_node.as_put(view, meaning) for view, meaning in zip(views, meanings)]

    async def broadcast(self, name: Name, nodes: Optional[Sequence[int]] = None,
                        timeout: Optional[float] = None) -> None:
        if nodes is None or list(nodes):
            await self._do("broadcast", name, list(nodes or []), timeout_ns(timeout))

    # --- the cluster

    async def watch(self, prefix: str = "") -> AsyncIterator[Event]:
        """What becomes of the objects whose names begin so, anywhere in the cluster: async for. Those that
        exist come first. It has a queue of its own, so events wait there until they are asked for."""
        queue = self.node._open().queue(1)
        queue.watch(0, prefix)
        while True:
            for event in events(queue.poll()):
                yield event
            await self._readable(queue.fd())

    async def _readable(self, fd: int) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(fd)

    async def info(self, name: Name) -> Info:
        return _node.info(await self._do("info", name))

    # --- groups

    async def create_group(self, name: str, dtype: Any, count: int, op: str = "sum", policy: str = "bsp",
                           members: int = 0, results: str = "round", switch: Optional[str] = None) -> Group:
        await self._do("group_create", *creation(name, dtype, count, op, policy, members, results, switch))
        return await self.group(name)

    async def group(self, name: str) -> Group:
        return Group(self, name, await self._do("group_info", name))

    def close(self) -> None:
        """Tasks that wait get Closed."""
        lines, self._lines = self._lines, None
        if lines is None:
            return
        for line in lines:
            self._loop.remove_reader(line.fd)
        del line, lines  # which ends their operations
        waiting, self._waiting = self._waiting, {}
        for future in [*waiting.values(), *self._room]:
            if not future.done():
                future.set_exception(Closed())
        self._room = []
        for event in self._leaving.values():
            event.set()
        self._leaving = {}
        self.node.close()

    async def __aenter__(self) -> Node:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()


def open(path: Optional[Path] = None) -> Node:
    """In a coroutine: connects to the node at a socket path, or $SARISSA_SOCKET, or the default one."""
    return Node(path)
