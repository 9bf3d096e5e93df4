# SPDX-License-Identifier: BSD-3-Clause
"""Dask's side of a measurement: one worker per node, the scheduler and a client on node 0, over TCP,
from Debian's packages; dask-today: the same, from PyPI (scripts/setup --engines).

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation
off-loads for large objects; no limit of memory, no spilling, no compression (there is nothing to gain), no statistics
on its own code, no removal of copies; while the others have their turn its processes stand still.
The end is when the task that asked for the bytes begins, not when the client hears of it.
bench/dask_driver.py says what its tunings are."""

import os
import signal
import subprocess
from pathlib import Path

from lib import engines
from lib.bench.systems import peer
from lib.bench.systems.peer import Driven
from lib.bench.task import Program, built, end_programs
from lib.cluster import network, process
from lib.shell import ROOT

PACKAGES = ("python3-distributed", "python3-numpy")
PYTHON = "/usr/bin/python3"  # Debian's, which sees Debian's packages
PORT = 8786
THREADS = 4  # of a worker: givers that come later wait in one of them

SETTINGS = {"WORKER__PROFILE__ENABLED": "False", "ADMIN__TICK__INTERVAL": "500ms",
            "COMM__COMPRESSION": "None", "SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False",
            "SCHEDULER__WORKER_TTL": "None"}


def installed():
    return all((Path("/usr/lib/python3/dist-packages") / name).is_dir()
               for name in ("distributed", "numpy"))


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "bench"), "PYTHONDONTWRITEBYTECODE": "1",
            "SARISSA_PAYLOAD": str(built("payload.so"))} | {
                f"DASK_DISTRIBUTED__{key}": value for key, value in SETTINGS.items()}


class Dask(Driven):
    system = "dask"
    operations = (*Driven.operations, "p2p")
    one_way = ("gather", "p2p")
    python = PYTHON

    def __init__(self, config, tuning):
        super().__init__(config, tuning)
        self.daemons = []

    def __enter__(self):
        super().__enter__()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    @classmethod
    def need(cls):
        if not installed():
            peer.install(PACKAGES)

    def end_ranks(self):
        self.run()
        end_programs(self.programs)
        process.end_all([child.pid for child in self.daemons], grace_s=1.0)
        for child in self.daemons:
            child.wait()

    def start(self):
        port = PORT + (self.tuning == "hand")  # both may run on the same links
        address = f"tcp://{network.node_ip(0)}:{port}"
        self.daemon(0, "scheduler", "--host", network.node_ip(0), "--port", port,
                    "--dashboard-address", "127.0.0.1:0")
        for node in range(self.count):
            self.daemon(node, "worker", address, "--host", network.node_ip(node), "--name", node,
                        "--no-nanny", "--nthreads", THREADS, "--memory-limit", 0,
                        "--local-directory", self.directory)
        with open(self.directory / "log.driver", "wb") as log:
            self.programs.append(Program(
                self.config, 0, "dask's client", self.python, ROOT / "bench/dask_driver.py", address,
                self.count, self.tuning, env=environment(), log=log))
        self.driver = self.programs[0].task

    def daemon(self, node, kind, *argv):
        with open(self.directory / f"log.{kind}", "ab") as log:
            self.daemons.append(subprocess.Popen(
                [str(a) for a in ("ip", "netns", "exec", network.node_netns(self.config["name"], node),
                                  self.python, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard",
                                  *argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment(),
                start_new_session=True))

    def run(self, number=signal.SIGCONT):
        for child in (*self.daemons, *(program.child for program in self.programs)):
            if child.poll() is None:
                os.kill(child.pid, number)


class DaskToday(Dask):
    system = "dask-today"
    optional = True

    @classmethod
    def need(cls):
        engines.need(cls.system, "distributed")
        cls.python = engines.python()
