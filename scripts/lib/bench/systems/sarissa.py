# SPDX-License-Identifier: BSD-3-Clause
"""Our side of a measurement: one task per node, in its namespace, over libsarissa."""

import subprocess
import time

from lib.bench.sum import fill_verb
from lib.bench.systems.peer import System
from lib.bench.task import Program, built, end_programs
from lib.cluster import nodes
from lib.shell import Failure


class Sarissa(System):
    system = "sarissa"

    turn = 0

    def __enter__(self):
        try:
            for node in range(self.count):
                self.start(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, node):
        """Its task, in the place of one that has gone before."""
        program = Program(self.config, node, f"sarissa's task of node {node}", built("task"),
                          env=nodes.environment(self.config, node))
        self.programs[node:node + 1] = [program]
        self.tasks[node:node + 1] = [program.task]

    def __exit__(self, *_):
        end_programs(self.programs)

    def prepare(self, op, size):
        """Makes the bytes that each task gives."""
        self.op, self.size = op, size
        self.digests = self.fill_all(fill_verb(op), size)

    def names(self):
        return [f"bench-{self.op}-{self.turn}-{node}" for node in range(self.count)]

    def put(self, giving):
        """Before the start: what a task gives lies in its node's store."""
        names = self.names()
        return {node: self.tasks[node].ask("put", 0, names[node])["spans"] for node in giving}

    def ready(self, staggered):
        self.turn += 1
        giving = {"broadcast": [0], "gather": range(1, self.count), "p2p": []}[self.op]
        self.puts = self.put(giving)

    def begin(self, start_ns, arrivals_ns):
        """Orders every task its calls, from start_ns on."""
        names, count = self.names(), self.count
        lines = {"broadcast": lambda: {node: ("get", start_ns + arrivals_ns[node], names[0])
                                       for node in range(1, count)},
                 "gather": lambda: {0: ("get", start_ns, *names[1:])},
                 "p2p": lambda: {0: ("ping", start_ns, names[0], names[1]),
                                 1: ("pong", start_ns, names[0], names[1])}}[self.op]()
        self.running = list(lines)
        for node, words in lines.items():
            self.tasks[node].send(*words)

    def put_seconds(self):
        """What the puts before the start took, by node."""
        return {node: (end - start) / 1e9 for node, [[start, end]] in self.puts.items()}

    def finish(self, patience_s):
        """The spans of the calls, by node. Whose object was put before has none: it does not wait."""
        until = time.monotonic() + patience_s
        return {node: self.tasks[node].answer(until)["spans"] for node in self.running}

    def verify(self):
        """Every byte that arrived, then the objects go."""
        for node in self.running:
            if self.tasks[node].ask("check")["digests"] != self.expected(node):
                raise Failure(f"sarissa: node {node} got wrong bytes")
        put = {"broadcast": [0], "gather": range(1, self.count), "p2p": [0, 1]}[self.op]
        self.tasks[0].ask("rm", *[self.names()[node] for node in put])

    def trouble(self):
        """What the nodes know of the objects of a run that failed."""
        out = []
        for name in self.names():
            done = subprocess.run([nodes.binary("cli"), "stat", name, "--json"],
                                  env=nodes.environment(self.config, 0), capture_output=True,
                                  text=True, timeout=20)
            out.append((done.stdout or done.stderr).strip())
        return "\n".join(out)
