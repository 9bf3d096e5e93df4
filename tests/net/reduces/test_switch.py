#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sums that a switch makes on the way: as DPDK ports and as an XDP program, with loss, with a member
that is silent, and with a switch that is killed half-way."""

import hashlib
import json
import os
import signal
import struct
import subprocess
import time

import netlib
from lib.cluster import network, nodes, process, state
from lib.shell import build_dir
from netlib import Cluster

MEMBERS = 4
TASK = build_dir() / "tests/net/aggregate_task"
ADDRESS = network.aggregator_ip()
groups = iter(range(1, 1000))


def members(cluster, size, dtype, rounds=1, policy=(), address=ADDRESS, longer=0):
    """Tasks that have joined a group; the last one has so many bytes more."""
    group = next(groups)
    tasks = [cluster.start(i, TASK, address, group, i, MEMBERS, size + longer * (i == MEMBERS - 1), dtype, rounds,
                           *policy, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(MEMBERS)]
    for task in tasks:
        line = task.stdout.readline()
        assert line == "joined\n", line
    return tasks


def go(tasks):
    for task in tasks:
        task.stdin.write("go\n")
        task.stdin.flush()


def ends(tasks):
    """What each of them says: all compare every element themselves."""
    said = [json.loads(task.stdout.readline()) for task in tasks]
    for task in tasks:
        task.stdin.close()
    status = [task.wait(timeout=60) for task in tasks]
    return said, status


def sums_are_right(cluster, *cases, address=ADDRESS):
    polls = 0
    for size, dtype, rounds in cases:
        tasks = members(cluster, size, dtype, rounds, address=address)
        go(tasks)
        said, status = ends(tasks)
        assert status == [0] * MEMBERS, (size, dtype, said)
        polls += sum(one["polls"] for one in said)
    return polls


def faulty(cluster, **percents):
    options = [word for kind, value in percents.items() for word in (f"--{kind}", value)]
    cluster.verb("fault", "all", "--direction", "both", *options)


def unlike_lengths_are_refused(cluster):
    """By one element, and by whole packets: to all of them, long before their minute is over."""
    for longer in (4, 1440, 1 << 20):
        begin = time.monotonic()
        tasks = members(cluster, 100 * 1440, "i32", longer=longer)
        go(tasks)
        said, status = ends(tasks)
        assert status == [3] * MEMBERS and all("differ in sizes" in one["text"] for one in said), (longer, said)
        assert time.monotonic() - begin < 20


def a_quorum_goes_on(cluster):
    """Three of four are enough 20 ms after the first; the fourth has joined and is silent."""
    tasks = members(cluster, 100000, "i32", policy=(MEMBERS - 1, 20))
    go(tasks[1:])
    said = [json.loads(task.stdout.readline()) for task in tasks[1:]]
    assert all(one["in_all"] == 0b1110 and one["fewest"] == 3 for one in said), said
    for task in tasks:
        task.stdin.close()
        task.wait(timeout=60)


def a_host_has_what_the_switch_has_no_room_for(cluster):
    """The groups of the switch are taken; node 0 aggregates, whose address the members use."""
    host = cluster.start(0, nodes.binary("dataplane"), "--role", "switch", "--port", f"udp:{network.node_ip(0)}", text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert "aggregates at" in host.stderr.readline()
    full = [cluster.start(0, TASK, ADDRESS, next(groups), 0, 2, 64, "u8", text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) for _ in range(20)]
    refused = [task.stdout.readline() for task in full]
    assert any("no room" in line for line in refused), refused
    sums_are_right(cluster, (200000, "f32", 1), address=network.node_ip(0))
    for task in full:
        task.stdin.close()
        task.wait(timeout=60)
    host.send_signal(signal.SIGTERM)
    counted = json.loads(host.communicate(timeout=20)[0])
    assert counted["complete"] == -(-200000 // 1440), counted


def put(cluster, size):
    """An array of f32 on each node; the digest of their sum."""
    total = [0] * 251
    for node in range(MEMBERS):
        values = [(i * (node + 3)) % 97 for i in range(251)]
        total = [a + b for a, b in zip(total, values)]
        file = state.node_dir(cluster.config, node) / "part"
        file.write_bytes((struct.pack("<251f", *values) * (size // 1004 + 1))[:size])
        cluster.must(node, "sarissa", "put", f"part/{node}", file)
    return hashlib.sha256((struct.pack("<251f", *total) * (size // 1004 + 1))[:size]).hexdigest()


def reduces(cluster, target):
    parts = [f"part/{node}" for node in range(MEMBERS)]
    return [cluster.start(node, "sarissa", "reduce", "--json", "--switch", ADDRESS, "--member", node,
                          "--timeout", 60, target, *parts, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) for node in range(MEMBERS)]


def outcome(cluster, target, tasks, digest):
    said = []
    for task in tasks:
        out, error = task.communicate(timeout=90)
        assert task.returncode == 0, error
        said.append(json.loads(out))
    for node in range(MEMBERS):
        data = subprocess.run(**cluster.inside(node, ["sarissa", "get", target, "-"]), capture_output=True, timeout=60)
        assert hashlib.sha256(data.stdout).hexdigest() == digest, f"node {node} has other bytes"
    return said


def kill_switch(cluster):
    pid = process.alive(nodes.switch_file(cluster.config, "pid"))
    os.kill(pid, signal.SIGKILL)
    return time.monotonic_ns()


def start_switch(cluster):
    nodes.start_switch(cluster.config, time.monotonic() + netlib.PATIENCE_S)


def when_killed_the_members_know(cluster):
    """Memory: each fails by name, 0.2 s after the last packet of the switch. Returns when the last one has."""
    def told():
        """By all of them; None: they had their sums before the switch was killed."""
        tasks = members(cluster, 16 << 20, "f32")
        go(tasks)
        time.sleep(0.3)  # of the second that it takes
        killed = kill_switch(cluster)
        said, status = ends(tasks)
        start_switch(cluster)
        if 0 in status:
            return None
        assert status == [3] * MEMBERS and all("silent for 0.2 s" in one["text"] for one in said), said
        return max((one["ended_ns"] - killed) / 1e9 for one in said)

    def soon(seconds):
        return seconds is not None and seconds < 0.3 + 0.3

    seen = netlib.measured(told, soon)
    assert soon(seen[-1]), f"{seen} s"
    return seen[-1]


def the_nodes_make_the_sum(cluster, digest):
    """When the switch is killed in the middle of it."""
    targets = iter(f"sum/{number}" for number in range(2, 10))

    def by_switch():
        """Whether it was too late for all of them."""
        target = next(targets)
        tasks = reduces(cluster, target)
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "stat", "--json", target).returncode == 0, netlib.PATIENCE_S,
                        f"{target} is being made")
        kill_switch(cluster)
        said = outcome(cluster, target, tasks, digest)
        start_switch(cluster)
        cluster.must(0, "sarissa", "rm", target)
        return all(one["switch"] for one in said)

    assert not netlib.measured(by_switch, lambda by_switch: not by_switch)[-1], "the switch has always made it"


def a_switch_of_dpdk_ports_aggregates():
    with Cluster(MEMBERS, "--switch", "dpdk", "--vdev", "udp", "--rate", 150, "--store", 64) as cluster:
        sums_are_right(cluster, (1024, "f32", 20), (3 << 20, "f32", 1), (99999, "u8", 2), (400000, "block", 2))
        digest = put(cluster, 3 << 20)
        said = outcome(cluster, "sum/1", reduces(cluster, "sum/1"), digest)
        assert all(one["switch"] for one in said), said
        a_quorum_goes_on(cluster)
        unlike_lengths_are_refused(cluster)
        network.cut_bursts(cluster.config)
        faulty(cluster, loss=2, dup=2, reorder=2, corrupt=1)
        polls = sums_are_right(cluster, (1 << 20, "f32", 1))
        assert polls > 0, "nothing was lost"
        faulty(cluster, loss=0)
        the_nodes_make_the_sum(cluster, digest)
        seconds = when_killed_the_members_know(cluster)
        a_host_has_what_the_switch_has_no_room_for(cluster)
        return f"{polls} polls; told {seconds:.2f} s after the switch was killed"


def deaf(cluster, node):
    """What the switch says does not get there any more."""
    netns = network.node_netns(cluster.name, node)
    lines = subprocess.run(["ip", "-n", netns, "-j", "addr"], capture_output=True, text=True, check=True).stdout
    device = next(link["ifname"] for link in json.loads(lines)
                  if any(a.get("local") == network.node_ip(node) for a in link["addr_info"]))
    for words in (f"qdisc replace dev {device} clsact",
                  f"filter add dev {device} ingress pref 1 protocol ip u32 match ip dport 7481 0xffff "
                  "action mirred egress redirect dev lo"):
        subprocess.run(["tc", "-n", netns, *words.split()], check=True)


def all_members_have_the_same_bytes():
    """Some members hear the whole sum of the switch, others nothing of it: all end with one result."""
    with Cluster(MEMBERS, "--switch", "dpdk", "--vdev", "udp", "--store", 64) as cluster:
        def reduces_of(dtype, deaf_ones):
            group = next(groups)
            tasks = [cluster.start(i, TASK.parent / "switch_reduce_task", ADDRESS, group, i, MEMBERS, 100000, dtype,
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(MEMBERS)]
            assert all(task.stdout.readline() == "joined\n" for task in tasks)
            for node in deaf_ones:
                deaf(cluster, node)
            go(tasks)
            said = [json.loads(task.stdout.readline()) for task in tasks]
            assert len({one.get("digest") for one in said}) == 1 and "digest" in said[0], said
            return [one["switch"] for one in said]
        for dtype in ("f32", "block"):
            assert reduces_of(dtype, ()) == [1] * MEMBERS
        made = reduces_of("f32", [0, 2])
        assert made == [0] * MEMBERS, made
    with Cluster(MEMBERS, "--switch", "dpdk", "--vdev", "udp", "--store", 64) as cluster:
        made = reduces_of("f32", [2, 3])
        assert made[0] == 1 and made[2:] == [0, 0], made


def an_xdp_program_aggregates():
    with Cluster(MEMBERS, "--switch", "xdp", "--vdev", "udp", "--rate", 150, daemons=False) as cluster:
        sums_are_right(cluster, (1024, "i32", 20), (3 << 20, "i32", 1), (400000, "block", 2))
        a_quorum_goes_on(cluster)
        unlike_lengths_are_refused(cluster)
        network.cut_bursts(cluster.config)
        faulty(cluster, loss=2, dup=2, reorder=2, corrupt=1)
        assert sums_are_right(cluster, (1 << 20, "i32", 1)) > 0, "nothing was lost"


def both_give_the_same_answers():
    done = subprocess.run([build_dir() / "tests/net/aggregate_xdp", build_dir() / "ebpf/aggregate.bpf.o", "60000",
                           str(os.getpid())], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"seed {os.getpid()}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


netlib.run(both_give_the_same_answers, a_switch_of_dpdk_ports_aggregates, all_members_have_the_same_bytes,
           an_xdp_program_aggregates)
