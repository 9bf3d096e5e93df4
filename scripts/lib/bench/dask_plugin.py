# SPDX-License-Identifier: BSD-3-Clause
"""Dask with and without sarissa.dask.Plugin: the same programs (bench/dask_cases.py), one worker per node.

  bench dask [--workers 4 8] [--only CASE...] [--repeat R] [--engines]

  scatter-broadcast  32 MiB of the client to all workers
  tree-sum           32 arrays of 8 MiB, to one worker; with the plugin by sarissa.dask.reduce()
  all-to-all         64 arrays of 2 MiB, each from one worker to another, as a shuffle does
  small-tasks        10,000 tasks without data

Both have links of their own of the same rate; Dask alone has them with segmentation off-loads and without
our programs in the kernel. Seconds end when the last task that asked for bytes begins. ratio: to the time
that the busiest link needs for its bytes. CPU: of all processes of Dask and of the nodes. --engines: the Dask of
today, from scripts/setup --engines, and not Debian's."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from operator import itemgetter
from pathlib import Path

from lib import engines, options, shell
from lib.bench import transfer
from lib.bench.systems import dask as bench_dask, peer
from lib.bench.tables.table import Columns, grouped, taken
from lib.bench.task import Program, end_programs
from lib.cluster import network, nodes, process
from lib.shell import ROOT, Failure, build_dir, say

MIB = 1 << 20
START_S = 90.0
CASE_S = 300.0
# bytes of an array, how many, bytes over the busiest link
CASES = {
    "scatter-broadcast": (32 * MIB, 1, lambda size, count, workers: size),
    "tree-sum": (8 * MIB, 32, lambda size, count, workers: size),
    "all-to-all": (2 * MIB, 64, lambda size, count, workers: size * count * (workers - 1) / workers ** 2),
    "small-tasks": (0, 10000, None),
}
TABLE = Columns("case<19", "workers>8", " plugin<8", "seconds>9.3f", "ratio>8.2f", "CPU s>8.2f", "of nodes>10.2f", "runs>6")


def parse(argv):
    parser = options.Parser(prog="bench dask", description=__doc__)
    parser.add_argument("--workers", type=options.COUNT, nargs="+", default=[4, 8], metavar="N")
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--repeat", type=options.COUNT, default=3, metavar="R", help="turns of each case")
    parser.add_argument("--shrink", type=options.COUNT, default=1, metavar="N",
                        help="sizes and counts divided by it, to try the bench")
    parser.add_argument("--engines", action="store_true", help="Dask of today (scripts/setup --engines)")
    parser.add_argument("--json", action="store_true", help="one JSON object per turn")
    return parser.parse_args(argv)


def shape(case, shrink):
    size, count, _ = CASES[case]
    return max(size // shrink // 8 * 8, MIB if size else 0), count if size else max(count // shrink, 1)


class Dask:
    """Its processes on the nodes of a cluster, which stand still while others have their turn."""

    def __init__(self, config, plugin, python):
        self.config, self.plugin, self.python, self.count = config, plugin, python, config["nodes"]
        self.children, self.programs = [], []

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="sarissa-dask-"))
        try:
            self.start()
        except BaseException as failure:
            trouble = self.trouble()
            self.__exit__()
            if isinstance(failure, Failure):
                raise Failure(f"{failure}; it says:\n{trouble}") from None
            raise
        return self

    def __exit__(self, *_):
        self.signal("SIGCONT")
        end_programs(self.programs)
        process.end_all([child.pid for child in self.children], grace_s=1.0)
        for child in self.children:
            child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self, node):
        env = bench_dask.environment()
        if self.plugin:
            env |= {key: nodes.environment(self.config, node)[key] for key in ("SARISSA_SOCKET", "SARISSA_NODE")}
            env["PYTHONPATH"] = f"{build_dir()}/client/python:{env['PYTHONPATH']}"
        return env

    def start(self):
        ip = network.node_ip
        address = f"tcp://{ip(0)}:{bench_dask.PORT}"
        self.daemon(0, "scheduler", "--host", ip(0), "--port", bench_dask.PORT, "--dashboard-address",
                    "127.0.0.1:0")
        for node in range(self.count):
            self.daemon(node, "worker", address, "--host", ip(node), "--name", node, "--no-nanny", "--nthreads",
                        bench_dask.THREADS, "--memory-limit", 0, "--local-directory", self.directory)
        with open(self.directory / "log.client", "wb") as log:
            self.programs.append(Program(self.config, 0, "dask's client", self.python,
                                         ROOT / "bench/dask_cases.py", address, self.count, int(self.plugin),
                                         env=self.environment(0), log=log))
        self.client = self.programs[0].task
        self.client.answer(time.monotonic() + START_S)
        self.signal("SIGSTOP")

    def daemon(self, node, kind, *argv):
        with open(self.directory / f"log.{kind}", "ab") as log:
            self.children.append(subprocess.Popen(
                [str(a) for a in ("ip", "netns", "exec", network.node_netns(self.config["name"], node),
                                  self.python, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard",
                                  *argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment(node),
                start_new_session=True))

    def signal(self, name):
        for child in (*self.children, *(program.child for program in self.programs)):
            if child.poll() is None:
                os.kill(child.pid, getattr(signal, name))

    def used(self):
        """CPU seconds of Dask's processes, and of the nodes."""
        own = [child.pid for child in (*self.children, *(program.child for program in self.programs))]
        return [sum(map(process.run_seconds, pids)) for pids in (own, nodes.pids(self.config) if self.plugin else [])]

    def turn(self, case, size, count):
        """Seconds, and CPU seconds of both."""
        self.signal("SIGCONT")
        before = self.used()
        try:
            seconds = self.client.ask(case, size, count, patience_s=CASE_S)["seconds"]
        except Failure as failure:
            raise Failure(f"{failure}; it says:\n{self.trouble()}") from None
        used = [now - then for now, then in zip(self.used(), before)]
        self.signal("SIGSTOP")
        return seconds, used

    def trouble(self):
        return "".join(path.read_text(errors="replace")[-1500:] for path in sorted(self.directory.glob("log.*")))


