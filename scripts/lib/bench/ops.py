# SPDX-License-Identifier: BSD-3-Clause
"""Runs the collectives of `bench_options`: the systems take turns, one row per turn."""

import contextlib
import math
import random
import statistics
import time

from lib import shell
from lib.bench import transfer
from lib.bench.meter import Meter
from lib.bench.options import MIB, PEERS, parse
from lib.bench.reduce import KilledReduce, SarissaReduce, kill_results, kill_table
from lib.bench.sum import REDUCES
from lib.bench.systems.sarissa import Sarissa
from lib.bench.tables.rows import LONG_S
from lib.bench.tables.table import name_of, table, taken, tell
from lib.bench.wakeups import Wakeups
from lib.options import memory_free
from lib.shell import Failure, say

GIB = 1 << 30
LEAD_NS = 60_000_000  # from the last order to the common start
LEAD_PER_NODE_NS = 3_000_000
BEFORE_NS, AFTER_NS = 2_000_000, 20_000_000  # around the start we do nothing: it would count

BOUND_OBJECTS = {  # objects that pass the busiest link, one after the other
    "broadcast": lambda nodes: 1,
    "gather": lambda nodes: nodes - 1,
    "p2p": lambda nodes: 2,
    "reduce": lambda nodes: 1,
    "allreduce": lambda nodes: 2 * (nodes - 1) / nodes,
}
STORED = {  # objects of a run in one store at most
    "gather": lambda nodes: nodes,
    "reduce": lambda nodes: 4,
    "allreduce": lambda nodes: 4,
}
HELD = 3  # objects of each node in the memory of a system at most, but for these
HELD_ELSE = {("sarissa", "broadcast"): 2, ("sarissa", "allreduce"): 4,
             **{(name, op): 4 for name in ("dask", "dask-today") for op in BOUND_OBJECTS},
             **{(name, op): most for name in ("mooncake", "nixl", "torch-gloo")
                for op, most in (("gather", 4), ("reduce", 12), ("allreduce", 12))},
             **{("ray", op): 6 for op in BOUND_OBJECTS}}
RECEIVES = {  # whose end counts
    "broadcast": lambda node: node != 0,
    "allreduce": lambda node: True,
}


class Systems:
    """Those that the runs ask for; the runs' links are the same. Each system has links of its own;
    all are up until the end. A peer that cannot run here is named and left out, unless it is asked for alone."""

    def __init__(self, runs):
        self.runs = runs
        self.stack = contextlib.ExitStack()
        self.running = {}
        self.missing = {}  # by name: why

    def __enter__(self):
        check_memory(self.runs, memory_free())
        try:
            self.start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self):
        configs = {}
        wanted = list(dict.fromkeys(each for run in self.runs for each in kinds(run)))
        for name, kind, tuning in wanted:
            try:
                if name not in configs and name not in self.missing:
                    kind.need()
                    configs[name] = self.stack.enter_context(self.cluster(name))
                if name not in self.missing:
                    self.running[kind, tuning] = self.stack.enter_context(kind(configs[name], tuning))
            except Failure as failure:
                self.leave_out(name, kind, failure)

    def leave_out(self, name, kind, failure):
        """From here on; the failure ends all where nobody else is asked for."""
        if not kind.optional or {name} == {other for run in self.runs for other, _, _ in kinds(run)}:
            raise failure
        self.missing[name] = str(failure).splitlines()[0]
        say(f"bench: {name} is left out: {failure}")

    def cluster(self, name):
        run = self.runs[0]
        options = ["--rate", run.rate, "--mtu", run.mtu]
        if name != "sarissa":
            short = "".join(word[0] for word in name.split("-"))
            return transfer.cluster(run.nodes, *options, "--bare", suffix=short)
        store = max(2 * STORED.get(run.op, lambda nodes: 2)(run.nodes) * run.size
                    for run in self.runs)
        options += ["--busy-poll"] if run.busy_poll else []
        return transfer.cluster(run.nodes, *options, "--store", store // MIB + 64, "--workers",
                                run.workers)

    def of(self, run):
        return [self.running[kind, tuning] for name, kind, tuning in kinds(run) if name not in self.missing]


