# SPDX-License-Identifier: BSD-3-Clause
"""Channel: runs the operations of one process group on the local node, any number at a time, in a thread of its own.
process_group.py gives them. The objects of operation N are named after N, so that ranks do not ask one another; they
are deleted when all ranks are past N. A lease holds them: a rank that dies leaves nothing. members.py tells of the
other ranks. It does not know what an operation means."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue as queues
import select
import threading
import time
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Tuple

from .. import _sarissa
from .._errors import Deleted, Error, StoreFull
from .._node import Node
from .errors import CollectiveError
from .members import Members
from .operation import Names, Operation, Step

CAPACITY = 1024  # of the queue
BUSY_MAX = 900  # steps under way; views are as many
AHEAD_BYTES = 8 << 20  # of operations under way beside the oldest and the newest, whose inputs and results must fit
DATA_LEASE_S = 5.0
TICK_S = 0.1
EXPLAIN_S = 1.2  # a failed step waits so long for a death that explains it
RETRY_S = 0.02  # a step that found the store full, for
FULL_S = 10.0


class Channel:
    """Members of the group call in any thread; the channel's thread does everything."""

    def __init__(self, node: Node, base: str, rank: int, size: int, label: Callable[[int], str]) -> None:
        self.node, self.base, self.rank, self.size, self.label = node, base, rank, size, label
        self.number = 0  # of the last collective
        self._lock = threading.Lock()
        self._lease = node.lease(ttl=DATA_LEASE_S)
        self._handle = self._lease._maker._open()
        self._queue = self._handle.queue(CAPACITY)
        self._tickets = itertools.count()
        self._waiting: Dict[int, Tuple[Optional[Operation], Optional[Step]]] = {}
        self._retries: Deque[Tuple[float, Operation, Step]] = deque()
        self._pending: Deque[Operation] = deque()
        self.under_way: List[Operation] = []
        self._bytes = 0
        self._posts: Deque[Callable[[], Any]] = deque()
        self._wakes, self._wake_end = os.pipe()
        os.set_blocking(self._wake_end, False)
        self._closed = False
        self._chores: queues.SimpleQueue[Optional[Callable[[], Any]]] = queues.SimpleQueue()
        self._made: Deque[Tuple[int, str]] = deque()
        self._targets: Deque[Tuple[int, str]] = deque()
        self.members = Members(self)
        self._epoll = select.epoll()
        for fd in (self._wakes, self._queue.fd(), self.members.fd):
            self._epoll.register(fd, select.EPOLLIN)
        self._threads = [threading.Thread(target=target, daemon=True, name=f"sarissa-torch-{what}")
                         for target, what in ((self._serve, "group"), (self._do_chores, "chores"))]
        for thread in self._threads:
            thread.start()

    # --- what other threads call

    def collective(self, operation: Operation, build: Callable[[Names], List[Step]]) -> None:
        """Takes the next number for it, and begins it."""
        operation.signature = _sarissa.id_of(operation.what.encode()).hex()[:8]
        with self._lock:
            self.number += 1
            operation.number = self.number
            operation.names = Names(self.base, self.number, operation.signature)
            operation.steps = build(operation.names)
            self.post(lambda: self.take(operation))

    def refuse(self, what: str) -> None:
        """A number goes to a call that this rank does not make, as it does at the others, who may make it."""
        signature = _sarissa.id_of(what.encode()).hex()[:8]
        with self._lock:
            self.number += 1
            number = self.number
            self.post(lambda: self.members.refused(number, signature, what))

    def message(self, operation: Operation) -> None:
        with self._lock:
            self.post(lambda: self.take(operation))

    def post(self, call: Callable[[], Any]) -> None:
        """In the channel's thread, soon."""
        self._posts.append(call)
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_end, b"x")

    def chore(self, call: Callable[[], Any]) -> None:
        """What may wait for the node, in a thread for that."""
        self._chores.put(call)

    # --- the thread

    def _serve(self) -> None:
        while not self._closed:
            busy = self.under_way or self._pending or self._retries or self.members.suspects
            wait = RETRY_S if self._retries else TICK_S if busy else None
            ready = [fd for fd, _ in self._epoll.poll(wait)]
            if self._wakes in ready:
                os.read(self._wakes, 4096)
            while self._posts:
                self._posts.popleft()()
            self._completions()
            self.members.events()
            self._begin_pending()
            if busy:
                self._tick()

    def _do_chores(self) -> None:
        while (call := self._chores.get()) is not None:
            with contextlib.suppress(Error):
                call()

    def take(self, operation: Operation) -> None:
        operation.begun = time.monotonic()
        if self._closed:
            self._end(operation, CollectiveError(f"{operation.what}: the process group is destroyed"))
            return
        if operation.number is not None:
            self.members.note(operation)
        error = self.members.refusal(operation)
        if error is not None:
            self.fail(operation, error)
            return
        self._pending.append(operation)
        self._begin_pending()

    def _begin_pending(self) -> None:
        while self._pending:
            operation = self._pending[0]
            if operation.number is not None and self.under_way and not self._has_room(operation):
                return
            self._pending.popleft()
            if not operation.ended:
                self._begin(operation)

    def _has_room(self, operation: Operation) -> bool:
        oldest = next((one.bytes for one in self.under_way if one.number is not None), 0)
        return len(self._waiting) + len(operation.steps) <= BUSY_MAX and self._bytes - oldest <= AHEAD_BYTES

    def _begin(self, operation: Operation) -> None:
        self.under_way.append(operation)
        self._bytes += operation.bytes if operation.number is not None else 0
        if operation.names is not None and operation.number is not None:
            self._made.extend((operation.number, name) for name in operation.names.made)
            self._targets.extend((operation.number, name) for name in operation.names.targets)
        for step in operation.steps:
            self._submit(operation, step)
            if operation.ended:
                return
        if not operation.tickets:
            self._done(operation)

    def _submit(self, operation: Optional[Operation], step: Step) -> None:
        ticket = next(self._tickets)
        self._waiting[ticket] = operation, step
        if operation is not None:
            operation.tickets[ticket] = step
        try:
            getattr(self._queue, step.verb)(ticket, *step.arguments)
        except BaseException as error:
            self._ended(ticket, error)

    def side(self, verb: str, *arguments: Any) -> None:
        """A step of no operation, of which nobody waits for the end."""
        self._submit(None, Step(verb, arguments))

    def _completions(self) -> None:
        for ticket, result in self._queue.poll():
            self._ended(ticket, result)

    def _ended(self, ticket: int, result: Any) -> None:
        operation, step = self._waiting.pop(ticket)
        if operation is None or step is None or operation.ended or operation.tickets.pop(ticket, None) is None:
            return
        try:
            if isinstance(result, BaseException) and not (step.consumed and isinstance(result, Deleted)):
                raise result
            if step.sink is not None:
                step.sink(result)
        except StoreFull as error:
            self._full(operation, step, error)
            return
        except BaseException as error:
            self._trouble(operation, error)
            return
        if not operation.tickets and operation.trouble is None and not any(o is operation for _, o, _ in self._retries):
            self._done(operation)

    def _full(self, operation: Operation, step: Step, error: StoreFull) -> None:
        """There is room when the ranks are past earlier operations."""
        now = time.monotonic()
        operation.full = operation.full or now
        if now - operation.full > FULL_S:
            self._trouble(operation, error)
        else:
            self.members.tell_progress()
            self._retries.append((now + RETRY_S, operation, step))

    def drop_steps(self, operation: Operation) -> None:
        """Those under way; what they bring is not taken."""
        for ticket in operation.tickets:
            self._queue.cancel(ticket)
        operation.tickets.clear()

    def _trouble(self, operation: Operation, error: BaseException) -> None:
        if isinstance(error, Error):
            operation.trouble = operation.trouble or (time.monotonic(), error)
        else:
            self.fail(operation, error, tell=True)

    def _done(self, operation: Operation) -> None:
        try:
            if operation.finish is not None:
                operation.finish()
        except BaseException as error:
            self.fail(operation, error, tell=True)
            return
        self._end(operation, operation.error)

    def fail(self, operation: Operation, error: BaseException, tell: bool = False) -> None:
        """tell: the other ranks, who wait for this one."""
        if operation.ended:
            return
        self.drop_steps(operation)
        if tell:
            self.members.tell_failed(operation, error)
        self._end(operation, error)

    def _end(self, operation: Operation, error: Optional[BaseException]) -> None:
        operation.ended = True
        if operation in self.under_way:
            self.under_way.remove(operation)
            self._bytes -= operation.bytes if operation.number is not None else 0
        operation.work.end(error)
        operation.kept = None
        if operation.after is not None:
            operation.after()
        if operation.number is None:
            return
        if operation.names is not None and operation.names.targets and operation.number % self.size == self.rank:
            self.chore(partial(self._hold, operation.names.targets))
        self.members.past(operation)

    def _hold(self, names: List[str]) -> None:
        for name in names:
            self._lease.hold(name)

    def _tick(self) -> None:
        now = time.monotonic()
        for _ in range(len(self._retries)):
            at, operation, step = self._retries.popleft()
            if operation.ended:
                continue
            if at <= now:
                self._submit(operation, step)
            else:
                self._retries.append((at, operation, step))
        for operation in [*self.under_way, *self._pending]:
            if operation.ended:
                continue
            if operation.trouble is not None and now - operation.trouble[0] > EXPLAIN_S:
                words = f"{operation.what}: {operation.trouble[1]}"
                self.fail(operation, CollectiveError(words), tell=True)
            elif now > operation.until:
                self.fail(operation, self.members.missing(operation, operation.seconds))
        self.members.tick(now)

    # --- objects that are over

    def forget(self, floor: int) -> None:
        """All ranks are past that number."""
        for name in self._below(self._made, floor):
            self.side("delete", name)
        for number, name in self._numbered(self._targets, floor):
            if number % self.size == self.rank:
                self.side("delete", name)

    @staticmethod
    def _numbered(made: Deque[Tuple[int, str]], floor: int) -> Iterator[Tuple[int, str]]:
        while made and made[0][0] <= floor:
            yield made.popleft()

    def _below(self, made: Deque[Tuple[int, str]], floor: int) -> Iterator[str]:
        for _, name in self._numbered(made, floor):
            yield name

    def give_up_targets(self) -> None:
        """Of reduces that a dead rank was to delete."""
        while self._targets:
            self.side("delete", self._targets.popleft()[1])

    # --- the end

    def close(self) -> None:
        """At once. What this rank has made goes."""
        if self._closed:
            return
        ends = threading.Event()

        def stop() -> None:
            for operation in [*self.under_way, *self._pending]:
                self.fail(operation, CollectiveError(f"{operation.what}: the process group is destroyed"))
            self._closed = True
            ends.set()
        self.post(stop)
        ends.wait(5)
        self._threads[0].join(5)
        self._chores.put(None)
        with contextlib.suppress(Error):
            self._lease._maker.close() if self.members.alone else self._lease.end()
        self.members.close()
        self._epoll.close()
        os.close(self._wakes)
        os.close(self._wake_end)
