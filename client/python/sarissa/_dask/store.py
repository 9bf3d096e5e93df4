# SPDX-License-Identifier: BSD-3-Clause
"""The objects of one process that uses Dask (sarissa.dask): which frames of its values are in the store, by
which id, and that they are dropped when Dask has let the value go. It knows nothing of Dask's messages.

An id stands for bytes, not for a value: before an id is sent again, the frame is compared with the object,
and put again when it has changed. A lease of the process holds all objects, so a killed process leaves
nothing behind. A value that has come is held as well, so that it can be passed on when its sender has gone."""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import queue
import socket
import sys
import threading
import time
import uuid
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import numpy

from .. import _node, _sarissa, aio
from .._errors import Error, Lost, NoNode, NotFound, PartialError, StoreFull, TimedOut
from .._names import timeout_ns
from .._operations import Step

VIEWS_MAX = 1000  # of one connection, which can have 1,024
BROADCAST_S = 600.0
ADOPT_S = 30.0
SWEEP_S = 1.0
MEMBERS_S = 1.0
AWAY_S = 5.0  # without an answer of control
LOOK_NS = 100_000_000
PUT_S = 5.0  # of a put that does not get on, besides its bytes at PUT_RATE
PUT_RATE = float(1 << 26)
HOLD_S = 5.0
LOOK_S = 2.0  # without a new byte; then the directory is asked
LINGER_S = 5.0  # of an object that a message under way may name
FULL_S = 1.0  # after a put that found no room


class Entry:
    """A value of Dask, such as an array, with the objects of its large frames. thing: a weak reference, or a
    function that gives what has none. fixed: its bytes cannot change."""

    def __init__(self, thing: Callable[[], Any], weak: bool, fixed: bool) -> None:
        self.thing, self.weak, self.fixed = thing, weak, fixed
        self.lock = threading.Lock()
        self.idents: Dict[int, bytes] = {}  # by the index of the frame
        self.asked = 0  # how often somebody wanted it
        self.sent = 0.0  # when its ids have left in a message that nobody confirms
        self.scatters = 0  # that are under way
        self.lasts = False  # it is here for more than those
        self.spread: List[Any] = []  # the queues of its broadcasts

    def becomes(self, index: int, ident: bytes) -> None:
        self.idents[index], self.lasts = ident, True


class Arrived:
    """The memory of an object that is here. fixed: it is the store's own, and nobody can write it."""

    def __init__(self, memory: memoryview, fixed: bool) -> None:
        self.memory, self.fixed = memory, fixed


class Connection:
    """One that views are taken from, on one event loop."""

    def __init__(self) -> None:
        self.node, self.views = aio.open(), 0