def check_missing(missing):
    """At the end: what was asked for and is not among the rows; missing: why, by name."""
    if missing:
        raise Failure(f"without {', '.join(missing)}: {'; '.join(missing.values())}")


def kinds(run):
    """The contenders of a run: name, class, tuning."""
    if "sarissa" in run.systems:
        yield "sarissa", (KilledReduce if run.kill else
                          SarissaReduce if run.op in REDUCES else Sarissa), ""
    for name, tunings in run.tunings.items():
        for tuning in tunings:
            yield name, PEERS[name], tuning


def check_memory(runs, free):
    """The kernel would kill somebody in the middle. All systems hold theirs until the end."""
    held = {}
    for run in runs:
        for name, _, tuning in kinds(run):
            objects = HELD_ELSE.get((name, run.op), HELD)
            key = name_of(name, tuning)
            held[key] = max(held.get(key, 0), objects * run.nodes * run.size)
    if sum(held.values()) > free:
        each = ", ".join(f"{key} {size / GIB:.1f}" for key, size in held.items())
        raise Failure(f"not enough memory: {free / GIB:.1f} GiB are free, and at once it would take "
                      f"{each} GiB: fewer systems at a time (--system), or smaller objects", 2)


def arrivals_ns(args):
    """When each node calls, or gives, after the start. Whose object is broadcast is there first."""
    first = 1 if args.op == "broadcast" else 0
    order = list(range(first, args.nodes))
    if args.order == "falling":
        order.reverse()
    elif args.order == "random":
        random.Random(args.nodes).shuffle(order)
    return [int(place * args.stagger * 1e6) for place in [0] * first + order]


def bound_seconds(args):
    """Whole objects over the busiest link; the last of staggered receivers still needs all."""
    late = (args.nodes - 1) * args.stagger / 1e3
    objects = BOUND_OBJECTS[args.op](args.nodes)
    return late + transfer.bound_seconds(objects * args.size, args.rate) if args.rate else 0


def seconds_of(op, spans, start_ns):
    """Until the last receiver has all (broadcast, allreduce), or until the caller has."""
    receives = RECEIVES.get(op, lambda node: node == 0)
    ends = [end for node, calls in spans.items() for _, end in calls if receives(node)]
    return (max(ends) - start_ns) / 1e9


def blocked_seconds(spans, nodes):
    """How long each task stood still in its calls; one that called nothing, not at all."""
    return [round((max(end for _, end in spans[node]) - min(start for start, _ in spans[node])) /
                  1e9, 6) if node in spans else 0.0 for node in range(nodes)]


def receivers(args, spans, start_ns, arrivals):
    """Of a broadcast, by receiver: arrival, end, and how late that is, in units of S/B. A receiver
    that comes before an earlier one can be done is bound by the earlier one, too."""
    alone = transfer.bound_seconds(args.size, args.rate)
    ends = {node: round((max(end for _, end in spans[node]) - start_ns) / 1e9, 6)
            for node in range(1, args.nodes)}
    late, bound = {}, 0.0
    for node in sorted(ends, key=lambda node: arrivals[node]):
        bound = max(bound, arrivals[node] / 1e9 + alone)
        late[node] = round((ends[node] - bound) / alone, 4) if alone else None
    return {"arrival_seconds": [at / 1e9 for at in arrivals[1:]], "end_seconds": list(ends.values()),
            "late_shares": [late[node] for node in ends]}


def sleep_until(at_ns):
    time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)


