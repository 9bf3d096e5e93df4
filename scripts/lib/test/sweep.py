# SPDX-License-Identifier: BSD-3-Clause
"""Every scenario of the swarm over a range of seeds, on all cores."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from lib import shell
from lib.shell import Failure

SLICE = 25
SEEDS_MOST = 10_000_000
RUN_SECONDS = 60  # of wall time: takes a tenth of a second when nothing is wrong
BROKEN = re.compile(r"^swarm: seed (\d+) broke an invariant: (.*)$", re.M)
CRASHED = re.compile(r"^swarm: crashed; replay with: .* --seed (\d+) ", re.M)


def seeds(text):
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    first, last = (int(match[1]), int(match[2])) if match else (1, 0)
    if not first <= last < first + SEEDS_MOST or last >= 1 << 63:
        raise Failure(f"--seeds {text}: name the first and the last, like 1-500, and at most "
                      f"{SEEDS_MOST:,}", 2)
    return range(first, last + 1)


def check_scenario(name):
    """Before it is built: by the source."""
    names = re.findall(r'\.name = "([^"]+)"', (shell.ROOT / "tests/sim/swarm/swarm_run.c").read_text())
    if name not in names:
        raise Failure(f"no scenario '{name}': choose of {' '.join(names)}", 2)


def scenarios(swarm):
    return re.findall(r"^  (\S+) ", shell.run(swarm, "--help"), re.M)


def run_slice(swarm, scenario, wanted):
    """Yields (seed, what is wrong). A seed that ends the program, or hangs, costs only itself."""
    while wanted:
        argv = [swarm, "--scenario", scenario, "--seed", str(wanted[0]), "--runs",
                str(len(wanted))]
        try:
            done = subprocess.run(argv, capture_output=True, text=True,
                                  timeout=RUN_SECONDS * len(wanted))
        except subprocess.TimeoutExpired:
            done = None
        crash = done and CRASHED.search(done.stderr)
        if crash or (done and done.returncode in (0, 1)):
            yield from ((int(seed), text) for seed, text in BROKEN.findall(done.stderr))
            if not crash:
                return
            yield int(crash[1]), f"ended with {done.returncode}"
            wanted = range(int(crash[1]) + 1, wanted.stop)
        elif len(wanted) > 1:  # one by one they tell which it is
            for seed in wanted:
                yield from run_slice(swarm, scenario, range(seed, seed + 1))
            return
        else:
            yield wanted[0], (f"ended with {done.returncode}" if done
                              else f"not done in {RUN_SECONDS} s")
            return


def run(build, wanted, only):
    """Prints a line per failing seed, and how many there were; returns that number."""
    swarm = build / "tests/sim/swarm"
    names = scenarios(swarm)
    work = [(name, wanted[k:k + SLICE]) for name in ([only] if only else names)
            for k in range(0, len(wanted), SLICE)]
    failed = 0

    def one(part):
        return part[0], list(run_slice(swarm, *part))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, broken in pool.map(one, work):
            for seed, text in broken:
                failed += 1
                print(f"FAIL {name} {seed}: {text}: "
                      f"{os.path.relpath(swarm)} --scenario {name} --seed {seed} --runs 1 --verbose",
                      flush=True)
    print(f"{sum(len(part) for _, part in work)} seeds, {failed} failed")
    return failed
