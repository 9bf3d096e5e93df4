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
from typing import Any, AsyncIterator, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from . import _node, _objects, _sarissa
from . import _operations as operations
from . import _results as results
from ._aio import described_by
from ._aio.groups import Group, GroupMember, Result
from ._aio.streams import Lease, Writer
from ._aio.waits import as_completed, wait
from ._arrays import Tensor
from ._connections import VIEWS_MAX
from ._errors import Busy, Closed, Error, WaitWarning
from ._names import FOREVER, Name, timeout_ns
from ._node import Path
from ._operations import Step, Steps, T
from ._patience import AFTER_S, NAMED_MAX, many, warn, words
from ._results import Holder, Info, Member, Shape
from ._watch import Event, events

__all__ = ["Group", "GroupMember", "Lease", "Node", "Result", "Writer", "as_completed", "open", "wait"]
CAPACITY = 16384  # operations under way; more wait for one of them to end
PIECE_BYTES = 1 << 20


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


@described_by(_node.Node)
class Node:
    """As sarissa.Node, which says what each call does; here those that wait are coroutines. `node` is one."""

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

    @property
    def address(self) -> Optional[str]:
        return self.node.address

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

    async def _run(self, steps: Steps[T], ended: Optional[asyncio.Event] = None) -> T:
        """Makes one step after the other. ended: of _do()."""
        try:
            step = next(steps)
            while True:
                try:
                    brought = await self._do(step, ended)
                except Error as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(brought)
                    del brought
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _do(self, step: Step, ended: Optional[asyncio.Event] = None) -> Any:
        """One operation of a queue. When its task is cancelled, ended is set once it is over."""
        if callable(step.what):
            return await self._in_thread(step.what, *step.arguments)
        if not hasattr(_sarissa.Queue, step.what):
            return await self._in_thread(getattr(self._line(0).handle, step.what), *step.arguments)
        ticket = next(self._tickets)
        while True:
            line = self._line(step.views) if step.what != "wait_for" else self._line_of(step.arguments[0])
            try:
                getattr(line.queue, step.what)(ticket, *step.arguments)
                break
            except Busy:
                if not self._waiting:
                    raise
                waiter = self._loop.create_future()
                self._room.append(waiter)
                await waiter
        if step.about:
            self._waits[ticket] = Wait(time.monotonic(), step.about, step.limit_ns < FOREVER)
            if self._looks is None:
                self._looks = self._loop.call_later(AFTER_S, self._look)
        line.views[ticket] = step.views
        line.asked += step.views
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

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """A short call that waits for the node only."""
        return await self._loop.run_in_executor(None, call, *arguments)

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

    async def put(self, name: Name, data: Any, ttl: Optional[float] = None) -> None:
        await self._run(operations.put(name, data, ttl))

    async def _view(self, name: Name, timeout: Optional[float]) -> _sarissa.View:
        return await self._run(operations.view(name, timeout))

    async def get(self, name: Name, timeout: Optional[float] = None, raw: bool = False) -> Any:
        view = await self._view(name, timeout)
        return memoryview(view) if raw else results.as_put(name, view)  # type: ignore[arg-type]

    async def get_array(self, name: Name, dtype: Any, shape: Optional[Shape] = None,
                        timeout: Optional[float] = None) -> Any:
        return results.shaped(name, await self._view(name, timeout), dtype, shape)

    async def get_tensor(self, name: Name, timeout: Optional[float] = None, dtype: Any = None,
                         shape: Optional[Shape] = None) -> Tensor:
        return results.tensor(name, await self._view(name, timeout), dtype, shape)

    async def get_into(self, name: Name, buffer: Any, timeout: Optional[float] = None) -> int:
        return await self._run(operations.get_into(name, buffer, timeout))

    async def get_ranges(self, name: Name, ranges: Sequence[operations.Range], timeout: Optional[float] = None,
                         into: Any = None) -> List[memoryview]:
        return await self._run(operations.get_ranges(name, ranges, timeout, into))

    async def put_object(self, name: Name, value: Any, ttl: Optional[float] = None) -> None:
        await self._run(operations.put_object(name, value, ttl))

    async def get_object(self, name: Name, timeout: Optional[float] = None) -> Any:
        """Unpickling runs code of the program that put the object."""
        return _objects.value_of(name, memoryview(await self._view(name, timeout)))  # type: ignore[arg-type]

    async def delete(self, name: Name, raw: bool = False) -> None:
        await self._run(operations.delete(name))

    # --- how long objects live

    async def lease(self, name: Optional[str] = None, ttl: float = 10.0) -> Lease:
        """As Node.lease: async with await node.lease() as lease."""
        number = await self._run(operations.lease(name, ttl))
        return Lease(self, Node(self.node._path), number, name, ttl)

    async def expire(self, name: Name, ttl: Optional[float]) -> None:
        await self._run(operations.expire(name, ttl))

    # --- piece by piece

    async def create(self, name: Name, size: Optional[int] = None, dtype: Any = None,
                     shape: Optional[Shape] = None) -> Writer:
        """As Node.create: async with await node.create(...) as writer."""
        return Writer(self, await self._run(operations.create(name, size, dtype, shape)))

    async def pieces(self, name: Name, timeout: Optional[float] = None,
                     room: int = PIECE_BYTES) -> AsyncIterator[memoryview]:
        """The object while it arrives, as read-only views of at most room bytes. Each wait takes up to
        timeout seconds."""
        limit = timeout_ns(timeout)
        view = await self._run(operations.view(name, timeout, "begin"))
        memory, at = memoryview(view), 0  # type: ignore[arg-type]
        while at < view.nbytes:
            ready = view.ready
            if ready <= at:
                ready = await self._do(Step("wait_for", (view, at + 1, limit), 0, (name,), limit))
            end = min(ready, at + room)
            yield memory[at:end]
            at = end

    # --- reduce and collectives

    async def reduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                     num: int = 0, spread: bool = False, timeout: Optional[float] = None, min: int = 0,
                     deadline: Optional[float] = None) -> None:
        await self._run(operations.reduce(target, sources, op, dtype, num, spread, timeout, min, deadline))

    async def reduce_sources(self, target: Name, timeout: Optional[float] = None) -> List[bytes]:
        return await self._run(operations.reduce_sources(target, timeout))

    async def reduce_progress(self, target: Name) -> Tuple[List[bytes], List[bytes]]:
        return await self._run(operations.reduce_progress(target))

    async def allreduce(self, target: Name, sources: Sequence[Name], op: str = "sum", dtype: Any = None,
                        shape: Optional[Shape] = None, timeout: Optional[float] = None,
                        array: Any = None, rank: Optional[int] = None) -> Any:
        return await self._run(operations.allreduce(target, sources, op, dtype, shape, timeout, array, rank))

    async def gather(self, names: Sequence[Name], timeout: Optional[float] = None,
                     raw: bool = False) -> List[Any]:
        return await self._run(operations.gather(names, timeout, raw))

    async def broadcast(self, name: Name, nodes: Optional[Sequence[int]] = None,
                        timeout: Optional[float] = None) -> None:
        await self._run(operations.broadcast(name, nodes, timeout))

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
        return await self._run(operations.info(name))

    async def holders(self, name: Name) -> List[Holder]:
        return await self._run(operations.holders(name))

    async def ls(self, prefix: str = "") -> List[Info]:
        return await self._run(operations.ls(prefix))

    async def nodes(self) -> List[Member]:
        return await self._run(operations.nodes())

    # --- groups

    async def create_group(self, name: str, dtype: Any, count: int, op: str = "sum", policy: str = "bsp",
                           members: int = 0, results: str = "round", switch: Optional[str] = None) -> Group:
        return Group(self, name, await self._run(operations.create_group(name, dtype, count, op, policy, members, results,
                                                                         switch)))

    async def group(self, name: str) -> Group:
        return Group(self, name, await self._run(operations.group_info(name)))

    async def explain_policy(self, text: str) -> str:
        return await self._run(operations.explain_policy(text))

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
