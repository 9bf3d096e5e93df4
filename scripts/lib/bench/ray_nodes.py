# SPDX-License-Identifier: BSD-3-Clause
"""Ray nodes in the namespaces of a cluster: one `ray start` for each host, node 0 being Ray's head.

Used by the measurements that have Ray in them. It knows neither what is measured nor what runs on Ray, and does
not import ray, which is in the engines' environment alone. Each Ray node has a folder of its own for its sockets
and logs, so that all may start at once."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from lib import engines
from lib.bench.task import Program
from lib.cluster import network, process
from lib.shell import Failure, run

PORT = 6379
START_S = 120.0
STARTED = "Ray runtime started."
LAST_WORDS = 300  # of the last line of a log
PULL_S = 10.0  # Ray's own
MIB = 1 << 20

# Neither statistics for Ray's makers nor samples of its own processes: they cost CPU and give the others nothing. No
# tokens: Ray's head asks for one as soon as there is one in the user's home, of which the other nodes do not know.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0", "RAY_DISABLE_IMPORT_WARNING": "1",
            "RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_memory_monitor_refresh_ms": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def tree(pid):
    """A process and all that have come of it."""
    out = [pid]
    for parent in out:
        out += process.children(parent)
    return out


class RayNodes:
    """A context: the Ray nodes are up inside. Each node has the resource `nodeI`, to place tasks and actors by."""

    def __init__(self, config, store_bytes=256 * MIB, cpus=1, python=None, environment=None, count=None, pull_s=PULL_S):
        """config: the cluster, bare or not; store_bytes, cpus: of each Ray node; environment: more variables of
        Ray's processes and workers, by node; count: Ray nodes, on the first of the hosts; pull_s: so long a Ray node
        waits for an object before it asks for it again, from another node. The first transfer goes on meanwhile, so
        give it the time that the slowest transfer needs."""
        self.config, self.store_bytes, self.cpus = config, store_bytes, cpus
        self.count = count or config["nodes"]
        self.python = Path(python or engines.python())
        self.more = environment or (lambda node: {})
        self.pull_s = max(pull_s, PULL_S)
        self.children = {}  # by node
        self.address = f"{network.node_ip(0)}:{PORT}"

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="sar-ray-", dir="/tmp"))  # its sockets want a short path
        try:
            self.start(0)
            self.wait([0])
            for node in range(1, self.count):
                self.start(node)
            self.wait(range(1, self.count))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in list(self.children):
            self.kill(node)
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self, node):
        """Of Ray's processes on a node, and of a driver there."""
        path = f"{self.python.parent}:{os.environ['PATH']}"
        return {**os.environ, **SETTINGS, "PATH": path, "RAY_ADDRESS": self.address,
                "RAY_object_manager_pull_timeout_ms": str(round(1e3 * self.pull_s)),
                "SARISSA_RAY_NODE": str(node), "SARISSA_RAY_NODE_IP": network.node_ip(node), **self.more(node)}

    def log(self, node):
        return self.directory / f"log.{node}"

    def start(self, node):
        """Begins to start a Ray node; also one that was killed before."""
        where = ["--head", "--port", PORT, "--include-dashboard", "false"] if node == 0 else ["--address", self.address]
        argv = [self.python, "-m", "ray.scripts.scripts", "start", *where, "--block", "--disable-usage-stats",
                "--node-ip-address", network.node_ip(node), "--num-cpus", self.cpus, "--num-gpus", 0,
                "--resources", json.dumps({f"node{node}": 1000}), "--object-store-memory", self.store_bytes,
                "--include-log-monitor", "false", "--temp-dir", self.directory / str(node), "--log-color", "false"]
        with open(self.log(node), "wb") as log:
            self.children[node] = subprocess.Popen(
                [str(a) for a in ("ip", "netns", "exec", network.node_netns(self.config["name"], node), *argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=self.environment(node))

    def wait(self, nodes):
        """Until these Ray nodes are up."""
        until = time.monotonic() + START_S
        for node in nodes:
            while STARTED not in self.log(node).read_text(errors="replace"):
                if self.children[node].poll() is not None:
                    raise Failure(f"Ray's node {node} has ended: {self.trouble(node)}")
                if time.monotonic() > until:
                    raise Failure(f"Ray's node {node} is not up after {START_S:.0f} s: {self.trouble(node)}")
                time.sleep(0.05)

    def signal(self, number):
        """To all processes of all Ray nodes: SIGSTOP while others are measured, SIGCONT."""
        for child in self.children.values():
            for pid in tree(child.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self, node):
        """All processes of a Ray node at once, its workers too (SIGKILL); other programs of the host live on."""
        child = self.children.pop(node)
        inside = set(map(int, run("ip", "netns", "pids", network.node_netns(self.config["name"], node)).split()))
        for pid in tree(child.pid):
            if pid in inside:
                process.end(pid)
        child.wait()

    def driver(self, node, label, *argv, log):
        """A program of the engines' Python on a node, in whose environment RAY_ADDRESS is set: lib.bench.task."""
        return Program(self.config, node, label, self.python, *argv, env=self.environment(node), log=log)

    def trouble(self, node):
        lines = self.log(node).read_text(errors="replace").strip().splitlines()
        return (lines or ["it says nothing"])[-1][:LAST_WORDS]

    def cpu_seconds(self):
        """That all processes of Ray have used up to now, by node."""
        return {node: sum(map(process.cpu_seconds, tree(child.pid))) for node, child in self.children.items()}
