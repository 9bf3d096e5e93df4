# SPDX-License-Identifier: BSD-3-Clause
"""Runs the collectives of `bench_options`: the systems take turns, one row per turn."""

import contextlib
import json
import random
import statistics
import time

from . import shell, transfer
from .bench_gloo import Gloo
from .bench_meter import Meter
from .bench_openmpi import OpenMpi
from .bench_options import MIB, parse
from .bench_reduce import KilledReduce, SarissaReduce, kill_results, kill_table
from .bench_sarissa import Sarissa
from .bench_sum import REDUCES
from .bench_table import table, tell
from .shell import Failure

LEAD_NS = 60_000_000  # from the last order to the common start
LEAD_PER_NODE_NS = 3_000_000

BOUND_OBJECTS = {  # objects that pass the busiest link, one after the other
    "broadcast": lambda nodes: 1,
    "gather": lambda nodes: nodes - 1,
    "p2p": lambda nodes: 2,
    "reduce": lambda nodes: 1,
    "allreduce": lambda nodes: 2 * (nodes - 1) / nodes,
}
RECEIVES = {  # whose end counts
    "broadcast": lambda node: node != 0,
    "allreduce": lambda node: True,
}


@contextlib.contextmanager
def systems(args):
    """Those asked for, each on links of its own; all are up during the whole run."""
    with contextlib.ExitStack() as stack:
        out = []
        if "sarissa" in args.systems:
            config = stack.enter_context(our_cluster(args))
            ours = (KilledReduce if args.kill else SarissaReduce
                    if args.op in REDUCES else Sarissa)
            out.append(stack.enter_context(ours(config)))
        for name, one, tunings in (("openmpi", OpenMpi, args.tuning),
                                   ("gloo", Gloo, args.gloo_tuning)):
            if name in args.systems and tunings:
                config = stack.enter_context(transfer.cluster(
                    args.nodes, "--rate", args.rate, "--mtu", args.mtu, "--bare", suffix=name[0]))
                out += [stack.enter_context(one(config, tuning)) for tuning in tunings]
        yield out


def our_cluster(args):
    objects = {"gather": args.nodes, "reduce": 4, "allreduce": 4}.get(args.op, 2)
    extra = ["--busy-poll"] if args.busy_poll else []
    return transfer.cluster(args.nodes, "--rate", args.rate, "--mtu", args.mtu, "--store",
                            2 * objects * args.size // MIB + 64, "--workers", args.workers, *extra)


def arrivals_ns(args):
    """When each node calls, or gives, after the start."""
    order = list(range(args.nodes))
    if args.order == "falling":
        order.reverse()
    elif args.order == "random":
        random.Random(args.nodes).shuffle(order)
    return [int(place * args.stagger * 1e6) for place in order]


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


def receivers(args, spans, start_ns):
    """Of a broadcast, by receiver: arrival, end, and how late that is, in units of S/B."""
    alone = transfer.bound_seconds(args.size, args.rate)
    arrivals, ends, late, bound = [], [], [], 0.0
    for node in range(1, args.nodes):
        arrivals.append(node * args.stagger / 1e3)
        ends.append(round((max(end for _, end in spans[node]) - start_ns) / 1e9, 6))
        bound = max(bound, arrivals[-1] + alone)
        late.append(round((ends[-1] - bound) / alone, 4) if alone else None)
    return {"arrival_seconds": arrivals, "end_seconds": ends, "late_shares": late}


def one_turn(system, args, disturb=None):
    """`disturb`, if any, is called with the start in ns, while the operation runs."""
    system.ready(staggered=args.stagger > 0)
    arrivals = arrivals_ns(args)
    meter = Meter(system.config)
    start_ns = time.monotonic_ns() + LEAD_NS + args.nodes * LEAD_PER_NODE_NS
    bound = bound_seconds(args)
    try:
        system.begin(start_ns, arrivals)
        time.sleep(max(0, start_ns - time.monotonic_ns()) / 1e9)
        meter.start()
        if disturb:
            disturb(start_ns)
        spans = system.finish(patience_s=60 + 30 * bound)
        meter.stop()
    except Failure as failure:
        raise Failure(f"{failure}\n{system.trouble()}") from None
    cost = meter.row(args.size)
    system.verify()
    seconds = seconds_of(args.op, spans, start_ns)
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
        row |= receivers(args, spans, start_ns)
    if alone:
        row["late_share"] = round((seconds - bound) / alone, 4)
    return row | cost


def measure(args, running):
    for system in running:
        system.prepare(args.op, args.size)
    for turn in range(-1, args.repeat):  # the first only warms up
        for system in running:
            row = one_turn(system, args)
            if turn >= 0:
                tell(row)
                yield row


def results(args):
    """The rows of all repetitions, as they come."""
    shell.require_root("scripts/bench")
    with systems(args) as running:
        if args.kill:
            yield from kill_results(args, running[0], one_turn)
        else:
            yield from measure(args, running)


def main(op, argv):
    args = parse(op, argv)
    rows = []
    for row in results(args):
        rows.append(row)
        if args.json:
            print(json.dumps(row), flush=True)
    table(args, rows)
    if args.kill:
        kill_table(args, rows)
