# SPDX-License-Identifier: BSD-3-Clause
"""Applications of task-based systems at model scale, beside the same programs over plain TCP.

  bench apps                               all of them, seven workers and a server
  bench apps --only 'sgd-*' --scale 8      larger models: 1/8 of the real ones

What happens in a round (bench/apps/app.c):
  sgd-*     asynchronous SGD: the parameter server adds the gradients of the first half of the
            workers to its model and gives it to these workers
  policy    IMPALA: the policy goes to all workers, trajectories (1/16 of its size) come back
  a3c       the gradients of all workers are added up, the model goes to all
  serving   an ensemble: a query goes to all replicas, their votes (1/4096) come back

Workers wait for --work-ms, half to one and a half, as if a device of their own computed. Every
model is checked by its digest, of gradients some elements of each packet, all within the time. The
systems take turns, each on fresh links of the same shape; TCP has segmentation off-loads for models
from 8 MiB on."""

import contextlib
import statistics
import time

from lib import options, shell
from lib.bench import transfer
from lib.bench.systems.peer import set_offloads
from lib.bench.tables.table import Columns, taken
from lib.bench.task import Program, built
from lib.cluster import network, nodes
from lib.shell import say

MB = 1e6
# case -> program, bytes of the real model: AlexNet, VGG-16, ResNet-50, a policy; a batch of images
CASES = {
    "sgd-alexnet": ("sgd", 233 * MB),
    "sgd-vgg16": ("sgd", 528 * MB),
    "sgd-resnet50": ("sgd", 97 * MB),
    "policy": ("policy", 64 * MB),
    "a3c": ("a3c", 64 * MB),
    "serving": ("serving", 12 * MB),
}
SYSTEMS = ("sarissa", "tcp")
PORT = 5400
PATIENCE_S = 600
HELD = 2  # objects of a node in its store at least
APPLICATIONS = Columns("application<14", "MB>7.1f", "system>9", "rounds/s>10.3f", "s/round>9.3f", "min>9.3f",
                       "max>9.3f", "CPU s/round>13.3f", "x TCP>7.2f")


def parse(argv):
    parser = options.Parser(prog="bench apps", description=__doc__)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN",
                        help=f"of {' '.join(CASES)}")
    parser.add_argument("--nodes", type=options.whole(2, 64), default=8, metavar="N", help="one is the server")
    parser.add_argument("--rate", type=options.RATE_OR_NONE, default=200, metavar="MBIT", help="of each link")
    parser.add_argument("--mtu", type=options.MTU, default=1500, metavar="BYTES")
    parser.add_argument("--scale", type=options.SECONDS, default=32, metavar="F",
                        help="models are so many times smaller than the real ones (32)")
    parser.add_argument("--rounds", type=options.COUNT, default=8, metavar="R",
                        help="of a run; one more before them warms up")
    parser.add_argument("--work-ms", type=options.real(0, 60000), default=50, metavar="T")
    parser.add_argument("--repeat", type=options.COUNT, default=1, metavar="R", help="runs of each system")
    parser.add_argument("--json", action="store_true", help="one JSON object per run")
    args = parser.parse_args(argv)
    options.check_mtu(args.mtu, options.vdev())
    args.cases = options.chosen("--only", args.only, CASES, f"choose of {' '.join(CASES)}")
    return args


def links(args, system, size):
    options = ["--rate", args.rate, "--mtu", args.mtu]
    if system == "tcp":
        return transfer.cluster(args.nodes, *options, "--bare", suffix="t")
    return transfer.cluster(args.nodes, *options, "--store", int(12 * size / 2**20) + 64)


def one_run(args, case, system):
    """A run of one application over fresh links."""
    app, real = CASES[case]
    size = int(real / args.scale)
    with contextlib.ExitStack() as stack:
        config = stack.enter_context(links(args, system, size))
        if system == "tcp":
            set_offloads(config, size)
        ranks = [stack.enter_context(Program(
            config, rank, f"{case} over {system}, rank {rank}", built("app"), "--app", app,
            "--transport", system, "--ranks", args.nodes, "--rank", rank, "--bytes", size,
            "--rounds", args.rounds + 1, "--work-ms", args.work_ms, "--server",
            network.node_ip(0), "--port", PORT, env=nodes.environment(config, rank)))
            for rank in range(args.nodes)]
        alive = [rank.alive for rank in ranks]
        ranks[0].alive = lambda: all(one() for one in alive)  # the server waits for all of them
        until = time.monotonic() + PATIENCE_S
        ranks[0].answer(until)
        busy = transfer.machine_busy_seconds()
        seconds = ranks[0].answer(until)["seconds"]
        busy = transfer.machine_busy_seconds() - busy
        for rank in ranks[1:]:
            rank.answer(until)
    middle = statistics.median(seconds)
    return {"op": "apps", "case": case, "system": system, "nodes": args.nodes, "bytes": size,
            "rate_mbit": args.rate, "mtu": args.mtu, "work_ms": args.work_ms,
            "round_seconds": seconds, "seconds": middle, "rounds_per_s": 1 / middle,
            "cpu_seconds_per_round": round(busy / len(seconds), 4)}


def results(args):
    for case in args.cases:
        for _ in range(args.repeat):
            for system in SYSTEMS:
                row = one_run(args, case, system)
                say(f"  {case:<14}{system:<9}{row['seconds']:>9.4f} s a round")
                yield row


def table(args, rows):
    say(f"{args.nodes} nodes, {args.rate:g} Mbit/s, MTU {args.mtu}, models 1/{args.scale:g}, "
        f"work {args.work_ms:g} ms, {args.repeat} x {args.rounds} rounds")
    APPLICATIONS.head()
    for case in args.cases:
        by = {system: [row for row in rows if (row["case"], row["system"]) == (case, system)]
              for system in SYSTEMS}
        middle = {system: statistics.median(s for row in same for s in row["round_seconds"])
                  for system, same in by.items()}
        for system, same in by.items():
            every = [s for row in same for s in row["round_seconds"]]
            cpu = statistics.median(row["cpu_seconds_per_round"] for row in same)
            APPLICATIONS.line(case, same[0]["bytes"] / MB, system, 1 / middle[system], middle[system], min(every),
                              max(every), cpu, middle["tcp"] / middle[system])


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    options.check_memory(HELD * args.nodes * max(CASES[case][1] for case in args.cases) / args.scale,
                         "name a larger --scale, or fewer --nodes")
    table(args, taken(args, results(args)))
