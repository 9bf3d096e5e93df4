# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench torch: a small run gives a row of each system, with right fields; wrong arguments give one line."""

import json
import os
import subprocess
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "scripts/bench"
MIB = 1 << 20


def bench(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "SARISSA_VDEV"}  # the port is the bench's
    return subprocess.run(["/usr/bin/python3", BENCH, "torch", *arguments], capture_output=True, text=True, timeout=280,
                          env=environment)


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_small_run():
    done = bench("--ranks", "2", "--only", "allreduce", "--sizes", str(MIB), "--repeat", "1", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["case"], row["system"], row["ranks"], row["bytes"]) for row in rows] == \
        [("allreduce", system, 2, MIB) for system in ("gloo", "sarissa")]
    for row in rows:
        assert row["bound_seconds"] == pytest.approx(MIB * 8 / 200e6)
        assert row["seconds"] == pytest.approx(1 / row["steps_per_second"]) and row["cpu_seconds"] > 0
        assert 0.9 < row["ratio"] < 20 and 0 < row["cores_busy"] <= 1 and row["rate_mbit"] == 200
        assert row["wire_bytes"] > 2 * MIB * row["count"]  # each rank sends one half of it, and gets the other
    assert rows[1]["vdev"] == "udp"


def test_wrong_arguments_give_one_line():
    done = bench("--sizes", "1022")
    assert done.returncode == 2 and done.stdout == "", done
    assert "--sizes: 1022 bytes" in done.stderr and done.stderr.count("\n") == 1, done.stderr
