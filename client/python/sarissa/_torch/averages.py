# SPDX-License-Identifier: BSD-3-Clause
"""Averages: one vector of torch that the members of a synchronisation group average, round by round, under the group's
policy. elastic.py and hook.py use it, each member from one thread at a time. It knows nothing of models and steps.

Under bsp without a deadline every member gets every round, and a round is an average that the store makes. Under the
other policies a member may be behind, and a pull passes rounds. There the results are totals of all rounds, and the last
element of a contribution is 1: what has come since the last pull, divided by its count, is the average of it, times the
rounds that have passed. Under rules without a quorum (ssp, asp, auto) any contribution may be a round: there the sum is
divided by the ranks that the group began with, so that a step of all is as large as under bsp."""

from __future__ import annotations

import contextlib
import errno
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy
import torch

from .._errors import Busy, Cancelled, Deleted, Exists, InvalidArgument, Late, NotFound, TimedOut
from .._groups import Group, GroupMember
from .._node import Node

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}


class LeftBehind(RuntimeError):
    """The others have taken this rank for dead, and gone on: group.sync() brings it up to them."""


def is_lockstep(policy: str) -> bool:
    """Every member is in every round."""
    return policy.strip() == "bsp"


def has_quorum(table: str) -> bool:
    """Of a policy's table: the quorum is the fourth word of each row but the first."""
    return all(line.split()[3] != "any" for line in table.splitlines()[1:])


def enough(table: str, members: int) -> int:
    """Of a policy's table: with so many of the members the rounds may begin. A quorum of one row suffices."""
    rows = [line.split() for line in table.splitlines()[1:]]
    quorum = rows[0][3] if len(rows) == 1 else "all"
    if quorum.endswith("%"):
        return max(1, -(-int(quorum[:-1]) * members // 100))
    return min(int(quorum), members) if quorum.isdigit() else members


def kept_dtype(dtype: Any, policy: str) -> Any:
    """In which a group adds up tensors of dtype. Totals grow, so they are of 32 bits at least."""
    if dtype not in NAMES:
        raise TypeError(f"tensors of {dtype} are not averaged: convert them to one of {', '.join(map(str, NAMES))}")
    return dtype if is_lockstep(policy) or dtype == torch.float64 else torch.float32


def copy_into(flat: Any, result: Any) -> None:
    """A result of the store: an array of numpy, or a Tensor where numpy has no such type."""
    if isinstance(result, numpy.ndarray):
        numpy.copyto(flat.numpy(), result)
    else:
        flat.copy_(torch.from_dlpack(result))


class Averages:
    """A member of the group NAME, which is made when there is none. count: elements. members: that it begins with. start:
    rounds begin when so many have joined; None: all of them."""

    def __init__(self, node: Node, name: str, count: int, dtype: Any, policy: str, members: int,
                 cohort: Optional[str] = None, start: Optional[int] = None) -> None:
        self._node, self.name, self.count = node, name, count
        self.dtype = kept_dtype(dtype, policy)
        self.totals = not is_lockstep(policy)
        self._quorum, self._members = has_quorum(node.explain_policy(policy)), max(members, 1)
        self.group, self._member = self._joined(policy, members if start is None else start, cohort)
        self.number, self.round, self.late = self._member.number, 0, 0
        #: averages that the last pull has brought, added up
        self.passed = 0.0
        #: what is pushed, and what a pull has brought
        self.flat = torch.zeros(count + self.totals, dtype=self.dtype)
        #: the newest total that this member has; None: of round 0
        self.base: Optional[Any] = None

    def _joined(self, policy: str, members: int, cohort: Optional[str]) -> Tuple[Group, GroupMember]:
        until = time.monotonic() + 10
        while True:
            try:
                group = self._group(policy, members)
                return group, group.join(cohort)
            except (Busy, Cancelled, NotFound, TimedOut):  # NotFound: the last of the others has just removed it
                if time.monotonic() > until:
                    raise

    def _group(self, policy: str, members: int) -> Group:
        dtype, count = NAMES[self.dtype], self.count + self.totals
        try:
            return self._node.create_group(self.name, dtype, count, policy=policy, members=members,
                                           op="sum" if self.totals else "avg", results="total" if self.totals else "round")
        except Exists:
            group = self._node.group(self.name)
        if (group.dtype, group.count) != (dtype, count):
            raise InvalidArgument(errno.EINVAL, f"the group {self.name!r} averages {group.count} elements of {group.dtype}, and this "
                                                f"rank has {count} of {dtype}: all ranks need the same tensors and policy")
        return group

    @property
    def clock(self) -> int:
        return self._member.clock

    def info(self) -> Dict[str, Any]:
        return self.group.info()

    def live(self) -> List[int]:
        """Numbers of the members."""
        return sorted(one["member"] for one in self.info()["members"])

    def push(self) -> None:
        """Contributes self.flat. A contribution that the policy refuses as late is counted, and dropped."""
        if self.totals:
            self.flat[-1] = 1
        try:
            self._member.push(self.flat if self.dtype == torch.bfloat16 else self.flat.numpy())
        except Late:
            self.late += 1
        except Deleted:
            raise self._behind() from None

    def pull(self, timeout: Optional[float]) -> None:
        """Waits until the policy lets this member go on. self.flat has what is to be applied: the average of the round, or
        under totals the averages of all rounds since the last pull, added up."""
        try:
            result = self._member.pull(timeout)
        except Deleted:
            raise self._behind() from None
        except TimedOut as error:
            raise TimedOut(errno.ETIMEDOUT, f"{self.missing()} in {timeout} s ({error.strerror})") from None
        if result is None:  # the first contribution was refused as late, and its round has no result yet
            self.flat.zero_()
            self.passed = 0.0
            return
        passed, self.round = result.round - self.round, result.round
        copy_into(self.flat, result.array)
        if self.totals:
            self._since(passed)
        else:
            self.passed = 1.0

    def _since(self, rounds: int) -> None:
        total = self.flat.clone()
        if self.base is not None:
            self.flat -= self.base
        self.base = total
        count = float(self.flat[-1])
        if count <= 0 or rounds < 1:  # rounds were lost with their nodes, and what follows is not known
            self.passed = 0.0
        else:
            self.passed = float(rounds) if self._quorum else count / self._members
        self.flat *= self.passed / count if self.passed else 0.0

    def missing(self) -> str:
        """The members that have not pushed for the clock of this member."""
        info = self.info()
        slow = [f"{one['member']:x} on node {one['node']}" for one in info["members"] if one["clock"] < self.clock]
        if len(info["members"]) < info["start"] and not info["round"]:
            return f"group {self.name!r}: {len(info['members'])} of {info['start']} ranks have joined"
        return f"group {self.name!r}: no contribution of " + (", ".join(slow) or "the round's members")

    def _behind(self) -> LeftBehind:
        return LeftBehind(f"group {self.name!r} has taken this rank for dead, and rounds went on without it: call sync(), and go on "
                          "with the next batch")

    def leave(self, remove: bool = True) -> bool:
        """remove: the last one removes the group. Whether this was the last."""
        self._member.leave()
        with contextlib.suppress(NotFound):
            if self.group.info()["live"] == 0:
                if remove:
                    self.group.remove()
                return True
        return False

    def remove(self) -> None:
        with contextlib.suppress(NotFound):
            self.group.remove()
