# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of a running cluster under /run/sarissa-cluster/NAME."""

import contextlib
import fcntl
import json
import os
import re
import shutil
from pathlib import Path

from lib.cluster import process
from lib.shell import Failure

RUN = Path("/run/sarissa-cluster")


def check_name(name):
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name):
        raise Failure(f"'{name}' is no name for a cluster: use up to 32 of a-z 0-9 -", 2)


def cluster_dir(name):
    return RUN / name


def node_dir(config, node):
    return cluster_dir(config["name"]) / f"node{node}"


def topology_file(config):
    """What the nodes read, when the cluster has a topology."""
    return cluster_dir(config["name"]) / "topology.yaml"


def owner_file(name):
    """Which process it was made for, if that is known."""
    return cluster_dir(name) / "owner.pid"


def exists(name):
    return cluster_dir(name).exists()


def save(config):
    """Creates or replaces the state; whole or not at all."""
    directory = cluster_dir(config["name"])
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / "cluster.json.part"
    part.write_text(json.dumps(config, indent=1) + "\n")
    part.rename(directory / "cluster.json")


def load(name):
    check_name(name)
    try:
        return json.loads((cluster_dir(name) / "cluster.json").read_text())
    except FileNotFoundError:
        raise Failure(f"no cluster '{name}' is up: start one with scripts/cluster up N") from None


def check_node(config, node):
    if not 0 <= node < config["nodes"]:
        raise Failure(f"node {node} is not there: nodes are 0 to {config['nodes'] - 1}", 2)


def left_over():
    """Clusters whose owner has ended, and can take them down no more."""
    return [file.parent.name for file in RUN.glob("*/owner.pid") if process.alive(file) is None]


def remove(name):
    shutil.rmtree(cluster_dir(name), ignore_errors=True)


def is_same(fd, path):
    """The file at path is still the one that was opened."""
    try:
        return os.fstat(fd).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(name):
    """One change of a cluster at a time. The lock file goes with the cluster."""
    check_name(name)
    RUN.mkdir(parents=True, exist_ok=True)
    path = RUN / f".{name}.lock"
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if is_same(fd, path):
            break
        os.close(fd)
    try:
        yield
    finally:
        if not exists(name):
            path.unlink(missing_ok=True)
        os.close(fd)
