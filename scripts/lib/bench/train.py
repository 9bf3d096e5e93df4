# SPDX-License-Identifier: BSD-3-Clause
"""Training of a neural network by one group under different synchronisation policies (docs/user/groups.md).

  bench train                                        digits, eight workers, all policies: ten minutes
  bench train --data synthetic --rate 0              larger images and a larger network
  bench train --policy bsp 'ssp 4' --repeat 1
  bench train --policy bsp --swap 10 'ssp 4'         a policy that replaces another in the middle
  bench train --policy bsp --repeat 1 --seconds 6 --swap 3 'ssp 4' --timeline swap.svg
  bench train --switch --policy bsp 'k-of-n 6'       each with and without an aggregator in the network

One worker per node (bench/train.py). In every second one or two workers, drawn from the seed, are two to five
times as slow; the policies take turns with the same seeds. Accuracy is of test images, by the parameters of all
workers, as a mean over a second. `to target` is the time to the accuracy that bsp has at the end, less half a
point. waited: seconds that a worker spent in push and pull, the mean of all. refused: gradients that came too
late and stayed with their worker. switched: of the rounds, those that the switch made. CPU: of the nodes, and of the workers while they trained."""

import argparse
import itertools
import json
import statistics
import time

from lib import options, shell
from lib.bench import transfer
from lib.bench.systems import dask, peer
from lib.bench.tables.table import Columns, grouped, taken
from lib.bench.task import Program, ask_all, end_programs
from lib.cluster import network, nodes, process
from lib.shell import ROOT, Failure, build_dir, say

POLICIES = ("bsp", "ssp 2", "ssp 4", "asp", "k-of-n 6", "auto")
DATA = {"digits": {"batch": 8, "rate": 0.1, "sample_s": 0.1, "seconds": 30.0},
        "synthetic": {"batch": 8, "rate": 0.1, "sample_s": 0.25, "seconds": 30.0}}
PACKAGES = {"digits": ("python3-numpy", "python3-sklearn"), "synthetic": ("python3-numpy",)}
READY_S = 2.0   # between the order and the start: opening the group
PATIENCE_S = 120.0
MEAN_S = 1.0    # accuracy is the mean of so long
BEFORE_S, AFTER_S = 0.2, 0.3  # around a change of policy, in a timeline
POINTS = 0.005  # that an accuracy may be below another and count as equal
TABLE = Columns("policy<16", "to target>10.1f", "of bsp>8.2f", "accuracy>10.3f", "waited s>10.1f", "steps>7",
                "refused>9", "switched>9.2f", "CPU s>8.1f", "runs>6")


def parse(argv):
    parser = options.Parser(prog="bench train", description=__doc__)
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--policy", nargs="+", default=list(POLICIES), metavar="POLICY")
    parser.add_argument("--workers", type=options.whole(2, 16), default=8, metavar="N")
    parser.add_argument("--seconds", type=options.SECONDS, metavar="S", help="of a run (30)")
    parser.add_argument("--work-ms", type=options.real(1, 10000), default=30, metavar="T",
                        help="that a gradient takes where nothing is slow (30)")
    parser.add_argument("--rate", type=options.RATE_OR_NONE, default=200, metavar="MBIT", help="of each link")
    parser.add_argument("--swap", nargs=2, action="append", default=[], metavar=("S", "POLICY"),
                        help="from second S on another policy")
    parser.add_argument("--switch", action="store_true", help="every run twice: with and without a DPDK switch that "
                        "adds up; all pass through that switch")
    parser.add_argument("--repeat", type=options.COUNT, default=3, metavar="R")
    parser.add_argument("--plot", metavar="FILE", help="accuracy over time, as SVG")
    parser.add_argument("--timeline", metavar="FILE", help="the steps around each swap of the first run, as SVG")
    parser.add_argument("--json", action="store_true", help="one JSON object per run")
    args = parser.parse_args(argv)
    args.seconds = args.seconds or DATA[args.data]["seconds"]
    try:
        args.swap = [[options.SECONDS(at), policy] for at, policy in args.swap]
    except argparse.ArgumentTypeError as error:
        parser.error(f"--swap: {error}")
    return args


