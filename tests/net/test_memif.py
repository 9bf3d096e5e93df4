#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes joined by a shared-memory interface (memif): no network device at all."""

import subprocess
import time

import netlib
from netlib import nodes, process

SIZES = (0, 1, 65536, (1 << 20) + 7, 32 << 20)
PEERS = "10.78.0.1:7400,10.78.0.2:7400"


class Pair:
    """A memif server and a memif client, each with its control."""

    def __init__(self, directory):
        self.directory = directory
        self.children = []

    def __enter__(self):
        try:
            return self.start()
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def start(self):
        for node, role in enumerate(("server", "client")):  # a client needs its server
            rundir = self.rundir(node)
            rundir.mkdir()
            self.spawn(node, "dataplane", "--rundir", rundir, "--port",
                       f"memif:0,role={role},socket={self.directory}/memif.sock",
                       "--addr", f"10.78.0.{node + 1}/24", "--udp-port", 7400, "--mtu", 1500,
                       "--store", 64, "--workers", 1)
            netlib.wait_for(lambda: nodes.is_listening(rundir / "dataplane.sock", "self"), netlib.PATIENCE_S,
                            f"dataplane {node} listens")
            self.spawn(node, "control", "--rundir", rundir, "--node", node, "--nodes", PEERS)
        for node in (0, 1):
            netlib.wait_for(lambda: self.run(node, "status").returncode == 0, netlib.PATIENCE_S,
                            f"node {node} answers")
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            process.end_all([child.pid])
            child.wait()
        if kind:
            for log in sorted(self.directory.glob("*.log")):
                print(f"  -- {log.name}:\n{netlib.tail(log.read_text(errors='replace'))}")

    def rundir(self, node):
        return self.directory / f"node{node}"

    def spawn(self, node, kind, *argv):
        with open(self.directory / f"{kind}{node}.log", "w") as log:
            self.children.append(subprocess.Popen([str(a) for a in (nodes.binary(kind), *argv)],
                                                  stdout=log, stderr=log))

    def run(self, node, *argv):
        env = {"SARISSA_SOCKET": str(self.rundir(node) / "control.sock"), "PATH": "/usr/bin"}
        return subprocess.run([str(a) for a in (nodes.binary("cli"), *argv)], env=env,
                              capture_output=True, text=True, timeout=90)


def objects_cross_shared_memory():
    netlib.need_daemons()
    with netlib.scratch() as directory, Pair(directory) as pair:
        for size in SIZES:
            name = f"object-{size}"
            expected = netlib.make_file(directory / "sent", size)
            done = pair.run(0, "put", name, directory / "sent")
            assert done.returncode == 0, netlib.tail(done.stderr)
            begin = time.monotonic()
            done = pair.run(1, "get", name, directory / "got", "--timeout", 60)
            assert done.returncode == 0, f"{size} bytes: {netlib.tail(done.stderr)}"
            took = time.monotonic() - begin
            assert netlib.digest_of(directory / "got") == expected, f"{size} bytes: other bytes"
            assert pair.run(0, "rm", name).returncode == 0
    return f"{SIZES[-1] / took / 1e6:.0f} MB/s"


netlib.run(objects_cross_shared_memory)
