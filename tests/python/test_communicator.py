# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: each rank is a thread with a node of its own."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import time

import numpy
import pytest
import sarissa

NUMBERS = itertools.count()


class Ranks:
    """Runs main(comm) as each rank. What a rank raises is what it returns."""

    def __init__(self, local):
        self.local = local

    def __call__(self, size, main, name=None, timeout=30, sizes=None):
        name, ends = name or f"c{next(NUMBERS)}", [None] * size

        def run(rank):
            try:
                with self.local.open(rank % 4) as node:
                    with node.communicator(name, rank, sizes[rank] if sizes else size, timeout) as comm:
                        ends[rank] = main(comm)
            except BaseException as error:
                ends[rank] = error
        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        return ends

    def good(self, *args, **options):
        ends = self(*args, **options)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        return ends


@pytest.fixture
def ranks(local):
    return Ranks(local)


def left(node):
    """What communicators have left for ever."""
    gc.collect()
    end = time.monotonic() + 20  # what leases have held is being deleted when they have ended
    while (names := [info.name for info in node.ls(".comm/") if info.expires is None]) and time.monotonic() < end:
        pass
    return names


@pytest.mark.parametrize("size", [1, 3, 6])
def test_objects(ranks, node, size):
    def main(comm):
        me, root = comm.rank, size - 1
        comm.barrier()
        got = comm.broadcast({"w": numpy.arange(4), "from": me}, root=root)
        assert got["from"] == root and got["w"].tolist() == [0, 1, 2, 3]
        assert comm.bcast(me) == 0
        assert comm.allgather((me, "x")) == [(rank, "x") for rank in range(size)]
        assert comm.gather([me], root=root) == ([[rank] for rank in range(size)] if me == root else None)
        assert comm.scatter([str(rank) for rank in range(size)] if me == root else None, root=root) == str(me)
        assert comm.allreduce(me) == sum(range(size)) and comm.allreduce("ab"[me % 2], "max") == "ab"[size > 1]
        assert comm.allreduce(me + 1.0, "avg") == (size + 1) / 2
        assert comm.reduce_scatter([(me, rank) for rank in range(size)], "max") == (size - 1, me)
    ranks.good(size, main)
    assert left(node) == []


@pytest.mark.parametrize("size", [1, 4])
def test_arrays(ranks, node, size):
    def main(comm):
        me = comm.rank
        given = numpy.arange(12.0).reshape(4, 3) + me
        total = comm.allreduce(given)
        assert numpy.array_equal(total, sum(numpy.arange(12.0).reshape(4, 3) + rank for rank in range(size)))
        assert not total.flags.writeable
        assert numpy.array_equal(comm.allreduce(numpy.asfortranarray(given), "min"), given - me)
        assert numpy.array_equal(comm.allreduce(given[::2, ::-1], "max"), (given - me + size - 1)[::2, ::-1])
        scalar = comm.allreduce(numpy.float32(me))
        assert scalar == sum(range(size)) and scalar.shape == () and isinstance(scalar, numpy.float32)
        mine = comm.reduce_scatter(numpy.full((2 * size, 3), me + 1, "i4"), "prod")
        assert mine.shape == (2, 3) and (mine == numpy.prod(numpy.arange(1, size + 1))).all()
        uneven = comm.reduce_scatter([numpy.full(rank + 1, 1.0) for rank in range(size)])
        assert uneven.tolist() == [size] * (me + 1)
        assert comm.allreduce(numpy.empty(0)).tolist() == []
    ranks.good(size, main)
    assert left(node) == []


