# SPDX-License-Identifier: BSD-3-Clause
"""Faults in the middle of collectives on real nodes: how much longer than without, and were the
bytes right. Five nodes; the object lies on nodes 0 and 1 before a broadcast to 2, 3 and 4; a reduce
takes four of five arrays, an allreduce gives the sum to all. The array of node i holds 2^i
everywhere, so that a sum names exactly what is in it.

  bench recovery --op allreduce --fault 'link cut' --repeat 10
  bench recovery --rows FILE           each row is kept in FILE; again: only those not there yet
  bench recovery --rows FILE --table   only the table, as in docs/study/performance.md"""

import json
import statistics
import time
from pathlib import Path

from lib import options, shell
from lib.bench import transfer, trial as bench_trial
from lib.bench.trial import NODES, OPS, Trial, heal, kill_client, kill_node, kill_owner, kill_process
from lib.shell import Failure, say

KNOWN_S = 1.5       # until a restarted shard owner answers for free names
TURNS = 20           # names tried for one that another node keeps
HELD = 8            # objects in a node's store at once
TRIAL_S = 5         # so long a trial takes, all in all

# what is done, and what follows
FAULTS = {
    "none": (None, "(seconds of the operation itself)"),
    "sender killed": (
        kill_node(0), "receivers go on from their bitmaps at another holder; a reduce takes the "
        "array in reserve, or waits until that array is put again"),
    "middle killed": (
        kill_node(2), "its receivers ask for another holder; a slot of the tree is filled again"),
    "receiver killed": (
        kill_node(3), "nobody else is concerned; in a sum it is a source like the others"),
    "shard owner killed": (
        kill_owner, "its shard goes to the next node, holders announce again, waiting gets are "
        "sent there"),
    "control killed, started again": (
        kill_process("control"), "transfers run on until the new one attaches, then resume"),
    "dataplane killed, started again": (
        kill_process("dataplane"), "adopts the store from control; transfers resume from bitmaps"),
    "client killed": (kill_client, "its own call only"),
    "link cut": (bench_trial.cut, "no FIN, no RST: found silent, another holder"),
    "link flaps": (
        bench_trial.flap, "ten times 50 ms without a link in 1 s: goes on each time"),
    "10 % loss": (None, "on every path, all the time"),
    "partition of 2 and 3, 5 s": (
        bench_trial.partition, "a get without a holder on its side is told `lost`, and waits when "
        "it asks again; after its end"),
    "no room for the log": (
        bench_trial.full_disk, "control killed and started again, and what it prints is lost"),
}


def kept_by_another(make):
    """A trial whose name is kept by a node that may be killed: not by node 4, whose client asks for
    the sum."""
    for turn in range(TURNS):
        trial = make(turn)
        trial.owner = transfer.shard_owner(trial.config, trial.name)
        if trial.owner is not None and (trial.op == "broadcast" or trial.owner != NODES - 1):
            return trial
    raise Failure(f"{trial.name}: no name that another node keeps")


def run_trial(args, config, op, fault, directory, number):
    """The trial when it is over, and how long it took."""
    breaks = FAULTS[fault][0]

    def make(turn):
        return Trial(config, op, args.mib, directory, f"{number}-{turn}")

    trial = kept_by_another(make) if breaks is kill_owner else make(0)
    trial.prepare()
    if fault == "10 % loss":
        bench_trial.lossy(config, 10)
    try:
        trial.begin()
        if breaks:
            time.sleep(transfer.bound_seconds(args.mib << 20, args.rate) / 2)
            breaks(trial)
        seconds = trial.finish()
    finally:
        trial.end()
        heal(trial)
        trial.clean()
    if breaks:
        time.sleep(KNOWN_S)
    # after a cut it counts how soon after its end
    return trial, max(seconds - (trial.healed - trial.began if trial.healed else 0), 0.0)


def measure(args, config, op, fault, directory, usual):
    """A row: seconds more than usual."""
    seconds, failed, again, from_heal = [], 0, 0, False
    for number in range(args.repeat):
        try:
            trial, took = run_trial(args, config, op, fault, directory,
                                    f"{len(fault)}-{number}-{time.monotonic_ns()}")
        except Failure as failure:
            failed += 1
            say(f"bench recovery: {op}, {fault}: {failure}")
            continue
        seconds.append(took)
        again += trial.again
        from_heal = trial.healed is not None
    if usual is None and not seconds:
        raise Failure(f"{op} does not even work without a fault")
    usual = statistics.median(seconds) if usual is None else usual
    extra = [s if from_heal else s - usual for s in seconds]
    return {"op": op, "fault": fault, "bytes": args.mib << 20, "rate_mbit": args.rate,
            "repeats": args.repeat, "failed": failed, "again": again, "seconds": usual,
            "extra_median": statistics.median(extra) if extra else None,
            "extra_worst": max(extra) if extra else None, "extra": extra}