def measure(args, workers, systems):
    for turn in range(-1, args.repeat):  # the first only warms up
        for case in args.only:
            size, count = shape(case, args.shrink)
            link_bytes = CASES[case][2]
            for system in systems:
                seconds, used = system.turn(case, size, count)
                bound = link_bytes and link_bytes(size, count, workers) * 8 / (args.rate * 1e6)
                if turn >= 0:
                    yield {"case": case, "plugin": system.plugin, "workers": workers, "seconds": seconds,
                           "ratio": seconds / bound if bound else None, "cpu_seconds": sum(used),
                           "nodes_cpu_seconds": used[1], **({"dask": "today"} if args.engines else {})}


def python_of(args):
    return str(engines.python()) if args.engines else bench_dask.PYTHON


def run_workers(args, workers):
    store = max(64, 4 * 32 * 8 // args.shrink + 64)
    with transfer.cluster(workers, "--rate", args.rate, "--bare", suffix="d") as plain, \
            transfer.cluster(workers, "--rate", args.rate, "--store", store) as ours:
        peer.set_offloads(plain, max(shape(case, args.shrink)[0] for case in args.only))
        with Dask(plain, False, python_of(args)) as alone, Dask(ours, True, python_of(args)) as with_plugin:
            yield from measure(args, workers, (alone, with_plugin))


def table(rows):
    TABLE.head()
    for (case, workers, plugin), same in grouped(rows, itemgetter("case", "workers", "plugin")).items():
        def median(key):
            return sorted(row[key] for row in same)[len(same) // 2]
        TABLE.line(case, workers, " yes" if plugin else " no", median("seconds"),
                   median("ratio") if same[0]["ratio"] is not None else None, median("cpu_seconds"),
                   median("nodes_cpu_seconds"), len(same))


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    if args.engines:
        engines.need("bench dask --engines", "distributed")
    elif not bench_dask.installed():
        peer.install(bench_dask.PACKAGES)
    rows = taken(args, (row for workers in args.workers for row in run_workers(args, workers)))
    say("medians; ratio: to the bound of the busiest link")
    table(rows)
