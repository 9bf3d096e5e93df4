# SPDX-License-Identifier: BSD-3-Clause
"""The objects that one process offers to others by the tensor transport of Ray (transport.py), which are held by one
lease: a process that is killed leaves none. They are dropped in a thread, so that nobody waits for a node that does not
answer. It knows neither Ray nor tensors."""

from __future__ import annotations

import itertools
import os
import queue
import socket
import threading
import time
import uuid
from typing import Callable, Optional

from .._errors import Closed, Deleted, Error, NoNode, StoreFull
from .._leases import Lease
from .._node import Node

FULL_S = 5.0  # for objects that are being dropped to make room
FULL_STEP_S = 0.02


class Outgoing:
    """Any thread. open_node gives the node of this process, and is called again when it has gone. ttl: so many seconds
    its objects outlive a killed process."""

    def __init__(self, open_node: Callable[[], Node], ttl: Callable[[], float]) -> None:
        self._open_node, self._ttl = open_node, ttl
        self._lock = threading.Lock()
        self._lease: Optional[Lease] = None
        self._names = itertools.count()
        self._prefix = f"rdt/{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}/"
        self._drops: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def put(self, size: int, fill: Callable[[memoryview], None]) -> str:
        """The name of a new object of so many bytes. fill is given its memory, of which no view may be left."""
        name = f"{self._prefix}{next(self._names)}"
        try:
            self._put(name, size, fill)
        except (NoNode, Closed, Deleted):  # of the lease; the node may be a new one
            with self._lock:
                self._lease = None
            self._put(name, size, fill)
        return name

    def _put(self, name: str, size: int, fill: Callable[[memoryview], None]) -> None:
        until = time.monotonic() + FULL_S
        while True:
            try:
                with self._held().create(name, size) as writer:
                    assert writer.data is not None
                    fill(writer.data)
                return
            except StoreFull as error:
                if time.monotonic() > until:
                    raise StoreFull(error.errno, f"the store of this node has had no room for {size} bytes for "
                                                 f"{FULL_S:.0f} s: let go of references, or give the node a larger "
                                                 "store") from None
            time.sleep(FULL_STEP_S)

    def _held(self) -> Lease:
        with self._lock:
            if self._lease is None:
                self._lease = self._open_node().lease(ttl=self._ttl())
            return self._lease

    def drop(self, name: str) -> None:
        """Nobody needs it any more. Returns at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True, name="sarissa-drop")
                self._thread.start()
        self._drops.put(name)

    def _serve(self) -> None:
        while True:
            name, lease = self._drops.get(), self._lease
            try:
                if lease is not None:
                    lease.drop(name)
            except Error:
                pass  # it goes with the lease
