# SPDX-License-Identifier: BSD-3-Clause
"""Gloo's side of a measurement: one rank per node, over TCP, from Debian's package.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation
off-loads; its ranks sleep while they wait. Tunings are its algorithms: those of gloo::allreduce
("ring", "bcube") and of its older classes ("ring-chunked", "halving-doubling"); a reduce to one
rank it has in one way only."""

import shutil
import tempfile
import time
from pathlib import Path

from . import bench_peer
from .bench_peer import START_S, Peer, offloads_on
from .bench_sum import sum_digest
from .bench_task import Program, ask_all, end_programs
from .shell import Failure

PACKAGE = "libgloo-dev"
TUNINGS = {"reduce": ("default",),
           "allreduce": ("ring", "ring-chunked", "halving-doubling", "bcube")}
DEFAULT_TUNINGS = {"reduce": TUNINGS["reduce"], "allreduce": TUNINGS["allreduce"][:3]}


def program():
    if not Path("/usr/include/gloo/allreduce.h").exists():
        bench_peer.install([PACKAGE])
    return bench_peer.program("gloo.cc", "g++", "-O3", "-march=native",
                              libraries=["-lgloo", "-lxxhash", "-pthread"])


class Gloo(Peer):
    system = "gloo"

    def __init__(self, config, tuning):
        super().__init__(config, tuning)
        self.programs = []

    def __enter__(self):
        program()
        offloads_on(self.config)
        self.directory = Path(tempfile.mkdtemp(prefix="sarissa-gloo-"))
        return self

    def __exit__(self, *_):
        self.end_ranks()
        shutil.rmtree(self.directory, ignore_errors=True)

    def end_ranks(self):
        end_programs(self.programs)
        self.programs, self.tasks = [], []

    def start(self, rank, meeting):
        with open(self.directory / f"log.{rank}", "wb") as log:
            started = Program(self.config, rank, f"gloo's rank {rank}", program(), rank,
                              self.count, meeting, self.tuning, log=log)
        self.programs.append(started)
        self.tasks.append(started.task)

    def prepare(self, op, size):
        self.op = op
        self.end_ranks()
        meeting = tempfile.mkdtemp(prefix="meet-", dir=self.directory)
        for rank in range(self.count):
            self.start(rank, meeting)
        try:
            ask_all(self.tasks, [("fill-f32", size, rank + 1) for rank in range(self.count)],
                    START_S)
        except Failure as failure:
            raise Failure(f"{failure}; it says:\n{self.trouble()}") from None
        self.sum = sum_digest(size, range(1, self.count + 1))

    def verify(self):
        for rank, task in enumerate(self.tasks):
            takes = rank == 0 or self.op == "allreduce"
            if task.ask("check")["digests"] != ([self.sum] if takes else []):
                raise Failure(f"gloo: rank {rank} got a wrong sum")

    def trouble(self):
        time.sleep(0.2)
        return "".join((self.directory / f"log.{rank}").read_text(errors="replace")[-500:]
                       for rank in range(self.count))
