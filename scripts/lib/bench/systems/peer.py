# SPDX-License-Identifier: BSD-3-Clause
"""What the measured systems have in common, and those that ours is compared with: one rank per node, all
of which make the same call; a program of ours around their library, built when it is asked for."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib.bench.sum import REDUCES, fill_verb, sum_digest
from lib.bench.task import ask_all
from lib.cluster import network
from lib.shell import ROOT, Failure, build_dir, run, run_to_the_end, say, succeeds

START_S = 60.0
SEGMENTS_LEAST_BYTES = 8 << 20
SMALL_BYTES = 64 << 10  # up to here another algorithm is the best by hand


def install(packages):
    say(f"bench: installing {' '.join(packages)}, for the comparison only")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    how = ("-q", "-y", "--no-install-recommends", *packages)
    try:
        run("apt-get", "-q", "update")
        for package in packages:
            if not succeeds("apt-cache", "show", package):
                raise Failure(f"this system has no package {package}")
        run("apt-get", "install", "--download-only", *how, env=env, timeout=600)
        run_to_the_end("apt-get", "install", *how, env=env, why="waits for the packages, then ends")
    except (Failure, subprocess.TimeoutExpired) as failure:
        why = str(failure).splitlines()[-1]
        raise Failure(f"{' '.join(packages)} cannot be installed: {why}: leave it out (--system), or "
                      "install it by hand") from None


def program(source, *compiler, libraries):
    """Of a source in bench/, built when it is missing or old."""
    out = build_dir() / "bench" / source.partition(".")[0]
    sources = [ROOT / "bench" / name for name in (source, "payload.h", "gradient.h")]
    if not out.exists() or out.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        run(*compiler, "-o", out, sources[0], *libraries)
    return out


def set_offloads(config, size):
    """Large objects in segments of up to 64 KiB between the nodes: far less CPU per byte. The limiters
    let a segment that has begun pass whole, which makes no odds there; a smaller object would be
    through before its link can have carried it, so it travels frame by frame."""
    on = "on" if size >= SEGMENTS_LEAST_BYTES else "off"
    for node in range(config["nodes"]):
        for rail in range(network.rails(config, node)):
            run("ip", "netns", "exec", network.node_netns(config["name"], node), "ethtool", "-K",
                f"eth{rail}", "tx", "on", "tso", on, "gso", on, "gro", on)


class System:
    """One task per node. Who derives has system, ready(), begin(), finish(), verify() and trouble()."""

    first_gathered = 1  # node 0 does not get its own object
    optional = False    # whether the others are measured without it where it cannot run

    @classmethod
    def need(cls):
        """Installs what it needs, or fails in one line. Called before its links are made."""

    def __init__(self, config, tuning):
        self.config, self.tuning = config, tuning
        self.count = config["nodes"]
        self.programs, self.tasks = [], []
        self.op = self.size = None

    def fill_all(self, verb, size):
        """Has each task make what it gives; returns the digests, by node."""
        return [told["digest"] for told in ask_all(
            self.tasks, [(verb, size, node + 1) for node in range(self.count)])]

    def expected(self, node):
        """The digests of what a node has to have."""
        given = {"broadcast": lambda: [0] if node else [],
                 "gather": lambda: [] if node else range(self.first_gathered, self.count),
                 "p2p": lambda: [1 - node] if node < 2 else []}[self.op]
        return [self.digests[source] for source in given()]


class Peer(System):
    """Who derives has start_ranks() and end_ranks(), or a fill_all() of its own, and logs as log*."""

    first_gathered = 0
    last_words = 500  # bytes of each log

    operations = ("broadcast", "gather", *REDUCES)
    one_way = ()  # operations that it has in one way only

    @classmethod
    def tunings(cls, op, asked):
        """Those of the tunings asked for that it knows."""
        if op in cls.one_way:
            return ["default"] if {"default", "hand"} & set(asked) else []
        return [tuning for tuning in asked
                if tuning in ("default", "hand") or cls.has_tuning(op, tuning)]

    @staticmethod
    def has_tuning(op, tuning):
        return False

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix=f"sarissa-{self.system}-"))
        return self

    def __exit__(self, *_):
        self.end_ranks()
        shutil.rmtree(self.directory, ignore_errors=True)

    def trouble(self):
        time.sleep(0.2)
        return "".join(path.read_text(errors="replace")[-self.last_words:]
                       for path in sorted(self.directory.glob("log*")))

    def prepare(self, op, size):
        """Has each rank make what it gives: from here on it is known what each must get."""
        self.op, self.size = op, size
        set_offloads(self.config, size)
        try:
            self.digests = self.fill_all(fill_verb(op), size)
        except Failure as failure:
            raise Failure(f"{failure}; it says:\n{self.trouble()}") from None
        if op in REDUCES:
            self.sum = sum_digest(size, range(1, self.count + 1))

    def fill_all(self, verb, size):
        """Starts what must be restarted for this size."""
        self.end_ranks()
        self.start_ranks()
        return super().fill_all(verb, size)

    def ready(self, staggered):
        pass

    def begin(self, start_ns, arrivals_ns):
        for rank, task in enumerate(self.tasks):
            task.send(self.op, start_ns + arrivals_ns[rank])

    def put_seconds(self):
        return {}

    def finish(self, patience_s):
        until = time.monotonic() + patience_s
        return {rank: task.answer(until)["spans"] for rank, task in enumerate(self.tasks)}

    def taken(self):
        """By rank, the digests of what it has got."""
        return [task.ask("check")["digests"] for task in self.tasks]

    def verify(self):
        for rank, digests in enumerate(self.taken()):
            if digests != self.expected(rank):
                raise Failure(f"{self.system}: rank {rank} got wrong bytes")

    def expected(self, rank):
        if self.op in REDUCES:
            return [self.sum] if rank == 0 or self.op == "allreduce" else []
        return super().expected(rank)


class Driven(Peer):
    """One driver does what it is told, and its processes stand still meanwhile. Who derives has driver, and run(), which
    sends a signal to all processes."""

    def make_room(self, size):
        """Before objects of so many bytes are made."""

    def rest(self):
        self.run(signal.SIGSTOP)

    def fill_all(self, verb, size):
        self.run()
        self.make_room(size)
        digests = self.driver.ask(verb, size, patience_s=START_S)["digests"]
        self.rest()
        return digests

    def ready(self, staggered):
        self.run()
        self.driver.ask("ready", self.op, int(staggered))

    def begin(self, start_ns, arrivals_ns):
        self.driver.send("go", self.op, *(start_ns + at_ns for at_ns in arrivals_ns))

    def finish(self, patience_s):
        spans = self.driver.answer(time.monotonic() + patience_s)["spans"]
        return {node: calls for node, calls in enumerate(spans) if calls}

    def taken(self):
        taken = self.driver.ask("check")["taken"]
        self.rest()
        return taken
