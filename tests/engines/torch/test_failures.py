# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a process group get when one of them dies, does something else, or does not come."""

import os
import re
import signal
import time

import pytest
import torch
import torch.distributed as dist
import ranks

import sarissa

NOTICED_S = 1.5


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(4) as made:
        yield made


def failure(call):
    """The error of a call: its kind, its words, and when it came."""
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error), time.monotonic()]
    return None


# --- what ranks do

def waits(rank, size, lost):
    """All but one wait for it in an all_reduce, and later call others."""
    one = torch.ones(100000)
    dist.all_reduce(one)
    ranks.tell("ready")
    if rank == lost:
        return [ranks.hear()]
    return [failure(lambda: dist.all_reduce(one)), failure(dist.barrier), failure(lambda: dist.broadcast(one, lost))]


def dies_in_backward(rank, size, lost):
    from torch.nn.parallel import DistributedDataParallel
    model = DistributedDataParallel(torch.nn.Linear(1000, 300))
    ranks.tell("ready")
    loss = model(torch.ones(2, 1000)).sum()
    if rank == lost:
        return [ranks.hear()]
    return [failure(loss.backward)]


def differs(rank, size):
    """Each error leaves the group as it was."""
    def all_reduce(tensor, op=dist.ReduceOp.SUM):
        return failure(lambda: dist.all_reduce(tensor, op))
    found = [all_reduce(torch.ones(3 if rank == 1 else 4)),
             all_reduce(torch.ones(3, dtype=torch.float64 if rank == 2 else torch.float32)),
             all_reduce(torch.ones(3), dist.ReduceOp.MAX if rank == 3 else dist.ReduceOp.SUM),
             failure(dist.barrier) if rank == 0 else all_reduce(torch.ones(3)),
             all_reduce(torch.ones(3, dtype=torch.bool) if rank == 0 else torch.ones(3)),
             all_reduce(torch.ones(3, dtype=torch.float8_e4m3fn)),
             all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.BAND),
             failure(lambda: dist.all_reduce(torch.ones(3, device="meta")))]
    if rank == 0:
        found.append(failure(lambda: dist.send(torch.ones(5), 1)))
    elif rank == 1:
        found.append(failure(lambda: dist.recv(torch.ones(4), 0)))
    one = torch.ones(3)
    dist.all_reduce(one)
    return [found, one.tolist()]


def late(rank, size):
    """One does not come in the time of the group, or of a wait."""
    if rank == 1:
        return [ranks.hear()]
    work = dist.all_reduce(torch.ones(3), async_op=True)
    import datetime
    waited = failure(lambda: work.wait(datetime.timedelta(milliseconds=1500)))
    return [waited, failure(work.wait)]


# --- tests

def kills(cluster, function, kill):
    """Rank 2 is killed when all are ready: how long the others took, and what they got."""
    with ranks.Ranks(__file__, function, cluster, lost=2) as run:
        for rank in range(run.size):
            assert run.line(rank) == "ready"
        time.sleep(0.3)  # they wait
        begin = time.monotonic()
        kill(run)
        out = [run.line(rank) for rank in range(run.size) if rank != 2]
        for process in run.processes:
            process.kill()
    leaves_nothing(cluster)
    return begin, out


def test_a_killed_rank_is_named_at_all_others_in_time(cluster):
    begin, out = kills(cluster, "waits", lambda run: os.kill(run.processes[2].pid, signal.SIGKILL))
    for errors in out:
        for kind, words, when in errors:
            assert kind == "RankDied" and "rank 2 has died: its process has ended" in words
            assert when - begin < NOTICED_S, (when - begin, words)


def leaves_nothing(cluster):
    """The leases of the killed ranks end."""
    until = time.monotonic() + 30
    while left := [info.name for info in cluster[0].ls(".torch/")]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


def test_a_rank_whose_node_died_is_named_in_time():
    with sarissa.LocalCluster(4) as cluster:
        with ranks.Ranks(__file__, "waits", cluster, lost=2) as run:
            assert [run.line(rank) for rank in range(4)] == ["ready"] * 4
            time.sleep(0.3)  # they wait
            begin = time.monotonic()
            cluster.kill(2)
            out = [run.line(rank) for rank in (0, 1, 3)]
            run.processes[2].kill()
            run.results(killed=(2,))
        leaves_nothing(cluster)
    for errors in out:
        for kind, words, when in errors:
            assert kind == "RankDied" and re.search("rank 2 has died: node 2, where it ran, has died", words), words
            assert when - begin < NOTICED_S, (when - begin, words)


def test_backward_of_ddp_names_the_killed_rank(cluster):
    begin, out = kills(cluster, "dies_in_backward", lambda run: os.kill(run.processes[2].pid, signal.SIGKILL))
    for (_, words, when), in out:
        assert "rank 2 has died: its process has ended" in words
        assert when - begin < NOTICED_S, (when - begin, words)


def test_ranks_that_differ_are_both_named_and_the_group_lives_on(cluster):
    results = ranks.run(__file__, "differs", cluster)
    wanted = [(1, "all_reduce sum of float32 [3]", "all_reduce sum of float32 [4]"),
              (2, "all_reduce sum of float64 [3]", "all_reduce sum of float32 [3]"),
              (3, "all_reduce max of float32 [3]", "all_reduce sum of float32 [3]"),
              (0, "barrier", "all_reduce sum of float32 [3]")]
    for rank, (found, after) in enumerate(results):
        assert after == [4.0] * 3
        for (odd, its, others), (kind, words, _) in zip(wanted, found):
            assert kind == "RanksDiffer"
            mine, theirs = (its, others) if rank == odd else (others, its)
            assert f"rank {rank} {mine}" in words and f"calls {theirs}" in words, words
        refused, float8, band, device = found[4:8]
        if rank == 0:
            assert refused[0] == "TypeError" and "no reduce of Sarissa computes sum of bool" in refused[1]
        else:
            assert refused[0] == "RanksDiffer" and " ..., and rank" in refused[1], refused[1]
            assert "rank 0 calls all_reduce of bool [3], which it refuses: no reduce of Sarissa computes sum of bool: " in refused[1]
        assert float8[0] == "TypeError" and "sum of float8_e4m3fn" in float8[1]
        assert band[0] == "ValueError" and "BAND" in band[1]
        assert device[0] == "ValueError" and "this tensor is on meta" in device[1]
    assert results[0][0][8] is None
    assert "rank 0 has sent float32 x 5, which does not go into float32 x 4" in results[1][0][8][1]


def test_ranks_that_do_not_come_are_named_when_the_time_is_over(cluster):
    with ranks.Ranks(__file__, "late", cluster, timeout=4.0) as run:
        out = [run.line(rank) for rank in (0, 2, 3)]
        run.say(1)
        run.results()
    for waited, failed in out:
        assert waited[0] == failed[0] == "RanksMissing"
        assert waited[1] == "all_reduce sum of float32 [3]: not done within 1.5 s: rank 1 has not come"
        assert failed[1] == "all_reduce sum of float32 [3]: not done within 4 s: rank 1 has not come"
        assert 1.0 < failed[2] - waited[2] < 10


ranks.main(globals())
