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
from types import SimpleNamespace
from typing import Any, Callable, FrozenSet, List, Optional, Sequence, Tuple

import torch
from torch.distributed import ProcessGroup as TorchProcessGroup
from torch.distributed import ReduceOp

from .._names import FOREVER
from .._node import open as open_node
from . import tensors as t
from .channel import Channel
from .messages import Messages
from .operation import Names, Operation, Step
from .work import Work, Works

LEAVE_S = 10.0  # for the others to have what they need of this rank
BARRIER_GETS = 16  # ranks; more of them make a reduce
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
        self._left, self._description = False, ""
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
        return self._collect(work)

    @contextlib.contextmanager
    def _checked(self, call: str, given: Sequence[Any]) -> Any:
        """What this rank refuses counts as its call, so that the other ranks learn of it."""
        try:
            t.check(call, given)
            yield
        except (TypeError, ValueError) as error:
            self._channel.refuse(f"{call} of {t.described(given)}, which it refuses: " + str(error).removeprefix(f"{call}: "))
            raise

    def _whole(self, opts: Any) -> int:
        limit = self._limit(opts)
        return int(limit * 1e9) if limit < FOREVER / 1e9 else FOREVER

    # --- reduces

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Work:
        return self._allreduce("all_reduce", tensors, opts)

    def allreduce_coalesced(self, tensors: List[Any], opts: Any = None) -> Work:
        return self._allreduce("all_reduce_coalesced", tensors, opts)

    def _reduction(self, call: str, tensors: Sequence[Any], opts: Any) -> Tuple[str, List[str]]:
        """The operation and the types of a reduce."""
        op = t.op_name(call, opts.reduceOp if opts is not None else ReduceOp.SUM)
        return op, [t.reduced_type(call, one.dtype, op) for one in tensors]

    def _allreduce(self, call: str, tensors: List[Any], opts: Any) -> Work:
        with self._checked(call, tensors):
            op, dtypes = self._reduction(call, tensors, opts)
        inputs, outputs = [t.source(t.flat(one)) for one in tensors], [t.flat_output(one) for one in tensors]

        def build(names: Names) -> List[Step]:
            steps = []
            for at, (given, where, dtype) in enumerate(zip(inputs, outputs, dtypes)):
                if self._size > 1 and given.numel():
                    steps.append(names.put(f"{at}/{self._rank}", t.memory(given), t.meta(dtype, given)))
                    steps.append(names.allreduce(f"{at}/r", self._parts(at), op, partial(t.fill_sum, where),
                                                 self._whole(opts)))
            return steps
        return self._run(f"{call} {op} of {t.described(tensors)}", opts, list(tensors), build, (inputs, outputs),
                         t.total(inputs), partial(t.settle_all, tensors, outputs, self._size > 1))

    def _parts(self, at: int) -> List[str]:
        return [f"{at}/{rank}" for rank in range(self._size)]

    def reduce(self, tensors: List[Any], opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        with self._checked("reduce", tensors):
            op, dtypes = self._reduction("reduce", tensors, opts)
        inputs = [t.flat(one) for one in tensors]
        outputs = [t.flat_output(one) for one in tensors] if self._rank == root else []

        def build(names: Names) -> List[Step]:
            steps = []
            for at, (given, dtype) in enumerate(zip(inputs, dtypes)):
                if self._size > 1 and given.numel():
                    steps.append(names.put(f"{at}/{self._rank}", t.memory(given), t.meta(dtype, given)))
                    if self._rank == root:
                        steps += names.reduce(f"{at}/r", self._parts(at), op, partial(t.fill, outputs[at]),
                                              self._whole(opts))
            return steps
        return self._run(f"reduce {op} to rank {root} of {t.described(tensors)}", opts, list(tensors), build,
                         (inputs, outputs), t.total(inputs), partial(t.settle_all, tensors, outputs, self._size > 1))

    def reduce_scatter(self, outputs: List[Any], inputs: List[List[Any]], opts: Any = None) -> Work:
        return self._reduce_scatter("reduce_scatter", outputs, inputs, opts)

    def reduce_scatter_single(self, output: Any, given: Any, opts: Any = None) -> Work:
        return self._reduce_scatter_tensors("reduce_scatter_tensor", [output], [given], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: List[Any], inputs: List[Any], opts: Any = None) -> Work:
        return self._reduce_scatter_tensors("reduce_scatter_tensor_coalesced", outputs, inputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _reduce_scatter_tensors(self, call: str, outputs: List[Any], inputs: List[Any], opts: Any) -> Work:
        with self._checked(call, [*outputs, *inputs]):
            for output, given in zip(outputs, inputs):
                self._fits(call, output, given)
        return self._reduce_scatter(call, outputs, [t.split(given, self._size) for given in inputs], opts)

    def _fits(self, call: str, part: Any, whole: Any) -> None:
        if part.numel() * self._size != whole.numel() or part.dtype != whole.dtype:
            raise ValueError(f"{call}: {self._size} times {t.described([part])} are not {t.described([whole])}")

    def _reduce_scatter(self, call: str, outputs: List[Any], inputs: List[List[Any]], opts: Any) -> Work:
        with self._checked(call, [*outputs, *(one for blocks in inputs for one in blocks)]):
            op, dtypes = self._reduction(call, outputs, opts)
            self._same(call, outputs, inputs)
        blocks, where = [[t.flat(one) for one in of] for of in inputs], [t.flat_output(one) for one in outputs]

        def build(names: Names) -> List[Step]:
            steps = []
            for at, (of, dtype) in enumerate(zip(blocks, dtypes)):
                if self._size > 1 and of[0].numel():
                    steps += [names.put(f"{at}/{self._rank}/{block}", t.memory(one), t.meta(dtype, one))
                              for block, one in enumerate(of)]
                    steps += names.reduce(f"{at}/r/{self._rank}", [f"{part}/{self._rank}" for part in self._parts(at)], op,
                                          partial(t.fill, where[at]), self._whole(opts))
            return steps

        def finish() -> None:
            for at, output in enumerate(outputs):
                t.settle(output, where[at] if self._size > 1 else blocks[at][0])
        return self._run(f"{call} {op} of {t.described(outputs)}", opts, list(outputs), build, (blocks, where),
                         t.total(one for of in blocks for one in of), finish)

    # --- copies

    def _same(self, call: str, ones: Sequence[Any], lists: Sequence[Sequence[Any]]) -> None:
        """A list has a tensor for each rank, as large as the one that it belongs to."""
        for one, others in zip(ones, lists):
            if len(others) != self._size:
                raise ValueError(f"{call}: a list of {len(others)} tensors for a group of {self._size} ranks")
            for other in others:
                if other.numel() != one.numel() or other.dtype != one.dtype:
                    raise ValueError(f"{call}: {t.described([other])} beside {t.described([one])}: give tensors of one type "
                                     "and size")

    def broadcast(self, tensors: List[Any], opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        with self._checked("broadcast", tensors):
            pass
        own = self._rank == root
        where = [t.flat(one) if own else t.flat_output(one) for one in tensors]

        def build(names: Names) -> List[Step]:
            if self._size == 1:
                return []
            return [names.put(f"{at}", t.memory(one)) if own else names.get(f"{at}", partial(t.fill, one))
                    for at, one in enumerate(where) if one.numel()]
        return self._run(f"broadcast from rank {root} of {t.described(tensors)}", opts, list(tensors), build, where,
                         t.total(where), partial(t.settle_all, tensors, where, not own))

    def allgather(self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None) -> Work:
        with self._checked("all_gather", [*inputs, *(one for of in outputs for one in of)]):
            self._same("all_gather", inputs, outputs)
        return self._allgather("all_gather", [list(of) for of in outputs], inputs, opts)

    def allgather_coalesced(self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None) -> Work:
        """outputs: of each rank a list as inputs."""
        return self.allgather([list(of) for of in zip(*outputs)], inputs, opts)

    def all_gather_single(self, output: Any, given: Any, opts: Any = None) -> Work:
        return self.all_gather_single_coalesced([output], [given], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: List[Any], inputs: List[Any], opts: Any = None) -> Work:
        call = "all_gather_into_tensor"
        with self._checked(call, [*outputs, *inputs]):
            for output, given in zip(outputs, inputs):
                self._fits(call, given, output)
        where = [t.flat_output(one) for one in outputs]
        return self._allgather(call, [t.split(one, self._size) for one in where], inputs, opts,
                               partial(t.settle_all, outputs, where), outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _allgather(self, call: str, outputs: List[List[Any]], inputs: List[Any], opts: Any,
                   more: Optional[Callable[[], None]] = None, results: Optional[List[Any]] = None) -> Work:
        """outputs: of each input a list by rank."""
        given, where = [t.flat(one) for one in inputs], [[t.flat_output(one) for one in of] for of in outputs]

        def build(names: Names) -> List[Step]:
            steps = []
            for at, one in enumerate(given):
                if self._size > 1 and one.numel():
                    steps.append(names.put(f"{at}/{self._rank}", t.memory(one)))
                    steps += [names.get(f"{at}/{rank}", partial(t.fill, where[at][rank])) for rank in sorted(self._others)]
            return steps

        def finish() -> None:
            for at, one in enumerate(given):
                where[at][self._rank].copy_(one)
                t.settle_all(outputs[at], where[at])
            if more is not None:
                more()
        return self._run(f"{call} of {t.described(inputs)}", opts, [one for of in outputs for one in of] if results is None
                         else list(results), build, (given, where), t.total(given) * self._size, finish)

    def gather(self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        own = self._rank == root
        with self._checked("gather", [*inputs, *(one for of in outputs for one in of)]):
            self._same("gather", inputs if own else [], outputs)
        given = t.flat(inputs[0])
        where = [t.flat_output(one) for one in outputs[0]] if own else []

        def build(names: Names) -> List[Step]:
            if not given.numel():
                return []
            return [names.get(f"{rank}", partial(t.fill, where[rank])) for rank in sorted(self._others)] if own else \
                [names.put(f"{self._rank}", t.memory(given))]

        def finish() -> None:
            if own:
                where[root].copy_(given)
                t.settle_all(outputs[0], where)
        return self._run(f"gather to rank {root} of {t.described(inputs)}", opts, list(outputs[0]) if own else [], build,
                         (given, where), t.total([given, *where]), finish)

    def scatter(self, outputs: List[Any], inputs: List[List[Any]], opts: Any = None) -> Work:
        root = opts.rootRank if opts is not None else 0
        own = self._rank == root
        with self._checked("scatter", [*outputs, *(one for of in inputs for one in of)]):
            self._same("scatter", outputs if own else [], inputs)
        where = t.flat_output(outputs[0])
        given = [t.flat(one) for one in inputs[0]] if own else []

        def build(names: Names) -> List[Step]:
            if not where.numel():
                return []
            return [names.put(f"{rank}", t.memory(given[rank])) for rank in sorted(self._others)] if own else \
                [names.get(f"{self._rank}", partial(t.fill, where))]

        def finish() -> None:
            if own:
                where.copy_(given[root])
            t.settle(outputs[0], where)
        return self._run(f"scatter from rank {root} of {t.described(outputs)}", opts, list(outputs), build, (given, where),
                         t.total([where, *given]), finish)

    def alltoall(self, outputs: List[Any], inputs: List[Any], opts: Any = None) -> Work:
        with self._checked("all_to_all", [*outputs, *inputs]):
            if len(outputs) != self._size or len(inputs) != self._size:
                raise ValueError(f"all_to_all: lists of {len(inputs)} and {len(outputs)} tensors for {self._size} ranks")
        return self._alltoall(outputs, inputs, opts, None)

    def all_to_all_single(self, output: Any, given: Any, output_splits: List[int], input_splits: List[int],
                          opts: Any = None) -> Work:
        with self._checked("all_to_all_single", [output, given]):
            where = t.flat_output(output).view(output.shape)
            outputs = t.pieces("all_to_all_single", where, output_splits, self._size)
            inputs = t.pieces("all_to_all_single", given.contiguous(), input_splits, self._size)
        return self._alltoall(outputs, inputs, opts, output, where)

    alltoall_base = all_to_all_single

    def _alltoall(self, outputs: List[Any], inputs: List[Any], opts: Any, whole: Any, whole_where: Any = None) -> Work:
        given, where = [t.flat(one) for one in inputs], [t.flat_output(one) for one in outputs]

        def build(names: Names) -> List[Step]:
            return [*(names.put(f"{self._rank}-{rank}", t.memory(given[rank])) for rank in sorted(self._others)
                      if given[rank].numel()),
                    *(names.get(f"{rank}-{self._rank}", partial(t.fill, where[rank])) for rank in sorted(self._others)
                      if where[rank].numel())]

        def finish() -> None:
            where[self._rank].copy_(given[self._rank])
            t.settle_all(outputs, where)
            if whole is not None:
                t.settle(whole, whole_where)
        return self._run(f"all_to_all of {t.shown(given[0].dtype)}", opts, list(outputs) if whole is None else [whole], build,
                         (given, where, whole_where), t.total([*given, *where]), finish)

    def barrier(self, opts: Any = None) -> Work:
        return self._barrier("barrier", opts)

    def _barrier(self, call: str, opts: Any) -> Work:
        one = torch.ones(1, dtype=torch.int32)

        def build(names: Names) -> List[Step]:
            if self._size <= BARRIER_GETS:
                return [names.put(f"{self._rank}", b""),
                        *(names.get(f"{rank}", lambda view: None) for rank in sorted(self._others))]
            return [names.put(f"0/{self._rank}", t.memory(one), t.meta("i32", one)),
                    names.allreduce("r", self._parts(0), "sum", lambda view: None, self._whole(opts))]
        return self._run(call, opts, [], build, one)

    def monitored_barrier(self, timeout: Optional[timedelta] = None, wait_all_ranks: bool = False) -> None:
        """RanksMissing names all ranks that have not come in time."""
        self._barrier("monitored_barrier", SimpleNamespace(timeout=timeout)).wait()

    # --- messages

    def send(self, tensors: List[Any], dest: int, tag: int = 0) -> Work:
        t.check("send", tensors)
        return self._collect(self._messages.send(tensors[0], dest, tag, self._seconds))

    def recv(self, tensors: List[Any], source: int, tag: int = 0) -> Work:
        t.check("recv", tensors)
        return self._collect(self._messages.receive(tensors[0], source, tag, self._seconds))

    def recv_anysource(self, tensors: List[Any], tag: int = 0) -> Work:
        t.check("recv", tensors)
        return self._collect(self._messages.receive(tensors[0], None, tag, self._seconds))

    # --- several as one

    def _collect(self, work: Work) -> Work:
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work

    def _start_coalescing(self, device: Any) -> None:
        self._coalescing = []

    def _end_coalescing(self, device: Any) -> Works:
        works, self._coalescing = self._coalescing or [], None
        return Works(works)

    # --- about the group

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def getBackendName(self) -> str:
        return "sarissa"

    _get_backend_name = name = getBackendName

    # C++ asks by the first name, Python by the others. Without these the names would be a backend's, of which this group
    # has none.

    def getGroupName(self) -> str:
        return self._name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._description

    def setGroupDesc(self, text: str) -> None:
        self._description = text

    group_name, group_desc = property(getGroupName), property(getGroupDesc)
    _set_group_name, _set_group_desc = setGroupName, setGroupDesc

    def set_timeout(self, timeout: timedelta) -> None:
        """Of operations that begin later."""
        self._seconds = timeout.total_seconds()

    def _set_sequence_number_for_group(self) -> None:
        """The ranks begin with the same number."""

    def _get_sequence_number_for_group(self) -> int:
        return self._channel.number

    def shutdown(self) -> None:
        """The others keep what they need of this rank until they have it, for some seconds at most."""
        if not self._left:
            self._left = True
            seconds = 0.0 if hasattr(sys, "last_type") else LEAVE_S
            self._messages.drain(seconds)
            self._channel.members.leave(seconds)
            self._channel.members.clear()
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
