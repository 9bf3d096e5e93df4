# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.torch.ElasticGroup with ranks that are processes: some are killed in the middle of a step, some with their
node, and others join; and what a wrong call is told."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sarissa
import sarissa.torch
import torch
from elastic_rank import Rank, train

GOES_ON_S = 3.0
LEASE_ENDS_S = 20.0


@pytest.fixture
def ranks():
    """Starts ranks of a cluster, and kills what is left of them."""
    with sarissa.LocalCluster(3, store=64) as cluster:
        started = []

        def start(*given, **options):
            started.append(Rank(cluster, given[0], train, *given[1:], **options))
            return started[-1]
        start.cluster = cluster
        yield start
        for one in started:
            one.kill()


def agree(ranks):
    """All ranks that have made a step have the same weights behind it, to the last bit."""
    weights = {}
    for one in ranks:
        for step in one.of("step"):
            weights.setdefault(step["step"], set()).add(step["weights"])
    assert [step for step, values in weights.items() if len(values) > 1] == []
    return len(weights)


def test_survivors_go_on_and_joiners_have_their_state(ranks):
    first = [ranks(node, "run", dies_at=12 if node == 1 else -1) for node in range(3)]
    joiners = [ranks(node, "run").ready() for node in (1, 2)]
    for one in first:
        one.go()
    assert first[1].end() == -9
    survivors = [first[0].at(20), first[2]]
    for one in joiners:
        one.go()
    for one in joiners:
        one.at(40)
    survivors[1].stop()
    assert [one.end() for one in survivors + joiners] == [0] * 4, [one.error for one in survivors + joiners]
    steps = survivors[0].of("step")[-1]["step"]
    for one in survivors:  # no step is lost, none takes long, and each hears of the dead one
        assert [step["step"] for step in one.of("step")][12 - steps:] == list(range(13, steps + 1))
        assert one.longest_step() < GOES_ON_S
        assert [event[1] for event in one.events("left")][:1] == [first[1].of("synced")[0]["rank"]]
        losses = [step["loss"] for step in one.of("step")]
        assert sum(losses[-5:]) < sum(losses[:5]) / 10 and max(losses[13:20]) < max(losses[:13])
    for one in joiners:
        assert one.of("synced")[0]["step"] >= 20 and len(one.events("synced")) == 1
        assert one.of("step")[0]["step"] == one.of("synced")[0]["step"] + 1
    assert agree(first + joiners) == steps
    until = time.monotonic() + LEASE_ENDS_S
    while left := [one.name for one in ranks.cluster[0].ls() if "run" in one.name]:  # of the rank that was killed
        assert time.monotonic() < until, left
        time.sleep(0.1)


def test_a_node_that_dies_with_its_rank_is_left_out(ranks):
    three = [ranks(node, "node") for node in range(3)]
    for one in three:
        one.go()
    three[0].at(10)
    three[2].at(10)
    ranks.cluster.kill(2)
    three[2].kill()
    died = three[0].said[-1]["step"]
    three[0].at(died + 20).stop()
    assert [one.end() for one in three[:2]] == [0, 0], [one.error for one in three]
    assert max(one.longest_step() for one in three[:2]) < GOES_ON_S
    assert agree(three) >= died + 20


def test_a_rank_that_comes_back_ends_the_wait_for_min_ranks(ranks):
    two = [ranks(node, "few", dies_at=10 if node else -1) for node in range(2)]
    again = ranks(1, "few").ready()
    for one in two:
        one.go()
    assert two[1].end() == -9
    again.go().at(20).stop()
    assert [two[0].end(), again.end()] == [0, 0], two[0].error + again.error
    assert again.of("synced")[0]["step"] in (10, 11) and agree([*two, again]) >= 20


def test_a_slow_rank_does_not_hold_the_others_under_k_of_n(ranks):
    options = {"min_ranks": 3, "policy": "k-of-n 2", "momentum": 0}
    fast = [ranks(node, "slow", **options).ready() for node in range(2)]
    slow = ranks(2, "slow", pause=0.3, **options).ready()
    for one in (*fast, slow):
        one.go()
    slow.at(50)  # the fixture ends all three: ranks under k-of-n do not see a stop at one time
    assert [one.error for one in (*fast, slow)] == [""] * 3
    steps = [step["step"] for step in slow.of("step")]
    assert len(steps) < 0.7 * steps[-1] and max(b - a for a, b in zip(steps, steps[1:])) > 1
    losses = [step["loss"] for step in slow.of("step")]
    assert losses[-1] < losses[0] / 5  # it has what the others have learnt


def test_the_example_trains_on_two_nodes(ranks):
    example = Path(__file__).resolve().parents[3] / "examples/torch_elastic.py"
    two = [subprocess.Popen([sys.executable, str(example), "100"], env=ranks.cluster.environment(node), text=True,
                            stdout=subprocess.PIPE) for node in range(2)]
    outputs = [one.communicate(timeout=90)[0] for one in two]
    assert [one.returncode for one in two] == [0, 0]
    assert all("begins after step" in text for text in outputs)
    losses = [float(one) for one in re.findall(r"^step 100: loss ([0-9.]+)", "".join(outputs), flags=re.M)]
    assert losses and max(losses) < 2.0, outputs  # of 7 without any training


