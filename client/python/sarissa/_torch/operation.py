# SPDX-License-Identifier: BSD-3-Clause
"""Operation: one collective or message of a process group, as the steps that the extension takes, and how far it is.
process_group.py builds it, channel.py runs it. It does nothing by itself."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from .._names import FOREVER, OPS
from .work import Work



class Step(NamedTuple):
    """verb: a method of the extension's queue. sink: takes what it brings. consumed: a put whose reader deletes the
    object; it may do so before the put has its answer."""

    verb: str
    arguments: Tuple[Any, ...]
    sink: Optional[Callable[[Any], None]] = None
    consumed: bool = False


class Names:
    """Of one collective's objects. All ranks that do the same make the same names; those that do something else wait
    for names that nobody makes."""

    def __init__(self, base: str, number: int, signature: str) -> None:
        self._base = f"{base}/d/{number}/{signature}/"
        self.made: List[str] = []  # by this rank, which deletes them
        self.targets: List[str] = []  # of reduces, of which one rank does

    def of(self, part: str) -> str:
        return self._base + part

    def put(self, part: str, memory: Any, meta: Optional[bytes] = None) -> Step:
        self.made.append(self.of(part))
        return Step("put", (self.of(part), memory, None, meta))

    def get(self, part: str, sink: Callable[[Any], None]) -> Step:
        return Step("get", (self.of(part), FOREVER), sink)

    def allreduce(self, target: str, parts: List[str], op: str, sink: Callable[[Any], None], limit_ns: int) -> Step:
        self.targets.append(self.of(target))
        return Step("allreduce", self._reduction(target, parts, op, 0, limit_ns), sink)

    def reduce(self, target: str, parts: List[str], op: str, sink: Callable[[Any], None], limit_ns: int) -> List[Step]:
        self.made.append(self.of(target))
        return [Step("reduce", self._reduction(target, parts, op, 0, limit_ns)), self.get(target, sink)]

    def _reduction(self, target: str, parts: List[str], op: str, flags: int, limit_ns: int) -> Tuple[Any, ...]:
        return self.of(target), [self.of(part) for part in parts], OPS[op], 0, 0, flags, limit_ns, 0, 0


class Operation:
    """number: of a collective; None of a message. needs: the ranks without which it does not end. kept: what C reads
    and writes until the end. finish: called at the end, before the work ends."""

    def __init__(self, what: str, work: Work, needs: FrozenSet[int], seconds: float) -> None:
        self.what, self.work, self.needs = what, work, needs
        self.seconds = seconds
        self.number: Optional[int] = None
        self.signature = ""
        self.names: Optional[Names] = None
        self.steps: List[Step] = []
        self.finish: Optional[Callable[[], None]] = None
        self.after: Optional[Callable[[], None]] = None  # however it ends
        self.kept: Any = None
        self.begun = time.monotonic()
        self.tickets: Dict[int, Step] = {}
        self.bytes = 0
        self.marked = self.ended = False
        self.full: Optional[float] = None  # since when the store has no room for it
        self.error: Optional[BaseException] = None  # that it ends with, though it was done
        self.trouble: Optional[Tuple[float, BaseException]] = None  # since when; a death may explain it

    @property
    def until(self) -> float:
        return self.begun + self.seconds
