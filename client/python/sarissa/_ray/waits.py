# SPDX-License-Identifier: BSD-3-Clause
"""get(), wait() and sources(): for the object, and for news of the task that is to make it. Ray is asked for the task,
so a task that waits gives its CPUs to others meanwhile, as it does in ray.get(). No wait lasts longer than what it waits
for can come: look() says what else can be known."""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from concurrent import futures
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import ray

from .. import _results as results
from .._errors import (Deleted, Error, InvalidArgument, Lost, NoNode, NotFound, PartialError, StoreFull, TimedOut,
                       Unavailable)
from .._futures import future_of
from .._names import FOREVER, timeout_ns
from . import owned, values
from .refs import DONE, FAILED, PENDING, Origin, ended, kind_of, leaves, state, unbound

LOOK_S = 0.5  # an object that should be there is looked for so often
GONE_S = 10.0  # a node that has gone, or its part of the directory, may come back within
SLICE_S = 0.05
ANSWER_S = 0.05  # a node that is up has told what it knows of an object within


class Clock:
    def __init__(self, timeout: Optional[float]) -> None:
        timeout_ns(timeout)
        self.timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout

    def left(self, most: Optional[float] = None) -> Optional[float]:
        """Seconds, at most so many; None: no limit."""
        if self._until is None:
            return most
        left = max(0.0, self._until - time.monotonic())
        return left if most is None else min(left, most)

    def over(self) -> bool:
        return self.left() == 0.0


class Get:
    """Of one Ref. The object comes to this node from the first moment on."""

    def __init__(self, ref: Any, raw: bool) -> None:
        self.ref, self._raw = ref, raw
        self.future = self._begin()
        self.done: Dict[Any, Optional[BaseException]] = {}  # tasks that have ended, and names of what has no task
        self._asked: Dict[Any, Any] = {}  # of objects: answers that have not come
        self._missing_since: Optional[float] = None
        self._is_reduce = bool(getattr(ref, "_origin", Origin()).sources)

    def _begin(self) -> Any:
        return self.ref.node.get_future(self.ref.name, None, self._raw)

    def end(self) -> None:
        for one in (self.future, *self._asked.values()):
            one.cancel()

    def pending(self) -> List[Any]:
        return [one for one in leaves([self.ref]) if one not in self.done]

    def note(self, tasks: Sequence[Any]) -> None:
        for task in tasks:
            self.done[task] = ended(task)

    def check(self) -> str:
        """The state. Raises the error of a task without which there is no object."""
        found, failed = state(self.ref, self.done)
        if found == FAILED:
            error = self.done[failed]
            assert error is not None
            raise error
        return found

    def look(self) -> None:
        """Raises what says that the object will not come: what makes it has ended, or it is a reduce that fails."""
        self._note_unbound()
        if self.check() != DONE and not self._is_reduce:
            if unbound([self.ref]):
                self._ask_node()
            return
        why = self._absence()
        now = time.monotonic()
        if why is None:
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        elif now - self._missing_since >= (LOOK_S if isinstance(why, Deleted) else GONE_S):
            raise why

    def _note_unbound(self) -> None:
        for ref in unbound([self.ref]):
            if owned.is_held(ref.name):
                self.done[ref.name] = None
            elif owned.is_abandoned(ref.name, GONE_S):
                self.done[ref.name] = NotFound(errno.ENOENT, f"{ref!r}: nobody has put it, and no task or actor has the Ref any "
                                               "more: bind() it to the task that puts it, and get() raises what that "
                                               "task raises")

    def _info(self, ref: Any) -> Optional[results.Info]:
        """None until the node has answered. One that is down does so after half a minute, and nobody waits for that."""
        asked = self._asked.pop(ref.name, None)
        if asked is None:
            asked = future_of(ref.node, results.info, "info", ref.name)
            futures.wait([asked], ANSWER_S)
        if not asked.done():
            self._asked[ref.name] = asked
            return None
        info: results.Info = asked.result()
        return info

    def _ask_node(self) -> None:
        """NoNode when the node of this process has gone: what others put does not come here."""
        try:
            self._info(self.ref)
        except NoNode:
            raise
        except Error:
            pass  # nobody has put it

    def _absence(self) -> Optional[Error]:
        try:
            if self._is_reduce:
                self.ref.node.reduce_sources(self.ref.name, 0)
                return None
            info = self._info(self.ref)
        except NotFound:
            return Deleted(errno.ESTALE, f"{self.ref!r}: the object is gone: it was freed, or the process that owned it "
                           "or the node that had it has ended: run its task again, or put it again")
        except TimedOut:
            return self._lost_source() if self._is_reduce else None
        except NoNode as error:
            if self._is_reduce:  # it may just be started again
                return error
            raise
        except (Unavailable, PartialError) as error:
            return error
        if info is not None and info.copies == 0 and info.partial == 0 and info.lost:
            return Lost(errno.ENODATA, f"{self.ref!r}: the object is lost with node {info.lost_node} of sarissa: run "
                        "its task again, or put it again")
        return None

    def _lost_source(self) -> Optional[Error]:
        """Sources that were put and are nowhere any more, such as those of a node that has died, without which too few
        are left."""
        origin = self.ref._origin
        gone = [one for one in origin.sources if not getattr(one, "_origin", Origin()).sources and
                state(one, self.done)[0] == DONE and not self._is_there(one)]
        if len(origin.sources) - len(gone) >= origin.need:
            return None
        return Lost(errno.ENODATA, f"{self.ref!r}: its source {gone[0]!r} is lost with the node that had it, or was freed: "
                    "run its task again, and reduce again")

    def _is_there(self, source: Any) -> bool:
        """Or will be: only what the directory says for sure counts as absence."""
        try:
            info = self._info(source)
        except NotFound:
            return False
        except Error:
            return True
        return info is None or bool(info.copies or info.partial or not info.lost)

    def value(self) -> Any:
        got = self.future.result()
        if self._raw:
            return got
        kind = None if isinstance(got, memoryview) else kind_of(self.ref)
        return values.value_of(self.ref.name, got, kind)

    def result(self, clock: Clock) -> Any:
        with naming_pickles(self.ref, self.ref._origin.sources if self._is_reduce else ()):
            return self._result(clock)

    def _result(self, clock: Clock) -> Any:
        """A full store is tried again: objects without a Ref go within a moment."""
        room = Clock(owned.ROOM_S)
        while True:
            self._arrive(clock)
            try:
                return self.value()
            except StoreFull:
                if room.over() or clock.over():
                    raise
            owned.make_room()
            self.future = self._begin()

    def _arrive(self, clock: Clock) -> None:
        while not self.future.done():
            pending = self.pending() if self.check() == PENDING else []
            if not self._news(pending, clock) and not self.future.done():
                self.look()
            if clock.over() and not self.future.done():
                self.check()
                raise TimedOut(errno.ETIMEDOUT, f"{self.ref!r}: not there after {clock.timeout} s")

    def _news(self, pending: Sequence[Any], clock: Clock) -> bool:
        """Of tasks. A Ref without a task may be put at any moment: Ray does not tell."""
        if not pending:
            futures.wait([self.future], clock.left(LOOK_S))
            return False
        limit = clock.left(SLICE_S if unbound([self.ref]) else LOOK_S)
        news = ray.wait(pending, num_returns=1, timeout=limit)[0]
        self.note(news)
        return bool(news)


