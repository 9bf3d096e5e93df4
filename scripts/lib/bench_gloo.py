# SPDX-License-Identifier: BSD-3-Clause
"""Gloo's side of a measurement: one rank per node, over TCP, from Debian's package.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation
off-loads; its ranks sleep while they wait. Tunings are its algorithms: those of gloo::allreduce
("ring", "bcube") and of its older classes ("ring-chunked", "halving-doubling"); a reduce to one
rank it has in one way only."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from . import network, process
from .bench_sum import sum_digest
from .bench_openmpi import offloads_on
from .bench_task import Task, ask_all
from .shell import ROOT, Failure, build_dir, run, say, succeeds

PACKAGE = "libgloo-dev"
TUNINGS = {"reduce": ("default",),
           "allreduce": ("ring", "ring-chunked", "halving-doubling", "bcube")}
DEFAULT_TUNINGS = {"reduce": TUNINGS["reduce"], "allreduce": TUNINGS["allreduce"][:3]}
START_S = 60.0


def install():
    if Path("/usr/include/gloo/allreduce.h").exists():
        return
    say(f"bench: installing {PACKAGE}, for the comparison only")
    run("apt-get", "-q", "update")
    if not succeeds("apt-cache", "show", PACKAGE):
        raise Failure(f"this system has no package {PACKAGE}: leave Gloo out (--system)")
    run("apt-get", "-q", "-y", "install", "--no-install-recommends", PACKAGE,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, timeout=600)


def program():
    """bench/gloo.cc, built when it is missing or old."""
    install()
    out = build_dir() / "bench/gloo"
    sources = [ROOT / "bench" / name for name in ("gloo.cc", "payload.h", "gradient.h")]
    if not out.exists() or out.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        run("g++", "-O3", "-march=native", "-o", out, sources[0], "-lgloo", "-lxxhash", "-pthread")
    return out


class Gloo:
    system = "gloo"

    def __init__(self, config, tuning):
        self.config, self.tuning = config, tuning
        self.count = config["nodes"]
        self.children, self.tasks, self.directory = [], [], None

    def __enter__(self):
        program()
        offloads_on(self.config)
        self.directory = Path(tempfile.mkdtemp(prefix="sarissa-gloo-"))
        return self

    def __exit__(self, *_):
        self.end_ranks()
        shutil.rmtree(self.directory, ignore_errors=True)

    def end_ranks(self):
        for child in self.children:
            child.stdin.close()
        for child in self.children:
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.end(child.pid)
                child.wait()
            child.stdout.close()
        self.children, self.tasks = [], []

    def start(self, rank, meeting):
        with open(self.directory / f"log.{rank}", "wb") as log:
            child = subprocess.Popen(
                ["ip", "netns", "exec", network.node_netns(self.config["name"], rank),
                 *[str(a) for a in (program(), rank, self.count, meeting, self.tuning)]],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.children.append(child)
        self.tasks.append(Task(f"gloo's rank {rank}", child.stdin.fileno(), child.stdout.fileno(),
                               lambda: child.poll() is None))

    def prepare(self, op, size):
        self.op = op
        self.end_ranks()
        meeting = tempfile.mkdtemp(prefix="meet-", dir=self.directory)
        for rank in range(self.count):
            self.start(rank, meeting)
        try:
            ask_all(self.tasks, [("fill-f32", size, rank + 1) for rank in range(self.count)],
                    START_S)
        except Failure as failure:
            raise Failure(f"{failure}; it says:\n{self.trouble()}") from None
        self.sum = sum_digest(size, range(1, self.count + 1))

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

    def verify(self):
        for rank, task in enumerate(self.tasks):
            takes = rank == 0 or self.op == "allreduce"
            if task.ask("check")["digests"] != ([self.sum] if takes else []):
                raise Failure(f"gloo: rank {rank} got a wrong sum")

    def trouble(self):
        time.sleep(0.2)
        return "".join((self.directory / f"log.{rank}").read_text(errors="replace")[-500:]
                       for rank in range(self.count))
