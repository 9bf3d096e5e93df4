# SPDX-License-Identifier: BSD-3-Clause
"""OpenMPI's side of a measurement: one rank per node, over TCP, from Debian's packages.

Fair to it: links of its own of the same shape, without the XDP programs that our nodes load and
with segmentation off-loads; no polling while we have our turn; a yield that sleeps (yield.c); both
its defaults ("default") and the algorithm that was the best of those we tried ("hand")."""

import math
import os
import shutil
import signal
import stat
import subprocess

from lib.bench.systems import peer
from lib.bench.systems.peer import SMALL_BYTES, Peer
from lib.bench.task import Task
from lib.cluster import network
from lib.shell import Failure, build_dir

PACKAGES = ("openmpi-bin", "libopenmpi-dev")

TCP_ONLY = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
            "eth0", "--mca", "oob_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1")

TINY, MIDDLE = 4 << 10, 4 << 20
BY_HAND = {  # the best of those we tried, up to so many bytes
    # linear; pipeline of segments, each small enough to be sent without asking first
    "broadcast": {TINY: "bcast_algorithm=1",
                  MIDDLE: "bcast_algorithm=3,bcast_algorithm_segmentsize={segment}",
                  math.inf: "bcast_algorithm=3,bcast_algorithm_segmentsize=32768"},
    # linear; with synchronisation
    "gather": {SMALL_BYTES: "gather_algorithm=1", math.inf: "gather_algorithm=3"},
    # binomial tree; pipeline of segments
    "reduce": {TINY: "reduce_algorithm=5",
               MIDDLE: "reduce_algorithm=3,reduce_algorithm_segmentsize={segment}",
               math.inf: "reduce_algorithm=3,reduce_algorithm_segmentsize=32768"},
    # recursive doubling; ring; segmented ring
    "allreduce": {TINY: "allreduce_algorithm=3", SMALL_BYTES: "allreduce_algorithm=4",
                  math.inf: "allreduce_algorithm=5,allreduce_algorithm_segmentsize=32768"},
}

AGENT = """#!/bin/sh
# called as: agent ADDRESS COMMAND...
address=$1; shift
number=$(echo "$address" | awk -F. '{{ print $3 * 250 + $4 - 1 }}')
exec ip netns exec "sar-{name}-$number" unshare --uts \\
	sh -c 'hostname "$1"; shift; eval "exec $*"' sh "node$number" "$@"
"""


def by_hand(op, size, count):
    """Parameters; none for what has one way only."""
    best = next((choice for most, choice in BY_HAND.get(op, {}).items() if size <= most), "")
    return best.format(segment=8192 if count <= 8 else 4096)


def program():
    if not (shutil.which("mpicc") and shutil.which("mpirun")):
        peer.install(PACKAGES)
    return peer.program("mpi.c", "mpicc", "-O2", "-D_GNU_SOURCE", libraries=["-lxxhash"])


class OpenMpi(Peer):
    system = "openmpi"
    operations = (*Peer.operations, "p2p")
    mpirun = None
    last_words = 2000

    @staticmethod
    def has_tuning(op, tuning):
        return "=" in tuning

    def end_ranks(self):
        for task in self.tasks:
            task.close()  # the end of its input ends the rank
        self.tasks = []
        if self.mpirun is None:
            return
        try:
            self.mpirun.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(self.mpirun.pid, signal.SIGKILL)
            self.mpirun.wait()
        self.mpirun = None

    def argv(self):
        agent = self.directory / "agent"
        agent.write_text(AGENT.format(name=self.config["name"]))
        agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
        hosts = ",".join(f"{network.node_ip(node)}:1" for node in range(self.count))
        hand = by_hand(self.op, self.size, self.count)
        choice = {"default": "", "hand": hand}.get(self.tuning, self.tuning)
        tuned = ["--mca", "coll_tuned_use_dynamic_rules", "1"] if choice else []
        for key, _, value in (pair.partition("=") for pair in choice.split(",") if pair):
            tuned += ["--mca", f"coll_tuned_{key}" if "algorithm" in key else key, value]
        return ["ip", "netns", "exec", network.node_netns(self.config["name"], 0),
                "unshare", "--uts", "sh", "-c", 'hostname node0; exec "$@"', "sh",
                "mpirun", "--allow-run-as-root", "--leave-session-attached", "-np", self.count,
                "--host", hosts, "--map-by", "ppr:1:node", "--bind-to", "none",
                "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
                *TCP_ONLY, *tuned, "-x", f"LD_PRELOAD={build_dir() / 'bench/yield.so'}",
                program(), self.directory]

    def start_ranks(self):
        for node in range(self.count):
            for kind in ("in", "out"):
                (self.directory / f"{kind}.{node}").unlink(missing_ok=True)
                os.mkfifo(self.directory / f"{kind}.{node}")
        argv = [str(a) for a in self.argv()]
        with open(self.directory / "log", "wb") as log:
            self.mpirun = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, env={**os.environ, "TMPDIR": str(self.directory)})
        # both ends open: neither opening nor reading depends on how far the rank has come
        self.tasks = [Task(f"MPI's rank {node}",
                           os.open(self.directory / f"in.{node}", os.O_RDWR | os.O_CLOEXEC),
                           os.open(self.directory / f"out.{node}", os.O_RDWR | os.O_CLOEXEC),
                           lambda: self.mpirun.poll() is None) for node in range(self.count)]

    def prepare(self, op, size):
        if size >= 1 << 31:
            raise Failure("OpenMPI counts bytes in an int: take less than 2 GiB", 2)
        super().prepare(op, size)
