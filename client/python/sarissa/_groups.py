# SPDX-License-Identifier: BSD-3-Clause
"""Groups: members push contributions clock by clock, and pull what all of them add up to, as the
policy of the group allows.

    node.create_group("sgd", dtype="f32", count=1000, policy="bsp", members=8, results="total")
    with node.group("sgd").join() as member:
        member.push(gradient)
        result = member.pull(timeout=10)
        weights -= rate * result.array"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Type

from . import _arrays, _sarissa
from . import _operations as operations
from ._arrays import Meaning
from ._connections import VIEWS_MAX
from ._names import DTYPES, OURS, dtype_of
from ._operations import Steps, T
from ._types import item_bytes
from ._waits import end_block

if TYPE_CHECKING:
    from ._node import Node

# of the format of a buffer
KINDS = {**dict.fromkeys("hilqn", "i"), **dict.fromkeys("HILQN", "u"), **dict.fromkeys("efd", "f")}


def dtype_named(number: int) -> str:
    return next(key for key, one in DTYPES.items() if one == number)


def as_array(view: _sarissa.View, dtype: str) -> Any:
    """A Tensor where numpy has no such type: bf16, without ml_dtypes."""
    text = OURS[dtype]
    if view.handle.views > VIEWS_MAX:  # the next pull needs room for its own
        copy = memoryview(bytes(memoryview(view)))  # type: ignore[arg-type]
        return _arrays.as_array(copy, Meaning(text, (copy.nbytes // item_bytes(text),)))
    return _arrays.as_array(view, Meaning(text, (view.nbytes // item_bytes(text),)))


def element_of(data: Any) -> Optional[str]:
    """The type of a buffer's elements, as numpy writes it where it has a name there. None: they are bytes."""
    with memoryview(data) as view:
        order, code = view.format[:-1], view.format[-1]
        if code in "Bbc":
            return None
        return f"<{KINDS[code]}{view.itemsize}" if order in ("", "@", "=", "<") and code in KINDS else view.format


def contribution(array: Any, dtype: str) -> Any:
    """The bytes of a contribution to a group of dtype, in C's order."""
    given = _arrays.given_array(array)
    if given is None:
        _arrays.check_bytes(array)
    text = element_of(array) if given is None else given.meaning.dtype
    if text is not None and dtype_of(text) != dtype:
        raise TypeError(f"a contribution of {text}: the group is of {dtype}")
    return array if given is None else given.in_c_order()


class Contributor(NamedTuple):
    """A contribution in a result. staleness: how many clocks it was behind the newest."""

    member: int
    clock: int
    staleness: int
    node: int


class Pulled:
    """What a pull has got: array (read-only, no copy), the round that it is of, the version of the
    policy that was in force, and whether a switch has made it."""

    def __init__(self, member: Any, view: _sarissa.View, round: int, attempt: int, version: int, through: int) -> None:
        self._member, self._attempt = member, attempt
        self.round, self.version, self.through = round, version, bool(through)
        self.array: Any = as_array(view, member.group.dtype)


class Result(Pulled):
    __doc__ = Pulled.__doc__
    _members: Optional[List[Contributor]] = None

    @property
    def members(self) -> List[Contributor]:
        """Exactly who is in the round, looked up when it is asked for first. NotFound: eight rounds
        came after this one, or all members have passed it."""
        if self._members is None:
            raw = self._member._run(operations.group_contributors(self._member._joined(), self.round, self._attempt))
            self._members = [Contributor(*one) for one in raw]
        return self._members

    @property
    def count(self) -> int:
        """Contributions in the round."""
        return len(self.members)


class Membership:
    """What members have in common, here and in aio: a place in a group until they leave."""

    def __init__(self, group: Any, member: _sarissa.GroupMember) -> None:
        self.group = group
        self._member: Optional[_sarissa.GroupMember] = member

    def _joined(self) -> _sarissa.GroupMember:
        if self._member is None:
            raise ValueError("the member has left: join again")
        return self._member

    @property
    def number(self) -> int:
        """What results call this member."""
        return self._joined().number

    @property
    def clock(self) -> int:
        """Of the last push. A joiner has the group's. A pull may move it on under k-of-n and share, and under bsp with a
        deadline."""
        return self._joined().clock


class GroupMember(Membership):
    """Made by Group.join(). As a context manager it leaves with the block. For one thread at a time."""

    group: Group

    def _run(self, steps: Steps[T]) -> T:
        return self.group._node._run(steps)

    def push(self, array: Any) -> None:
        """Contributes for the next clock, without waiting for others. Late: the policy refuses it as
        its round has closed; nothing was counted: keep it, pull, and go on. Busy: pull first."""
        self._run(operations.group_push(self._joined(), contribution(array, self.group.dtype)))

    def pull(self, timeout: Optional[float] = None) -> Optional[Result]:
        """Waits until the policy lets this member go on, and gets the newest result; None: there is
        none yet, and nothing was pushed."""
        view, *about = self._run(operations.group_pull(self._joined(), timeout))
        return None if view is None else Result(self, view, *about)

    def leave(self) -> None:
        """What was pushed counts; nobody waits for this member any more."""
        member, self._member = self._member, None
        if member is not None:
            self._run(operations.group_leave(member))

    def __enter__(self) -> GroupMember:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        end_block(self.leave, kind is not None)


class Described:
    """What groups have in common, here and in aio."""

    def __init__(self, node: Any, name: str, described: Dict[str, Any]) -> None:
        self._node, self.name = node, name
        self.dtype = dtype_named(described["dtype"])
        self.count: int = described["count"]


class Group(Described):
    """Made by Node.create_group() and Node.group()."""

    _node: Node

    def join(self, cohort: Optional[str] = None) -> GroupMember:
        """Becomes a member, at the group's clock. cohort: its row of the policy."""
        return GroupMember(self, self._node._run(operations.group_join(self.name, cohort)))

    def policy(self, text: str) -> int:
        """Changes the policy while the group runs; returns its version."""
        return self._node._run(operations.group_policy(self.name, text))

    def info(self) -> Dict[str, Any]:
        """A dictionary with the fields of sar_group_info (sarissa/group.h), such as policy, table, version, round,
        clock, counted, late, waiting_ns, and staleness (histogram: 0, 1, 2, 3, 4-7, 8-15, 16-31, more). start: rounds
        begin when so many have joined. members: a dictionary for each member."""
        return self._node._run(operations.group_info(self.name))

    def remove(self) -> None:
        """Ends the group and deletes its objects."""
        self._node._run(operations.group_remove(self.name))
