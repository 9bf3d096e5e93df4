# SPDX-License-Identifier: BSD-3-Clause
"""Our side of a measured reduce or allreduce, undisturbed and with nodes that die in the middle."""

import os
import signal
import statistics
import time

from lib.bench import transfer
from lib.bench.sum import fill_verb, sum_digest
from lib.bench.systems.sarissa import Sarissa
from lib.bench.task import end_programs
from lib.cluster import nodes
from lib.shell import Failure, say

BACKUP_NS = 20_000_000  # so much later than the others what is in reserve is given
BACK_S = 30.0


class SarissaReduce(Sarissa):
    """Node 0 calls, and takes the sum. The last `spare` nodes' arrays are a reserve."""

    spare = 0

    def target(self):
        return f"bench-{self.op}-{self.turn}-sum"

    def ready(self, staggered):
        self.turn += 1
        self.staggered = staggered
        self.puts = {} if staggered else self.put(range(self.count - self.spare))

    def begin(self, start_ns, arrivals_ns):
        names, count = self.names(), self.count
        own = (names[0], start_ns + arrivals_ns[0]) if self.staggered else ("-", 0)
        self.lines = {0: ("reduce", start_ns, self.target(), self.op == "allreduce" and "spread"
                          or "-", count - self.spare, *own, *names)}
        for node in range(1, count):
            at_ns, spare = start_ns + arrivals_ns[node], node >= count - self.spare
            if self.staggered and self.op == "allreduce":
                self.lines[node] = ("ping", at_ns, names[node], self.target())
            elif self.staggered or spare:
                self.lines[node] = ("put", at_ns + (BACKUP_NS if spare else 0), names[node])
            elif self.op == "allreduce":
                self.lines[node] = ("get", at_ns, self.target())
        self.running = list(self.lines)
        for node, words in self.lines.items():
            self.tasks[node].send(*words)

    def verify(self):
        """Checks that the sum is that of exactly the reported sources; then removes all."""
        self.used = self.tasks[0].ask("sources", self.target(), *self.names())["sources"]
        if len(set(self.used)) != self.count - self.spare:
            raise Failure(f"sarissa: the sum is made of {self.used}")
        expected = sum_digest(self.size, [node + 1 for node in self.used])
        for node in self.running if self.op == "allreduce" else [0]:
            if self.tasks[node].ask("check")["digests"] != [expected]:
                raise Failure(f"sarissa: node {node} has not the sum of {self.used}")
        self.clear()

    def clear(self):
        self.tasks[0].ask("rm", self.target(), *self.names())


class KilledReduce(SarissaReduce):
    """The same while nodes die, and come back afterwards."""

    def clear(self):
        """What a dead node had is gone already."""
        for name in (self.target(), *self.names()):
            try:
                self.tasks[0].ask("rm", name)
            except Failure as failure:
                if "no such object" not in str(failure):
                    raise

    def kill(self, which):
        for pid in nodes.pids(self.config, which):
            os.kill(pid, signal.SIGKILL)

    def revive(self, which):
        """The nodes as they were, empty; the others know that they are back."""
        end_programs([self.programs[node] for node in which])
        for node, kind in ((node, kind) for node in which for kind in nodes.KINDS):
            nodes.forget(self.config, node, kind)
        nodes.start_all(self.config, which)
        self.wait_up()
        for node in which:
            self.start(node)
            self.tasks[node].ask(fill_verb(self.op), self.size, node + 1)

    def wait_up(self):
        until = time.monotonic() + BACK_S
        while not all(map(self.sees_all, range(self.count))):
            if time.monotonic() > until:
                raise Failure("sarissa: a node that was started again is not seen by all others")
            time.sleep(0.1)

    def sees_all(self, node):
        return all(line["state"] == "up" for line in nodes.status_lines(self.config, node)
                   if "state" in line)


def kill_results(args, system, one_turn):
    """Undisturbed turns, then as many in which nodes die: the rows of these."""
    system.spare = len(set(args.kill))
    system.prepare(args.op, args.size)
    undisturbed = [one_turn(system, args)["seconds"] for _ in range(-1, args.repeat)][1:]
    usual = statistics.median(undisturbed)
    say(f"  undisturbed {usual:.5f} s ({min(undisturbed):.5f} to {max(undisturbed):.5f})")
    for _ in range(args.repeat):
        yield killed_turn(args, system, one_turn, usual)


def killed_turn(args, system, one_turn, usual):
    def disturb(start_ns):
        at_ns = start_ns + int(args.at * usual * 1e9)
        time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
        system.kill(args.kill)

    row = one_turn(system, args, disturb)
    system.revive(args.kill)
    owner = transfer.shard_owner(system.config, system.target())  # it coordinates smaller reduces
    alone = transfer.bound_seconds(args.size, args.rate)
    later = round((row["seconds"] - usual) / alone, 4)
    say(f"  killed {args.kill}: {row['seconds']:.5f} s, {later:.3f} S/B later, sources {system.used}, "
        f"its shard owner {owner}")
    return row | {"killed": args.kill, "undisturbed_seconds": usual, "later_share": later,
                  "sources": system.used, "shard_owner": owner}


def kill_table(args, rows):
    later = [row["later_share"] for row in rows]
    say(f"killed at {args.at:g} of {rows[0]['undisturbed_seconds']:.4f} s undisturbed: the end comes "
        f"{statistics.median(later):.3f} S/B later ({min(later):.3f} to {max(later):.3f})")
