# SPDX-License-Identifier: BSD-3-Clause
"""Ray's side of a measurement: a Ray node per host, an actor on each, the driver on node 0, over TCP, from PyPI
(scripts/setup --engines). bench/peers/ray_driver.py says what its tunings are.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation off-loads for large
objects; stores with room for all that is measured, so that nothing is spilled; no object is asked for twice because the
links are slow; actors that are up and have run before;
no dashboard, log monitor nor metrics; while the others have their turn its processes stand still."""

import signal

from lib import engines
from lib.bench.ray_nodes import RayNodes
from lib.bench.systems.peer import Driven
from lib.bench.systems.ranks import PROGRAMS, environment
from lib.bench.task import end_programs

STORE_LEAST = 1 << 30
PULL_S = 120.0  # longer than any transfer: nobody dies here
WAYS = ("tree", "parts")


class Ray(Driven):
    system = "ray"
    operations = (*Driven.operations, "p2p")
    one_way = ("gather", "p2p")
    first_gathered = 1
    optional = True
    shared = {}  # by cluster: the Ray nodes, for all tunings

    nodes = driver = None

    @classmethod
    def need(cls):
        engines.need(cls.system, "ray")

    @staticmethod
    def has_tuning(op, tuning):
        return tuning in WAYS and op in ("broadcast", "reduce", "allreduce") and (op, tuning) != ("broadcast", "tree")

    def end_ranks(self):
        self.run()
        end_programs(self.programs)
        self.programs = []
        for nodes in [self.shared.pop(self.config["name"], None)]:
            if nodes:
                nodes.__exit__()

    def start_nodes(self, store_bytes):
        """Again where the stores are too small. Its shared memory is used up only by what is in it."""
        nodes = self.shared.get(self.config["name"])
        if nodes and nodes.store_bytes < store_bytes:
            self.end_ranks()
            nodes = None
        if nodes is None:
            nodes = RayNodes(self.config, store_bytes, environment=lambda node: environment(), pull_s=PULL_S)
            self.shared[self.config["name"]] = nodes.__enter__()
        if nodes is not self.nodes:
            end_programs(self.programs)
            self.nodes = nodes
            with open(self.directory / "log.driver", "wb") as log:
                self.programs = [nodes.driver(0, "ray's driver", PROGRAMS / "ray_driver.py", self.count, self.tuning,
                                              log=log)]
            self.driver = self.programs[0].task

    def run(self, number=signal.SIGCONT):
        nodes = self.shared.get(self.config["name"])
        if nodes:
            nodes.signal(number)

    def make_room(self, size):
        self.start_nodes(max(STORE_LEAST, (2 * self.count + 4) * size))
