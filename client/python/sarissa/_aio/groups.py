# SPDX-License-Identifier: BSD-3-Clause
"""Groups for asyncio: what _groups.py has, with coroutines. A member does one thing after the other; a
task that is cancelled ends what it waits for, and the next call of the member waits for that end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

from .. import _groups, _sarissa
from .. import _operations as operations
from .._groups import Contributor
from .._operations import Steps, T
from . import described_by

if TYPE_CHECKING:
    from ..aio import Node


class Result(_groups.Pulled):
    """As sarissa.Result; members() is a coroutine, and there is no count."""

    async def members(self) -> List[Contributor]:
        raw = await self._member._run(operations.group_contributors(self._member._joined(), self.round, self._attempt))
        return [Contributor(*one) for one in raw]


@described_by(_groups.GroupMember)
class GroupMember(_groups.Membership):
    """Made by Group.join(). With `async with` it leaves with the block."""

    group: Group

    def __init__(self, group: Group, member: _sarissa.GroupMember) -> None:
        super().__init__(group, member)
        self._turn = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()

    async def _run(self, steps: Steps[T]) -> T:
        async with self._turn:
            await self._idle.wait()
            return await self.group._node._run(steps, self._idle)

    async def push(self, array: Any) -> None:
        """Contributes for the next clock. A push whose task is cancelled may count."""
        await self._run(operations.group_push(self._joined(), _groups.contribution(array, self.group.dtype)))

    async def pull(self, timeout: Optional[float] = None) -> Optional[Result]:
        """Waits until the policy lets this member go on; None: there is no result yet."""
        view, *about = await self._run(operations.group_pull(self._joined(), timeout))
        return None if view is None else Result(self, view, *about)

    async def leave(self) -> None:
        if self._member is not None:
            await self._run(operations.group_leave(self._member))
            self._member = None

    async def __aenter__(self) -> GroupMember:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        await self.leave()


@described_by(_groups.Group)
class Group(_groups.Described):
    """Made by Node.create_group() and Node.group()."""

    _node: Node

    async def join(self, cohort: Optional[str] = None) -> GroupMember:
        return GroupMember(self, await self._node._run(operations.group_join(self.name, cohort)))

    async def policy(self, text: str) -> int:
        return await self._node._run(operations.group_policy(self.name, text))

    async def info(self) -> Dict[str, Any]:
        return await self._node._run(operations.group_info(self.name))

    async def remove(self) -> None:
        await self._node._run(operations.group_remove(self.name))
