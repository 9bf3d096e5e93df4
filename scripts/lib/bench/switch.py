# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces through a switch that aggregates, beside those of the nodes on the same network.

  bench allreduce --switch dpdk xdp none --nodes 8 --size 33554432 --rate 200
  bench allreduce --switch dpdk --only small lossy killed

Cases: `large` and `small` (1 KiB); `lossy`, large with 1 % loss on every path beside large without, both with packets
that nodes cut themselves; `killed`, objects, whose switch is killed half-way. Large and small ones are arrays in memory
(sar_switch_allreduce), f32 with dpdk and i32 with xdp, block: f32 as blocks; `none` is `sarissa reduce --spread`, whose
arrays are objects. The time is from the first member's call to the last one's end; every element is compared. The bound
is S/B: each member sends S and receives S. CPU is of the whole machine, all members too, per GB that members gave; that
of the switch is its process alone (of an XDP program the machine's is all there is)."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import time
import types

from lib import options, shell
from lib.bench import ops, transfer
from lib.bench.reduce import SarissaReduce
from lib.bench.tables.table import Columns, taken
from lib.cluster import faults, network, nodes, process
from lib.options import MIB
from lib.shell import Failure, build_dir

KINDS = {"dpdk": ("dpdk", "f32"), "xdp": ("xdp", "i32"), "block": ("xdp", "block"), "none": (None, None)}
CASES = ("large", "small", "lossy", "killed")
SMALL, SMALL_ROUNDS = 1024, 200
groups = iter(range(1, 1 << 20))


def parse(argv):
    parser = options.Parser(prog="bench allreduce --switch", description=__doc__)
    parser.add_argument("--switch", nargs="+", choices=KINDS, required=True)
    parser.add_argument("--only", nargs="+", choices=CASES, default=["large", "small", "lossy", "killed"])
    parser.add_argument("--nodes", type=options.NODES, default=8, metavar="N")
    parser.add_argument("--size", type=options.SIZE, default=32 * MIB, metavar="BYTES", help="of one array")
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT")
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R")
    parser.add_argument("--json", action="store_true", help="one JSON object per repetition")
    return parser.parse_args(argv)


def switch_cpu(config):
    pid = process.alive(nodes.switch_file(config, "pid"))
    return process.run_seconds(pid) if pid else 0.0


class Members:
    """A task on each node, all in one group."""

    def __init__(self, config, size, dtype, rounds=1):
        group = next(groups)
        self.config, self.rounds, self.gigabytes = config, rounds, rounds * size * config["nodes"] / 1e9
        task = build_dir() / "tests/net/aggregate_task"
        self.tasks = [subprocess.Popen(
            ["ip", "netns", "exec", network.node_netns(config["name"], i), task, network.aggregator_ip(), str(group),
             str(i), str(config["nodes"]), str(size), dtype, str(rounds)], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE) for i in range(config["nodes"])]

    def run(self):
        """One JSON line of each."""
        for task in self.tasks:
            if (line := task.stdout.readline()) != "joined\n":
                raise Failure(f"a member does not join: {line.strip()}")
        time.sleep(0.5)  # what they made ready is not measured
        (busy, _), own = transfer.machine_cpu_seconds(), switch_cpu(self.config)
        for task in self.tasks:
            task.stdin.write("go\n")
            task.stdin.flush()
        said = [json.loads(task.stdout.readline()) for task in self.tasks]
        own, (after, _) = switch_cpu(self.config) - own, transfer.machine_cpu_seconds()
        for one in said:
            if "took_ns" not in one:
                raise Failure(f"a member failed: {one}")
        return {"machine_cpu_seconds_per_gb": (after - busy) / self.gigabytes,
                "switch_cpu_seconds_per_gb": own / self.gigabytes,
                "polls": sum(one["polls"] for one in said), "resent": sum(one["resent"] for one in said),
                "seconds": self.seconds(said)}

    def seconds(self, said):
        if self.rounds > 1:  # the last of each round; the first rounds warm up
            rounds = range(self.rounds // 10, self.rounds)
            return statistics.median(max(one["took_ns"][i] for one in said) for i in rounds) / 1e9
        return (max(one["ended_ns"] for one in said) - min(one["ended_ns"] - one["took_ns"][0] for one in said)) / 1e9

    def end(self):
        for task in self.tasks:
            with contextlib.suppress(OSError):
                task.stdin.close()
        return [task.wait(timeout=60) for task in self.tasks]


def through_switch(config, size, dtype, rounds=1):
    members = Members(config, size, dtype, rounds)
    try:
        took = members.run()
    finally:
        status = members.end()  # which compare what they have
    if any(status):
        raise Failure(f"members have wrong sums: {status}")
    return took


class ByNodes:
    """The nodes' allreduce of objects."""

    def __init__(self, config, size, rate):
        self.system = SarissaReduce(config, "")
        self.turn = types.SimpleNamespace(op="allreduce", nodes=config["nodes"], size=size, rate=rate,
                                          mtu=config["mtu"], stagger=0, order="rising", trace=None)

    def __enter__(self):
        self.system.__enter__()
        self.system.prepare("allreduce", self.turn.size)
        return self

    def __exit__(self, *why):
        return self.system.__exit__(*why)

    def run(self):
        took = ops.one_turn(self.system, self.turn)
        cpu = took["cpu_seconds"]
        return {"seconds": took["seconds"],
                "machine_cpu_seconds_per_gb": cpu and cpu / (self.turn.size * self.turn.nodes / 1e9)}


def by_nodes(config, size, rate, repeat):
    with ByNodes(config, size, rate) as system:
        return [system.run() for _ in range(-1, repeat)][1:]


def cut_and_lose(config, percent):
    network.cut_bursts(config)
    percents = dict.fromkeys(faults.KINDS, 0) | {"loss": percent}
    for node in range(config["nodes"]):
        for direction in faults.HOOKS:
            faults.apply(config, node, direction, percents)


def put_arrays(config, size):
    for node in range(config["nodes"]):
        done = subprocess.run(["ip", "netns", "exec", network.node_netns(config["name"], node), "sh", "-c",
                               f"head -c {size} /dev/zero | sarissa put killed/{node} -"],
                              env=nodes.environment(config, node), capture_output=True, text=True)
        if done.returncode:
            raise Failure(done.stderr.strip())


def start_reduces(config, target):
    parts = [f"killed/{node}" for node in range(config["nodes"])]
    words = ["reduce", "--json", "--switch", network.aggregator_ip(), "--timeout", "60", target, *parts, "--member"]
    return [subprocess.Popen(
        ["ip", "netns", "exec", network.node_netns(config["name"], node), nodes.binary("cli"), *words, str(node)],
        env=nodes.environment(config, node), text=True, stdout=subprocess.PIPE) for node in range(config["nodes"])]


def killed(config, size, rate, repeat):
    """How much later than an allreduce of the nodes that begins at that moment the last member has the sum."""
    usual = statistics.median(row["seconds"] for row in by_nodes(config, size, rate, repeat))
    put_arrays(config, size)
    for turn in range(repeat):
        tasks = start_reduces(config, f"killed/sum/{turn}")
        time.sleep(transfer.bound_seconds(size, rate) / 2 + 0.1)
        os.kill(process.alive(nodes.switch_file(config, "pid")), signal.SIGKILL)
        at = time.monotonic()
        said = [json.loads(task.communicate(timeout=120)[0]) for task in tasks]
        took = time.monotonic() - at
        if all(one["switch"] for one in said):
            raise Failure("the switch was done before it was killed: take a larger --size")
        nodes.start_switch(config, time.monotonic() + 20)
        subprocess.run(["ip", "netns", "exec", network.node_netns(config["name"], 0), nodes.binary("cli"), "rm",
                        f"killed/sum/{turn}"], env=nodes.environment(config, 0), check=True)
        yield {"seconds": took, "usual_seconds": usual, "later_seconds": took - usual}


def rows_of(kind, args):
    switch, dtype = KINDS[kind]
    store = 4 * args.size // MIB + 64
    wanted = ["--vdev", "udp", "--rate", args.rate, "--store", store, *(["--switch", switch] if switch else [])]
    bound = transfer.bound_seconds(args.size, args.rate)

    def row(case, took):
        ratio = took["seconds"] / bound if case != "small" else None
        return {"case": case, "switch": kind, "nodes": args.nodes, "bytes": SMALL if "small" in case else args.size,
                "rate_mbit": args.rate, "bound_seconds": bound, "ratio": ratio, **took}

    with transfer.cluster(args.nodes, *wanted) as config:
        if "large" in args.only:
            took = (through_switch(config, args.size, dtype) for _ in range(args.repeat)) if switch else \
                by_nodes(config, args.size, args.rate, args.repeat)
            yield from (row("large", one) for one in took)
        if "small" in args.only and switch:
            yield from (row("small", through_switch(config, SMALL, dtype, SMALL_ROUNDS)) for _ in range(args.repeat))
        if "small" in args.only:
            yield from (row("small, by nodes", one | {"ratio": None}) for one in by_nodes(config, SMALL, args.rate, 20))
        if "killed" in args.only and switch == "dpdk":
            yield from (row("killed", one) for one in killed(config, args.size, args.rate, args.repeat))
        if "lossy" in args.only and switch:
            cut_and_lose(config, 0)
            yield from (row("large, cut", through_switch(config, args.size, dtype)) for _ in range(args.repeat))
            cut_and_lose(config, 1)
            yield from (row("large, 1 % loss", through_switch(config, args.size, dtype)) for _ in range(args.repeat))


def show(rows):
    columns = Columns("case<18", "switch<8", "seconds>10.5f", "ratio>8.3f", "later s>9.3f", "CPU s/GB>10.2f",
                      "(switch)>10.2f", "polls>8g", "runs>6g")
    columns.head()
    for case, switch in dict.fromkeys((row["case"], row["switch"]) for row in rows):
        same = [row for row in rows if (row["case"], row["switch"]) == (case, switch)]

        def median(key):
            values = [row[key] for row in same if row.get(key) is not None]
            return statistics.median(values) if values else None
        columns.line(case, switch, median("seconds"), median("ratio"), median("later_seconds"),
                     median("machine_cpu_seconds_per_gb"), median("switch_cpu_seconds_per_gb") or None,
                     median("polls"), len(same))


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    rows = []
    for kind in args.switch:
        rows += taken(args, rows_of(kind, args))
    show(rows)
