# SPDX-License-Identifier: BSD-3-Clause
"""Messages: send and recv of a process group. Message number N with tag T of rank A for rank B is an object, which B
deletes. process_group.py calls it. It knows nothing of collectives.

Receives with one tag take messages in the order of the calls. While one waits for any rank, those after it wait for
it, because it may take the message that they would."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, FrozenSet, List, Optional, Tuple

from .._errors import Error
from .._names import FOREVER
from . import tensors as t
from .operation import Operation, Step
from .work import Work

if TYPE_CHECKING:
    from .channel import Channel


def describe(tensor: Any) -> bytes:
    """Metadata of a message."""
    return f"{t.shown(tensor.dtype)} x {tensor.numel()}".encode()


class Messages:
    """Of one rank."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._sent: Dict[Tuple[int, int], int] = {}  # by rank and tag
        self._received: Dict[Tuple[int, int], int] = {}
        self._any: Dict[int, Operation] = {}  # by tag
        self._held: Dict[int, Deque[Tuple[Operation, Any, Optional[int]]]] = {}

    def _name(self, source: int, dest: int, tag: int, number: int) -> str:
        return f"{self._channel.base}/p/{source}-{dest}-{tag}/{number}"

    def send(self, tensor: Any, dest: int, tag: int, seconds: float) -> Work:
        given = t.flat(tensor)
        what = f"send to {self._channel.label(dest)} with tag {tag} of {t.described([tensor])}"
        operation = self._operation(what, [tensor], frozenset({dest}), seconds)
        operation.kept, operation.bytes = given, t.size_of(given)
        with self._lock:
            number = self._sent[dest, tag] = self._sent.get((dest, tag), 0) + 1
            name = self._name(self._channel.rank, dest, tag, number)
            operation.steps = [Step("put", (name, t.memory(given), None, describe(tensor)), consumed=True)]
            self._channel.message(operation)
        return operation.work

    def receive(self, tensor: Any, source: Optional[int], tag: int, seconds: float) -> Work:
        """source None: any rank."""
        sources = [rank for rank in range(self._channel.size) if rank != self._channel.rank] if source is None else [source]
        who = "any rank" if source is None else self._channel.label(source)
        needs = frozenset(sources) if source is not None or len(sources) == 1 else frozenset()
        operation = self._operation(f"recv from {who} with tag {tag} of {t.described([tensor])}", [tensor], needs, seconds)
        operation.kept = t.flat_output(tensor)
        operation.finish = lambda: t.settle(tensor, operation.kept)
        self._channel.post(lambda: self._receive(operation, tensor, source, tag))
        return operation.work

    def _operation(self, what: str, results: List[Any], needs: FrozenSet[int], seconds: float) -> Operation:
        work = Work(results, what)
        operation = Operation(what, work, needs, seconds)
        work.late = lambda waited: self._channel.members.missing(operation, waited)
        return operation

    # --- in the channel's thread

    def _receive(self, operation: Operation, tensor: Any, source: Optional[int], tag: int) -> None:
        if tag in self._any:
            self._held.setdefault(tag, deque()).append((operation, tensor, source))
            return
        if source is None:
            self._any[tag] = operation
            operation.after = lambda: self._go_on(tag)
            sources = [rank for rank in range(self._channel.size) if rank != self._channel.rank]
            numbers = {rank: self._received.get((rank, tag), 0) + 1 for rank in sources}
        else:
            number = self._received[source, tag] = self._received.get((source, tag), 0) + 1
            numbers = {source: number}
        operation.steps = [self._step(operation, tensor, rank, tag, number, source is None)
                           for rank, number in numbers.items()]
        self._channel.take(operation)

    def _step(self, operation: Operation, tensor: Any, source: int, tag: int, number: int, is_any: bool) -> Step:
        name = self._name(source, self._channel.rank, tag, number)

        def sink(view: Any) -> None:
            if is_any:
                self._received[source, tag] = number
                self._channel.drop_steps(operation)
            operation.work.source = source
            self._channel.side("delete", name)
            came, wanted = bytes(view.meta).decode(), describe(tensor).decode()
            if came != wanted:
                raise ValueError(f"{operation.what}: {self._channel.label(source)} has sent {came}, which does not go "
                                 f"into {wanted}: give tensors of one type and size on both sides")
            t.fill(operation.kept, view)
        return Step("get", (name, FOREVER), sink)

    def _go_on(self, tag: int) -> None:
        del self._any[tag]
        held = self._held.pop(tag, deque())
        while held:
            if tag in self._any:
                self._held[tag] = held
                return
            self._receive(*held.popleft(), tag)

    # --- the end

    def drain(self, seconds: float) -> None:
        """Waits until what this rank has sent is received, where its receiver lives."""
        channel, until = self._channel, time.monotonic() + seconds
        ranks = {rank for rank, _ in self._sent} if not channel.members.alone else set()
        while ranks and time.monotonic() < until:
            lost = {*channel.members.dead, *channel.members.left}
            try:
                left = channel.node.ls(f"{channel.base}/p/{channel.rank}-")
            except Error:
                return
            ranks = {int(info.name[len(channel.base) + 3:].split("-")[1]) for info in left} - lost
            if ranks:
                time.sleep(0.02)
