# SPDX-License-Identifier: BSD-3-Clause
"""Names that travel to other tasks, and waits for some of many."""

from __future__ import annotations

import errno
import os
import threading
import time
from concurrent import futures
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _sarissa
from ._errors import Closed, TimedOut, Unavailable
from ._names import Name, timeout_ns
from ._node import Node

if TYPE_CHECKING:
    from ._node import Path
    from ._results import Info

LOCK = threading.Lock()
T = TypeVar("T")
NODES: Dict[Tuple[int, Optional[str]], Node] = {}  # of this process: a child after fork has its own


def node_of(path: Optional[str]) -> Node:
    """The one of this process that serves this path."""
    where = (os.getpid(), os.environ.get("SARISSA_SOCKET") if path is None else path)
    with LOCK:
        try:
            NODES[where]._open()
        except (KeyError, Closed):
            NODES[where] = Node(where[1])
        return NODES[where]


class Ref:
    """The name of an object, for another task: it can be pickled, and is equal to each Ref of the same object. node:
    the socket path of a node, or a Node; without it, that of the process that uses the Ref. A process opens one
    connection to a node for all of them.

    >>> node.put("weights", numpy.ones(3))
    >>> ref = sarissa.Ref("weights")
    >>> ref.get(timeout=10).tolist()
    [1.0, 1.0, 1.0]
    """

    __slots__ = ("name", "path", "id")

    def __init__(self, name: Name, node: Union[None, Path, Node] = None) -> None:
        self.name = name
        self.id: bytes = _sarissa.id_from(name)
        path = node.address if isinstance(node, Node) else node
        self.path = None if path is None else os.fsdecode(path)

    @property
    def node(self) -> Node:
        return node_of(self.path)

    def get(self, timeout: Optional[float] = None, raw: bool = False) -> Any:
        return self.node.get(self.name, timeout, raw)

    def get_object(self, timeout: Optional[float] = None) -> Any:
        """Unpickling runs code of the program that put the object."""
        return self.node.get_object(self.name, timeout)

    def get_future(self, timeout: Optional[float] = None, raw: bool = False) -> Future[Any]:
        return self.node.get_future(self.name, timeout, raw)

    def info(self) -> Info:
        return self.node.info(self.name)

    def delete(self) -> None:
        self.node.delete(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Ref, (self.name, self.path)

    def __repr__(self) -> str:
        return f"sarissa.Ref({self.name!r})" if self.path is None else f"sarissa.Ref({self.name!r}, {self.path!r})"


Thing = Union[Name, Ref, "Future[Any]"]


class Waits:
    """Things as futures. Names are asked for until the end of the block; with a timeout of 0 they are once."""

    def __init__(self, things: Sequence[Thing], timeout: Optional[float], node: Optional[Node]) -> None:
        self._limit_ns, self._node = timeout_ns(timeout), node
        self._until = None if timeout is None else time.monotonic() + timeout
        self._own: List[Future[Any]] = []  # of names
        self.futures = [thing if isinstance(thing, Future) else self._of_name(thing) for thing in things]

    def _of_name(self, thing: Union[Name, Ref]) -> Future[Any]:
        ref = thing if isinstance(thing, Ref) else Ref(thing)
        once = 0 if self._limit_ns == 0 else None
        self._own.append((self._node or ref.node).get_future(ref.name, once, raw=True))
        return self._own[-1]

    def some(self, num: int) -> List[int]:
        """The numbers of the first num that have ended, or of as many as do in time."""
        if self._limit_ns == 0:
            absent = [future for future in self._own if isinstance(future.exception(), Unavailable)]
            return [number for number, future in enumerate(self.futures) if future.done() and future not in absent][:num]
        ended: List[int] = []
        while len(ended) < num:
            left = [future for future in self.futures if not future.done()]
            ended = [number for number, future in enumerate(self.futures) if future.done()]
            limit = None if self._until is None else self._until - time.monotonic()
            if len(ended) < num and not futures.wait(left, limit, futures.FIRST_COMPLETED).done:
                break
        return ended[:num]

    def each(self) -> Iterator[int]:
        """All, as they end. TimedOut after the time."""
        of: Dict[Future[Any], List[int]] = {}
        for number, future in enumerate(self.futures):
            of.setdefault(future, []).append(number)
        limit = None if self._until is None else max(0.0, self._until - time.monotonic())
        try:
            for future in futures.as_completed(of, limit):
                yield from of.pop(future)
        except futures.TimeoutError:
            raise none_in_time(sum(map(len, of.values())), len(self.futures)) from None

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in self._own:
            future.cancel()


def none_in_time(left: int, total: int) -> TimedOut:
    return TimedOut(errno.ETIMEDOUT, f"{left} of {total} things have not come in time")


def num_of(num: int, things: Sequence[Any]) -> None:
    if not 1 <= num <= len(things):
        raise ValueError(f"{num} of {len(things)} things cannot be waited for")


def listed(things: Iterable[T]) -> List[T]:
    if isinstance(things, (str, bytes)):
        raise TypeError("a list of names is wanted, not one name")
    return list(things)


def wait(things: Iterable[Thing], num: int = 1, timeout: Optional[float] = None,
         node: Optional[Node] = None) -> Tuple[List[Thing], List[Thing]]:
    """The first num of these names, Refs and futures that are there or done, and all others; both in the order given.
    After timeout seconds there may be fewer. Names are brought to node, or to that of this process. One whose
    get fails meanwhile (Deleted, Lost of a part) counts as there, and its get says why. One that only dead nodes have
    does not: they may come back with it. Futures may be those of any program.

    >>> node.put("done", b"x")
    >>> sarissa.wait(["not yet", "done"], node=node)
    (['done'], ['not yet'])
    """
    given = listed(things)
    num_of(num, given)
    with Waits(given, timeout, node) as waits:
        ready = set(waits.some(num))
    return ([thing for number, thing in enumerate(given) if number in ready],
            [thing for number, thing in enumerate(given) if number not in ready])


def as_completed(things: Iterable[Thing], timeout: Optional[float] = None,
                 node: Optional[Node] = None) -> Iterator[Thing]:
    """The same things, each as soon as it is there or done. TimedOut after timeout seconds."""
    given = listed(things)
    return each_completed(given, Waits(given, timeout, node))


def each_completed(given: Sequence[Thing], waits: Waits) -> Iterator[Thing]:
    with waits:
        for number in waits.each():
            yield given[number]
