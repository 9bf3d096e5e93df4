# SPDX-License-Identifier: BSD-3-Clause
"""wait() and as_completed() of names, Refs and tasks, for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Iterable, List, Optional, Tuple, Union

from .._errors import Unavailable
from .._names import Name, timeout_ns
from .._refs import Ref, listed, none_in_time, num_of

if TYPE_CHECKING:
    from ..aio import Node

Thing = Union[Name, Ref, "asyncio.Future[Any]"]


class Waits:
    """Things as tasks. Names are asked for until the end of the block; with a timeout of 0 they are once."""

    def __init__(self, given: List[Thing], timeout: Optional[float], node: Optional[Node]) -> None:
        self._once, self._node = timeout_ns(timeout) == 0, node
        self._until = None if timeout is None else time.monotonic() + timeout
        self._own: List[asyncio.Future[Any]] = []  # of names
        self.futures = [thing if isinstance(thing, asyncio.Future) else self._of_name(thing) for thing in given]

    def _of_name(self, thing: Union[Name, Ref]) -> asyncio.Future[Any]:
        if self._node is None:
            raise TypeError("names are waited for by a node: say node=")
        name = thing.name if isinstance(thing, Ref) else thing
        self._own.append(asyncio.ensure_future(self._node.get(name, 0 if self._once else None, raw=True)))
        return self._own[-1]

    async def some(self, num: int) -> List[int]:
        """The numbers of the first num that have ended, or of as many as do in time."""
        if self._once and self._own:
            await asyncio.wait(self._own)
        while True:
            ended = [number for number, future in enumerate(self.futures) if future.done() and not self._absent(future)]
            left = {future for future in self.futures if not future.done()}
            limit = None if self._until is None else max(0.0, self._until - time.monotonic())
            if len(ended) >= num or not left or limit == 0:
                return ended[:num]
            await asyncio.wait(left, timeout=limit, return_when=asyncio.FIRST_COMPLETED)

    def _absent(self, future: asyncio.Future[Any]) -> bool:
        return self._once and future in self._own and isinstance(future.exception(), Unavailable)

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in self._own:
            if future.done() and not future.cancelled():
                future.exception()  # it is not asked for
            future.cancel()


async def wait(things: Iterable[Thing], num: int = 1, timeout: Optional[float] = None,
               node: Optional[Node] = None) -> Tuple[List[Thing], List[Thing]]:
    """As sarissa.wait(), of names, Refs and futures of asyncio. Names are brought to node."""
    given = listed(things)
    num_of(num, given)
    with Waits(given, timeout, node) as waits:
        ready = set(await waits.some(num))
    return ([thing for number, thing in enumerate(given) if number in ready],
            [thing for number, thing in enumerate(given) if number not in ready])


async def as_completed(things: Iterable[Thing], timeout: Optional[float] = None,
                       node: Optional[Node] = None) -> AsyncIterator[Thing]:
    """As sarissa.as_completed(): async for each of them as soon as it is there or done."""
    given = listed(things)
    told: Dict[int, None] = {}
    with Waits(given, timeout, node) as waits:
        while len(told) < len(given):
            news = [number for number in await waits.some(len(told) + 1) if number not in told]
            if not news:
                raise none_in_time(len(given) - len(told), len(given))
            for number in news:
                told[number] = None
                yield given[number]
