# SPDX-License-Identifier: BSD-3-Clause
"""Peers whose ranks are programs of ours in Python, one per node (bench/peers), in the engines' environment.

Who derives says which program it is and what it is told. Used by the systems of torch, Mooncake and NIXL; it does not
import them."""

import os

from lib import engines
from lib.bench.systems.peer import START_S, Peer, System
from lib.bench.task import Program, ask_all, built, end_programs
from lib.shell import ROOT

PROGRAMS = ROOT / "bench/peers"


def environment(**more):
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'bench'}:{PROGRAMS}", "PYTHONDONTWRITEBYTECODE": "1",
            "SARISSA_PAYLOAD": str(built("payload.so")), **more}


class Ranks(Peer):
    """Who derives has system, module, program, arguments() and may have settings and is_peer."""

    operations = (*Peer.operations, "p2p")
    settings = {}
    is_peer = False
    optional = True
    last_words = 1000

    @classmethod
    def need(cls):
        engines.need(cls.system, cls.module, cls.is_peer)

    def arguments(self, rank):
        return []

    def end_ranks(self):
        end_programs(self.programs)
        self.programs, self.tasks = [], []

    def start_ranks(self):
        for rank in range(self.count):
            with open(self.directory / f"log.{rank}", "wb") as log:
                program = Program(self.config, rank, f"{self.system}'s rank {rank}", engines.python(),
                                  PROGRAMS / self.program, rank, self.count, *self.arguments(rank),
                                  env=environment(**self.settings), log=log)
            self.programs.append(program)
            self.tasks.append(program.task)

    def can_go_on(self):
        """Whether the ranks that run can be used for the object's size."""
        return bool(self.tasks)

    def fill_all(self, verb, size):
        """To import what they need takes seconds where cores are short: ranks are started again only if they must."""
        if not self.can_go_on():
            self.end_ranks()
            self.start_ranks()
        return System.fill_all(self, verb, size)

    def ready(self, staggered):
        ask_all(self.tasks, [("ready", int(staggered))] * self.count, START_S)