def curve_of(told):
    """[second, accuracy]: the means of all workers' samples over each MEAN_S."""
    samples = sorted(one for worker in told for one in worker["curve"])
    slots = itertools.groupby(samples, lambda one: int(one[0] // MEAN_S))
    return [((slot + 1) * MEAN_S, statistics.fmean(accuracy for _, accuracy in same)) for slot, same in slots]


def reached(curve, target):
    """The first second from which on the mean is not below the target, or None."""
    return next((at for at, accuracy in curve if accuracy >= target), None)


class Workers:
    def __init__(self, config):
        self.config = config
        self.programs = [Program(config, node, f"worker {node}", dask.PYTHON, ROOT / "bench/train.py", node,
                                 env=environment(config, node)) for node in range(config["nodes"])]
        self.numbers = itertools.count()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_programs(self.programs)

    def run(self, args, policy, seed, switch=None):
        chosen = DATA[args.data]
        fields = {"group": f"train-{next(self.numbers)}", "policy": policy, "workers": args.workers, "data": args.data,
                  "seed": seed, "seconds": args.seconds, "work_ms": args.work_ms,
                  "batch": chosen["batch"], "rate": chosen["rate"], "sample_s": chosen["sample_s"], "swaps": args.swap, "switch": switch}
        before = sum(map(process.run_seconds, nodes.pids(self.config)))
        tasks = [program.task for program in self.programs]
        ask_all(tasks, [[json.dumps(fields)]] * args.workers, patience_s=PATIENCE_S)
        told = ask_all(tasks, [[time.monotonic() + READY_S]] * args.workers, patience_s=args.seconds + PATIENCE_S)
        used = sum(map(process.run_seconds, nodes.pids(self.config))) - before + sum(one["cpu_s"] for one in told)
        info = told[0]["info"]
        return {"policy": policy + (", switch" if switch else ""), "switched": info["switched"] / max(1, info["rounds"]),
                "fallen": info["fallen"], "data": args.data, "seed": seed, "curve": curve_of(told), "cpu_seconds": used,
                "steps": sum(one["steps"] for one in told), "refused": sum(one["refused"] for one in told),
                "waited_s": statistics.fmean(one["waited_s"] for one in told), "rounds": told[0]["rounds"],
                "spans": [one["spans"] for one in told], "swapped": told[0]["swapped"]}


def environment(config, node):
    """One thread of numpy: as many workers as there are would have a thread per core each."""
    base = dask.environment() | nodes.environment(config, node)
    return base | {"PYTHONPATH": f"{build_dir()}/client/python:{base['PYTHONPATH']}", "OMP_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1"}


def measure(args):
    more = ["--switch", "dpdk", "--vdev", "udp"] if args.switch else []
    ways = [None, network.aggregator_ip()] if args.switch else [None]
    with transfer.cluster(args.workers, "--rate", args.rate, *more, suffix="t") as config, Workers(config) as workers:
        for seed, policy, way in itertools.product(range(1, args.repeat + 1), args.policy, ways):
            yield workers.run(args, policy, seed, way)


def end_of(curve):
    """The accuracy at the end: of the last tenth."""
    return statistics.fmean(accuracy for _, accuracy in curve[-max(1, len(curve) // 10):])


def table(rows):
    base = next((row["policy"] for row in rows if row["policy"] == "bsp"), rows[0]["policy"])
    target = statistics.median(end_of(row["curve"]) for row in rows if row["policy"] == base) - POINTS
    by_seed = {row["seed"]: reached(row["curve"], target) for row in rows if row["policy"] == base}
    say(f"target: {100 * target:.1f} % of the test images; medians of the runs, `of bsp` seed by seed")
    TABLE.head()
    for policy, same in grouped(rows, lambda row: row["policy"]).items():
        def median(key):
            return statistics.median(row[key] for row in same)
        times = [reached(row["curve"], target) for row in same]
        shares = [at / by_seed[row["seed"]] for at, row in zip(times, same) if at and by_seed.get(row["seed"])]
        late = any(at is None for at in times)
        TABLE.line(policy, "not" if late else statistics.median(times), None if late or not shares
                   else statistics.median(shares), statistics.median(end_of(row["curve"]) for row in same),
                   median("waited_s"), median("steps"), median("refused"), median("switched"), median("cpu_seconds"),
                   len(same))


def plot(rows, file):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for policy, same in grouped(rows, lambda row: row["policy"]).items():
        length = min(len(row["curve"]) for row in same)
        axes.plot([at for at, _ in same[0]["curve"][:length]],
                  [100 * statistics.median(row["curve"][i][1] for row in same) for i in range(length)], label=policy)
    axes.set(xlabel="seconds", ylabel="test images right (%)", title=f"{rows[0]['data']}: accuracy over time")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})


def swaps_shown(rows):
    """Where the version of the policy changes, seen by worker 0."""
    for row in rows:
        for (_, last, version, *_), (at, number, other, count, stale) in itertools.pairwise(row["rounds"]):
            if other != version:
                say(f"{row['policy']}, seed {row['seed']}: round {last} is the last that was seen under version {version}, "
                    f"round {number} at {at:.3f} s the first under {other}: {count} contributions, staleness up to "
                    f"{stale}")


def first_under(row, version):
    """(worker, begin of the step, end of its pull) of the first pull that ended under the version."""
    return min(((rank, begin, end) for rank, spans in enumerate(row["spans"]) for begin, _, end, _, seen in spans
                if seen >= version), key=lambda one: one[2], default=None)


def timeline(row, file):
    """A row per worker: gray while it computes, coloured while it pushes and pulls, by the version of the policy
    under which its pull ended."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    swaps = row["swapped"]
    figure, axes = pyplot.subplots(len(swaps), figsize=(9, 2.6 * len(swaps)), squeeze=False)
    colours = pyplot.get_cmap("tab10").colors
    names = {1: row["policy"]} | {version: policy for _, _, policy, version in swaps}
    for axis, (asked, answered, policy, version) in zip(axes[:, 0], swaps):
        for rank, spans in enumerate(row["spans"]):
            for begin, push, end, _, seen in spans:
                if end < asked - BEFORE_S or begin > asked + AFTER_S:
                    continue
                axis.barh(rank, 1e3 * (push - begin), left=1e3 * (begin - asked), color="0.85")
                axis.barh(rank, 1e3 * (end - push), left=1e3 * (push - asked), color=colours[(seen - 1) % 10])
        axis.axvline(0, color="black", linewidth=0.8)
        axis.axvline(1e3 * (answered - asked), color="black", linewidth=0.8, linestyle=":")
        axis.set(xlim=(-1e3 * BEFORE_S, 1e3 * AFTER_S), ylabel="worker", xlabel=f"ms after the change to {policy} was asked for (dotted: "
                 "answered)", yticks=range(len(row["spans"])))
        shown = sorted(names)
        axis.legend([pyplot.Rectangle((0, 0), 1, 1, color=colours[(one - 1) % 10]) for one in shown],
                    [f"waits, {names[one]}" for one in shown], loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    figure.tight_layout()
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    missing = [name for name in PACKAGES[args.data] if not shell.succeeds("dpkg", "-s", name)]
    if missing:
        peer.install(missing)
    rows = taken(args, measure(args), hidden=("rounds", "spans", "swapped"))
    if not rows:
        raise Failure("no run has ended")
    table(rows)
    swaps_shown(rows if args.swap else [])
    if args.plot:
        plot(rows, args.plot)
    if args.timeline:
        for asked, answered, policy, version in rows[0]["swapped"]:
            rank, begin, end = first_under(rows[0], version) or (None, asked, asked)
            say(f"{policy}: answered after {1e3 * (answered - asked):.1f} ms; the first pull under it ended after "
                f"{1e3 * (end - asked):.1f} ms, of worker {rank}")
        timeline(rows[0], args.timeline)
