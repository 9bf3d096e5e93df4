# SPDX-License-Identifier: BSD-3-Clause
"""The objects of one process that uses Dask (sarissa.dask): which of its arrays are in the store, by which
id, and that they are dropped when Dask has let the array go. It knows nothing of Dask's messages.

A lease of the process holds all of them, so a killed process leaves nothing behind. An array that has
come is held as well, so that it can be passed on when its sender has gone."""

from __future__ import annotations

import asyncio
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
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import _node, _sarissa, aio
from ._errors import Error, NotFound

VIEWS_MAX = 1000  # of one connection, which can have 1,024
ARRIVE_S = 600.0
ADOPT_S = 30.0
SWEEP_S = 1.0
MEMBERS_S = 1.0


class Entry:
    """An array, or bytes, with its object. thing: a weak reference, or a function that gives what has none."""

    def __init__(self, thing: Callable[[], Any], weak: bool) -> None:
        self.thing, self.weak = thing, weak
        self.lock = threading.Lock()
        self.ident: Optional[bytes] = None
        self.scatters = 0  # that are under way
        self.lasts = False  # it is here for more than those
        self.spread: Any = None  # the queue of its broadcast

    def becomes(self, ident: bytes) -> None:
        self.ident, self.lasts = ident, True


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
        self._members: Dict[str, int] = {member.address: member.node for member in members}
        self._asked = time.monotonic()
        self._prefix = f"dask/{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}/"
        self._numbers = itertools.count()
        self._lock = threading.RLock()  # a weak reference may end wherever memory is taken
        self._entries: Dict[int, Entry] = {}
        self._holds: Dict[bytes, int] = {}
        self._drops: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._connections: weakref.WeakKeyDictionary[Any, List[Connection]] = weakref.WeakKeyDictionary()
        self._calls = ThreadPoolExecutor(4, "sarissa-hold")
        self.counts = {"put": 0, "passed on": 0, "arrived": 0}
        threading.Thread(target=self._drop_all, daemon=True, name="sarissa-drop").start()

    def knows(self, address: Optional[str]) -> bool:
        """Whether that is a node of our cluster."""
        if address is None:
            return False
        if address not in self._members and time.monotonic() > self._asked + MEMBERS_S:
            self._asked = time.monotonic()
            self._members = {member.address: member.node for member in self.node.nodes()}
        return address in self._members

    # --- what goes out

    def ident_of(self, thing: Any, frame: Any, nodes: Sequence[str] = ()) -> bytes:
        """The id of the object of a thing whose bytes are frame; puts it at the first call, and sends it to
        nodes that we know while it is put."""
        entry = self._entry(thing)
        entry.lasts |= entry.scatters == 0
        with entry.lock:
            if entry.ident is not None and self.node._open().here(entry.ident) is not None:
                self.counts["passed on"] += 1
                return entry.ident
            name = f"{self._prefix}{next(self._numbers)}"
            if nodes:
                numbers = [number for node, number in self._members.items() if node in nodes]
                entry.spread = self.node._open().queue(1)
                entry.spread.broadcast(0, name, numbers, int(ARRIVE_S * 1e9))
            former, entry.ident = entry.ident, self._put(name, frame)
            if former is not None:  # it was deleted behind our back
                self._let_go(former)
            ident = entry.ident
            self.counts["put"] += 1
            return ident

    def scatter_begins(self, thing: Any) -> None:
        """Keeps its object until as many scatters have ended; then the receivers keep it."""
        with self._lock:
            self._entry(thing).scatters += 1

    def scatter_ends(self, thing: Any) -> None:
        with self._lock:
            entry = self._entry(thing)
            entry.scatters -= 1
            if entry.scatters == 0 and not entry.lasts:
                del self._entries[id(thing)]
                if entry.ident is not None:
                    self._let_go(entry.ident)

    def put_for(self, thing: Any, name: str, memory: Any) -> None:
        """An object that lives as long as a thing which is not itself in it."""
        self._entry(thing).becomes(self._put(name, memory))

    def _put(self, name: str, memory: Any) -> bytes:
        self.lease._maker._open().put(name, memory)
        ident = _sarissa.id_from(name)
        with self._lock:
            self._holds[ident] = self._holds.get(ident, 0) + 1
        return ident

    def _entry(self, thing: Any) -> Entry:
        key = id(thing)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.thing() is not thing:
                entry = self._entries[key] = self._new(key, thing)
            return entry

    def _new(self, key: int, thing: Any) -> Entry:
        try:
            return Entry(weakref.ref(thing, lambda _: self._gone(key)), True)
        except TypeError:  # bytes: kept, and looked at from time to time
            return Entry(lambda: thing, False)

    def _gone(self, key: int) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.weak and entry.thing() is None:
                del self._entries[key]
                if entry.ident is not None:
                    self._let_go(entry.ident)

    def _sweep(self) -> None:
        """Of what cannot say that it goes: nobody else refers to it."""
        with self._lock:
            for key, entry in list(self._entries.items()):
                # the closure's cell, the local variable of this line, the argument of getrefcount
                if not entry.weak and sys.getrefcount(entry.thing()) <= 2 and not entry.lock.locked():
                    del self._entries[key]
                    if entry.ident is not None:
                        self._let_go(entry.ident)

    def _let_go(self, ident: bytes) -> None:
        with self._lock:
            self._holds[ident] -= 1
            if self._holds[ident] == 0:
                del self._holds[ident]
                self._drops.put(ident)

    def _drop_all(self) -> None:
        """The thread that talks to the node about what has gone."""
        while True:
            try:
                ident = self._drops.get(timeout=SWEEP_S)
            except queue.Empty:
                self._sweep()
                continue
            if ident is None:
                return
            with self._lock:
                again = ident in self._holds  # it has come back meanwhile
            try:
                if not again:
                    self.node._open().drop(self.lease.number, ident)
            except Error:
                pass  # gone already, or the lease's end will do it

    # --- what comes in

    async def arrive(self, ident: bytes, make: Callable[[Any], Any], keeps: bool) -> Any:
        """make(memory) of an object, when it is here. keeps: what is made uses the memory."""
        connection = self._connection()
        connection.views += 1
        thing = None
        try:
            view = await connection.node._do("get", ident, int(ARRIVE_S * 1e9))
            if keeps:
                await asyncio.get_running_loop().run_in_executor(self._calls, self._hold, ident)
            thing = make(memoryview(view))
        finally:
            if thing is None or not keeps:
                connection.views -= 1
        if keeps:
            weakref.finalize(thing, self._unseen, connection).atexit = False
            self._entry(thing).becomes(ident)
        self.counts["arrived"] += 1
        return thing

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
        self._entry(thing).becomes(ident)

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
        self._drops.put(None)
        self.lease.end()
        self.node.close()