class Sources(Get):
    """Which are in the result of a reduce."""

    def __init__(self, ref: Any) -> None:
        super().__init__(ref, True)

    def _begin(self) -> Any:
        return future_of(self.ref.node, set, "reduce_sources", self.ref.name, FOREVER)


@contextlib.contextmanager
def naming_pickles(target: Any, sources: Sequence[Any]) -> Iterator[None]:
    """Of a reduce: its error where a source is bytes of no type says what to put."""
    try:
        yield
    except InvalidArgument as error:
        for one in sources:
            if f"source {one.name!r} has " in str(error):
                raise InvalidArgument(errno.EINVAL, f"{target!r}: its source {one!r} is no array: a reduce takes arrays of numpy "
                                      "and plain tensors of torch: put numpy.asarray(value), or tensor.detach()") from None
        raise


def get(refs: Sequence[Any], timeout: Optional[float], raw: bool = False) -> List[Any]:
    clock, gets = Clock(timeout), [Get(ref, raw) for ref in refs]
    try:
        return [one.result(clock) for one in gets]
    finally:
        for one in gets:
            one.end()


def sources(ref: Any, timeout: Optional[float]) -> Set[bytes]:
    """Numbers of the objects that are in the result of a reduce, when it has ended."""
    clock, one = Clock(timeout), Sources(ref)
    try:
        found: Set[bytes] = one.result(clock)
        return found
    finally:
        one.end()


def wait(refs: Sequence[Any], num: int, timeout: Optional[float]) -> Tuple[List[Any], List[Any]]:
    """A Ref whose get() would raise counts as ready."""
    if not 1 <= num <= len(refs):
        raise ValueError(f"num_returns={num} of {len(refs)} Refs: it is 1 to {len(refs)}")
    clock, news = Clock(timeout), threading.Event()
    gets = [Get(ref, True) for ref in refs]
    for one in gets:
        one.future.add_done_callback(lambda _: news.set())
    try:
        while True:
            news.clear()
            ready = [one for one in gets if _is_ready(one)]
            if len(ready) >= num or clock.over():
                break
            _wait_some(gets, news, clock)
    finally:
        for one in gets:
            one.end()
    chosen = {id(one) for one in ready[:num]}
    return [one.ref for one in gets if id(one) in chosen], [one.ref for one in gets if id(one) not in chosen]


def _is_ready(one: Get) -> bool:
    if one.future.done():
        return True
    pending = one.pending()
    if pending:
        one.note(ray.wait(pending, num_returns=len(pending), timeout=0)[0])
    try:
        one.look()
    except Exception:
        return True
    return False


def _wait_some(gets: Sequence[Get], news: threading.Event, clock: Clock) -> None:
    pending = [task for one in gets if not one.future.done() for task in one.pending()]
    if pending:  # Ray may run others meanwhile
        ray.wait(pending, num_returns=1, timeout=clock.left(SLICE_S))
    else:
        news.wait(clock.left(LOOK_S))
