# SPDX-License-Identifier: BSD-3-Clause
"""One rank of PyTorch's side of a measurement: torch_rank.py RANK RANKS ADDRESS, torch.distributed with gloo, where
ADDRESS is of the node of rank 0 and a free port there. A barrier follows each call, outside its time."""

import datetime
import sys

import torch
import torch.distributed as dist
from rank import Rank, serve

PATIENCE = datetime.timedelta(seconds=600)


class Torch(Rank):
    def filled(self):
        self.given = torch.from_numpy(self.give)
        self.rooms = [torch.from_numpy(room) for room in self.take]

    def broadcast(self):
        dist.broadcast(self.given if self.rank == 0 else self.rooms[0], src=0)
        self.taken = [] if self.rank == 0 else [self.take[0]]

    def gather(self):
        dist.gather(self.given, self.rooms if self.rank == 0 else None, dst=0)
        self.taken = list(self.take) if self.rank == 0 else []

    def ready(self, later):
        """reduce and allreduce work in place: they get a copy, before the time."""
        self.rooms[0].copy_(self.given)

    def reduce(self):
        dist.reduce(self.rooms[0], dst=0)
        self.taken = [self.take[0]] if self.rank == 0 else []

    def allreduce(self):
        dist.all_reduce(self.rooms[0])
        self.taken = [self.take[0]]

    def p2p(self):
        if self.rank > 1:
            return
        other = 1 - self.rank
        if self.rank == 0:
            dist.send(self.given, other)
        dist.recv(self.rooms[0], other)
        if self.rank == 1:
            dist.send(self.given, other)
        self.taken = [self.take[0]]

    def after(self):
        dist.barrier()


def main():
    rank, ranks, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{address}", rank=rank, world_size=ranks, timeout=PATIENCE)
    serve(Torch(rank, ranks))
    dist.destroy_process_group()


main()
