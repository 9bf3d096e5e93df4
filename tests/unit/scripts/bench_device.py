#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/device.c with the stand-in for the CUDA driver: a row for each memory, with right bytes. Without a driver: one
line, and the status 2.

usage: bench_device.py PROGRAM FOLDER-OF-THE-STAND-IN
"""

import json
import subprocess
import sys
from pathlib import Path


def run(program, *arguments, **environment):
    return subprocess.run([program, *arguments], env=environment, text=True, capture_output=True, timeout=300)


def main():
    program, folder = sys.argv[1:]
    done = run(program, "--json", "9", LD_LIBRARY_PATH=folder)
    assert done.returncode == 0, done
    device, *rows = map(json.loads, done.stdout.splitlines())
    assert device == {"case": "device", "name": "stand-in", "cuda": 12000, "read_only_register": True}, device
    wanted = {(case, direction) for case in ("pageable", "pinned", "store") for direction in ("to_device", "from_device")}
    found = {(row["case"], row["direction"]) for row in rows}
    assert found >= wanted | {("store", "overlapped"), ("store-direct", "from_device")}, found
    assert all(row["right"] and row["bytes"] == 9 << 20 and row["seconds"] > 0 for row in rows), rows
    store = next(row for row in rows if (row["case"], row["direction"]) == ("store", "to_device"))
    assert store["registered"] and store["register_seconds"] > 0, store
    wrong = run(program, "nonsense", LD_LIBRARY_PATH=folder)
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and "usage" in wrong.stderr, wrong
    if not any(Path(lib).joinpath("libcuda.so.1").exists() for lib in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        without = run(program)
        assert without.returncode == 2 and without.stderr.startswith("device: not run: no CUDA driver"), without


main()
