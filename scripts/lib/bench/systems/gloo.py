# SPDX-License-Identifier: BSD-3-Clause
"""Gloo's side of a measurement: one rank per node, over TCP, from Debian's package.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation
off-loads for large objects; its ranks sleep while they wait. Tunings are its algorithms for an allreduce: those of
gloo::allreduce ("ring", which is its default, "bcube"), those of its older classes ("ring-chunked",
"halving-doubling"), and "hand" for what was the best at the size. All else it has in one way."""

import shutil
import tempfile
from pathlib import Path

from lib.bench.systems import peer
from lib.bench.systems.peer import SMALL_BYTES, Peer
from lib.bench.task import Program, end_programs

PACKAGES = ("libgloo-dev", "g++")
ALGORITHMS = ("ring", "ring-chunked", "halving-doubling", "bcube")
BY_HAND = {"allreduce": "ring-chunked"}
BY_HAND_SMALL = {"allreduce": "halving-doubling"}


def program():
    if not (Path("/usr/include/gloo/allreduce.h").exists() and shutil.which("g++")):
        peer.install(PACKAGES)
    return peer.program("gloo.cc", "g++", "-O3", "-march=native",
                              libraries=["-lgloo", "-lxxhash", "-pthread"])


class Gloo(Peer):
    system = "gloo"
    one_way = ("broadcast", "gather", "reduce")

    @staticmethod
    def has_tuning(op, tuning):
        return tuning in ALGORITHMS

    def __enter__(self):
        program()
        return super().__enter__()

    def end_ranks(self):
        end_programs(self.programs)
        self.programs, self.tasks = [], []

    def start(self, rank, meeting):
        with open(self.directory / f"log.{rank}", "wb") as log:
            started = Program(self.config, rank, f"gloo's rank {rank}", program(), rank,
                              self.count, meeting, self.algorithm(), log=log)
        self.programs.append(started)
        self.tasks.append(started.task)

    def start_ranks(self):
        meeting = tempfile.mkdtemp(prefix="meet-", dir=self.directory)
        for rank in range(self.count):
            self.start(rank, meeting)

    def algorithm(self):
        if self.tuning != "hand":
            return self.tuning
        return (BY_HAND_SMALL if self.size <= SMALL_BYTES else BY_HAND)[self.op]
