# SPDX-License-Identifier: BSD-3-Clause
"""Groups for asyncio: what _groups.py has, with coroutines. A member does one thing after the other; a
task that is cancelled ends what it waits for, and the next call of the member waits for that end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Type

from . import _groups, _sarissa
from ._groups import Contributor
from ._names import timeout_ns

if TYPE_CHECKING:
    from .aio import Node


class Result:
    """As sarissa.Result; members() is a coroutine."""

    def __init__(self, member: GroupMember, view: _sarissa.View, round: int, attempt: int, version: int,
                 through: int) -> None:
        self._member, self._attempt = member, attempt
        self.round, self.version, self.through = round, version, bool(through)
        self.array: Any = _groups.as_array(view, member.group.dtype)

    async def members(self) -> List[Contributor]:
        raw = await self._member._do("group_contributors", self.round, self._attempt)
        return [Contributor(*one) for one in raw]


class GroupMember(_groups.Membership):
    """Made by Group.join(). With `async with` it leaves with the block."""

    def __init__(self, group: Group, member: _sarissa.GroupMember) -> None:
        self.group = group
        self._member = member
        self._turn = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()

    async def _do(self, operation: str, *arguments: Any) -> Any:
        async with self._turn:
            await self._idle.wait()
            return await self.group._node._do(operation, self._joined(), *arguments, ended=self._idle)

    async def push(self, array: Any) -> None:
        """Contributes for the next clock. A push whose task is cancelled may count."""
        await self._do("group_push", _groups.contribution(array, self.group.dtype))

    async def pull(self, timeout: Optional[float] = None) -> Optional[Result]:
        """Waits until the policy lets this member go on; None: there is no result yet."""
        view, round, attempt, version, through = await self._do("group_pull", timeout_ns(timeout))
        return None if view is None else Result(self, view, round, attempt, version, through)

    async def leave(self) -> None:
        if self._member is not None:
            await self._do("group_leave")
            self._member = None

    async def __aenter__(self) -> GroupMember:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        await self.leave()


class Group:
    """Made by Node.create_group() and Node.group()."""

    def __init__(self, node: Node, name: str, described: Dict[str, Any]) -> None:
        self._node, self.name = node, name
        self.dtype = _groups.dtype_named(described["dtype"])
        self.count: int = described["count"]

    async def join(self, cohort: Optional[str] = None) -> GroupMember:
        return GroupMember(self, await self._node._do("group_join", self.name, cohort))

    async def policy(self, text: str) -> int:
        return int(await self._node._do("group_policy", self.name, text))

    async def info(self) -> Dict[str, Any]:
        described: Dict[str, Any] = await self._node._do("group_info", self.name)
        return described

    async def remove(self) -> None:
        await self._node._do("group_remove", self.name)
