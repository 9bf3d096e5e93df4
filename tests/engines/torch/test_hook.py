# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.torch.k_of_n_hook in DistributedDataParallel, with ranks that are processes: one is slow, one is killed, and
all are compared with gloo."""

import pytest
import sarissa
import sarissa.torch
import torch
from elastic_rank import Rank, ddp
from sarissa._torch.averages import enough

SLOW, FAST = 0.45, 0.15  # seconds of a step
STEPS = 12


@pytest.fixture
def ranks(tmp_path):
    """Starts as many ranks as there are dicts of options."""
    started = []
    with sarissa.LocalCluster(3, store=64) as cluster:
        def start(policy, *options):
            file = tmp_path / f"store{len(started)}"
            new = [Rank(cluster, i % 3, ddp, i, len(options), str(file), policy, **one).ready() for i, one in enumerate(options)]
            started.extend(new)
            return [one.go() for one in new]
        start.cluster = cluster
        yield start
        for one in started:
            one.kill()


def seconds(rank):
    """From the second step, before which the ranks find each other, to the last that is compared."""
    steps = rank.of("step")
    return steps[STEPS - 1]["time"] - steps[1]["time"]


def end_at(ranks, step):
    """None ends before all are there: gloo's ranks need one another to the end."""
    for one in ranks:
        one.at(step)
    for one in ranks:
        one.stop()
    assert [one.end() for one in ranks] == [0] * len(ranks), [one.error for one in ranks]


def test_one_slow_rank_does_not_hold_the_others(ranks):
    gloo = ranks(None, *({"pause": SLOW if i == 2 else FAST, "steps": STEPS} for i in range(3)))
    end_at(gloo, STEPS)
    ours = ranks("k-of-n 2", *({"pause": SLOW if i == 2 else FAST} for i in range(3)))
    ours[0].at(STEPS)
    ours[2].at(9)
    for one in ours:
        one.stop()
    assert [one.end() for one in ours] == [0] * 3, [one.error for one in ours]
    print(f"gloo {seconds(gloo[0]):.2f} s, k-of-n {seconds(ours[0]):.2f} s")
    assert seconds(gloo[0]) >= 1.8 * seconds(ours[0]), (seconds(gloo[0]), seconds(ours[0]))
    weights = {step["rounds"][0]: step["weights"] for step in ours[0].of("step") if step["rounds"]}
    behind = [step for step in ours[2].of("step") if step["rounds"] and step["rounds"][0] in weights]
    applied = [step for step in ours[2].of("step") if step["rounds"]]
    assert applied[-1]["rounds"][0] > applied[-1]["step"]  # it has passed rounds
    for step in behind:  # and has what the others have, where they were at the end of that round, too
        assert step["weights"] == pytest.approx(weights[step["rounds"][0]], rel=1e-4)


def test_fast_ranks_do_not_wait_for_the_second_step_of_a_slow_one(ranks):
    """They may even end before it, which then goes on alone, and leaves nothing."""
    *fast, slow = ranks("k-of-n 2", {}, {}, {"pause": 2.0})
    for one in fast:
        one.at(6).stop()
    assert [one.end() for one in fast] == [0, 0], [one.error for one in fast]
    assert len(slow.of("step")) == 1  # at the end of the first step all were there
    slow.at(3).stop()
    assert slow.end() == 0, slow.error
    assert slow.of("step")[2]["rounds"][0] > slow.of("step")[1]["rounds"][0] > 5
    assert not [one.name for one in ranks.cluster[0].ls(".group/ddp.") if one.name.count("/") == 1]


@pytest.mark.parametrize("policy, start", [("k-of-n 3", 3), ("k-of-n 9", 4), ("share 60", 3), ("bsp", 4), ("ssp 2", 4),
                                           ("bsp deadline 50ms", 4), ("fast: k-of-n 3, slow: asp", 4)])
def test_rounds_begin_with_as_many_ranks_as_the_quorum_has(ranks, policy, start):
    assert enough(ranks.cluster[0].explain_policy(policy), 4) == start


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bsp_gives_what_gloo_gives_in_many_buckets(ranks, dtype):
    options = [{"steps": 6, "buckets": 0.1, "dtype": dtype}] * 2
    gloo, ours = ranks(None, *options), ranks("bsp", *options)
    end_at(gloo + ours, 6)
    assert len(ours[0].said[-1]["rounds"]) > 1
    rough = 1e-5 if dtype == torch.float32 else 2e-2
    for a, b in zip(gloo[0].of("step"), ours[0].of("step")):
        assert b["weights"] == pytest.approx(a["weights"], rel=rough)
    assert ours[0].of("step")[-1]["weights"] == ours[1].of("step")[-1]["weights"]


@pytest.mark.parametrize("policy", ["k-of-n 2 late refuse", "ssp 3"])
def test_a_rank_that_is_killed_is_left_out(ranks, policy):
    three = ranks(policy, *({"pause": 0.03, "dies_at": 6 if i == 1 else -1} for i in range(3)))
    assert three[1].end() == -9
    for one in (three[0], three[2]):
        one.at(20)
    for one in (three[0], three[2]):
        one.stop()
    assert [three[0].end(), three[2].end()] == [0, 0], three[0].error + three[2].error
    assert max(three[0].longest_step(), three[2].longest_step()) < 3
    losses = [step["loss"] for step in three[0].of("step")]
    assert sum(losses[-8:]) < sum(losses[:8])


def test_wrong_states_are_named(ranks):
    node = ranks.cluster[0]
    with pytest.raises(sarissa.InvalidArgument):
        sarissa.torch.HookState("k-of-some", members=2, name="x", node=node)
    with pytest.raises(RuntimeError, match="the ranks have no process group yet"):
        sarissa.torch.HookState("bsp", members=2, node=node)
    state = sarissa.torch.HookState("k-of-n 5", members=2, name="few", node=node)
    future = state.submit(0, torch.ones(3, dtype=torch.int32), True)
    with pytest.raises(Exception, match="tensors of torch.int32 are not averaged"):
        future.wait()
    with pytest.raises(TypeError, match="a bucket on meta"):
        state.submit(0, torch.ones(3, device="meta"), True)
    state.close()
    with pytest.raises(RuntimeError, match="is closed"):
        state.submit(0, torch.ones(3), True)


def test_ranks_that_do_not_come_are_counted(ranks):
    state = sarissa.torch.HookState("k-of-n 1", members=2, name="alone", node=ranks.cluster[0], timeout=0.3)
    with pytest.raises(Exception, match="1 of 2 ranks have joined in 0.3 s"):
        state.submit(0, torch.ones(3), True).wait()
    state.close()
