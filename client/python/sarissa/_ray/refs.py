# SPDX-License-Identifier: BSD-3-Clause
"""Ref: a sarissa.Ref that knows what will make its object: nothing more (it is there), a Ray task, or a reduce of
other Refs. It travels with the Ray reference of the task, so Ray tells where the task has failed, and counts where
the Ref still is. _ray.owned ends the object when it is nowhere any more."""

from __future__ import annotations

import contextlib
import threading
import uuid
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import ray

from .. import _refs
from . import owned, place

DONE, PENDING, FAILED = "done", "pending", "failed"
_nesting = threading.local()  # collects the Refs that a value has, while it is put


class Origin(NamedTuple):
    """What makes the object. made: it exists already. task: the Ray reference of the task that makes it. sources and
    need: of a reduce; need of them suffice. kind: of the value, where it is known. token: a Ray reference without a
    meaning, which is in scope as long as the Ref is anywhere; task is one as well."""

    made: bool = False
    task: Any = None
    sources: Tuple[Ref, ...] = ()
    need: int = 0
    kind: Optional[str] = None
    token: Any = None


class Status(NamedTuple):
    """What a task of ours returns by Ray, where its value goes through the store. inside: the Refs in the value, which
    so are in scope as long as the Ref of the value is."""

    kind: str
    inside: Sequence[Any] = ()


class Ref(_refs.Ref):
    """The name of an object in the store, of this or of another process, which Ray tasks may take and return, also in
    lists. It is made by put(), ref(), reduce() and by tasks of sarissa.ray.task. The object lives as long as a Ref of
    it is in scope anywhere, and the process that has made the first one lives."""

    __slots__ = ("_origin", "__weakref__")

    def __init__(self, name: str, origin: Origin = Origin()) -> None:
        super().__init__(name)
        self._origin = origin
        owned.count(self)

    @property
    def node(self) -> Any:
        return place.node()

    def bind(self, task: Any) -> Ref:
        """task: the Ray reference of the task that puts the object. From now on get() raises what the task raises.
        Call it before the Ref goes to others. Returns the Ref itself."""
        if not isinstance(task, ray.ObjectRef):
            raise TypeError(f"bind() takes the Ray reference of a task, and not {type(task).__name__}")
        if self._origin.made or self._origin.task is not None or self._origin.sources:
            raise ValueError(f"{self!r} has been put or bound already")
        self._origin = Origin(task=task)
        owned.bind(self)
        return self

    def get(self, timeout: Optional[float] = None, raw: bool = False) -> Any:
        """sarissa.ray.get(). raw: the bytes, as a memoryview."""
        from . import waits
        return waits.get([self], timeout, raw)[0]

    def get_object(self, timeout: Optional[float] = None) -> Any:
        return self.get(timeout)

    def sources(self, timeout: Optional[float] = None) -> Tuple[List[Ref], List[Ref]]:
        """Of a reduce: waits for its end. The Refs that are in the result, and the others. Raises what get() would."""
        from . import waits
        if not self._origin.sources:
            raise ValueError(f"{self!r} is not of a reduce")
        used = waits.sources(self, timeout)
        return ([one for one in self._origin.sources if one.id in used],
                [one for one in self._origin.sources if one.id not in used])

    def delete(self) -> None:
        owned.free(self)

    def __reduce__(self) -> Tuple[Any, ...]:
        inside = getattr(_nesting, "refs", None)
        if inside is not None:  # into an object of ours, which keeps it
            inside.append(self)
            return rebuilt, (self.name, Origin(made=self._origin.made, kind=self._origin.kind))
        return rebuilt, (self.name, owned.sent(self))

    def __del__(self) -> None:
        owned.gone(self)

    def __repr__(self) -> str:
        return f"sarissa.ray.Ref({self.name!r})"


def rebuilt(name: str, origin: Origin) -> Ref:
    return Ref(name, origin)


def new(origin: Origin = Origin(), name: Optional[str] = None) -> Ref:
    """One that this process owns."""
    ray_node, job = place.here()
    chosen = f"ray-{job}/{ray_node[:6]}-{uuid.uuid4().hex}" if name is None else name
    owned.own(chosen)
    return Ref(chosen, origin)


@contextlib.contextmanager
def nested() -> Iterator[List[Ref]]:
    """The Refs in what is pickled meanwhile."""
    inside: List[Ref] = []
    _nesting.refs = inside
    try:
        yield inside
    finally:
        del _nesting.refs


def _made_from(refs: Sequence[Any]) -> Iterator[Tuple[Any, Origin]]:
    """The Refs among them, and among the sources of reduces, that are no reduces; with their origins."""
    for ref in refs:
        origin = getattr(ref, "_origin", Origin())
        if origin.sources:
            yield from _made_from(origin.sources)
        else:
            yield ref, origin


def leaves(refs: Sequence[Any]) -> List[Any]:
    """The Ray references of the tasks that these wait for."""
    return [origin.task for _, origin in _made_from(refs) if origin.task is not None and not origin.made]


def unbound(refs: Sequence[Any]) -> List[Any]:
    """Those without a task, and sources of these without one, that nobody here has put."""
    return [ref for ref, origin in _made_from(refs) if origin.task is None and not origin.made]


def state(ref: Any, done: Any) -> Tuple[str, Any]:
    """Of what makes the object, and what has failed: a Ray reference, or a name. done: {task: error or None} of those
    that have ended, and {name: error or None} of Refs without a task. PENDING where nobody knows."""
    origin = getattr(ref, "_origin", Origin())
    if origin.sources:
        states = [state(one, done) for one in origin.sources]
        failed = [task for one, task in states if one == FAILED]
        if len(failed) > len(states) - origin.need:
            return FAILED, failed[0]
        return (DONE if sum(one == DONE for one, _ in states) >= origin.need else PENDING), None
    if origin.made:
        return DONE, None
    key = getattr(ref, "name", None) if origin.task is None else origin.task
    if key not in done:
        return PENDING, None
    return (DONE, None) if done[key] is None else (FAILED, key)


def ended(task: Any) -> Optional[BaseException]:
    """The error of a task that has ended, or None."""
    try:
        ray.get(task)
    except Exception as error:
        return error
    return None


def kind_of(ref: Any) -> Optional[str]:
    """Of a value that is there. The status of a task says it."""
    origin = getattr(ref, "_origin", Origin())
    if origin.kind is not None or origin.made:
        return origin.kind
    for one in origin.sources:
        if not leaves([one]) or ray.wait(leaves([one]), timeout=0)[0]:
            found = kind_of(one)
            if found is not None:
                return found
    if origin.task is None:
        return None
    try:
        status = ray.get(origin.task)
    except Exception:
        return None
    return status.kind if isinstance(status, Status) else None
