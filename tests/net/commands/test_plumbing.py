#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The emulated network itself, with kernel sockets: rates hold, faults are what was asked for."""

import json
import subprocess
import sys
import time
from pathlib import Path

import netlib
from lib.cluster import process
from lib.shell import Failure
from lib.test import test
from netlib import Cluster

PROBE = netlib.ROOT / "tests/net/tasks/udp_probe.py"
PACKETS = 20000


def tcp_mbit(cluster, node, server, *options):
    daemon = cluster.start(server, "iperf3", "-s", "-1", stdout=subprocess.DEVNULL)
    netlib.wait_for(lambda: ":5201 " in cluster.must(server, "ss", "-ltn"),
                    netlib.PATIENCE_S, "iperf3 listens")
    out = cluster.must(node, "iperf3", "-J", "-t", "1", "-c", netlib.network.node_ip(server),
                       *options)
    daemon.wait(timeout=netlib.PATIENCE_S)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e6


def rates_hold_in_both_directions():
    netlib.need_root()
    netlib.need_command("iperf3")
    best = 100 * 1448 / 1514
    # who wakes late reads at once what the port has kept for it; more than that comes at no rate of ours
    most = 1.03 * best + netlib.network.PORT_BUFFER_BYTES * 8 / 1e6

    def holds(mbit):
        return 0.9 * best < mbit < 1.03 * best

    with Cluster(2, "--rate", 100, daemons=False) as cluster:
        seen = [netlib.measured(lambda: tcp_mbit(cluster, 0, 1, *way),
                                holds) for way in ((), ("-R",))]
    for mbit in seen:
        assert holds(mbit[-1]) and max(mbit) < most, f"{mbit} of {best:.1f} Mbit/s"
    return " and ".join(f"{mbit[-1]:.1f}" for mbit in seen) + f" of {best:.1f} Mbit/s"


