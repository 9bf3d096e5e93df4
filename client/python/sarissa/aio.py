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
import time
from typing import Any, AsyncIterator, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from . import _arrays, _node, _objects, _sarissa
from ._aio_groups import Group, GroupMember, Result
from ._connections import VIEWS_MAX
from ._errors import Busy, Closed, Error, Exists, WaitWarning
from ._groups import creation
from ._names import FOREVER, Name, timeout_ns
from ._patience import AFTER_S, NAMED_MAX, many, warn, words
from ._node import Info, Path, Shape
from ._watch import Event, events

__all__ = ["Group", "GroupMember", "Node", "Result", "open"]
CAPACITY = 16384  # operations under way; more wait for one of them to end
PIECE_BYTES = 1 << 20
BRINGS = {"get": 1, "begin": 1, "allreduce": 1, "put": 1}  # views, or a writer for a while
GATHERS = 250  # names of one operation, where there are more than a connection has views for


class Wait(NamedTuple):
    """An operation that may wait for long."""

    since: float
    names: Sequence[Name]
    limited: bool


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
        self._waits: Dict[int, Wait] = {}  # waits that have not said what for, the oldest first
        self._looks: Optional[asyncio.TimerHandle] = None
        self._telling: Optional[asyncio.Task[None]] = None
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
            self._waits.pop(ticket, None)
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

    async def _do(self, operation: str, *arguments: Any, ended: Optional[asyncio.Event] = None,
                  about: Sequence[Name] = ()) -> Any:
        """One operation of a queue. When its task is cancelled, ended is set once it is over. about: the objects
        that it waits for, so that it can say so."""
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
        if about:
            self._expects(ticket, about, arguments[-1])
        line.views[ticket] = views
        line.asked += views
        future = self._waiting[ticket] = self._loop.create_future()
        try:
            return await future
        except (asyncio.CancelledError, WaitWarning):
            self._waits.pop(ticket, None)
            if self._lines is not None:
                line.queue.cancel(ticket)
                if ended is not None and ticket in self._waiting:
                    ended.clear()
                    self._leaving[ticket] = ended
            raise
        finally:
            del future  # an exception of it would keep this frame in a cycle

    def _expects(self, ticket: int, names: Sequence[Name], limit_ns: Any) -> None:
        limited = (limit_ns[6] if isinstance(limit_ns, tuple) else limit_ns) < FOREVER  # a reduce has all in one
        self._waits[ticket] = Wait(time.monotonic(), names, limited)
        if self._looks is None:
            self._looks = self._loop.call_later(AFTER_S, self._look)

    def _look(self) -> None:
        """At what has waited for some seconds."""
        self._looks, now, long = None, time.monotonic(), []
        for ticket, wait in list(self._waits.items()):
            if wait.since + AFTER_S > now + 0.01:
                self._looks = self._loop.call_later(wait.since + AFTER_S - now, self._look)
                break
            long.append((ticket, self._waits.pop(ticket)))
        if long and self._lines is not None:
            self._telling = self._loop.create_task(self._tell(self._lines[0].handle, long))

    async def _tell(self, handle: _sarissa.Handle, long: List[Tuple[int, Wait]]) -> None:
        """A warning about those of them that still wait then."""
        said = [await self._loop.run_in_executor(None, words, handle, wait.names) for _, wait in long[:NAMED_MAX]]
        left = [number for number, (ticket, _) in enumerate(long) if ticket in self._waiting]
        news = [said[number] for number in left[:NAMED_MAX] if number < len(said) and said[number] is not None]
        if news:
            waited, limited = time.monotonic() - long[0][1].since, all(wait.limited for _, wait in long)
            try:
                warn(many(news, len(left)), waited, limited, (__file__, 0, __name__))
            except WaitWarning as error:  # the program makes it one: it ends those waits
                for future in [self._waiting[long[number][0]] for number in left]:
                    if not future.done():
                        future.set_exception(WaitWarning(*error.args))

    # --- bytes and arrays

    async def put(self, name: Name, data: Any) -> None:
        given = _arrays.given_array(data)
        if given is None:
            _arrays.check_bytes(data)
            await self._do("put", name, data, None)
            return
        memory, meaning, _ = given.contiguous()
        try:
            await self._do("put", name, memory, None, _arrays.write(meaning))
        except Exists as error:
            try:
                stored = _arrays.read((await self._do("info", name))[12])
            except Error:
                stored = None
            raise error if stored is None or stored == meaning else _node.exists(name, stored, meaning) from None

    async def get(self, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Any:
        view = await self._do("get", name, timeout_ns(timeout), about=(name,))
        return memoryview(view) if raw else _node.as_put(name, view)

    async def get_array(self, name: Name, dtype: Any, shape: Optional[Shape] = None,
                        timeout: Optional[float] = None) -> Any:
        return _node.shaped(name, await self._do("get", name, timeout_ns(timeout), about=(name,)), dtype, shape)

    async def put_object(self, name: Name, value: Any) -> None:
        await self._do("put", name, _objects.parts_of(value).joined(), None)

    async def get_object(self, name: Name, timeout: Optional[float] = None) -> Any:
        """Unpickling runs code of the program that put the object."""
        view = await self._do("get", name, timeout_ns(timeout), about=(name,))
        return _objects.value_of(name, memoryview(view))

    async def delete(self, name: Name, raw: bool = False) -> None:
        await self._do("delete", name)

    async def pieces(self, name: Name, timeout: Optional[float] = None,
                     room: int = PIECE_BYTES) -> AsyncIterator[memoryview]:
        """The object while it arrives, as read-only views of at most room bytes. Each wait takes up to
        timeout seconds."""
        limit = timeout_ns(timeout)
        view = await self._do("begin", name, limit, about=(name,))
        memory, at = memoryview(view), 0
        while at < view.nbytes:
            ready = view.ready
            if ready <= at:
                ready = await self._do("wait_for", view, at + 1, limit, about=(name,))
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
            await self._do("put", sources[rank or 0], memory, None, _arrays.write(meaning))
        request = _node.reduce_request(target, sources, op, dtype, 0, False, timeout_ns(timeout))
        return _node.summed(target, await self._do("allreduce", request, about=(target,)), dtype, shape)

    async def gather(self, names: Sequence[Name], timeout: Optional[float] = None,
                     raw: bool = False) -> List[Any]:
        wanted, limit = _node.names_of(names), timeout_ns(timeout)
        if len(wanted) <= VIEWS_MAX:
            views = await self._do("gather", wanted, limit, about=wanted)
        else:
            parts = await asyncio.gather(*[self._do("gather", wanted[at:at + GATHERS], limit, about=wanted[at:at + GATHERS])
                                           for at in range(0, len(wanted), GATHERS)])
            views = [view for part in parts for view in part]
        if raw:
            return [memoryview(view) for view in views]
        return [_node.as_put(name, view) for name, view in zip(wanted, views)]

    async def broadcast(self, name: Name, nodes: Optional[Sequence[int]] = None,
                        timeout: Optional[float] = None) -> None:
        if nodes is None or list(nodes):
            await self._do("broadcast", name, list(nodes or []), timeout_ns(timeout), about=(name,))

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
        self._leaving, self._waits = {}, {}
        if self._looks is not None:
            self._looks.cancel()
        self.node.close()

    async def __aenter__(self) -> Node:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()


def open(path: Optional[Path] = None) -> Node:
    """In a coroutine: connects to the node at a socket path, or $SARISSA_SOCKET, or the default one."""
    return Node(path)
