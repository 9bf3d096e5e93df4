#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small network on any number of ranks, of which any but the last may die, and others may join. Start it as
often as you like, on any nodes, while it runs:

    sarissa local up 2
    sarissa local exec 0 python3 examples/torch_elastic.py 2000 &
    sarissa local exec 1 python3 examples/torch_elastic.py 2000

usage: torch_elastic.py [STEPS]
"""

import os
import sys

import sarissa.torch
import torch


def main(steps):
    torch.manual_seed(os.getpid())  # each rank has data of its own, and its first weights count for nothing
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with sarissa.torch.ElasticGroup("torch_elastic") as group:
        group.sync(model, optimizer)
        print(f"rank {group.rank:x} begins after step {group.step}", flush=True)
        while group.step < steps:
            inputs = torch.randn(128, 16)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
            loss.backward()
            mean = loss.detach().clone()
            group.allreduce([*model.parameters(), mean])
            optimizer.step()
            for kind, rank, step in group.events():
                print(f"step {step}: rank {rank:x} has {kind}", flush=True)
            if group.step % 50 == 0:
                print(f"step {group.step}: loss {mean:.3f} of {len(group.ranks())} ranks", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