def probe(cluster, source, target):
    """Sends numbered datagrams; the percentages of what became of them."""
    python = sys.executable or "/usr/bin/python3"
    receiver = cluster.start(target, python, PROBE, "receive", PACKETS, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert receiver.stdout.readline() == "ready\n"
    cluster.must(source, python, PROBE, "send", PACKETS, netlib.network.node_ip(target))
    return json.loads(receiver.communicate(timeout=30)[0])  # whose input ends: all has been sent


def check(cluster, source, target, what, expected):
    """What became of packets on a path. The kernel drops them from a queue that nobody has time to
    read: that is no fault of the path, and measured again."""
    low, high = expected * 0.7 - 0.2, expected * 1.3 + 0.2
    seen = netlib.measured(lambda: probe(cluster, source, target)[what],
                           lambda percent: low <= percent <= high)
    assert low <= seen[-1] <= high, \
        f"{what} from {source} to {target}: {seen} % instead of {expected} %"


def check_clean(cluster, path):
    seen = netlib.measured(lambda: probe(cluster, 0, 1), lambda clean: not any(clean.values()))
    assert not any(seen[-1].values()), f"{path} path shows {seen}"


def faults_have_the_rates_asked_for():
    netlib.need_root()
    with Cluster(2, daemons=False) as cluster:
        check_clean(cluster, "an untouched")
        for fault, percent, what, expected in (
                ("loss", 10, "missing", 10), ("dup", 5, "duplicated", 5),
                ("reorder", 5, "late", 4.6), ("corrupt", 2, "corrupt", 2), ("ecn", 8, "marked", 8)):
            cluster.verb("fault", "all", f"--{fault}", percent)
            check(cluster, 0, 1, what, expected)
        cluster.verb("fault", "all")
        check_clean(cluster, "a cleared")  # at the latest when what was held has gone


def faults_are_independent():
    """Per node and per direction: only what was asked for is hit."""
    netlib.need_root()
    with Cluster(3, daemons=False) as cluster:
        for direction, paths in (("to", {(0, 1): 30, (1, 0): 0, (0, 2): 0}),
                                 ("from", {(1, 2): 30, (2, 1): 0})):
            cluster.verb("fault", 1, "--loss", 30, "--direction", direction)
            for (source, target), expected in paths.items():
                check(cluster, source, target, "missing", expected)


def two_clusters_side_by_side():
    netlib.need_root()
    with Cluster(2, daemons=False) as one, Cluster(2, daemons=False) as two:
        for cluster in (one, two):
            cluster.must(0, "ping", "-c1", "-W2", "10.77.0.2")
        done = subprocess.run([netlib.CLUSTER, "up", "2", "--bare", "--name", one.name],
                              capture_output=True, text=True)
        assert done.returncode == 1 and "exists" in done.stderr, done.stderr
        one.verb("link", 1, "down")
        assert one.run(0, "ping", "-c1", "-W1", "10.77.0.2").returncode != 0
        two.must(0, "ping", "-c1", "-W2", "10.77.0.2")
        one.verb("link", 1, "up")
        one.must(0, "ping", "-c3", "-W2", "10.77.0.2")
        assert one.cluster("exec", 0, "--", "sh", "-c", "exit 7").returncode == 7


def what_a_killed_test_has_left_is_taken_down():
    """And nothing of one that runs."""
    netlib.need_root()
    with Cluster(1, daemons=False) as mine:
        owner = subprocess.Popen(["sleep", "600"])
        left = f"t{owner.pid}-1"
        try:
            assert mine.cluster("up", 1, "--bare", "--name", left, "--owner",
                                owner.pid).returncode == 0
            assert left not in netlib.state.left_over()
            owner.kill()
            owner.wait()
            assert left in netlib.state.left_over() and mine.name not in netlib.state.left_over()
            test.take_left_over_down()
            assert not netlib.state.exists(left) and not netlib.network.namespaces(left)
        finally:
            owner.kill()
            mine.cluster("down", "--name", left)
        mine.must(0, "ping", "-c1", "-W2", netlib.network.node_ip(0))


def a_cluster_is_taken_down_though_nobody_reads_what_its_test_says():
    done = []

    class Unheard(Cluster):
        def show_logs(self):
            raise BrokenPipeError

        def cluster(self, verb, *argv):
            done.append(verb)

    try:
        Unheard(1).__exit__(AssertionError)
    except BrokenPipeError:
        pass
    assert done == ["down"], done


def what_a_kernel_lacks_is_named_in_one_line():
    netlib.need_root()
    with Cluster(1, daemons=False) as cluster:
        netns = netlib.network.node_netns(cluster.name, 0)
        for use, wrong in ((netlib.network.ip_batch, "link add name x type nonsense"),
                           (netlib.network.tc_batch, "qdisc add dev lo root nonsense")):
            try:
                use(netns, [wrong.split("add")[0] + "show dev lo", wrong])
                raise AssertionError(f"nothing was said about '{wrong}'")
            except Failure as failure:
                told = str(failure)
            assert wrong in told and "module" in told and "\n" not in told, told


def a_script_that_is_interrupted_takes_its_clients_along():
    """What it has started beside itself; not the daemons, which are in sessions of their own."""
    program = """if True:
        import subprocess, sys, time
        sys.dont_write_bytecode = True
        sys.path.insert(0, sys.argv[1])
        from lib import shell

        def start():
            for apart in (False, True):
                print(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL,
                                       start_new_session=apart).pid, flush=True)
            time.sleep(600)

        shell.main("script", start)"""
    child = subprocess.Popen([sys.executable, "-c", program, netlib.ROOT / "scripts"], text=True,
                             stdout=subprocess.PIPE)
    client, daemon = (int(child.stdout.readline()) for _ in range(2))
    try:
        child.terminate()
        assert child.wait(timeout=netlib.PATIENCE_S) == 130
        assert process.end_within(client, time.monotonic() + netlib.PATIENCE_S), "its client goes on"
        assert not process.end_within(daemon, time.monotonic() + 0.1), "its daemon has ended"
    finally:
        for pid in (client, daemon):
            process.end(pid)


def what_a_shell_has_started_outlives_the_script_that_it_becomes():
    """Such as the tee of its output, which has the last line to write."""
    script = 'sleep 600 > /dev/null 2>&1 & echo $!; exec "$0" -c "$1" "$2"'
    program = """if True:
        import sys
        sys.dont_write_bytecode = True
        sys.path.insert(0, sys.argv[1])
        from lib import shell
        shell.main("script", lambda: 0)"""
    done = subprocess.run(["sh", "-c", script, sys.executable, program, netlib.ROOT / "scripts"],
                          capture_output=True, text=True)
    pid = int(done.stdout)
    try:
        assert done.returncode == 0, done
        assert not process.end_within(pid, time.monotonic() + 0.1), "it has ended"
    finally:
        process.end(pid)


netlib.run(rates_hold_in_both_directions, faults_have_the_rates_asked_for, faults_are_independent,
           two_clusters_side_by_side, what_a_killed_test_has_left_is_taken_down,
           a_cluster_is_taken_down_though_nobody_reads_what_its_test_says,
           what_a_kernel_lacks_is_named_in_one_line,
           a_script_that_is_interrupted_takes_its_clients_along,
           what_a_shell_has_started_outlives_the_script_that_it_becomes)
