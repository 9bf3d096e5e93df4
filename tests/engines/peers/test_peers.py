# SPDX-License-Identifier: BSD-3-Clause
"""The peers of `scripts/bench` that come from PyPI: Ray, torch with gloo, Mooncake Store, NIXL, Dask of today.

Each runs on three real nodes, where the benchmark compares every byte that arrives. One that cannot run here has to
be named with its error. Needs root, for network namespaces.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "scripts/bench"
SYSTEMS = {"ray", "torch-gloo", "mooncake", "nixl", "dask-today"}
PEERS = {"mooncake", "nixl"}  # that the engines' list does not have, so that they need PyPI
SIZE = 1 << 20

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces: run as root")


def bench(op, system, **environment):
    argv = [BENCH, op, "--nodes", 3, "--size", SIZE, "--rate", 200, "--repeat", 1, "--vdev", "udp", "--tuning", "hand",
            "--system", system, "--json"]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=280,
                          env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment})
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def named(done):
    """Systems that a run says are left out, with the line that says why."""
    lines = [line for line in done.stderr.splitlines() if " is left out: " in line]
    return {line.removeprefix("bench: ").split(" is left out: ")[0]: line for line in lines}


@pytest.mark.parametrize("op", ["broadcast", "reduce"])
def test_each_system_gives_a_row_or_is_named(op):
    done, rows = bench(op, "engines")
    ran, without = {row["system"] for row in rows}, named(done)
    assert ran | without.keys() == SYSTEMS | {"sarissa"}, done.stderr
    assert without.keys() <= PEERS and all("cannot" in line for line in without.values()), done.stderr
    assert done.returncode == (1 if without else 0), done.stderr
    for row in rows:  # nobody is faster than the link, and nobody moves fewer bytes than needed
        assert (row["op"], row["nodes"], row["bytes"]) == (op, 3, SIZE), row
        assert row["ratio"] > 1 and row["wire_bytes"] > 2 * SIZE, row


@pytest.fixture
def bare(tmp_path):
    """An environment that has no engine and cannot install one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return {"SARISSA_ENGINES": str(tmp_path / "bare"), "PIP_NO_INDEX": "1"}


def test_systems_that_are_missing_are_named_and_ours_is_measured(bare):
    done, rows = bench("broadcast", "engines", **bare)
    assert {row["system"] for row in rows} == {"sarissa"}, done.stderr
    assert named(done).keys() == SYSTEMS and done.returncode == 1, done.stderr
    assert "No module named 'ray'" in named(done)["ray"], done.stderr
    assert done.stderr.splitlines()[-1].startswith("bench: without "), done.stderr


@pytest.mark.parametrize("system, why", [("dask-today", "cannot run here: ModuleNotFoundError"),
                                         ("nixl", "cannot be installed")])
def test_one_that_is_asked_for_alone_ends_the_run(bare, system, why):
    done, rows = bench("reduce", system, **bare)
    assert done.returncode == 1 and not rows, done.stderr
    assert f"bench: {system} {why}" in done.stderr and "leave it out (--system)" in done.stderr, done.stderr


def test_no_environment_is_named_with_what_makes_it(tmp_path):
    done, rows = bench("reduce", "ray", SARISSA_ENGINES=str(tmp_path / "nowhere"))
    assert done.returncode == 1 and not rows, done.stderr
    assert "`scripts/setup --engines` installs them" in done.stderr, done.stderr
