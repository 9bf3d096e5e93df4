# SPDX-License-Identifier: BSD-3-Clause
"""Ray on this machine for the tests of sarissa.ray: some Ray nodes of one host, small, and told to forget files."""

import os
import shutil
import tempfile
import time
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import pytest  # noqa: E402
import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

STORE = 80 << 20  # of Ray's own
BASE = Path(f"/tmp/sarissa-{os.geteuid()}")


def until(condition, what, limit=30.0):
    """Waits for a condition, and returns what it was in the end."""
    end = time.monotonic() + limit
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {limit} s: {what}"
        time.sleep(0.05)


def node_args(**more):
    return {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False, **more}


@pytest.fixture(scope="session")
def temp():
    """Ray's paths of sockets are long: it gets a short one."""
    folder = tempfile.mkdtemp(prefix="r.", dir="/tmp")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster_of(temp):
    """Makes a Ray cluster of so many nodes, whose driver is this process."""
    made = []

    def make(count, **more):
        made.append(Cluster(initialize_head=True, head_node_args=node_args(temp_dir=temp, **more)))
        for _ in range(count - 1):
            made[0].add_node(**node_args(**more))
        ray.init(address=made[0].address, log_to_driver=False)
        return made[0]
    yield make
    ray.shutdown()
    for one in made:
        one.shutdown()
