# SPDX-License-Identifier: BSD-3-Clause
"""A directory look-up between two nodes, beside a TCP ping-pong of the same bytes.

  bench lookup --busy-poll            workers that never sleep, on the cores of this machine
  bench lookup                        the default: everything sleeps when it is idle

Node 0 keeps the whole directory, so node 1 asks it over the wire and node 0 asks itself: the
difference is the way from control to control and back. All cases take turns on the same two
namespaces; while TCP has its turn our daemons are stopped, but for the case that says otherwise."""

import contextlib
import os
import signal
import statistics
import time

from lib import options, shell
from lib.bench import transfer
from lib.bench.meter import SHARE_LEAST_S
from lib.bench.tables.table import Columns, grouped, taken
from lib.bench.task import Program, built
from lib.cluster import counters, network, nodes, process, state
from lib.shell import say

PORT = 5301
OBJECT_BYTES = 1024
CASES = Columns("case<28", "median>9.1f", "p99>10.1f", "min>9.1f", "caller>9.1f", "daemons>9.2f", "CPU>6.0%")


def parse(argv):
    parser = options.Parser(prog="bench lookup", description=__doc__)
    parser.add_argument("--busy-poll", action="store_true", help="our daemons never sleep")
    parser.add_argument("--count", type=options.whole(1, 10000), default=2000, metavar="N", help="calls of a turn")
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R", help="turns of each case")
    parser.add_argument("--busy-us", type=options.COUNT, default=50, metavar="US",
                        help="SO_BUSY_POLL of the TCP case with it")
    parser.add_argument("--json", action="store_true", help="one JSON object per turn")
    return parser.parse_args(argv)


def program(config, node, name, *argv):
    return Program(config, node, f"{name} of node {node}", built(name), *argv,
                   env=nodes.environment(config, node))


@contextlib.contextmanager
def stopped(config):
    """Our daemons leave the cores to somebody else."""
    pids = nodes.pids(config)
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Ours:
    """Calls of libsarissa: what a client of node `node` sees."""

    def __init__(self, case, config, tasks, node):
        self.case, self.config, self.tasks, self.node = case, config, tasks, node

    def turn(self, count, number, cost):
        with cost:
            return self.tasks[self.node].ask("info", "bench-lookup-0", count)


class Get(Ours):
    def turn(self, count, number, cost):
        prefix = f"bench-get-{number}-"
        self.tasks[0].ask("put", prefix, count, OBJECT_BYTES)
        with cost:
            told = self.tasks[self.node].ask("get", prefix, count)
        self.tasks[0].ask("rm", prefix, count)
        return told


class Tcp:
    def __init__(self, case, config, sizes, busy_us, pause):
        self.case, self.config, self.sizes = case, config, sizes
        self.busy_us, self.pause = busy_us, pause

    def turn(self, count, number, cost):
        """In parts that are short enough for the daemons to be stopped."""
        out = {"ns": [], "cpu_ns": 0}
        with program(self.config, 0, "pingpong", "serve", PORT, *self.sizes, self.busy_us) as there:
            there.answer(time.monotonic() + 5)
            with program(self.config, 1, "pingpong", "ask", network.node_ip(0), PORT, *self.sizes,
                         self.busy_us) as here:
                while len(out["ns"]) < count:
                    self.part(here, min(500, count - len(out["ns"])), out, cost)
        return out

    def part(self, here, count, out, cost):
        with stopped(self.config) if self.pause else contextlib.nullcontext(), cost:
            told = here.ask(count, patience_s=30)
        out["ns"] += told["ns"]
        out["cpu_ns"] += told["cpu_ns"]


def wire_sizes(config, tasks):
    """UDP payload of one look-up, towards the directory and back, acknowledgements included."""
    before = [counters.read(state.node_dir(config, node) / "counters") for node in (1, 0)]
    tasks[1].ask("info", "bench-lookup-0", 1000)
    after = [counters.read(state.node_dir(config, node) / "counters") for node in (1, 0)]
    return [round((b["tx_bytes"] - a["tx_bytes"]) / 1000) for a, b in zip(before, after)]


