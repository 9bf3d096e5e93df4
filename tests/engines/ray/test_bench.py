# SPDX-License-Identifier: BSD-3-Clause
"""`scripts/bench ray` in small: each case over each transport gives its row, and the same sums and losses.

The applications are deterministic where all workers are in each round, so all transports must end with the same
loss. A killed node does not end a run. It needs root, for the namespaces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.bench.tables import ray_page  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = {"sarissa", "ray", "ray-gloo"}
APPLICATIONS = {"sgd", "policy", "a3c", "serving"}
FIELDS = {"case", "system", "nodes", "bytes", "seconds", "bound_seconds", "ratio", "cpu_seconds", "cores_busy",
          "rate_mbit", "model", "killed"}
NODES, SIZE = 3, 1_000_000

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


def bench(*options):
    command = [ROOT / "scripts/bench", "ray", "--nodes", NODES, "--size", SIZE, "--rounds", 2, "--repeat", 1, "--work-ms",
               5, "--json", *options]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280,
                          env={**os.environ, "SARISSA_ENGINES": sys.prefix})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_all_systems_give_the_same_sums_and_losses():
    rows = bench("--num", NODES - 1, "--no-kill")
    by = {(row["case"], row["system"]): row for row in rows}
    assert by.keys() == {("empty", "ray")} | {(case, system) for case in APPLICATIONS | {"broadcast", "reduce"}
                                              for system in SYSTEMS}
    for row in rows:
        assert FIELDS <= row.keys()
        assert row["seconds"] > 0 and not row["killed"] and row["nodes"] == NODES
        assert row["case"] == "empty" or row["bytes"] == SIZE and row["seconds"] > 0.5 * row["bound_seconds"]
    for case in APPLICATIONS | {"reduce"}:
        losses = [by[case, system]["loss"] for system in SYSTEMS]
        assert losses == pytest.approx([losses[0]] * len(losses), rel=1e-4), case
    assert by["reduce", "ray"]["loss"] == sum(range(1, NODES + 1))
    blocks = ray_page.blocks([{**ray_page.recorded(row), "other_cpu_share": 0} for row in rows])
    assert all(f"`{case}`" in blocks["ray"] for case in APPLICATIONS)


def test_rounds_go_on_without_a_node_that_was_killed():
    *_, row = bench("--num", NODES - 1, "--only", "sgd", "--system", "sarissa")
    assert row["killed"] and row["workers"] == NODES - 2
    assert row["before_rounds_per_second"] > 0 and row["rounds_per_second"] > 0
