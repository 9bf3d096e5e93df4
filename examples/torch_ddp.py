#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel over Sarissa. Run it once per rank, each on a node, with PyTorch's own variables RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT; torchrun sets them. All that is of Sarissa is the import and the name of the
backend."""

import sarissa.torch  # noqa: F401: registers the backend
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 60


def main():
    dist.init_process_group("sarissa")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # other data at each rank; the parameters of rank 0 go to all
    model = DistributedDataParallel(torch.nn.Linear(20, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wanted = torch.arange(20.0).unsqueeze(1) / 20
    for _ in range(STEPS):
        inputs = torch.randn(64, 20)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ wanted)
        optimizer.zero_grad()
        loss.backward()  # the gradients are summed meanwhile
        optimizer.step()
    mean = loss.detach()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    if rank == 0:
        print(f"{size} ranks, {STEPS} steps: mean loss {mean.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
