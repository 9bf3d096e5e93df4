# SPDX-License-Identifier: BSD-3-Clause
"""One collective on five nodes with one fault in its middle: what is prepared, what is broken, how
it is healed, and whether the bytes are right."""

import array
import contextlib
import hashlib
import os
import subprocess
import threading
import time

from lib import shell
from lib.bench import transfer
from lib.cluster import faults, network, nodes, process
from lib.shell import Failure

NODES = 5
MIB = 1 << 20
AGAIN_S = 0.25      # a killed process is started again after so long, as by the service manager
CUT_S = 5.0         # a partition lasts longer than it takes to call a node dead
FLAPS, FLAP_S = 10, 0.05
SETTLE_S = 30.0
LIMIT_S = 60        # of every call
OPS = ("broadcast", "reduce", "allreduce")


class Trial:
    """One collective. Each receiver's client gets for as long as an error tells it to get again."""

    def __init__(self, config, op, mib, directory, number):
        self.config, self.op, self.mib, self.directory = config, op, mib, directory
        self.name = f"{op}-{os.getpid()}-{number}"
        self.gone = set()      # nodes whose clients do not count
        self.children = {}     # by node: the process of its get
        self.ends = {}         # by node: when its client had all, or how it failed
        self.again = 0         # gets after the first
        self.clients = []
        self.asked = None      # the reduce
        self.healed = None     # a fault that lasts: when it ended
        self.owner = None

    def sarissa(self, node, *argv):
        return subprocess.Popen([str(nodes.binary("cli")), *map(str, argv)],
                                env=nodes.environment(self.config, node),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sources(self):
        return [f"{self.name}-{node}" for node in range(NODES)]

    def prepare(self):
        path = self.directory / "sent"
        if self.op == "broadcast":
            transfer.write_random(path, self.mib << 20)
            self.digest = hashlib.sha256(path.read_bytes()).digest()
            transfer.command(self.config, 0, "put", self.name, path)
            transfer.command(self.config, 1, "get", self.name, "/dev/null")
            return
        for node, name in enumerate(self.sources()):
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
        self.clients = [threading.Thread(target=self.follow, args=(node,))
                        for node in self.receivers()]
        for client in self.clients:
            client.start()

    def get(self, node):
        self.children[node] = self.sarissa(node, "get", self.name, self.directory / f"got-{node}",
                                           "--timeout", LIMIT_S)

    def receivers(self):
        return {"broadcast": (2, 3, 4), "reduce": (4,), "allreduce": range(NODES)}[self.op]

    def follow(self, node):
        """A thread for each receiver."""
        while True:
            child = self.children[node]
            _, errors = child.communicate()
            if node in self.gone:
                return
            if child.returncode == 0 or "again" not in errors:
                break
            self.again += 1
            self.get(node)
        self.ends[node] = Failure(f"exit {child.returncode}: {errors}") if child.returncode else \
            time.monotonic()

    def finish(self):
        """Seconds until the last receiver that counts has the right bytes."""
        counted = {node: client for node, client in zip(self.receivers(), self.clients)
                   if node not in self.gone}
        for node, client in counted.items():
            client.join(timeout=2 * LIMIT_S)
            end = self.ends.get(node, Failure("its client goes on and on"))
            if isinstance(end, Failure):
                dead = [f"{kind} of node {n}" for n in range(NODES) for kind in nodes.KINDS
                        if n not in self.gone and nodes.pid(self.config, n, kind) is None]
                raise Failure(f"{self.name}: node {node}: {end}; dead: {dead}; its log:\n"
                              f"{nodes.log_tail(self.config, node, 'control')}")
        for node in counted:
            self.check(node)
        return max((self.ends[node] for node in counted), default=self.began) - self.began

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
        self.gone.update(range(NODES))
        while any(client.is_alive() for client in self.clients):
            for child in self.children.values():
                child.kill()
            time.sleep(0.01)
        if self.asked:
            self.asked.kill()
            self.asked.communicate()

    def clean(self):
        names = [self.name] if self.op == "broadcast" else [self.name, *self.sources()]
        for name in names:
            with contextlib.suppress(Failure):
                transfer.command(self.config, 1, "rm", name)


# ---- faults: called when the collective is half-way --------------------------------------------

def kill(trial, node, *kinds, again=None):
    if again is None:
        trial.gone.add(node)
    for kind in kinds:
        process.end(nodes.pid(trial.config, node, kind))
    if again is None:
        return
    time.sleep(again)
    for kind in kinds:
        nodes.forget(trial.config, node, kind)
        nodes.start(trial.config, node, kind)


def kill_node(node):
    return lambda trial: kill(trial, node, *nodes.KINDS)


def kill_owner(trial):
    kill(trial, trial.owner, *nodes.KINDS)


def kill_process(kind):
    return lambda trial: kill(trial, 0, kind, again=AGAIN_S)


def kill_client(trial):
    trial.gone.add(3)
    (trial.children.get(3) or trial.asked).kill()


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
