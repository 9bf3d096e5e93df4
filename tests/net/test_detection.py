#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long until every other node knows that one has died or was cut off, and that it is back.

--rounds N repeats each case N times and prints median and worst. Known is what `sarissa status` on
each node says.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from statistics import median

import netlib
from netlib import Cluster, network, nodes

NODES = 5
ROUNDS = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 3
BEST_MAX_S = 1.5   # a connection alone is given up after 3 s
WORST_MAX_S = 30.0  # the machine may be busy with other things
BACK_MAX_S = 60.0
STARVED_S = 8.0
STARVED_NODES = 8


def state_of(cluster, node, about):
    done = subprocess.run([nodes.binary("cli"), "status", "--json"], capture_output=True,
                          text=True, env=nodes.environment(cluster.config, node), timeout=30)
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        if entry["node"] == about:
            return entry["state"]
    return None


def until_all_say(cluster, about, is_up, since, limit_s):
    """Seconds from since until the last of the others says so; asks all of them at once."""
    took = {}

    def watch(node):
        while time.monotonic() - since < limit_s:
            if (state_of(cluster, node, about) == "up") == is_up:
                took[node] = time.monotonic() - since
                return

    threads = [threading.Thread(target=watch, args=(node,))
               for node in range(NODES) if node != about]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missing = set(range(NODES)) - set(took) - {about}
    assert not missing, f"nodes {sorted(missing)} do not say so within {limit_s} s"
    return max(took.values())


def measured(end, bring_back):
    """Rounds of: node 1, 2, ... ends, all know, it comes back, all know."""
    netlib.need_daemons()
    gone, back = [], []
    with Cluster(NODES, "--store", 32) as cluster:
        time.sleep(2)
        for turn in range(ROUNDS):
            victim = 1 + turn % (NODES - 1)
            since = time.monotonic()
            end(cluster, victim)
            gone.append(until_all_say(cluster, victim, False, since, WORST_MAX_S))
            since = time.monotonic()
            bring_back(cluster, victim)
            back.append(until_all_say(cluster, victim, True, since, BACK_MAX_S))
            time.sleep(2)
    assert min(gone) < BEST_MAX_S, f"the best of {gone} s"
    return (f"known after {median(gone):.2f} s (median), {max(gone):.2f} s (worst of {len(gone)}); "
            f"back after {median(back):.2f} s, {max(back):.2f} s")


def a_killed_node_is_known():
    def end(cluster, victim):
        for pid in nodes.pids(cluster.config, [victim]):
            os.kill(pid, signal.SIGKILL)

    return measured(end, lambda cluster, victim: cluster.verb("start", victim))


def a_cut_node_is_known():
    return measured(lambda cluster, victim: network.set_link(cluster.config, victim, False),
                    lambda cluster, victim: network.set_link(cluster.config, victim, True))


def nobody_dies_of_a_busy_machine():
    """More programs that only compute than the machine has cores, beside idle nodes."""
    netlib.need_daemons()
    with Cluster(STARVED_NODES, "--store", 32) as cluster:
        spin = [sys.executable, "-c", "while True: pass"]
        children = [subprocess.Popen(spin) for _ in range(4 * (os.cpu_count() or 1))]
        try:
            time.sleep(STARVED_S)
        finally:
            for child in children:
                child.kill()
                child.wait()
        time.sleep(2)
        dead = [line for node in range(STARVED_NODES)
                for line in nodes.log_file(cluster.config, node, "control").read_text().splitlines()
                if "taken for dead" in line]
        assert not dead, dead
        return f"{len(children)} busy programs for {STARVED_S:.0f} s"


netlib.run(a_killed_node_is_known, a_cut_node_is_known, nobody_dies_of_a_busy_machine)
