# SPDX-License-Identifier: BSD-3-Clause
"""A communication hook for DistributedDataParallel: each bucket of gradients is averaged by a synchronisation group
(averages.py) under a policy, so that fast ranks need not wait for slow ones. DDP checks the annotations of a hook, so
this file has no postponed ones. It knows nothing of models."""

import atexit
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

from .._node import Node
from .._refs import node_of
from .averages import Averages, enough

AT_A_TIME = 32  # buckets that wait


def common_name() -> str:
    """One that no other run has, the same on all ranks."""
    if not dist.is_initialized():
        raise RuntimeError("the ranks have no process group yet: make the state after init_process_group(), or give it a name that "
                           "is the same on all ranks and new in each run")
    given = [uuid.uuid4().hex[:12]]
    dist.broadcast_object_list(given, src=0)
    return str(given[0])


class HookState:
    """What k_of_n_hook keeps between steps. policy: of groups (docs/user/groups.md), such as "k-of-n 3", "share 75",
    "ssp 2", "bsp". members: ranks; None: those of the process group. name: new in each run and the same on all ranks; None:
    rank 0 chooses one, so that all ranks must make their state at the same place. node: None: that of this process. timeout:
    seconds that a bucket waits, then backward() raises TimedOut, which names the ranks that are missing.

    close() leaves the groups. So does the end of the process."""

    def __init__(self, policy: str, members: Optional[int] = None, name: Optional[str] = None, node: Optional[Node] = None,
                 timeout: Optional[float] = 60.0) -> None:
        self.members = dist.get_world_size() if members is None else members
        self._node = node_of(None) if node is None else node
        self._enough = enough(self._node.explain_policy(policy), self.members)  # raises for a wrong one
        self.policy, self.timeout = policy, timeout
        self.name = common_name() if name is None else name
        self._lock = threading.Lock()
        self._is_first = True  # the step
        self._averages: Dict[Tuple[int, int], Averages] = {}
        self._first: List[Averages] = []
        self._ranks: Optional[Averages] = None  # has all of them before the first step ends, until they close
        self._pool: Optional[ThreadPoolExecutor] = ThreadPoolExecutor(AT_A_TIME, "sarissa-hook")
        atexit.register(self.close)

    @property
    def rounds(self) -> Dict[int, int]:
        """Of each bucket, the newest round whose average this rank has applied."""
        return {bucket: one.round for (bucket, _), one in sorted(self._averages.items())}

    @property
    def late(self) -> int:
        """Contributions of this rank that were dropped, as the policy says "late refuse"."""
        return sum(one.late for one in self._averages.values())

    def submit(self, bucket: int, buffer: Any, is_last: bool) -> Any:
        """Of the buckets of a step, in the order of their numbers."""
        if buffer.device.type != "cpu":
            raise TypeError(f"a bucket on {buffer.device}: this hook averages gradients of the cpu")
        if self._pool is None:
            raise RuntimeError("the state of the hook is closed: make another one")
        future: Any = torch.futures.Future()
        self._pool.submit(self._run, bucket, buffer, self._is_first, future)
        self._is_first &= not is_last
        return future

    def _run(self, bucket: int, buffer: Any, is_first: bool, future: Any) -> None:
        try:
            self._exchange(self._of(bucket, buffer, is_first), buffer)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(buffer)

    def _exchange(self, averages: Averages, buffer: Any) -> None:
        count = buffer.numel()
        averages.flat[:count].copy_(buffer)
        averages.push()
        averages.pull(self.timeout)
        buffer.copy_(averages.flat[:count])

    def _of(self, bucket: int, buffer: Any, is_first: bool) -> Averages:
        """DDP makes other buckets after the first step, which therefore has groups of its own, and waits for all."""
        if is_first:
            with self._lock:
                if self._ranks is None:
                    self._ranks = self._join("ranks", torch.zeros(1), "bsp", self.members)
            one = self._join(f"first.{bucket}", buffer, "bsp", self.members)
            with self._lock:
                self._first.append(one)
            return one
        with self._lock:
            made = self._averages.get((bucket, buffer.numel()))
            ended, self._first = self._first, []
        for one in ended:
            one.leave()
        if made is None:
            made = self._join(f"{bucket}.{buffer.numel()}", buffer, self.policy, self._enough)
            with self._lock:
                self._averages[bucket, buffer.numel()] = made
        return made

    def _join(self, name: str, buffer: Any, policy: str, start: int) -> Averages:
        return Averages(self._node, f"ddp.{self.name}.{name}", buffer.numel(), buffer.dtype, policy, self.members, start=start)

    def close(self) -> None:
        """Leaves the groups; the others go on without this rank."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        atexit.unregister(self.close)
        pool.shutdown()
        for one in self._first:
            one.leave()
        for one in self._averages.values():
            one.leave(remove=False)  # a slow rank may not have joined yet
        if self._ranks is not None and self._ranks.leave():
            for one in self._averages.values():
                one.remove()
        self._averages, self._first, self._ranks = {}, [], None


def k_of_n_hook(state: HookState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket over the ranks whose gradients have come when the policy of the state closes the round:

        ddp = DistributedDataParallel(model, forward_sync_buffers=False)   # broadcast_buffers=False before torch 2.13
        ddp.register_comm_hook(sarissa.torch.HookState("k-of-n 3"), sarissa.torch.k_of_n_hook)

    Gradients that are late are not lost: they count in the average of the next round ("late carry", the default of the
    policies). With "k-of-n 3 late refuse" they are dropped. A rank that was behind gets the averages of all rounds since its
    last step, added up, and does them as one step: with plain SGD its weights are those of the others, with momentum or Adam
    they are near them. In the first step, after which DDP makes other buckets, all ranks wait for all. A rank that
    dies is left out."""
    return state.submit(bucket.index(), bucket.buffer(), bucket.is_last())