def tell(row):
    numbers = f"{'-':>8}{'-':>8}" if row["extra_median"] is None else \
        f"{row['extra_median']:>8.2f}{row['extra_worst']:>8.2f}"
    say(f"{row['op']:<11}{row['fault']:<34}{numbers}{row['again']:>7}"
        f"{row['failed']:>5} of {row['repeats']}")


def cell(row):
    if row is None or row["extra_median"] is None:
        return "-"
    if row["fault"] == "none":
        return f"{row['seconds']:.2f}"
    return f"{row['extra_median']:.2f}, {row['extra_worst']:.2f}"


def table(rows):
    """As it stands in docs/study/performance.md."""
    say("| fault | what happens | " + " | ".join(OPS) + " |\n" + "|---" * (2 + len(OPS)) + "|")
    for fault, (_, text) in FAULTS.items():
        if any(row["fault"] == fault for row in rows):
            say(f"| {fault} | {text} | " + " | ".join(
                cell(next((r for r in rows if (r["op"], r["fault"]) == (op, fault)), None))
                for op in OPS) + " |")


def kept(args):
    if args.rows is None or not args.rows.exists():
        return []
    try:
        rows = [json.loads(line) for line in args.rows.read_text().splitlines()]
        other = [row for row in rows if row["repeats"] != args.repeat and row["op"] and row["fault"]]
    except (ValueError, LookupError, TypeError, OSError):
        raise Failure(f"{args.rows} holds something else than rows: name another file", 2) from None
    if other and not args.table:
        raise Failure(f"{args.rows} has rows of another number of repeats: give the same --repeat, "
                      "or another file", 2)
    return rows


def missing(args, rows):
    """Each operation with its faults that are to be measured, first of all none."""
    have = {(row["op"], row["fault"]) for row in rows}
    for op in args.op or OPS:
        faults = [f for f in FAULTS if (op, f) not in have and
                  (f == "none" or not args.fault or f in args.fault)]
        if faults:
            yield op, faults


def run(args, rows):
    todo = list(missing(args, rows))
    trials = args.repeat * sum(len(faults) for _, faults in todo)
    say(f"bench recovery: {trials} trials, about {max(1, round(trials * TRIAL_S / 60))} minutes")
    if not todo:
        return
    say(f"{'operation':<11}{'fault':<34}{'median':>8}{'worst':>8} seconds more; got again; failed")
    with transfer.scratch() as directory, \
            transfer.cluster(NODES, "--rate", args.rate, "--store", 16 * args.mib) as config:
        for op, faults in todo:
            for fault in faults:
                usual = next((row["seconds"] for row in rows if row["op"] == op), None)
                row = measure(args, config, op, fault, directory, usual)
                rows.append(row)
                tell(row)
                if args.json:
                    print(json.dumps(row), flush=True)
                if args.rows:
                    with open(args.rows, "a") as out:
                        out.write(json.dumps(row) + "\n")


def main(argv):
    parser = options.Parser(prog="bench recovery", description=__doc__)
    parser.add_argument("--op", action="append", choices=OPS, help="default: all")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="default: all")
    parser.add_argument("--mib", type=options.SIZE_MIB, default=8)
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT")
    parser.add_argument("--repeat", type=options.COUNT, default=20, metavar="R")
    parser.add_argument("--rows", type=Path, metavar="FILE",
                        help="keeps each row, and measures only what the file does not hold yet")
    parser.add_argument("--table", action="store_true", help="only print the table of --rows")
    parser.add_argument("--json", action="store_true", help="one object per row")
    args = parser.parse_args(argv)
    if args.table and not (args.rows and args.rows.exists()):
        raise Failure("--table shows what is there already: name it with --rows FILE", 2)
    rows = kept(args)
    if not args.table:
        shell.require_root("scripts/bench")
        if args.rows:
            options.check_file("--rows", args.rows)
        options.check_memory(HELD * args.mib * NODES << 20, "name a lower --mib")
        run(args, rows)
    table(rows)
    return 1 if any(row["failed"] for row in rows) else 0