class Store:
    def __init__(self, ttl: float) -> None:
        self.node = _node.open()
        self.lease = self.node.lease(ttl=ttl)
        members = self.node.nodes()
        self.address = next(member.address for member in members if member.is_self)
        self.in_clear = False  # also between processes whose connections are encrypted
        self._members: Dict[str, int] = {member.address: member.node for member in members}
        self._asked = time.monotonic()
        self.retires = False  # nothing new begins
        self.arriving = 0
        self._asking: Optional[float] = None  # since when control has not answered the thread
        self._failed = False  # a call found no control; until it answers again
        self._full = 0.0  # until then nothing is put
        self._prefix = f"dask/{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}/"
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # a weak reference may end wherever memory is taken
        self._entries: Dict[int, Entry] = {}
        self._holds: Dict[bytes, int] = {}
        self._drops: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._former: Deque[Tuple[float, bytes]] = collections.deque()
        self._connections: weakref.WeakKeyDictionary[Any, List[Connection]] = weakref.WeakKeyDictionary()
        self._calls = ThreadPoolExecutor(4, "sarissa-hold")
        self.counts = {"put": 0, "passed on": 0, "arrived": 0, "as bytes": 0, "not put": 0}
        self._thread = threading.Thread(target=self._serve, daemon=True, name="sarissa-drop")
        self._thread.start()

    @property
    def away(self) -> bool:
        """Nothing goes through the store now."""
        return self.retires or self._silent()

    def _silent(self) -> bool:
        """Control does not answer: nobody waits for it."""
        since = self._asking
        return self._failed or since is not None and time.monotonic() > since + AWAY_S

    def _note(self, error: Error) -> None:
        """What a failed call tells about the node."""
        if isinstance(error, NoNode):
            self._failed = True
        elif isinstance(error, StoreFull):
            self._full = time.monotonic() + FULL_S

    def knows(self, address: Optional[str]) -> bool:
        """Whether that is a node of our cluster."""
        if address is None or self.away:
            return False
        if address not in self._members and time.monotonic() > self._asked + MEMBERS_S:
            self._asked = time.monotonic()
            try:
                self._learn()
            except Error as error:
                self._note(error)
        return address in self._members

    def _learn(self) -> None:
        self._members = {member.address: member.node for member in self.node.nodes()}

    # --- what goes out

    def asks(self, thing: Any) -> int:
        """How often somebody has wanted a value, with this time."""
        entry = self._entry(thing)
        entry.asked += 1
        entry.lasts |= entry.scatters == 0
        return entry.asked

    def ident_of(self, thing: Any, index: int, frame: Any, nodes: Sequence[str] = (), confirmed: bool = True) -> bytes:
        """The id of an object of the bytes that a frame of a value has now. They are put unless the object of
        an earlier call has the same ones, and sent to nodes that we know while they are put. confirmed: the
        value is kept until the receiver has the object. Else the object outlives the value for a while."""
        entry = self._entry(thing)
        entry.lasts |= entry.scatters == 0
        with entry.lock:
            if not confirmed:
                entry.sent = time.monotonic()
            former = entry.idents.get(index)
            if former is not None and self._is_still(entry, former, frame):
                self.counts["passed on"] += 1
                return former
            if time.monotonic() < self._full:
                raise StoreFull(28, "the store was full a moment ago")
            name = f"{self._prefix}{next(self._numbers)}"
            if nodes:
                numbers = [number for node, number in self._members.items() if node in nodes]
                entry.spread.append(self.node._open().queue(1))
                entry.spread[-1].broadcast(0, name, numbers, int(BROADCAST_S * 1e9))
            ident = entry.idents[index] = self._put(name, frame)
            if former is not None:  # it has changed, or was deleted behind our back
                self._former.append((time.monotonic() + LINGER_S, former))
            self.counts["put"] += 1
            return ident

    def _is_still(self, entry: Entry, ident: bytes, frame: Any) -> bool:
        view = self.node._open().here(ident)
        return view is not None and (entry.fixed or _sarissa.same(view, frame))

    def scatter_begins(self, thing: Any) -> None:
        """Keeps its object until as many scatters have ended; then the receivers keep it."""
        with self._lock:
            self._entry(thing).scatters += 1

    def scatter_ends(self, thing: Any) -> None:
        with self._lock:
            entry = self._entry(thing)
            entry.scatters -= 1
            if entry.scatters == 0 and not entry.lasts:
                self._ends(id(thing), entry)

    def put_for(self, thing: Any, name: str, memory: Any) -> None:
        """An object that lives as long as a thing which is not itself in it."""
        self._entry(thing).becomes(0, self._put(name, memory))

    def _put(self, name: str, memory: Any) -> bytes:
        operation, ended = [self.lease._maker._open().queue(1)], []
        ident = _sarissa.id_from(name)
        limit = time.monotonic() + PUT_S + memoryview(memory).nbytes / PUT_RATE
        operation[0].put(0, name, memory, None)
        while not (ended := operation[0].wait(LOOK_NS)):
            if self.away or time.monotonic() > limit:  # the end of an operation waits for the node as well
                threading.Thread(target=self._end_put, args=(operation, ident), daemon=True, name="sarissa-end").start()
                self._failed = True
                raise NoNode(107, "the node does not answer")
        try:
            if isinstance(ended[0][1], Error):
                self._note(ended[0][1])
                raise ended[0][1]
        finally:
            del ended  # an exception in it would keep this frame, and the arrays of all callers, in a cycle
        with self._lock:
            self._holds[ident] = self._holds.get(ident, 0) + 1
        return ident

    def _end_put(self, operation: List[_sarissa.Queue], ident: bytes) -> None:
        """It may have been done all the same."""
        operation.clear()
        self._drops.put(ident)

    def bytes_of(self, ident: bytes) -> Any:
        """Those of an object, for who cannot get it: as they were put. When it has gone, the value and the
        index of the frame that the object was made of. None: Dask has let the value go."""
        view = self.node._open().here(ident)
        if view is not None:
            return memoryview(view)  # type: ignore[arg-type]
        with self._lock:
            return next(((thing, index) for entry in self._entries.values() for index, its in entry.idents.items()
                         if its == ident and (thing := entry.thing()) is not None), None)

    def _entry(self, thing: Any) -> Entry:
        key = id(thing)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.thing() is not thing:
                entry = self._entries[key] = self._new(key, thing)
            return entry

    def _new(self, key: int, thing: Any) -> Entry:
        try:
            return Entry(weakref.ref(thing, lambda _: self._gone(key)), True, False)
        except TypeError:  # bytes, or a tuple: kept, and looked at from time to time
            return Entry(lambda: thing, False, type(thing) is bytes)

    def _gone(self, key: int) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.weak and entry.thing() is None:
                self._ends(key, entry)

    def _sweep(self) -> None:
        """Of what cannot say that it goes: nobody else refers to it."""
        with self._lock:
            for key, entry in list(self._entries.items()):
                # the closure's cell, the local variable of this line, the argument of getrefcount
                if not entry.weak and sys.getrefcount(entry.thing()) <= 2 and not entry.lock.locked():
                    self._ends(key, entry)
            while self._former and self._former[0][0] < time.monotonic():
                self._let_go(self._former.popleft()[1])

    def _ends(self, key: int, entry: Entry) -> None:
        del self._entries[key]
        for ident in entry.idents.values():
            if time.monotonic() < entry.sent + LINGER_S:
                self._former.append((time.monotonic() + LINGER_S, ident))
            else:
                self._let_go(ident)

    def _let_go(self, ident: bytes) -> None:
        with self._lock:
            self._holds[ident] -= 1
            if self._holds[ident] == 0:
                del self._holds[ident]
                self._drops.put(ident)

    def _serve(self) -> None:
        """The thread that tells the node what has gone, and sees whether it answers."""
        late = time.monotonic() + SWEEP_S
        while True:
            try:
                ident = self._drops.get(timeout=max(0.0, late - time.monotonic()))
            except queue.Empty:
                late = time.monotonic() + SWEEP_S
                self._sweep()
                if self._ask(self._learn):
                    self._failed = False
                continue
            if ident is None:
                return
            with self._lock:
                again = ident in self._holds  # it has come back meanwhile
            if not again:
                self._ask(self._drop, ident)

    def _drop(self, ident: bytes) -> None:
        self.node._open().drop(self.lease.number, ident)

    def _ask(self, call: Callable[..., None], *arguments: Any) -> bool:
        self._asking = time.monotonic()
        try:
            call(*arguments)
            return True
        except Error:
            return False  # gone already, or the lease's end will do it
        finally:
            self._asking = None

    # --- what comes in

    async def arrive(self, ident: bytes, patience: float) -> Arrived:
        """An object, when all of it is here, as memory that may be written where that needs no copy. Error,
        also when nothing of it comes for so many seconds."""
        if self.away:
            raise NoNode(107, "the node does not answer")
        connection = self._connection()
        connection.views += 1
        self.arriving += 1
        owner: Any = None
        try:
            view = await self._whole(connection.node, ident, patience)
            private = view.private()
            owner = numpy.frombuffer(view if private is None else private, numpy.uint8)  # type: ignore[call-overload]
        except Error as error:
            self._note(error)
            raise
        finally:
            self.arriving -= 1
            if owner is None:
                connection.views -= 1
        weakref.finalize(owner, self._unseen, connection).atexit = False
        self.counts["arrived"] += 1
        return Arrived(memoryview(owner), private is None)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Its result, from one of our threads."""
        return await asyncio.get_running_loop().run_in_executor(self._calls, function, *arguments)

    async def keep(self, thing: Any, idents: Dict[int, bytes], arrived: Dict[int, Arrived]) -> None:
        """A value was made of objects that have come: it is passed on by their ids."""
        try:
            weakref.ref(thing)
        except TypeError:
            return
        held = [await self._held(ident) for ident in idents.values()]
        entry = self._entry(thing)
        entry.fixed = len(arrived) == 1 and all(one.fixed and _reads(thing, one.memory) for one in arrived.values())
        for (index, ident), its in zip(idents.items(), held):
            if its:
                entry.becomes(index, ident)

    async def _whole(self, node: aio.Node, ident: bytes, patience: float) -> _sarissa.View:
        limit = timeout_ns(patience)
        view: _sarissa.View = await self._patiently(node, ident, node._do(Step("begin", (ident, limit), 1)))
        while view.ready < view.nbytes:
            before = view.ready
            try:
                await self._patiently(node, ident, node._do(Step("wait_for", (view, view.nbytes, limit))))
            except TimedOut:
                if view.ready == before:
                    raise
        return view

    async def _patiently(self, node: aio.Node, ident: bytes, waiting: Awaitable[Any]) -> Any:
        """Its result, unless control has gone, or nobody has the object any more."""
        task = asyncio.ensure_future(waiting)
        try:
            while not (await asyncio.wait({task}, timeout=LOOK_S))[0]:
                if self.away:
                    raise NoNode(107, "the node does not answer")
                await self._exists(node, ident)
            return task.result()
        finally:
            task.cancel()
            del task  # an exception of it would keep this frame in a cycle

    @staticmethod
    async def _exists(node: aio.Node, ident: bytes) -> None:
        try:
            info = await asyncio.wait_for(node.info(ident), AWAY_S)
        except (asyncio.TimeoutError, PartialError):
            return
        if info.copies == 0:  # its id was sent when one was complete
            raise Lost(61, "nobody has the object any more")

    async def _held(self, ident: bytes) -> bool:
        """Whether our lease holds it. Else it is not passed on by its id."""
        call = asyncio.get_running_loop().run_in_executor(self._calls, self._hold, ident)
        try:
            await asyncio.wait_for(asyncio.shield(call), HOLD_S)
            return True
        except (Error, asyncio.TimeoutError):
            call.add_done_callback(lambda done: None if done.exception() else self._let_go(ident))
            return False

    def adopt(self, thing: Any, ident: bytes) -> None:
        """The result of a reduce that has ended: its object lives as long as the array. The directory may
        hear of the end after us."""
        until = time.monotonic() + ADOPT_S
        while True:
            try:
                self._hold(ident)
                break
            except NotFound:
                if time.monotonic() > until:
                    raise
            time.sleep(0.01)
        entry = self._entry(thing)
        entry.fixed = True  # a read-only view
        entry.becomes(0, ident)

    def share(self, thing: Any, ident: bytes) -> None:
        """An object of another process lives as long as a thing here as well."""
        self._hold(ident)
        self._entry(thing).becomes(0, ident)

    def _hold(self, ident: bytes) -> None:
        with self._lock:
            self._holds[ident] = self._holds.get(ident, 0) + 1
        try:
            self.node._open().hold(self.lease.number, ident)
        except BaseException:
            self._let_go(ident)
            raise

    @staticmethod
    def _unseen(connection: Connection) -> None:
        connection.views -= 1

    def _connection(self) -> Connection:
        """With room for another view."""
        loop = asyncio.get_running_loop()
        with self._lock:
            own = self._connections.setdefault(loop, [])
        for connection in own:
            if connection.views < VIEWS_MAX:
                return connection
        own.append(Connection())
        return own[-1]

    def close(self) -> None:
        """Arrays that use the store's memory stay as they are."""
        self._drops.put(None)
        if not self._silent():
            try:
                self.lease.end()
            except Error:
                pass  # its ttl ends it
        self._thread.join(AWAY_S)
        self._calls.shutdown(wait=False)
        with self._lock:
            self._entries.clear()
            loops = list(self._connections.items())
        for loop, connections in loops:
            for connection in connections:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(connection.node.close)
        self.node.close()


def _reads(thing: Any, memory: memoryview) -> bool:
    """Whether an array uses that memory, and not a copy."""
    owner = memory.obj
    return isinstance(thing, numpy.ndarray) and isinstance(owner, numpy.ndarray) and \
        bool(owner.ctypes.data <= thing.ctypes.data < owner.ctypes.data + owner.nbytes)