# --- in this process

def together(*calls):
    """What each call has returned or raised, in threads."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as error:
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.fixture(scope="module")
def pair():
    with sarissa.LocalCluster(2, store=64) as cluster:
        yield cluster


def groups(pair, name, **options):
    return [sarissa.torch.ElasticGroup(name, node=pair[i], min_ranks=2, timeout=20, **options) for i in range(2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_tensors_of_any_shape_and_stride_are_averaged_in_place(pair, dtype):
    one, two = groups(pair, f"shapes {dtype}".replace(" ", "."))
    mine = [[torch.full((3, 5), value, dtype=dtype).t(), torch.tensor(value * 2, dtype=dtype)] for value in (1.0, 3.0)]
    results = together(lambda: one.allreduce(mine[0]), lambda: two.allreduce(mine[1]))
    for tensors in mine:
        assert tensors[0].eq(2).all() and tensors[1] == 4, results
    assert one.step == two.step == 1 and sorted([one.rank, two.rank]) == one.ranks()
    one.close()
    two.close()


def test_ranks_that_give_unlike_tensors_are_told_and_go_on(pair):
    one, two = groups(pair, "unlike")
    together(lambda: one.allreduce(torch.ones(1000)), lambda: two.allreduce(torch.ones(1000)))
    tensor = torch.ones(1000)
    results = together(lambda: one.allreduce(tensor), lambda: two.allreduce(torch.ones(900)))
    assert "this rank has given 1000 elements, and the ranks have 950 on average" in str(results[0])
    assert isinstance(results[1], ValueError) and tensor.eq(1).all()
    results = together(lambda: one.allreduce(torch.ones(1000)), lambda: two.allreduce(torch.full((1000,), 3.0)))
    assert all(result.eq(2).all() for result in results)
    with pytest.raises(ValueError, match="2000 elements, and the group 'unlike' averages 1000 and up to 16 more"):
        one.allreduce(torch.ones(2000))
    three = sarissa.torch.ElasticGroup("unlike", node=pair[0], timeout=20)
    with pytest.raises(sarissa.InvalidArgument, match="averages 1019 elements of f32, and this rank has 24 of f32"):
        three.allreduce(torch.ones(5))
    one.close()
    two.close()


def test_a_rank_that_is_missing_is_named(pair):
    one, two = groups(pair, "missing")
    with pytest.raises(sarissa.torch.TooFewRanks, match="1 of 2 ranks are there after 0.2 s"):
        one.allreduce(torch.ones(4), timeout=0.2)
    together(lambda: one.allreduce(torch.ones(4)), lambda: two.allreduce(torch.ones(4)))
    with pytest.raises(sarissa.TimedOut, match=f"no contribution of {two.rank:x} on node 1 in "):
        one.allreduce(torch.full((4,), 5.0), timeout=0.3)
    results = together(lambda: one.allreduce(torch.zeros(4)), lambda: two.allreduce(torch.ones(4)))
    assert all(result.eq(3).all() for result in results)  # of what was given before the time was over
    one.close()
    two.close()


def test_wrong_calls_are_named(pair):
    with pytest.raises(ValueError, match="min_ranks=0"):
        sarissa.torch.ElasticGroup("wrong", node=pair[0], min_ranks=0)
    with pytest.raises(sarissa.InvalidArgument):
        sarissa.torch.ElasticGroup("wrong", node=pair[0], policy="sometimes")
    group = sarissa.torch.ElasticGroup("wrong", node=pair[0], timeout=5)
    for given, error in ((torch.ones(3, dtype=torch.int32), "tensors of torch.int32 are not averaged"),
                         ([torch.ones(3), 5], "a int is not averaged"),
                         (torch.ones(3).to_sparse(), "layout torch.sparse_coo is not averaged")):
        with pytest.raises(TypeError, match=error):
            group.allreduce(given)
    joined = sarissa.torch.ElasticGroup("wrong-too", node=pair[0], timeout=5)
    joined.allreduce(torch.ones(3))
    for given, error in ((torch.ones(3, dtype=torch.int64), "tensors of torch.int64 are not averaged"),
                         (torch.ones(3, device="meta"), "a tensor of device meta is not averaged")):
        with pytest.raises(TypeError, match=error):
            joined.allreduce(given)
    assert joined.allreduce(torch.full((3,), 2.0)).tolist() == [2.0] * 3
    joined.close()
    with pytest.raises(TypeError, match="optimizer is a int, and sync\\(\\) takes what has state_dict"):
        group.sync(torch.nn.Linear(2, 1), 3)
    with pytest.raises(ValueError, match="nothing to average"):
        group.allreduce()
    with pytest.raises(ValueError, match="no parameters to train"):
        group.sync(torch.nn.ReLU())
    with pytest.raises(RuntimeError, match="call sync\\(\\) first"):
        group.ranks()