@pytest.mark.parametrize("size", [1, 4])
def test_buffers(ranks, size):
    def main(comm):
        me, n = comm.Get_rank(), comm.Get_size()
        total = numpy.empty(5, "i8")
        comm.Allreduce(numpy.full(5, me), total)
        assert total.tolist() == [sum(range(n))] * 5
        comm.Allreduce([numpy.full(8, me, "f4"), 2, "f4"], [into := numpy.zeros(9, "f4"), (2, 3)], op="max")
        assert into.tolist() == [0, 0, 0, n - 1, n - 1, 0, 0, 0, 0]
        comm.Allreduce(comm.IN_PLACE, total, "max")
        assert total.tolist() == [sum(range(n))] * 5
        buffer = bytearray(16)
        if me == 0:
            buffer[:] = numpy.arange(2.0).tobytes()
        comm.Bcast([buffer, "f8"])
        assert numpy.frombuffer(buffer).tolist() == [0, 1]
        rows = numpy.full((n, 3), -1)
        comm.Allgather(numpy.full(3, me), rows)
        assert rows[:, 0].tolist() == list(range(n))
        rows[me] *= 2
        comm.Allgather(comm.IN_PLACE, rows)
        assert rows[:, 2].tolist() == [2 * rank for rank in range(n)]
        block = numpy.empty(2, "f8")
        comm.Reduce_scatter_block(numpy.arange(2.0 * n), block)
        assert block.tolist() == [2.0 * me * n, (2.0 * me + 1) * n]
        all_of_it = numpy.empty((n, 2)) if me == n - 1 else None
        comm.Gather(block, all_of_it, root=n - 1)
        if me == n - 1:
            assert all_of_it.reshape(-1).tolist() == [n * one for one in range(2 * n)]
        comm.Scatter(all_of_it, block, root=n - 1)
        assert block.tolist() == [2.0 * me * n, (2.0 * me + 1) * n]
        comm.Barrier()
    ranks.good(size, main)


def test_messages(ranks, node):
    def main(comm):
        me, other = comm.rank, 1 - comm.rank
        for number in range(3):
            comm.send({"n": number, "a": numpy.full(3, me)}, other)
            comm.send(number, other, tag=7)
        comm.Send(numpy.arange(3.0), other)
        comm.send("mine", me)
        assert [comm.recv(other, tag=7) for _ in range(3)] == [0, 1, 2]
        got = [comm.recv(other) for _ in range(3)]
        assert [one["n"] for one in got] == [0, 1, 2] and got[2]["a"].tolist() == [other] * 3
        with pytest.raises(sarissa.InvalidArgument, match="3 <f8"):
            comm.Recv(numpy.empty(2), other)
        into = numpy.zeros(5)
        assert comm.Recv(into, other) == 3 and into.tolist() == [0, 1, 2, 0, 0]
        assert comm.recv(me) == "mine"
        with pytest.raises(sarissa.TimedOut, match=f"rank {other} has not sent .* tag 7"):
            comm.recv(other, tag=7, timeout=0)
        comm.barrier()
        comm.send("nobody wants it", other)
    ranks.good(2, main)
    assert left(node) == []


def test_a_message_that_is_received_while_it_is_sent(ranks, monkeypatch):
    def main(comm):
        if comm.rank == 1:
            return comm.recv(0), comm.recv(0)
        store = comm._rounds.maker.put_object

        def put_object(name, value):  # as a put ends whose object another node deletes before it has a second copy
            store(name, value)
            raise sarissa.Deleted(116, "the object was deleted")
        monkeypatch.setattr(comm._rounds.maker, "put_object", put_object)
        comm.send("a", 1)
        comm.send("b", 1)
        monkeypatch.undo()
    assert ranks.good(2, main) == [None, ("a", "b")]


def test_a_rank_that_asks_after_the_reduce_has_ended(ranks):
    def main(comm):
        whole = comm._node.allreduce

        def allreduce(target, *args, **options):
            whole(target, *args, **options)
            raise sarissa.Exists(17, "the target exists already")
        if comm.rank == 1:
            comm._node.allreduce = allreduce
        return comm.allreduce(numpy.ones(2)).tolist()
    assert ranks.good(2, main) == [[2, 2]] * 2


def test_two_rounds_live(ranks, node):
    def main(comm):
        most = 0
        for number in range(12):
            if number % 4 == 0:
                comm.broadcast(number if comm.rank == 0 else None)
            elif number % 4 == 1:
                comm.gather(number, root=1)
            elif number % 4 == 2:
                comm.scatter([1, 2, 3] if comm.rank == 2 else None, root=2)
            else:
                comm.allreduce(numpy.ones(10))
            with ranks.local.open(comm.rank) as look:
                names = [info.name for info in look.ls(".comm/two/") if "/rank/" not in info.name]
                most = max(most, len({name.split("/")[3] for name in names}))
        return most
    # a rank may be one round ahead of the one that looks
    assert max(ranks.good(3, main, "two")) <= 3
    assert left(node) == []


def test_the_same_name_again_at_once(ranks):
    def main(comm):
        return comm.allgather(comm.rank)
    for _ in range(3):
        assert ranks.good(3, main, "again") == [[0, 1, 2]] * 3