def one_turn(system, args, disturb=None):
    """`disturb`, if any, is called with the start in ns, while the operation runs."""
    arrivals, bound = arrivals_ns(args), bound_seconds(args)
    try:
        system.ready(staggered=args.stagger > 0)
        meter = Meter(system.config)
        start_ns = time.monotonic_ns() + LEAD_NS + args.nodes * LEAD_PER_NODE_NS
        system.begin(start_ns, arrivals)
        if args.trace:
            args.trace.begin()
        sleep_until(start_ns - BEFORE_NS)
        meter.start()
        if disturb:
            disturb(start_ns)
        sleep_until(start_ns + AFTER_NS)
        spans = system.finish(patience_s=60 + 30 * bound)
        meter.stop()
    except Failure as failure:
        raise Failure(f"{failure}\n{system.trouble()}") from None
    cost = meter.row(args.size)
    system.verify()
    seconds = seconds_of(args.op, spans, start_ns)
    if args.trace:
        args.trace.end(name_of(system.system, system.tuning), start_ns,
                       start_ns + int(seconds * 1e9))
    blocked = blocked_seconds(spans, args.nodes)
    alone = transfer.bound_seconds(args.size, args.rate)
    row = {"op": args.op, "system": system.system, "tuning": system.tuning, "nodes": args.nodes,
           "bytes": args.size, "rate_mbit": args.rate, "mtu": args.mtu, "stagger_ms": args.stagger,
           "seconds": seconds, "bound_seconds": bound, "ratio": seconds / bound if bound else 0,
           "blocked_seconds": blocked, "blocked_mean_seconds": statistics.mean(blocked),
           "blocked_others_seconds": statistics.mean(blocked[1:]),
           "node_arrival_seconds": [arrival / 1e9 for arrival in arrivals],
           "put_seconds": system.put_seconds()}
    if args.op == "broadcast":
        row |= receivers(args, spans, start_ns, arrivals)
    if alone:
        row["late_share"] = round((seconds - bound) / alone, 4)
    return row | cost


def measure(args, running, wanted, leave_out, until=math.inf, expected=lambda system: 0.0):
    """Rows of the systems in turns, as many of each as wanted; none that would end after `until`, where
    a first turn takes as long as expected. leave_out: of Systems, for one that fails."""
    wanted = list(wanted)

    def tried(at, act):
        """None where the system has failed; it takes no turn from then on."""
        try:
            return act(running[at])
        except Failure as failure:
            leave_out(running[at].system, running[at], failure)
            wanted[at] = -1
            return None

    cold = [at for at, system in enumerate(running) if (system.op, system.size) != (args.op, args.size)]
    for at in cold:
        tried(at, lambda system: system.prepare(args.op, args.size))
    took = [expected(system) for system in running]
    for turn in range(-1 if cold else 0, max(wanted)):  # the first after a start only warms up
        for at, system in enumerate(running):
            if wanted[at] <= max(0, turn):
                continue
            begin = time.monotonic()
            if begin + took[at] > until:
                return
            row = tried(at, lambda system: one_turn(system, args))
            if row is None:
                continue
            took[at] = time.monotonic() - begin
            if row["seconds"] > LONG_S:
                wanted[at] = 0
            if turn >= 0 or row["seconds"] > LONG_S:
                tell(row)
                yield row | {"took_seconds": round(took[at], 2)}


def rows_of(args, systems, wanted, until=math.inf, expected=lambda system: 0.0):
    """As they come; wanted(name) says how many of a system."""
    counts = {system: wanted(name_of(system.system, system.tuning)) for system in systems.of(args)}
    running = [system for system, count in counts.items() if count]
    if args.kill:
        args.repeat = counts[running[0]]
        return kill_results(args, running[0], one_turn)
    return measure(args, running, [counts[system] for system in running], systems.leave_out, until, expected)


def main(op, argv):
    args = parse(op, argv)
    shell.require_root("scripts/bench")
    with Systems([args]) as systems, Wakeups() if args.wakeups else contextlib.nullcontext() as trace:
        args.trace = trace
        rows = taken(args, rows_of(args, systems, lambda name: args.repeat))
    table(args, rows)
    if trace:
        trace.tell()
    if args.kill:
        kill_table(args, rows)
    check_missing(systems.missing)
