# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.torch.CheckpointTransport against torchft: as its own tests try its transports, and under its Manager, with a
lighthouse and a replica that joins later."""

import threading
import time
import types
from datetime import timedelta
from unittest import TestCase

import pytest
import sarissa
import sarissa.torch
import torch
import torch.distributed as dist
import torch.distributed.tensor

torchft = pytest.importorskip("torchft")
from torchft.checkpointing.transport import CheckpointTransport as Interface  # noqa: E402
from torchft.checkpointing.transport_test import run_multi_recovery_test  # noqa: E402
from torchft.coordination import LighthouseServer  # noqa: E402

SECONDS = timedelta(seconds=30)


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(3, store=64) as nodes:
        yield nodes


def test_it_passes_torchfts_own_test_of_transports(cluster):
    run_multi_recovery_test(TestCase(), lambda rank, size: sarissa.torch.CheckpointTransport(node=cluster[rank]),
                            torch.device("cpu"))
    assert isinstance(sarissa.torch.CheckpointTransport(node=cluster[0]), Interface)


def test_a_state_goes_with_disallow_and_may_fill_tensors_in_place(cluster):
    model = torch.nn.Linear(100, 100)
    state = {"user": {"model": model.state_dict()}, "torchft": {"step": 4, "batches_committed": 8}}
    sender = sarissa.torch.CheckpointTransport(node=cluster[0])
    twin = torch.nn.Linear(100, 100)
    mine = {"user": {"model": twin.state_dict()}, "torchft": {"step": 0, "batches_committed": 0}}
    receiver = sarissa.torch.CheckpointTransport(node=cluster[1], state_dict=lambda: mine)
    sender.send_checkpoint([1], 4, state, SECONDS)
    got = receiver.recv_checkpoint(0, sender.metadata(), 4, SECONDS)
    assert got["torchft"] == {"step": 4, "batches_committed": 8} and torch.equal(twin.weight, model.weight)
    sender.disallow_checkpoint()
    until = time.monotonic() + 20  # the end of a lease deletes in the background
    while cluster[1].ls(sender.metadata()):
        assert time.monotonic() < until
    with pytest.raises(TimeoutError, match="timed out after 0.2 s: no checkpoint of step 4 from rank 0"):
        receiver.recv_checkpoint(0, sender.metadata(), 4, timedelta(seconds=0.2))
    sender.shutdown()


class Replica:
    """A replica group of one rank, as torchft's example of DDP has it."""

    def __init__(self, cluster, number, lighthouse, steps):
        self.node, self.number, self.lighthouse, self.steps = cluster[number], number, lighthouse, steps
        self.weights, self.healed, self.error = {}, [], None
        self.paused, self.go = threading.Event(), threading.Event()

    def run(self, pause_at=None):
        try:
            self._train(pause_at)
        except BaseException as error:
            self.error = error
            self.paused.set()
            raise

    def _train(self, pause_at):
        torch.manual_seed(self.number)
        model = torch.nn.Linear(10, 1)
        transport = sarissa.torch.CheckpointTransport(node=self.node)
        store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def load(state):
            self.healed.append(state["step_of_sender"])
            self.steps.last = min(self.steps.last, state["step_of_sender"] + 5)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        manager = torchft.Manager(
            pg=torchft.ProcessGroupGloo(timeout=SECONDS), load_state_dict=load, min_replica_size=1, rank=0, world_size=1,
            state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                                "step_of_sender": manager.current_step()},
            store_addr="localhost", store_port=store.port, lighthouse_addr=self.lighthouse, replica_id=f"r{self.number}",
            checkpoint_transport=transport, timeout=SECONDS, use_async_quorum=False)
        wrapped = torchft.Optimizer(manager, optimizer)
        while manager.current_step() < self.steps.last:
            if manager.current_step() == pause_at and not self.go.is_set():
                self.paused.set()
                self.go.wait(60)
            wrapped.zero_grad()
            model(torch.ones(10)).sum().backward()
            for parameter in model.parameters():
                manager.allreduce(parameter.grad).wait()
            wrapped.step()
            self.weights[manager.current_step()] = model.weight.detach().clone()
        manager.shutdown()


def test_a_replica_that_joins_later_recovers_under_torchfts_manager(cluster):
    lighthouse = LighthouseServer(bind="[::]:0", min_replicas=1, join_timeout_ms=200, heartbeat_timeout_ms=1000)
    steps = types.SimpleNamespace(last=3000)  # until the second one has joined, and some more
    one, two = (Replica(cluster, number, lighthouse.address(), steps) for number in range(2))
    threads = [threading.Thread(target=one.run, args=(5,)), threading.Thread(target=two.run)]
    threads[0].start()
    assert one.paused.wait(60) and one.error is None
    threads[1].start()
    one.go.set()
    for thread in threads:
        thread.join(60)
    lighthouse.shutdown()
    assert (one.error, two.error) == (None, None)
    assert two.healed and two.healed[-1] >= 5, two.healed
    shared = one.weights.keys() & two.weights.keys()
    assert len(shared) >= 2 and max(shared) == steps.last
    assert all(torch.equal(one.weights[step], two.weights[step]) for step in shared)
