# SPDX-License-Identifier: BSD-3-Clause
"""Faults in the middle of collectives on real nodes: how much longer than without, and were the
bytes right. Five nodes; the object lies on nodes 0 and 1 before a broadcast to 2, 3 and 4; a reduce
takes four of five arrays, an allreduce gives the sum to all. The array of node i holds 2^i
everywhere, so that a sum names exactly what is in it."""

import argparse
import array
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import time

from . import faults, network, nodes, process, shell, transfer
from .shell import Failure, say

NODES = 5
MIB = 1 << 20
AGAIN_S = 0.25      # a killed process is started again after so long, as by the service manager
CUT_S = 5.0         # a partition lasts longer than it takes to call a node dead
FLAPS, FLAP_S = 10, 0.05
SETTLE_S = 30.0
KNOWN_S = 1.5       # until a keeper that was started again tells of names that nobody has
LIMIT_S = 60        # of every call
OPS = ("broadcast", "reduce", "allreduce")


class Trial:
    """One collective with one fault."""

    def __init__(self, config, op, mib, directory, number):
        self.config, self.op, self.mib, self.directory = config, op, mib, directory
        self.name = f"{op}-{os.getpid()}-{number}"
        self.gone = set()      # nodes whose clients do not count
        self.children = {}     # by node: the process of its get
        self.asked = None      # the reduce
        self.healed = None     # a cut: when it ended
        self.owner = None

    def sarissa(self, node, *argv, **options):
        return subprocess.Popen([str(nodes.binary("cli")), *map(str, argv)],
                                env=nodes.environment(self.config, node),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **options)

    def sources(self):
        return [f"{self.name}-{node}" for node in range(NODES)]

    def prepare(self):
        if self.op == "broadcast":
            path = self.directory / "sent"
            transfer.write_random(path, self.mib << 20)
            self.digest = hashlib.sha256(path.read_bytes()).digest()
            transfer.command(self.config, 0, "put", self.name, path)
            transfer.command(self.config, 1, "get", self.name, "/dev/null")
            return
        for node, name in enumerate(self.sources()):
            path = self.directory / "sent"
            block = array.array("f", [float(1 << node)]) * (MIB // 4)
            with open(path, "wb") as out:
                for _ in range(self.mib):
                    block.tofile(out)
            transfer.command(self.config, node, "put", name, path)

    def begin(self):
        self.began = time.monotonic()
        if self.op != "broadcast":
            self.asked = self.sarissa(4, "reduce", self.name, *self.sources(), "--num", NODES - 1,
                                      "--timeout", LIMIT_S,
                                      *(["--spread"] if self.op == "allreduce" else []))
        for node in self.receivers():
            self.get(node)

    def get(self, node):
        self.children[node] = self.sarissa(node, "get", self.name, self.directory / f"got-{node}",
                                           "--timeout", LIMIT_S)

    def receivers(self):
        return {"broadcast": (2, 3, 4), "reduce": (4,), "allreduce": range(NODES)}[self.op]

    def finish(self):
        """Seconds until the last receiver that counts has the right bytes."""
        end = self.began
        for node, child in list(self.children.items()):
            if node in self.gone:
                process.end(child.pid)
                continue
            _, errors = child.communicate(timeout=2 * LIMIT_S)
            while child.returncode and "again" in errors:
                self.get(node)  # the sum was made anew: the error says to get it again
                child = self.children[node]
                _, errors = child.communicate(timeout=2 * LIMIT_S)
            if child.returncode:
                dead = [f"{kind} of node {n}" for n in range(NODES) for kind in nodes.KINDS
                        if n not in self.gone and nodes.pid(self.config, n, kind) is None]
                raise Failure(f"{self.name}: node {node}: exit {child.returncode}: {errors}; "
                              f"dead: {dead}; "
                              f"its log:\n{nodes.log_tail(self.config, node, 'control')}")
            end = max(end, time.monotonic())
            self.check(node)
        if self.asked:
            process.end(self.asked.pid)
            self.asked.communicate()
        return end - self.began

    def check(self, node):
        data = (self.directory / f"got-{node}").read_bytes()
        if self.op == "broadcast":
            right = hashlib.sha256(data).digest() == self.digest
        else:
            value = array.array("f", data[:4])[0]
            right = data == array.array("f", [value]).tobytes() * (self.mib << 18) and \
                value.is_integer() and int(value).bit_count() == NODES - 1
        if not right:
            raise Failure(f"{self.name}: node {node} has wrong bytes")

    def end(self):
        for child in [*self.children.values(), *([self.asked] if self.asked else [])]:
            if child.poll() is None:
                process.end(child.pid)
                child.wait()

    def clean(self):
        names = [self.name] if self.op == "broadcast" else [self.name, *self.sources()]
        for name in names:
            with contextlib.suppress(Failure):
                transfer.command(self.config, 1, "rm", name)


# ---- faults: called when the collective is half-way --------------------------------------------

def kill(trial, node, *kinds, again=None):
    for kind in kinds:
        process.end(nodes.pid(trial.config, node, kind))
    if again is None:
        trial.gone.add(node)
        return
    time.sleep(again)
    for kind in kinds:
        nodes.forget(trial.config, node, kind)
        nodes.start(trial.config, node, kind)


def kill_node(node):
    return lambda trial: kill(trial, node, *nodes.KINDS)


def kill_owner(trial):
    if trial.op != "broadcast" and trial.owner == 4:
        trial.owner = None  # its client would go with it
        return
    kill(trial, trial.owner, *nodes.KINDS)


def kill_process(kind):
    return lambda trial: kill(trial, 0, kind, again=AGAIN_S)


def kill_client(trial):
    node = 3
    child = trial.children.get(node) or trial.asked
    process.end(child.pid)
    trial.gone.add(node)


def cut(trial):
    network.set_link(trial.config, 0, False)
    trial.gone.add(0)


def flap(trial):
    for _ in range(FLAPS):
        network.set_link(trial.config, 0, False)
        time.sleep(FLAP_S)
        network.set_link(trial.config, 0, True)
        time.sleep(FLAP_S)


def partition(trial):
    network.split(trial.config, [0, 1])
    time.sleep(CUT_S)
    network.split(trial.config, [])
    trial.healed = time.monotonic()


def full_disk(trial):
    """What is logged cannot be written."""
    log = nodes.log_file(trial.config, 0, "control")
    log.unlink(missing_ok=True)
    log.symlink_to("/dev/full")
    kill(trial, 0, "control", again=AGAIN_S)


FAULTS = {
    "none": None,
    "sender killed": kill_node(0),
    "middle killed": kill_node(2),
    "receiver killed": kill_node(3),
    "directory's keeper killed": kill_owner,
    "control killed, started again": kill_process("control"),
    "dataplane killed, started again": kill_process("dataplane"),
    "client killed": kill_client,
    "link cut": cut,
    "link flaps": flap,
    "10 % loss": None,
    "partition of 2 and 3, 5 s": partition,
    "no room for the log": full_disk,
}


def lossy(config, percent):
    for node in range(NODES):
        faults.apply(config, node, "to", {**dict.fromkeys(faults.KINDS, 0), "loss": percent})


def heal(trial):
    config = trial.config
    if "br1" in shell.run("ip", "-n", network.switch_netns(config["name"]), "-br", "link"):
        network.split(config, [])
    network.set_link(config, 0, True)
    lossy(config, 0)
    log = nodes.log_file(config, 0, "control")
    for node in range(NODES):
        for kind in nodes.KINDS:
            if nodes.pid(config, node, kind) is None:
                if kind == "control" and log.is_symlink() and node == 0:
                    log.unlink()
                nodes.forget(config, node, kind)
                nodes.start(config, node, kind)
    until = time.monotonic() + SETTLE_S
    while not all(everybody_up(config, node) for node in range(NODES)):
        if time.monotonic() > until:
            raise Failure(f"{trial.name}: the nodes do not find each other again")
        time.sleep(0.2)


def everybody_up(config, node):
    rows = nodes.status_lines(config, node)
    return len(rows) == NODES and all(row["state"] == "up" for row in rows)


def run_trial(args, config, op, fault, directory, number):
    trial = Trial(config, op, args.mib, directory, number)
    if FAULTS[fault] is kill_owner:
        keeper = transfer.keeper(config, trial.name)
        trial.owner = NODES - 1 if keeper is None else keeper
    trial.prepare()
    if fault == "10 % loss":
        lossy(config, 10)
    try:
        trial.begin()
        if FAULTS[fault]:
            time.sleep(transfer.bound_seconds(args.mib << 20, args.rate) / 2)
            FAULTS[fault](trial)
        seconds = trial.finish()
    finally:
        trial.end()
        heal(trial)
        trial.clean()
    if FAULTS[fault]:
        time.sleep(KNOWN_S)
    # after a cut it counts how soon after its end
    return max(seconds - (trial.healed - trial.began if trial.healed else 0), 0.0)


def measure(args, config, op, directory):
    usual = None
    for fault in [f for f in FAULTS if f == "none" or not args.fault or f in args.fault]:
        seconds, failed = [], 0
        for number in range(args.repeat):
            try:
                seconds.append(run_trial(args, config, op, fault, directory,
                                         f"{len(fault)}-{number}-{time.monotonic_ns()}"))
            except Failure as failure:
                failed += 1
                say(f"bench recovery: {op}, {fault}: {failure}")
        if fault == "none" and not seconds:
            raise Failure(f"{op} does not even work without a fault")
        usual = usual or statistics.median(seconds)
        from_heal = FAULTS[fault] is partition
        extra = [s if from_heal else s - usual for s in seconds]
        yield {"op": op, "fault": fault, "bytes": args.mib << 20, "rate_mbit": args.rate,
               "repeats": args.repeat, "failed": failed, "seconds": usual,
               "extra_median": statistics.median(extra) if extra else None,
               "extra_worst": max(extra) if extra else None}


def tell(row):
    numbers = "-" if row["extra_median"] is None else \
        f"{row['extra_median']:>8.2f}{row['extra_worst']:>8.2f}"
    say(f"{row['op']:<11}{row['fault']:<34}{numbers}{row['failed']:>5} of {row['repeats']}")


def main(argv):
    parser = argparse.ArgumentParser(prog="bench recovery", description=__doc__)
    parser.add_argument("--op", action="append", choices=OPS, help="default: all")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="default: all")
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--rate", type=float, default=200, metavar="MBIT")
    parser.add_argument("--repeat", type=int, default=20, metavar="R")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    shell.require_root("scripts/bench")
    failed = 0
    with transfer.scratch() as directory, \
            transfer.cluster(NODES, "--rate", args.rate, "--store", 16 * args.mib) as config:
        say(f"{'operation':<11}{'fault':<34}{'median':>8}{'worst':>8} seconds more; failed")
        for op in args.op or OPS:
            for row in measure(args, config, op, directory):
                failed += row["failed"]
                tell(row)
                if args.json:
                    print(json.dumps(row), flush=True)
    return 1 if failed else 0
