#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults in the middle of collectives, as the table of docs/study/performance.md is made: the bytes are
right, nobody waits for ever, and no daemon ends that was not killed."""

import json
import subprocess

import netlib
from netlib import ROOT

FAULTS = ("sender killed", "middle killed", "dataplane killed, started again",
          "partition of 2 and 3, 5 s")
EXTRA_MAX_S = 20


def recovers(op, repeat, *faults):
    netlib.need_daemons()
    choice = [word for fault in faults for word in ("--fault", fault)]
    done = subprocess.run([ROOT / "scripts/bench", "recovery", "--op", op, "--repeat", str(repeat),
                           "--mib", "4", "--json", *choice], capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, netlib.tail(done.stderr, 40)
    assert len(rows) == len(faults) + 1, done.stdout
    for row in rows:
        assert row["failed"] == 0 and row["extra_worst"] < EXTRA_MAX_S, row
    return ", ".join(f"{row['fault']}: {row['extra_worst']:.2f} s" for row in rows[1:])


# [G7.1]
def broadcasts_survive():
    return recovers("broadcast", 2, *FAULTS)


def allreduces_survive():
    return recovers("allreduce", 1, "middle killed", "control killed, started again")


netlib.run(broadcasts_survive, allreduces_survive)
