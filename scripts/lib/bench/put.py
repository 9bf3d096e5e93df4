# SPDX-License-Identifier: BSD-3-Clause
"""Puts of one client, shared and apart: what the copy into the store costs who may not write there.

  bench put [--repeat R]

A client of the daemons' user writes into the store itself, one of another user (nobody) apart from it,
and control copies. Both take turns on one node. Longest turn: of control's event loop, which other
clients and nodes wait for, while the puts of that size went on."""

import json
import statistics
import time
from operator import itemgetter

from lib import options, shell
from lib.bench import transfer
from lib.bench.lookup import percentile, program
from lib.bench.tables.table import Columns, grouped, taken
from lib.bench.task import Program, built
from lib.cluster import nodes, state
from lib.shell import say

KIB, MIB = 1 << 10, 1 << 20
# bytes and puts of a turn: less than a second of them, and a fraction of the store
SIZES = ((KIB, 500), (64 * KIB, 300), (MIB, 60), (64 * MIB, 4))
NOBODY = 65534
CASES = Columns("bytes>9", " case<9", "puts>7", "median>10.1f", "p99>10.1f", "CPU>10.1f", "turn>8.0f", "worst>8")
WRITTEN_S = 1.1  # control writes its values about once a second


def parse(argv):
    parser = options.Parser(prog="bench put", description=__doc__)
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R", help="turns of each case")
    parser.add_argument("--json", action="store_true", help="one JSON object per turn")
    return parser.parse_args(argv)


def longest_turn_us(config):
    """Since it was called last, or about a second before."""
    time.sleep(WRITTEN_S)
    nodes.status_lines(config, 0)  # the question makes the loop turn
    out = shell.run(nodes.binary("cli"), "status", "--counters", "--json", "--socket",
                    state.node_dir(config, 0) / "control.sock")
    return next(v["control"]["turn_us"] for v in map(json.loads, out.splitlines()) if "control" in v)


def one_turn(config, how, task, size, count):
    prefix = f"bench-put-{how}-"
    longest_turn_us(config)
    told = task.ask("put", prefix, count, size)
    row = {"op": "put", "case": how, "bytes": size, "count": count, "ns": told["ns"],
           "caller_cpu_ns": round(told["cpu_ns"] / count), "turn_us": longest_turn_us(config)}
    task.ask("rm", prefix, count)
    return row


def measure(args, config, tasks):
    for turn in range(-1, args.repeat):  # the first only warms up
        for size, count in SIZES:
            for how, task in tasks.items():
                row = one_turn(config, how, task, size, count)
                if turn >= 0:
                    yield row


def table(args, rows):
    say(f"{args.repeat} turns; microseconds of a put; CPU of the caller; longest turn of control: "
        "median and worst of the turns")
    CASES.head()
    for (size, how), same in sorted(grouped(rows, itemgetter("bytes", "case")).items()):
        values = [ns / 1e3 for row in same for ns in row["ns"]]
        cpu, turn = (statistics.median(row[key] for row in same) for key in ("caller_cpu_ns", "turn_us"))
        CASES.line(size, " " + how, len(values), statistics.median(values), percentile(values, 99), cpu / 1e3,
                   turn, max(row["turn_us"] for row in same))


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    with transfer.cluster(1, "--store", 512) as config, \
            program(config, 0, "lookup") as shared, \
            Program(config, 0, "lookup of nobody", built("lookup"), NOBODY,
                    env=nodes.environment(config, 0)) as apart:
        rows = taken(args, measure(args, config, {"shared": shared, "apart": apart}), hidden=("ns",))
    table(args, rows)