@pytest.mark.parametrize("calls", [
    (lambda comm: comm.allreduce(numpy.ones(3)), lambda comm: comm.allreduce(numpy.ones(4))),
    (lambda comm: comm.allreduce(numpy.ones(3)), lambda comm: comm.allreduce(numpy.ones(3), "max")),
    (lambda comm: comm.allreduce(1), lambda comm: comm.allgather(1)),
    (lambda comm: comm.Bcast(numpy.ones(3)), lambda comm: comm.Bcast(numpy.ones(3, "f4"))),
    (lambda comm: comm.broadcast(1), lambda comm: comm.broadcast(1, root=1)),
])
def test_unlike_calls_are_refused_by_name(ranks, calls):
    def main(comm):
        with pytest.raises(sarissa.InvalidArgument, match="round 1: rank [01] calls"):
            calls[comm.rank](comm)
            comm.barrier()  # where nobody waits for all, the next call tells
        return comm.allreduce(1)  # and then they go on
    assert ranks.good(2, main) == [2, 2]


def test_what_cannot_be(ranks, local, node):
    for rank, size in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(sarissa.InvalidArgument, match=f"rank {rank} of {size}"):
            node.communicator("x", rank, size)
    for name in ("", "x" * 151):
        with pytest.raises(sarissa.InvalidArgument, match="name"):
            node.communicator(name, 0, 1)
    with node.communicator("x", 0, 1) as comm:
        for call in (lambda: comm.broadcast(1, root=1), lambda: comm.send(1, 1), lambda: comm.recv(-1)):
            with pytest.raises(sarissa.InvalidArgument, match="none"):
                call()
        with pytest.raises(sarissa.InvalidArgument, match="2 <f8"):
            comm.Allreduce(numpy.ones(2), numpy.ones(3))
        for call in (lambda: comm.scatter([1, 2]), lambda: comm.reduce_scatter(numpy.float64(1)),
                     lambda: comm.Bcast([numpy.ones(2), 3]), lambda: comm.Allreduce(numpy.ones(2), b"x" * 16),
                     lambda: comm.allreduce(1, "xor"), lambda: comm.allreduce(numpy.ones(2, bool))):
            with pytest.raises(ValueError):
                call()
        with pytest.raises(sarissa.InUse, match=f"rank 0 of communicator 'x' is taken by process {os.getpid()} of"):
            local.open(1).communicator("x", 0, 1)
        assert comm.allreduce(1) == 1  # nothing of that has begun a round
    with pytest.raises(sarissa.InvalidArgument, match="closed"):
        comm.barrier()
    ends = ranks(2, lambda comm: None, sizes=[2, 3], timeout=1)
    assert isinstance(ends[1], (sarissa.InvalidArgument, sarissa.TimedOut))
    assert any(isinstance(end, sarissa.InvalidArgument) and "size is" in str(end) for end in ends)


def test_a_rank_that_does_not_come(ranks, node):
    with pytest.raises(sarissa.TimedOut, match="ranks 0, 2 have not joined within 0.2 s"):
        node.communicator("alone", 1, 3, timeout=0.2)
    done = threading.Barrier(3)

    def main(comm):
        if comm.rank != 2:
            with pytest.raises(sarissa.TimedOut, match=r"rank 2 has not come to round 1 \(barrier\) within 0.3 s"):
                comm.barrier(timeout=0.3)
        done.wait(30)
        if comm.rank == 2:
            comm.barrier()
        return comm.allreduce(1)  # the late one meets the others there
    assert ranks.good(3, main) == [3, 3, 3]
    assert left(node) == []


def test_a_rank_that_is_killed(ranks, local, node):
    task = ("import os, sys, signal, sarissa\n"
            "comm = sarissa.open().communicator('dies', 1, 2, timeout=30)\n"
            "comm.barrier()\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
    child = subprocess.Popen([sys.executable, "-c", task], env={**os.environ, "SARISSA_SOCKET": local.socket[1]})
    with pytest.raises(sarissa.TimedOut, match="communicator 'dies': rank 1 has not come to round 2"):
        with node.communicator("dies", 0, 2, timeout=30) as comm:
            comm.barrier()
            child.wait()
            comm.allreduce(numpy.ones(3), timeout=0.5)
