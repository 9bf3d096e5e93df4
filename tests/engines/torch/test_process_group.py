# SPDX-License-Identifier: BSD-3-Clause
"""The backend "sarissa" of torch.distributed: each rank is a process on a node of its own."""

import pytest
import torch
import torch.distributed as dist
import ranks

import sarissa


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(4) as made:
        yield made


def sums(rank, size):
    given = torch.arange(1 << 18, dtype=torch.float32) + rank
    dist.all_reduce(given)
    wanted = torch.arange(1 << 18, dtype=torch.float32) * size + sum(range(size))
    small = torch.full((3,), rank + 1, dtype=torch.bfloat16)
    dist.all_reduce(small)
    return [bool(torch.equal(given, wanted)), small.tolist()]


def test_all_reduce_adds_up_the_tensors_of_all_ranks(cluster):
    assert ranks.run(__file__, "sums", cluster) == [[True, [10.0, 10.0, 10.0]]] * 4


ranks.main(globals())
