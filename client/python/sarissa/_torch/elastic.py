# SPDX-License-Identifier: BSD-3-Clause
"""ElasticGroup: data-parallel training whose ranks may die and come back. Gradients are averaged by a synchronisation
group (averages.py), and a rank that comes later gets its state from one of the others (feed.py). It knows nothing of
torch.distributed."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Type

import torch

from .._leases import Lease
from .._node import Node
from .._refs import node_of
from .averages import Averages, LeftBehind, kept_dtype
from .feed import Feed

SPARE = 16  # elements beside the gradients
CHECK = 3  # elements that say how many the others have given
LEASE_S = 2.0
LOOK_S = 0.05  # between two looks at who is there, while ranks are missing


class Event(NamedTuple):
    """kind: "joined" or "left", of another rank; "fed": this rank has stored its state for joiners; "synced": this rank has
    the state of another one. step: the step of this rank at which it was seen."""

    kind: str
    rank: int
    step: int


class TooFewRanks(TimeoutError):
    """Fewer ranks are there than min_ranks."""


def tensors_of(given: Any) -> List[Any]:
    """Of parameters their gradients: zeros where there is none yet."""
    found = []
    for one in [given] if isinstance(given, torch.Tensor) else list(given):
        if isinstance(one, torch.nn.Parameter):
            if one.grad is None:
                one.grad = torch.zeros_like(one)
            one = one.grad
        if not isinstance(one, torch.Tensor):
            raise TypeError(f"a {type(one).__name__} is not averaged: give tensors or parameters")
        if one.layout != torch.strided:
            raise TypeError(f"a tensor of layout {one.layout} is not averaged: give its to_dense()")
        if one.device.type == "meta":
            raise TypeError("a tensor of device meta is not averaged: give it memory first")
        kept_dtype(one.dtype, "bsp")  # raises for another one
        found.append(one)
    return found


class ElasticGroup:
    """Ranks that average their gradients, step by step. A rank that dies is left out of the step that is under way, and the
    others go on. A rank that joins later takes the state of the others, and takes part from the next step on.

        group = sarissa.torch.ElasticGroup("training", min_ranks=2)
        group.sync(model, optimizer)                # a joiner has the others' state then
        for batch in batches:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            group.allreduce(model.parameters())     # their gradients
            optimizer.step()
        group.close()

    name: the same on all ranks; up to 80 bytes, without "/" and blanks. node: None: that of this process. min_ranks: a step
    waits until so many ranks are there. policy: of groups (docs/user/groups.md); under "bsp" all ranks apply the same
    averages, step by step. timeout: seconds of each call that names none; None: no limit.

    For one thread. close(), the end of a with block, or the death of the process ends the membership. The last rank that
    closes removes the group."""

    def __init__(self, name: str, node: Optional[Node] = None, min_ranks: int = 1, policy: str = "bsp",
                 timeout: Optional[float] = 60.0) -> None:
        if min_ranks < 1:
            raise ValueError(f"min_ranks={min_ranks}: a group has one rank at least")
        self.name, self.min_ranks, self.policy, self._timeout = name, min_ranks, policy, timeout
        self._node = node_of(None) if node is None else node
        self._node.explain_policy(policy)  # raises for a wrong one
        self._lease: Optional[Lease] = None
        self._averages: Optional[Averages] = None
        self._feed: Optional[Feed] = None
        self._given: Dict[str, Any] = {}
        self._waiting = False  # a contribution is pushed whose average was not pulled
        self._seen: List[int] = []
        self._events: List[Event] = []
        #: averages that this rank has applied, or taken over with the state of another one
        self.step = 0

    # --- who is there

    def _joined(self) -> Averages:
        if self._averages is None:
            raise RuntimeError(f"this rank is not in the group {self.name!r}: call sync() first")
        return self._averages

    @property
    def rank(self) -> int:
        """The number of this rank, of 64 bits. A rank that comes back has another one."""
        return self._joined().number

    def ranks(self) -> List[int]:
        """The numbers of all ranks that live."""
        return self._joined().live()

    def events(self) -> List[Event]:
        """What has happened since the last call, oldest first."""
        told, self._events = self._events, []
        return told

    def _tell(self, kind: str, rank: int) -> None:
        self._events.append(Event(kind, rank, self.step))

    def _look(self) -> List[int]:
        live = self.ranks()
        for kind, ranks in (("joined", set(live) - set(self._seen)), ("left", set(self._seen) - set(live))):
            for rank in sorted(ranks - {self.rank}):
                self._tell(kind, rank)
        self._seen = live
        return live

    # --- joining

    def sync(self, model: Any = None, optimizer: Any = None, timeout: Optional[float] = None, **others: Any) -> int:
        """Joins, and returns the step to go on from. Where other ranks have a state, it is loaded into the model, the
        optimizer and others: whatever has state_dict() and load_state_dict(). Else this rank's own is that of the group.
        Call it before the first step, and after LeftBehind. All ranks give the same names.

        Gradients of the model's parameters that need one are what allreduce() takes, and up to 16 elements more.
        Errors: TimedOut, with what was waited for."""
        given = {"model": model, "optimizer": optimizer, **others}
        for name, one in given.items():
            if one is not None and not (hasattr(one, "state_dict") and hasattr(one, "load_state_dict")):
                raise TypeError(f"{name} is a {type(one).__name__}, and sync() takes what has state_dict() and load_state_dict()")
        self._given = {name: one for name, one in given.items() if one is not None} or self._given
        parameters = [one for one in self._given["model"].parameters() if one.requires_grad] if "model" in self._given else []
        if not parameters:
            raise ValueError("no parameters to train: give sync() a model, or call allreduce() at once")
        limit = self._timeout if timeout is None else timeout
        self._join(sum(one.numel() for one in parameters), parameters[0].dtype)
        assert self._feed is not None and self._averages is not None
        got = self._feed.take(self._given, self._averages.clock, limit)
        if got is not None:
            self.step, self._averages.round, self._averages.base = got.step, got.round, got.base
            self._tell("synced", got.rank)
        self._feed.offer(self._state)
        self._seen = self.ranks()
        return self.step

    def _join(self, elements: int, dtype: Any) -> None:
        self._leave()
        self._lease = self._node.lease(ttl=LEASE_S)
        self._averages = Averages(self._node, f"elastic.{self.name}", elements + SPARE + CHECK, dtype, self.policy,
                                  self.min_ranks)
        self._feed = Feed(self._node, self._lease, f"elastic/{self.name}", self._averages.number,
                          lambda: self._tell("fed", self.rank))
        self._waiting = False
        self._seen = self.ranks()

    def _state(self) -> Dict[str, Any]:
        """What a joiner gets. The feed asks for it between a backward and the step that follows."""
        averages = self._joined()
        return {"step": self.step, "round": averages.round, "rank": averages.number, "base": averages.base,
                "given": {name: one.state_dict() for name, one in self._given.items()}}

    # --- a step

    def allreduce(self, tensors: Any = None, timeout: Optional[float] = None) -> Any:
        """Averages the tensors, in place, over the ranks that take part in the step, and returns them. tensors: a tensor, or
        any number of them; a parameter stands for its gradient; None: those of the model of sync(). All ranks give as many
        elements, in the same order. It waits until min_ranks are there and the policy lets this rank go on.

        Under bsp all ranks get the same bytes. Under the other policies a rank that was behind gets the averages of all steps
        that it has missed, added up, and step moves on by as many.

        Errors: LeftBehind: the others have taken this rank for dead. TimedOut names the ranks that have not come; the next
        call waits on, with the gradients that were given before. TooFewRanks: fewer than min_ranks are there. ValueError: another number
        of elements than before, or than the other ranks have."""
        given = self._given["model"].parameters() if tensors is None and "model" in self._given else tensors
        if given is None:
            raise ValueError("nothing to average: give tensors, or a model to sync()")
        single = isinstance(given, torch.Tensor)
        kept = [given] if single else [one for one in given if not isinstance(one, torch.nn.Parameter) or one.requires_grad]
        parts = tensors_of(kept)
        total = sum(one.numel() for one in parts)
        if self._averages is None:
            self._join(total, parts[0].dtype if parts else torch.float32)
        self._exchange(parts, total, self._timeout if timeout is None else timeout)
        return given if single else kept

    def _exchange(self, parts: List[Any], total: int, limit: Optional[float]) -> None:
        averages, feed, until = self._joined(), self._feed, None if limit is None else time.monotonic() + limit
        assert feed is not None
        if total + CHECK > averages.count:
            raise ValueError(f"{total} elements, and the group {self.name!r} averages {averages.count - CHECK - SPARE} and up to {SPARE} "
                             "more: make another group for other tensors")
        with feed.open(averages.clock - self._waiting):
            if not self._waiting:
                self._enough(until, limit)
                self._put(parts, total)
                averages.push()
                self._waiting = True
            averages.pull(None if until is None else max(0.0, until - time.monotonic()))
        self._waiting = False
        self.step = averages.round
        self._check(total)
        self._get(parts)
        self._look()

    def _enough(self, until: Optional[float], limit: Optional[float]) -> None:
        while len(live := self._look()) < self.min_ranks:
            if until is not None and time.monotonic() > until:
                raise TooFewRanks(f"group {self.name!r}: {len(live)} of {self.min_ranks} ranks are there after {limit} s: start others, or call "
                            "again to wait on")
            time.sleep(LOOK_S)

    def _put(self, parts: Iterable[Any], total: int) -> None:
        flat, at = self._joined().flat, 0
        flat.zero_()
        for part in parts:
            flat[at:at + part.numel()].view(part.shape).copy_(part.detach())
            at += part.numel()
        for i in range(CHECK):  # as digits below 256, which bf16 has exactly
            flat[self._joined().count - 1 - i] = total >> 8 * i & 255

    def _get(self, parts: Iterable[Any]) -> None:
        flat, at = self._joined().flat, 0
        with torch.no_grad():
            for part in parts:
                part.copy_(flat[at:at + part.numel()].view(part.shape))
                at += part.numel()

    def _check(self, total: int) -> None:
        """Ranks that give other numbers of elements would add up what does not belong together."""
        averages = self._joined()
        passed = averages.passed
        near = 0.02 if averages.dtype == torch.bfloat16 else 0.001
        digits = [float(averages.flat[averages.count - 1 - i]) for i in range(CHECK)]
        mine = [passed * (total >> 8 * i & 255) for i in range(CHECK)]
        if passed and any(abs(a - b) > near * (1 + b) for a, b in zip(digits, mine)):
            others = sum(digit * 256 ** i for i, digit in enumerate(digits)) / passed
            raise ValueError(f"group {self.name!r}: this rank has given {total} elements, and the ranks have {others:.0f} on average: all "
                             "ranks give the same tensors. Nothing was changed")

    # --- the end

    def _leave(self) -> None:
        feed, averages, lease = self._feed, self._averages, self._lease
        self._feed = self._averages = self._lease = None
        if feed is not None:
            feed.close()
        try:
            if averages is not None:
                averages.leave()
        finally:
            if lease is not None:
                lease.end()

    def close(self) -> None:
        """Leaves the group. The others go on without this rank."""
        self._leave()

    def __enter__(self) -> ElasticGroup:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()


__all__ = ["ElasticGroup", "Event", "LeftBehind", "TooFewRanks"]
