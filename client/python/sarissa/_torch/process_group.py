# SPDX-License-Identifier: BSD-3-Clause
"""ProcessGroup: torch.distributed's calls as operations of a channel. torch.py registers it, and torch.distributed and
its C++ (the reducer of DistributedDataParallel, functional collectives) call it. A method has the names and arguments
that PyTorch gives it; each returns a Work. It does not know how an operation is done."""

from __future__ import annotations

import atexit
import contextlib
import secrets
import sys
import weakref
from datetime import timedelta
from functools import partial
from typing import Any, Callable, FrozenSet, List, Optional, Sequence

from torch.distributed import ProcessGroup as TorchProcessGroup
from torch.distributed import ReduceOp

from .._names import FOREVER
from .._node import open as open_node
from . import tensors as t
from .channel import Channel
from .messages import Messages
from .operation import Names, Operation, Step
from .work import Work

LEAVE_S = 10.0  # for the others to have what they need of this rank
OPEN: "weakref.WeakSet[ProcessGroup]" = weakref.WeakSet()


def session_of(store: Any, rank: int) -> str:
    """The same word at all ranks, for the names of this group's objects."""
    if rank == 0:
        store.set("sarissa/session", secrets.token_hex(8))
    return str(bytes(store.get("sarissa/session")).decode())


class ProcessGroup(TorchProcessGroup):
    """A group of ranks whose collectives are transfers and reduces of Sarissa, on the node of each rank.

    store: of torch.distributed, used once. ranks: the global ones. timeout: of each operation. node: the socket path
    of the node; None: $SARISSA_SOCKET, or the default one."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, ranks: Sequence[int] = (),
                 name: str = "", node: Optional[str] = None) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._name = rank, size, name
        self._seconds = timeout.total_seconds()
        self._globals = list(ranks) or list(range(size))
        self._node = open_node(node)
        self._channel = Channel(self._node, f".torch/{session_of(store, rank)}", rank, size, self._label)
        self._messages = Messages(self._channel)
        self._others: FrozenSet[int] = frozenset(range(size)) - {rank}
        self._coalescing: Optional[List[Work]] = None
        self._left = False
        OPEN.add(self)

    def _label(self, rank: int) -> str:
        number = self._globals[rank] if rank < len(self._globals) else rank
        return f"rank {rank}" if number == rank else f"rank {rank} (global rank {number})"

    # --- what all of them are made of

    def _limit(self, opts: Any) -> float:
        given = getattr(opts, "timeout", None)
        seconds = given.total_seconds() if isinstance(given, timedelta) else 0
        return seconds if seconds > 0 else self._seconds

    def _run(self, what: str, opts: Any, results: List[Any], build: Callable[[Names], List[Step]], kept: Any = None,
             nbytes: int = 0, finish: Optional[Callable[[], None]] = None) -> Work:
        seconds = self._limit(opts)
        work = Work(results, what)
        operation = Operation(what, work, self._others, seconds)
        operation.kept, operation.bytes, operation.finish = kept, nbytes, finish
        work.late = lambda waited: self._channel.members.missing(operation, waited)
        self._channel.collective(operation, build)
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work

    @contextlib.contextmanager
    def _checked(self, call: str, given: Sequence[Any]) -> Any:
        """What this rank refuses counts as its call, so that the other ranks learn of it."""
        try:
            t.check(call, given)
            yield
        except (TypeError, ValueError) as error:
            self._channel.refuse(f"{call} of {t.described(given)}, which it refuses ({error})")
            raise

    def _whole(self, opts: Any) -> int:
        limit = self._limit(opts)
        return int(limit * 1e9) if limit < FOREVER / 1e9 else FOREVER

    # --- reduces

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Work:
        return self._allreduce("all_reduce", tensors, opts)

    def allreduce_coalesced(self, tensors: List[Any], opts: Any = None) -> Work:
        return self._allreduce("all_reduce_coalesced", tensors, opts)

    def _allreduce(self, call: str, tensors: List[Any], opts: Any) -> Work:
        with self._checked(call, tensors):
            op = t.op_name(call, opts.reduceOp if opts is not None else ReduceOp.SUM)
            dtypes = [t.reduced_type(call, one.dtype, op) for one in tensors]
        inputs, outputs = [t.flat(one) for one in tensors], [t.flat_output(one) for one in tensors]

        def build(names: Names) -> List[Step]:
            steps = []
            for at, (given, where, dtype) in enumerate(zip(inputs, outputs, dtypes)):
                if self._size == 1 or not given.numel():
                    continue
                steps.append(names.put(f"{at}/{self._rank}", t.memory(given), t.meta(dtype, given)))
                parts = [f"{at}/{rank}" for rank in range(self._size)]
                steps.append(names.allreduce(f"{at}/r", parts, op, partial(t.fill, where), self._whole(opts)))
            return steps

        def finish() -> None:
            for tensor, where in zip(tensors, outputs):
                if self._size > 1:
                    t.settle(tensor, where)
        return self._run(f"{call} {op} of {t.described(tensors)}", opts, list(tensors), build, (inputs, outputs),
                         sum(map(t.size_of, inputs)), finish)

    # --- about the group

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def getBackendName(self) -> str:
        return "sarissa"

    def shutdown(self) -> None:
        """The others keep what they need of this rank until they have it, for some seconds at most."""
        if not self._left:
            self._left = True
            self._channel.members.leave(0.0 if hasattr(sys, "last_type") else LEAVE_S)
            self._channel.close()
            self._node.close()
            OPEN.discard(self)

    def abort(self) -> None:
        """At once."""
        if not self._left:
            self._left = True
            self._channel.close()
            self._node.close()
            OPEN.discard(self)


def create(options: Any, _: Any) -> ProcessGroup:
    """What init_process_group() and new_group() call."""
    return ProcessGroup(options.store, options.group_rank, options.group_size, options.timeout,
                        options.global_ranks_in_group or (), options.group_id)


@atexit.register
def leave_all() -> None:
    for group in list(OPEN):
        group.shutdown()
