# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch on sarissa.torch and on gloo, over links of their own of the same rate, one rank per node.

  bench torch                                     four ranks, 200 Mbit/s: ten minutes
  bench torch --only allreduce --sizes 1048576    one case
  bench torch --system gloo                       without our nodes

  allreduce   all_reduce of f32; seconds of one
  ddp         steps of DistributedDataParallel of a ResNet-18, 11.7 million parameters, small images of noise
  slow-rank   steps of DistributedDataParallel that compute for 0.2 s, three times as long at one rank; gloo waits for
              it, the hook of sarissa.torch for all but one. steps/s: the mean of the ranks
  dead-rank   a rank is killed in the middle of all_reduces, whose timeout is 20 s: seconds until all others have
              the error. goes on: seconds until the ranks of an ElasticGroup have ended a step without the dead one;
              gloo has no such thing

The systems take turns. Gloo has links with segmentation off-loads and without our programs in the kernel. bound: what a
link needs for the bytes of a ring. CPU: of the ranks and of the nodes. Needs `scripts/setup --engines`."""

import contextlib
import itertools
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from lib import engines, options, shell
from lib.bench import transfer
from lib.bench.meter import sent_bytes
from lib.bench.systems import peer
from lib.bench.tables.table import Columns, grouped, taken, tell_lost
from lib.bench.task import Program, ask_all, end_programs
from lib.cluster import network, nodes, process
from lib.shell import ROOT, Failure, build_dir, say

KIB, MIB = 1 << 10, 1 << 20
SIZES = (KIB, 64 * KIB, MIB, 32 * MIB)
COUNTS = ((64 * KIB, 30), (MIB, 10), (8 * MIB, 3))  # all_reduces of a turn, up to so many bytes; else 1
CASES = ("allreduce", "ddp", "slow-rank", "dead-rank")
SYSTEMS = ("gloo", "sarissa")
START_S, CASE_S = 240.0, 300.0
LIMIT_S = 120.0                        # of each operation
STEPS, BATCH, SIDE = 3, 4, 64          # of ddp: steps, images of a step at a rank, pixels
SLOW_S, STEP_S, FACTOR = 6.0, 0.2, 3   # of slow-rank
DEAD_BYTES, RUN_S, DEAD_S = MIB, 1.0, 20.0  # of dead-rank: of a sum; before the kill; of each operation
STORE_MIB = 256
TABLE = Columns("case<12", "MiB>8.3f", "  system<11", "seconds>9.4f", "steps/s>9.2f", "ratio>7.2f", "CPU s>8.2f",
                "busy>6.2f", "wire MB>9.1f", "goes on s>11.2f", "runs>6")
SHOWN = ("seconds", "steps_per_second", "ratio", "cpu_seconds", "cores_busy")


def parse(argv):
    parser = options.Parser(prog="bench torch", description=__doc__)
    parser.add_argument("--ranks", type=options.whole(2, 16), default=4, metavar="N")
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT", help="of each link")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--sizes", nargs="+", type=options.SIZE, default=list(SIZES), metavar="BYTES",
                        help="of allreduce")
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--repeat", type=options.COUNT, default=3, metavar="R", help="turns of each case")
    parser.add_argument("--json", action="store_true", help="one JSON object per turn")
    args = parser.parse_args(argv)
    wrong = [size for size in args.sizes if size % 4]
    if wrong:
        parser.error(f"--sizes: {wrong[0]} bytes are no whole number of f32: use a multiple of 4")
    return args


def ring_seconds(ranks, size, rate):
    """Each link carries that much of a sum over all ranks, however it is made without a switch that adds up."""
    return transfer.bound_seconds(size, rate) * 2 * (ranks - 1) / ranks


class Ranks:
    """The programs of one system, a rank on each node. kind: a backend, or elastic."""

    def __init__(self, config, kind, limit_s=LIMIT_S):
        self.config, self.kind, self.limit_s, self.count, self.programs = config, kind, limit_s, config["nodes"], []

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="sarissa-torch-"))
        try:
            for rank in range(self.count):
                self.start(rank)
            self.ask("ready", patience_s=START_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end_programs(self.programs)
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def tasks(self):
        return [program.task for program in self.programs]

    def environment(self, rank):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "GLOO_SOCKET_IFNAME": "eth0"}
        if self.kind != "gloo":
            env |= nodes.environment(self.config, rank)
            env["PYTHONPATH"] = str(build_dir() / "client/python")
        return env

    def start(self, rank):
        with open(self.directory / f"log.{rank}", "wb") as log:
            self.programs.append(Program(
                self.config, rank, f"rank {rank} of {self.kind}", engines.python(), ROOT / "bench/torch_work.py",
                self.kind, rank, self.count, self.directory / "store", self.limit_s,
                env=self.environment(rank), log=log))

    def trouble(self):
        return "".join(path.read_text(errors="replace")[-1000:] for path in sorted(self.directory.glob("log.*")))

    def ask(self, what, patience_s=CASE_S, **fields):
        try:
            return ask_all(self.tasks, [[json.dumps({"do": what, **fields})]] * self.count, patience_s)
        except Failure as failure:
            raise Failure(f"{what}: {failure}; they say:\n{self.trouble()}") from None

    def used(self):
        """CPU seconds of the ranks that live and of the nodes, by process."""
        pids = [program.child.pid for program in self.programs if program.child.poll() is None]
        pids += nodes.pids(self.config) if self.kind != "gloo" else []
        return {pid: process.run_seconds(pid) for pid in pids}

    def kill(self, what, **fields):
        """Asks all for that, kills the last rank in the middle of it, and gives the time, and what the others say."""
        self.ask(what, **fields)  # each has begun
        time.sleep(RUN_S)
        process.end(self.programs[-1].child.pid)
        killed = time.monotonic()
        return killed, [task.answer(killed + CASE_S) for task in self.tasks[:-1]]


class Turn:
    """What one turn of a case has cost."""

    def __init__(self, ranks):
        self.ranks = ranks

    def __enter__(self):
        self.sent = sum(sent_bytes(self.ranks.config))
        self.at, self.busy = time.monotonic(), transfer.machine_busy_seconds()
        self.own = self.ranks.used()
        return self

    def __exit__(self, *_):
        self.own = sum(seconds - self.own.get(pid, 0.0) for pid, seconds in self.ranks.used().items())
        self.at, self.busy = time.monotonic() - self.at, transfer.machine_busy_seconds() - self.busy
        self.sent = sum(sent_bytes(self.ranks.config)) - self.sent

    def row(self, args, case, size, seconds, steps_per_second, bound_seconds=None, **more):
        kind, config = self.ranks.kind, self.ranks.config
        return {"case": case, "system": kind, "ranks": args.ranks, "bytes": size, "seconds": seconds,
                "steps_per_second": steps_per_second, "cpu_seconds": round(self.own, 3),
                "cores_busy": round(min(1.0, self.busy / (self.at * os.cpu_count())), 3), "rate_mbit": args.rate,
                "bound_seconds": bound_seconds, "ratio": bound_seconds and seconds / bound_seconds,
                "wire_bytes": self.sent, "vdev": config["vdev"] if kind != "gloo" else None, **more}


# --- the cases: rows of one turn of one system

def allreduce(args, ranks):
    for size in args.sizes:
        count = next((count for most, count in COUNTS if size <= most), 1)
        with Turn(ranks) as turn:
            told = ranks.ask("allreduce", nbytes=size, count=count)
        if not all(one["right"] for one in told):
            raise Failure(f"allreduce of {size} bytes by {ranks.kind}: the sums are wrong")
        seconds, bound = max(one["seconds"] for one in told), ring_seconds(args.ranks, size, args.rate)
        yield turn.row(args, "allreduce", size, seconds, 1 / seconds, bound, count=count)


def ddp(args, ranks):
    with Turn(ranks) as turn:
        told = ranks.ask("ddp", steps=STEPS, batch=BATCH, side=SIDE)
    if len({one["digest"] for one in told}) != 1:
        raise Failure(f"ddp by {ranks.kind}: the ranks have other parameters after the same steps")
    seconds, size = max(one["seconds"] for one in told), told[0]["bytes"]
    yield turn.row(args, "ddp", size, seconds, 1 / seconds, ring_seconds(args.ranks, size, args.rate), count=STEPS)


def slow_rank(args, ranks):
    policy = {} if ranks.kind == "gloo" else {"policy": f"k-of-n {args.ranks - 1}"}
    with Turn(ranks) as turn:
        told = ranks.ask("slow_rank", seconds=SLOW_S, step_s=STEP_S, factor=FACTOR, **policy)
    each = [one["steps"] / one["seconds"] for one in told]
    yield turn.row(args, "slow-rank", told[0]["bytes"], 1 / statistics.fmean(each), statistics.fmean(each), **policy,
                   steps_of_ranks=[one["steps"] for one in told])


def dead_rank(args, config, kind):
    with Ranks(config, kind, DEAD_S) as ranks:
        with Turn(ranks) as turn:
            killed, told = ranks.kill("dead_rank", nbytes=DEAD_BYTES)
    seconds = max(one["at"] for one in told) - killed
    goes_on = None if kind == "gloo" else elastic_seconds(config)
    yield turn.row(args, "dead-rank", DEAD_BYTES, seconds, None, goes_on_seconds=goes_on,
                   limit_seconds=DEAD_S, told=sorted({one["told"] for one in told}))


def elastic_seconds(config):
    with Ranks(config, "elastic") as ranks:
        killed, told = ranks.kill("elastic_death")
    if len({one["digest"] for one in told}) != 1:
        raise Failure("dead-rank: the ranks of the ElasticGroup have other parameters after the same steps")
    return max(one["at"] for one in told) - killed


def unless_lost(case, system, rows):
    """The rows, and one that says why, in the place of those that did not come."""
    try:
        yield from rows
    except Failure as failure:
        yield {"case": case, "system": system, "lost": str(failure)}


KEPT = {"allreduce": allreduce, "ddp": ddp, "slow-rank": slow_rank}  # by ranks that live through all turns


def measure(args, configs):
    with contextlib.ExitStack() as stack:
        kept = [case for case in args.only if case in KEPT]
        ranks = {system: stack.enter_context(Ranks(config, system)) for system, config in configs.items() if kept}
        for _, case, system in itertools.product(range(args.repeat), kept, ranks):
            yield from unless_lost(case, system, KEPT[case](args, ranks[system]))
    turns = range(args.repeat if "dead-rank" in args.only else 0)
    for _, (system, config) in itertools.product(turns, configs.items()):
        yield from unless_lost("dead-rank", system, dead_rank(args, config, system))


def run(args):
    with contextlib.ExitStack() as stack:
        configs = {}
        for system in args.system:
            how = ["--rate", args.rate, *(["--bare"] if system == "gloo" else ["--store", STORE_MIB])]
            configs[system] = stack.enter_context(transfer.cluster(args.ranks, *how, suffix=system[0]))
            if system == "gloo":
                peer.set_offloads(configs[system], max(args.sizes))
        yield from measure(args, configs)


def table(rows):
    def median(same, key):
        values = [row[key] for row in same if row.get(key) is not None]
        return statistics.median(values) if values else None
    TABLE.head()
    for (case, size, system), same in grouped(rows, lambda row: (row["case"], row["bytes"], row["system"])).items():
        TABLE.line(case, size / MIB, f"  {system}", *(median(same, key) for key in SHOWN),
                   median(same, "wire_bytes") / 1e6, median(same, "goes_on_seconds"), len(same))


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    engines.python()
    rows = taken(args, run(args))
    say("medians; ratio: to the bound of the links")
    table([row for row in rows if "lost" not in row])
    tell_lost(rows)
