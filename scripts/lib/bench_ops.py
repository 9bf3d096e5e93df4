# SPDX-License-Identifier: BSD-3-Clause
"""Collectives against the bound of the links, and against other systems in the same run.

  bench broadcast --nodes 8 --size 33554432 --rate 100 --system both

Times as Hoplite took them: broadcast from the moment that all ask to the end of the last receiver;
reduce from the call of reduce until node 0 holds the sum of all nodes' f32 arrays; allreduce from
there until the last node holds it; gather the time of all gets at node 0, one object from each
other node; p2p the round trip of an object. What is checked (every byte) and made ready is outside
the time. The systems take turns.

With --stagger node I calls I * MS after the start; in a reduce it gives its array then (--order has
other orders). Then 'late' tells how long after the bound the last receiver ended, in units of S/B:
the bound of a receiver is its arrival + S/B, and not before those of the earlier ones; that of a
reduce is the last arrival + S/B. 'blocked' is how long each task stood in its calls, the giver too.

With --kill both daemons of the nodes named are killed (SIGKILL) in the middle of a reduce that has as
many sources in reserve: 'later' tells how much later than undisturbed its end comes, in units of S/B.
"""

import argparse
import contextlib
import json
import random
import statistics
import time

from . import shell, transfer
from .bench_gloo import DEFAULT_TUNINGS, TUNINGS, Gloo
from .bench_meter import Meter
from .bench_openmpi import OpenMpi
from .bench_reduce import KilledReduce, SarissaReduce, kill_results, kill_table
from .bench_sarissa import Sarissa
from .bench_sum import ELEMENT_BYTES, REDUCES
from .shell import Failure, say

LEAD_NS = 60_000_000  # from the last order to the common start
LEAD_PER_NODE_NS = 3_000_000
MIB = 1 << 20

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
STAGGERED = ("broadcast", *REDUCES)
SYSTEMS = {"sarissa": ["sarissa"], "openmpi": ["openmpi"], "gloo": ["gloo"],
           "both": ["sarissa", "openmpi"], "all": ["sarissa", "openmpi", "gloo"]}


def parse(op, argv):
    parser = argparse.ArgumentParser(prog=f"bench {op}", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2 if op == "p2p" else 4, metavar="N")
    parser.add_argument("--size", type=int, default=32 * MIB, metavar="BYTES", help="of one object")
    parser.add_argument("--rate", type=float, default=100, metavar="MBIT",
                        help="of each node's link; 0: no limit, no bound")
    parser.add_argument("--mtu", type=int, default=1500, metavar="BYTES")
    parser.add_argument("--system", choices=SYSTEMS, default="sarissa",
                        help="both: without Gloo, which takes part in reduce and allreduce only")
    parser.add_argument("--tuning", nargs="+", default=["default", "hand"], metavar="T",
                        help="of OpenMPI: its defaults, the algorithm that we picked by hand, or "
                        "parameters to try: bcast_algorithm=7,btl_tcp_eager_limit=1000000")
    parser.add_argument("--stagger", default="0", metavar="MS|xT",
                        help="node I calls I * MS after the start; 0.2T: in units of the time that "
                        "the object alone needs on a link; not of gather and p2p")
    if op in REDUCES:
        add_reduce_options(parser, op)
    parser.add_argument("--repeat", type=int, default=5, metavar="R")
    parser.add_argument("--workers", type=int, default=1, metavar="W", help="of our dataplanes")
    parser.add_argument("--busy-poll", action="store_true", help="our dataplanes never sleep")
    parser.add_argument("--json", action="store_true", help="one JSON object per repetition")
    args = parser.parse_args(argv)
    args.stagger = stagger_ms(args)
    args.op, args.systems = op, SYSTEMS[args.system]
    check(args)
    return args


def add_reduce_options(parser, op):
    parser.add_argument("--gloo-tuning", nargs="+", choices=TUNINGS[op], metavar="A",
                        default=DEFAULT_TUNINGS[op], help=f"of Gloo: {' '.join(TUNINGS[op])}")
    parser.add_argument("--order", choices=("rising", "falling", "random"), default="rising",
                        help="in which the nodes give with --stagger")
    if op == "reduce":
        parser.add_argument("--kill", type=int, nargs="+", default=[], metavar="I",
                            help="kill these nodes in the middle; only for sarissa")
        parser.add_argument("--at", type=float, default=0.5, metavar="SHARE",
                            help="when, in parts of the undisturbed time (0.5)")


def check(args):
    if args.nodes < 2 or args.size < 0 or args.repeat < 1 or args.rate < 0 or args.stagger < 0:
        raise Failure("--nodes is at least 2, --repeat at least 1, nothing is negative", 2)
    if args.stagger and args.op not in STAGGERED:
        raise Failure(f"--stagger is for {', '.join(STAGGERED)}", 2)
    if args.system == "gloo" and args.op not in REDUCES:
        raise Failure(f"Gloo takes part in {' and '.join(REDUCES)} only", 2)
    if args.op in REDUCES and (args.size % ELEMENT_BYTES or args.size < args.nodes * ELEMENT_BYTES):
        raise Failure("--size holds f32 elements, at least one for each node", 2)
    if getattr(args, "kill", []):
        check_kill(args)


