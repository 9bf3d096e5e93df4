# SPDX-License-Identifier: BSD-3-Clause
"""Training with the backend "sarissa", unchanged: DistributedDataParallel, ZeRO and FSDP give gloo's losses. And the
bytes go over our wire."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import ranks

import sarissa
from sarissa._cluster import program

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STEPS = 8


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(4) as made:
        yield made


def losses(rank, model, optimizer):
    generator, out = torch.Generator().manual_seed(rank), []
    for _ in range(STEPS):
        inputs = torch.randn(16, 64, generator=generator)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs[:, :1] * 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 600), torch.nn.BatchNorm1d(600), torch.nn.ReLU(),
                               torch.nn.Linear(600, 600), torch.nn.ReLU(), torch.nn.Linear(600, 1))


def trains(rank, size):
    """Losses with both backends: of DDP in several buckets, DDP with a part that gets no gradient, ZeRO, and FSDP."""
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    def ddp(group, **options):
        model = DistributedDataParallel(network(), process_group=group, bucket_cap_mb=0.5, **options)
        return losses(rank, model, torch.optim.SGD(model.parameters(), lr=0.01))

    def zero(group):
        model = DistributedDataParallel(network(), process_group=group)
        return losses(rank, model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, process_group=group, lr=1e-3))

    def fsdp(group):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
        model = network()
        fully_shard(model, mesh=DeviceMesh.from_group(group, "cpu"))
        return losses(rank, model, torch.optim.SGD(model.parameters(), lr=0.01))
    ours, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
    return [[call(ours), call(gloo)] for call in (ddp, lambda group: ddp(group, find_unused_parameters=True), zero, fsdp)]


def test_training_gives_the_losses_of_gloo(cluster):
    for of_rank in ranks.run(__file__, "trains", cluster, timeout=60.0):
        for ours, gloo in of_rank:
            assert len(ours) == STEPS and ours[0] != ours[-1]
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(gloo), rtol=1e-3, atol=1e-5)


def sent_bytes(cluster):
    """Payload that the nodes have sent to one another."""
    total = 0
    for node in range(len(cluster)):
        text = subprocess.run([program(), "status", "--counters", "--json"], env=cluster.environment(node), check=True,
                              capture_output=True, text=True).stdout
        total += sum(int(count) for count in re.findall(r'"tx_chunk_bytes": ?(\d+)', text))
    return total


def one_sum(rank, size, count):
    given = torch.ones(count)
    dist.all_reduce(given)
    return given[0].item()


def test_the_bytes_of_a_sum_go_over_our_wire(cluster):
    count = 2 << 20
    before = sent_bytes(cluster)
    assert ranks.run(__file__, "one_sum", cluster, count=count) == [4.0] * 4
    assert sent_bytes(cluster) - before >= 2 * 3 * 4 * count  # what any sum at four ranks needs


def test_the_example_trains(cluster):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        environment = {**cluster.environment(rank), "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        children.append(subprocess.Popen([sys.executable, "-B", str(EXAMPLES / "torch_ddp.py")], env=environment,
                                         stdout=subprocess.PIPE, text=True))
    words = [child.communicate(timeout=120)[0] for child in children]
    assert [child.returncode for child in children] == [0, 0]
    loss = re.fullmatch(r"2 ranks, 60 steps: mean loss ([0-9.]+)\n", words[0])
    assert loss and float(loss[1]) < 0.1 and words[1] == ""


ranks.main(globals())