def measure(args, config, tasks):
    tasks[0].ask("put", "bench-lookup-", 1, OBJECT_BYTES)
    tasks[1].ask("info", "bench-lookup-0", 100)
    sizes = wire_sizes(config, tasks)
    say(f"bench: a look-up is {sizes[0]} bytes to the directory and {sizes[1]} back")
    cases = [Ours("look-up, directory there", config, tasks, 1),
             Ours("look-up, directory here", config, tasks, 0),
             Get("get of 1 KiB from there", config, tasks, 1),
             Tcp("TCP", config, sizes, 0, True),
             Tcp("TCP, SO_BUSY_POLL", config, sizes, args.busy_us, True),
             Tcp("TCP beside our daemons", config, sizes, 0, False)]
    for turn in range(-1, args.repeat):  # the first only warms up
        for case in cases:
            row = one_turn(args, case, turn, sizes)
            if turn >= 0:
                yield row


class Cost:
    """CPU time of our daemons and of the machine while a `with` of it runs; they add up."""

    def __init__(self, config):
        self.config = config
        self.sums = [0.0, 0.0, 0.0]

    def read(self):
        return (time.monotonic(), sum(process.run_seconds(pid) for pid in nodes.pids(self.config)),
                transfer.machine_busy_seconds())

    def __enter__(self):
        self.before = self.read()

    def __exit__(self, *_):
        self.sums = [s + b - a for s, a, b in zip(self.sums, self.before, self.read())]

    def row(self):
        return dict(zip(("seconds", "daemons_cpu_seconds", "machine_cpu_seconds"), self.sums))


def one_turn(args, case, turn, sizes):
    cost = Cost(case.config)
    told = case.turn(args.count, turn + 1, cost)
    return {"op": "lookup", "case": case.case, "busy_poll": args.busy_poll,
            "ask_bytes": sizes[0], "answer_bytes": sizes[1], "count": len(told["ns"]),
            "median_ns": statistics.median(told["ns"]), "p99_ns": percentile(told["ns"], 99),
            "min_ns": min(told["ns"]), "max_ns": max(told["ns"]),
            "caller_cpu_ns": round(told["cpu_ns"] / len(told["ns"])), **cost.row(),
            "ns": told["ns"]}


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def table(args, rows):
    say(f"{args.repeat} turns of {args.count}, {'busy polling' if args.busy_poll else 'adaptive'};"
        " microseconds; CPU: caller per call, our daemons in cores, the machine of "
        f"{os.cpu_count()} cores")
    CASES.head()
    groups = grouped(rows, lambda row: row["case"])
    for name, same in groups.items():
        values = [ns for row in same for ns in row["ns"]]
        caller = statistics.median(row["caller_cpu_ns"] for row in same)
        seconds, ours, busy = (sum(row[key] for row in same) for key in
                               ("seconds", "daemons_cpu_seconds", "machine_cpu_seconds"))
        share = min(1.0, busy / seconds / os.cpu_count()) if seconds >= SHARE_LEAST_S else None
        CASES.line(name, statistics.median(values) / 1e3, percentile(values, 99) / 1e3, min(values) / 1e3,
                   caller / 1e3, ours / seconds, share)
    there, here = (statistics.median(ns for row in groups[f"look-up, directory {at}"]
                                     for ns in row["ns"]) for at in ("there", "here"))
    say(f"from control to control and back (the difference of the first two): "
        f"{(there - here) / 1e3:.1f}")


def results(args):
    """The rows of all turns, as they come."""
    shell.require_root("scripts/bench")
    extra = ["--busy-poll"] if args.busy_poll else []
    with transfer.cluster(2, "--store", 64, "--shards", "0", *extra) as config, \
            program(config, 0, "lookup") as first, program(config, 1, "lookup") as second:
        yield from measure(args, config, [first, second])


def main(argv):
    args = parse(argv)
    table(args, taken(args, results(args), hidden=("ns",)))