def check_kill(args):
    spare = len(set(args.kill))
    if not all(0 < node < args.nodes - spare for node in args.kill) or args.stagger:
        raise Failure("--kill names nodes, but not node 0, which asks, nor the last "
                      f"{spare}, which have what is in reserve; there is no --stagger with it", 2)
    if not 0 < args.at < 1 or args.size == 0 or args.rate == 0:
        raise Failure("--at is between 0 and 1, and --kill wants a --size and a --rate", 2)
    args.systems = ["sarissa"]


def stagger_ms(args):
    text, unit = args.stagger, 1
    if text.endswith("T"):
        text, unit = text[:-1], 1e3 * transfer.bound_seconds(args.size, args.rate)
    try:
        return float(text) * unit
    except ValueError:
        raise Failure("--stagger is a number of ms, or a multiple like 0.2T", 2) from None


@contextlib.contextmanager
def systems(args):
    """Those asked for, each on links of its own; all are up during the whole run."""
    with contextlib.ExitStack() as stack:
        out = []
        if "sarissa" in args.systems:
            config = stack.enter_context(our_cluster(args))
            ours = (KilledReduce if getattr(args, "kill", []) else SarissaReduce
                    if args.op in REDUCES else Sarissa)
            out.append(stack.enter_context(ours(config)))
        for name, one, tunings in (("openmpi", OpenMpi, args.tuning),
                                   ("gloo", Gloo, getattr(args, "gloo_tuning", ()))):
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
    if getattr(args, "order", "rising") == "falling":
        order.reverse()
    elif getattr(args, "order", "rising") == "random":
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
           "node_arrival_seconds": [arrival / 1e9 for arrival in arrivals], "put_seconds": system.put_seconds()}
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


def tell(row):
    say(f"  {label(row):<24}{row['seconds']:>10.5f} s{row['ratio']:>8.3f} x   CPU "
        f"{share(row['cpu_share'])}")


def share(value):
    return "-" if value is None else f"{100 * value:.0f}%"


def label(row):
    return f"{row['system']} {row['tuning']}".strip()


def table(args, rows):
    say(f"{args.op}, {args.nodes} nodes, {args.size} bytes, {args.rate:g} Mbit/s, MTU {args.mtu}, "
        f"stagger {args.stagger:g} ms, {args.repeat} runs; bound {bound_seconds(args):.4f} s")
    say(f"{'system':<24}{'median s':>10}{'min':>10}{'max':>10}{'ratio':>8}{'min':>8}{'max':>8}"
        f"{'late S/B':>9}{'blocked s':>11}{'CPU':>6}{'other':>6}{'copies':>8}{'re-sent':>9}{'wire MB':>9}")
    groups = by_system(rows)
    for name, same in groups.items():
        line(name, same)
    if args.stagger:
        stagger_table(args, groups)


def by_system(rows):
    groups = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return groups


def stagger_table(args, groups):
    """Medians by task: when it came, how long it stood in its call, how late it was."""
    def medians(same, key):
        return [statistics.median(values) for values in zip(*(row[key] for row in same))]

    say("arrival, s" + " " * 25 + "".join(f"{at / 1e9:>9.3f}" for at in arrivals_ns(args)))
    for name, same in groups.items():
        say(f"blocked, s   {name:<22}" +
            "".join(f"{value:>9.4f}" for value in medians(same, "blocked_seconds")))
    for name, same in groups.items() if args.op == "broadcast" else ():
        late = medians(same, "late_shares") if args.rate else []
        say(f"late, S/B    {name:<22}{'-':>9}" + "".join(f"{value:>9.3f}" for value in late))


def line(name, same):
    def middle(key):
        values = [row[key] for row in same if row.get(key) is not None]
        return statistics.median(values) if values else None

    seconds = [row["seconds"] for row in same]
    ratios = [row["ratio"] for row in same]
    copies = f"{middle('source_copies'):.2f}" if "source_copies" in same[0] else "-"
    resent = f"{100 * middle('resent_share'):.2f}%" if "resent_share" in same[0] else "-"
    late = f"{middle('late_share'):.3f}" if "late_share" in same[0] else "-"
    say(f"{name:<24}{statistics.median(seconds):>10.5f}{min(seconds):>10.5f}{max(seconds):>10.5f}"
        f"{statistics.median(ratios):>8.3f}{min(ratios):>8.3f}{max(ratios):>8.3f}"
        f"{late:>9}{middle('blocked_mean_seconds'):>11.5f}{share(middle('cpu_share')):>6}"
        f"{share(middle('other_cpu_share')):>6}"
        f"{copies:>8}"
        f"{resent:>9}{middle('wire_bytes') / 1e6:>9.1f}")


def results(args):
    """The rows of all repetitions, as they come."""
    shell.require_root("scripts/bench")
    with systems(args) as running:
        if getattr(args, "kill", []):
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
    if getattr(args, "kill", []):
        kill_table(args, rows)
