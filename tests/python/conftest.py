# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the Python package share: a cluster of four nodes of `sarissa local`, without root
privileges, for the time of a run of pytest. SARISSA_BUILD names the build."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
import sarissa

BUILD = Path(os.environ["SARISSA_BUILD"])
ROOT = Path(__file__).resolve().parents[2]
NODES = 4


class Local:
    def __init__(self, nodes=NODES, name=f"python-{os.getpid()}", store=512):
        self.name = name
        self.run("up", str(nodes), "--store", str(store))
        self.socket = [self.run("exec", str(node), "--", "printenv", "SARISSA_SOCKET").strip()
                       for node in range(nodes)]

    def run(self, verb, *argv, **options):
        name = [f"--name={self.name}"]
        done = subprocess.run([BUILD / "client/cli/sarissa", "local", verb, *name, *argv], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        assert done.returncode == 0, f"sarissa local {verb}: {done.stderr}"
        return done.stdout

    def open(self, node=0):
        return sarissa.open(self.socket[node])


@pytest.fixture(scope="session", autouse=True)
def folder():
    """Of clusters: who changes one shuts out others for that time, and they fail."""
    with tempfile.TemporaryDirectory(prefix="python-", dir="/tmp") as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", made)
        yield


@pytest.fixture(scope="session")
def local(folder):
    made = Local()
    yield made
    made.run("down")


@pytest.fixture
def nodes(local):
    """A connection to each."""
    opened = [local.open(node) for node in range(NODES)]
    yield opened
    for node in opened:
        node.close()


@pytest.fixture
def node(nodes):
    return nodes[0]
