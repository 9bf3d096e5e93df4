#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A sweep over seeds names the seed with which the swarm crashes, is killed or hangs, and runs all others.

The swarm is the real one; what happens to it comes from outside, by signals.

usage: test_sweep.py SWARM
"""

import contextlib
import io
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.test import sweep  # noqa: E402

FIRST = 1
VICTIM = 2  # of what befalls one seed


def ticks(pid):
    """Of the processor, that it has had: two of 10 ms after its first line it is in the middle of its
    work."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def befall(kind, log, swarm, *argv):
    """In the place of the swarm: runs it, unless this is the time for trouble."""
    if "--seed" in argv:
        seed, runs = (int(argv[argv.index(name) + 1]) for name in ("--seed", "--runs"))
        with open(log, "a") as out:
            out.write(f"{seed} {seed + runs - 1}\n")
        if kind == "STOP" and seed <= VICTIM < seed + runs:
            os.kill(os.getpid(), signal.SIGSTOP)
        if (kind == "SEGV" and seed == FIRST) or (kind == "KILL" and seed <= VICTIM < seed + runs):
            number = getattr(signal, f"SIG{kind}")
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with subprocess.Popen([swarm, *argv], stdout=subprocess.PIPE) as child:
                child.stdout.readline()  # from here on it tells of a crash
                begun = ticks(child.pid)
                while ticks(child.pid) < begun + 2 and child.poll() is None:
                    time.sleep(0.001)
                child.send_signal(number)
            os.kill(os.getpid(), number)
    os.execv(swarm, [swarm, *argv])


class Sweep(unittest.TestCase):
    def sweep(self, kind, last):
        """What was printed, and the ranges that the swarm was asked for."""
        with tempfile.TemporaryDirectory(prefix="sarissa-sweep-") as folder:
            log, swarm = Path(folder, "log"), Path(folder, "tests/sim/swarm")
            swarm.parent.mkdir(parents=True)
            words = shlex.join([sys.executable, __file__, "--befall", kind, str(log), SWARM])
            swarm.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            swarm.chmod(0o755)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                failed = sweep.run(Path(folder), range(FIRST, last + 1), "clean")
            ranges = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
        self.assertEqual(failed, 1, out.getvalue())
        self.assertIn(f"{last - FIRST + 1} seeds, 1 failed", out.getvalue())
        told = re.search(r"^FAIL clean (\d+): (.*): \S+ --scenario clean --seed \1 --runs 1 ",
                         out.getvalue(), re.M)
        self.assertTrue(told, out.getvalue())
        return int(told[1]), told[2], ranges

    def test_a_crash_costs_one_seed(self):
        seed, text, ranges = self.sweep("SEGV", sweep.SLICE)
        self.assertEqual(text, "ended with -11")
        self.assertEqual(ranges, [(FIRST, sweep.SLICE), (seed + 1, sweep.SLICE)])

    def one_by_one(self, kind, expected):
        last = VICTIM + 1
        seed, text, ranges = self.sweep(kind, last)
        self.assertEqual((seed, text), (VICTIM, expected))
        self.assertEqual(ranges, [(FIRST, last)] + [(k, k) for k in range(FIRST, last + 1)])

    def test_a_kill_is_looked_for(self):
        self.one_by_one("KILL", "ended with -9")

    def test_a_hang_is_looked_for(self):
        sweep.RUN_SECONDS = 30  # a seed of this scenario takes a tenth of one
        self.one_by_one("STOP", "not done in 30 s")


if __name__ == "__main__":
    if sys.argv[1] == "--befall":
        befall(*sys.argv[2:])
    SWARM = sys.argv.pop()
    unittest.main()
