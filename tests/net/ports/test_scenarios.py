#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The traffic scenarios of pktgen_scenarios/ against real nodes: what goes on at the same time ends
with the right bytes, no state grows, each cause is counted under its own name.

usage: test_scenarios.py [--vdev af_xdp|udp|tap] [--only NAME...] [--longer FACTOR] [--soak SECONDS]
                         [--pps N]     packets of valid DATA per second, not what data.json says
environment: SCENARIOS_SOAK    the same as --soak
"""

import argparse
import contextlib
import functools
import json
import os
import random
import struct
import subprocess
import time

import netlib
from lib import options
from lib.cluster import network
from lib.test import scenarios
from netlib import Cluster, nodes, state

RATE_MBIT = 200
STORE_MIB = 256
TARGET, SOURCE = 1, 0  # nodes
CREDIT_KIB = 1 << 20  # more than all objects: nothing waits for a grant


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vdev", default=options.vdev())
    parser.add_argument("--only", nargs="+", default=scenarios.names())
    parser.add_argument("--longer", type=float, default=1)
    parser.add_argument("--soak", type=float, default=float(os.environ.get("SCENARIOS_SOAK", 5)))
    parser.add_argument("--pps", type=int)
    return parser.parse_args()


args = parse()


def generate(cluster, node, traffic, **more):
    """Starts one run of the generator at the switch's port of a node."""
    argv = scenarios.generator(traffic, device=f"p{node}", mac=network.node_mac(node),
                               ip=network.node_ip(node), **more)
    return subprocess.Popen(["ip", "netns", "exec", cluster.switch_netns(), *argv],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report_of(child):
    out, errors = child.communicate()
    assert child.returncode == 0, f"generator: {netlib.tail(errors)}"
    return json.loads(out)


def handled(moved):
    """Packets that the dataplane took from the port and looked at."""
    return sum(moved[name] for name in ("rx_pkts", "io_bad_ip", "io_not_ours"))


def difference(before, after):
    return {name: after[name] - before[name] for name in after}


@contextlib.contextmanager
def a_get(cluster, directory, seconds):
    """An object that takes about so long to arrive, as far as the store holds it, compared in the
    end."""
    size = min(int(seconds * RATE_MBIT * 1e6 / 8), (STORE_MIB << 20) * 3 // 4)
    expected = netlib.make_file(directory / "sent", size)
    cluster.must(SOURCE, "sarissa", "put", "victim", directory / "sent")
    get = cluster.start(TARGET, "sarissa", "get", "victim", directory / "got", "--timeout", 120)
    yield
    assert get.wait(timeout=150) == 0, f"the get ended with {get.returncode}"
    assert netlib.digest_of(directory / "got") == expected
    cluster.must(SOURCE, "sarissa", "rm", "victim")


@contextlib.contextmanager
def transfers(cluster, directory, seconds):
    """One after the other, both ways, of random sizes, each compared, until the traffic is over."""
    draw, until, done = random.Random(1), time.monotonic() + seconds, 0
    with a_get(cluster, directory, 1):  # packets for the generator to see
        yield
    while done == 0 or time.monotonic() < until:  # the first may have taken all of the time
        source = draw.randrange(2)
        netlib.transfer(cluster, directory, int(2 ** draw.uniform(0, 23)), source, (1 - source,))
        done += 1
    assert done > seconds / 10, f"only {done} transfers in {seconds} s"


DURING = {"get": a_get, "transfers": transfers}


def under(cluster, directory, expected):
    """All runs of traffic of a scenario against a whole node. Returns counters and reports."""
    begin, before, reports = time.monotonic(), cluster.counters(TARGET), []
    for traffic in expected["traffic"]:
        run = {**traffic, "seconds": traffic["seconds"] * args.longer}
        during = DURING.get(expected.get("during"), lambda *_: contextlib.nullcontext())
        was = cluster.counters(TARGET)
        with during(cluster, directory, run["seconds"]):
            child = generate(cluster, TARGET, run)
        report = report_of(child)
        report["handled"] = handled(difference(was, cluster.counters(TARGET)))
        reports.append(report)
    return difference(before, cluster.counters(TARGET)), reports, time.monotonic() - begin


def judge(expected, moved, reports, seconds):
    expected = {**expected, **expected.get("ports", {}).get(args.vdev, {})}
    wrong = list(scenarios.violations(expected, moved, seconds))
    assert not wrong, "; ".join(wrong)
    runs = [f"{r['pps'] / 1e3:.0f}k/s sent, {r['handled'] / r['seconds'] / 1e3:.0f}k/s handled"
            for r in reports]
    return "; ".join(runs)


def with_nodes(name):
    """A scenario against a whole node."""
    expected = scenarios.load(name)
    cluster, directory = both_nodes()
    if name == "soak":
        expected["traffic"][0]["seconds"] = args.soak
    if "port_mtu" in expected:
        set_port_mtu(cluster, expected["port_mtu"])
    private = {pid: netlib.private_bytes(pid) for pid in cluster.pids()}
    moved, reports, seconds = under(cluster, directory, expected)
    cluster.check_daemons()
    for pid, was in private.items():
        grown = netlib.private_bytes(pid) - was
        assert grown < expected["growth_bytes"], f"process {pid} grew by {grown} bytes"
    cluster.must(TARGET, "sarissa", "status")
    return judge(expected, moved, reports, seconds)


def set_port_mtu(cluster, mtu):
    """Frames beyond the node's own MTU come through to it."""
    for netns, device in ((cluster.switch_netns(), f"p{TARGET}"),
                          (network.node_netns(cluster.name, TARGET), "eth0")):
        network.ip_batch(netns, [f"link set {device} mtu {mtu}"])


@functools.cache
def both_nodes():
    """One cluster for all scenarios against whole nodes: what one leaves, the next one finds."""
    cluster = stack.enter_context(Cluster(2, "--store", STORE_MIB, "--rate", RATE_MBIT,
                                          "--vdev", args.vdev))
    network.cut_bursts(cluster.config)  # the generator records and repeats frames of the wire
    directory = stack.enter_context(netlib.scratch())
    netlib.transfer(cluster, directory, 1 << 20)
    return cluster, directory


def with_receiver(name):
    """A scenario of valid DATA to a dataplane, with our receiver in the place of control."""
    expected = scenarios.load(name)
    with Cluster(1, "--store", STORE_MIB, "--vdev", args.vdev, daemons=False) as cluster, \
            netlib.dataplane_alone(
                cluster, 0, "--credit", CREDIT_KIB) as rundir:
        shape, traffic = expected["receiver"], expected["traffic"][0]
        if args.pps and "pps" in traffic:
            traffic["pps"] = args.pps
        receiver, asked = netlib.start_receiver(cluster, 0, rundir, shape)
        before, begin = cluster.counters(0), time.monotonic()
        child = generate(cluster, 0, traffic, source=netlib.SENDERS_IP,
                         bytes=asked["chunk_bytes"], **shape)
        told = json.loads(receiver.communicate(timeout=60)[0])
        child.terminate()
        report = report_of(child)
        took = time.monotonic() - begin
        moved = difference(before, cluster.counters(0))
        drops = {name: value for name, value in moved.items() if "drop" in name and value}
        assert told["taken"] == shape["peers"], f"{told['taken']} objects came whole; {drops}"
        assert told["wrong"] == 0, f"{told['wrong']} chunks hold other bytes"
        report["handled"] = handled(moved)
        return judge(expected, moved, [report], took)




def files_and_verdicts():
    """What is written for other generators is what we send, and the judge can tell."""
    tool = scenarios.FOLDER / "scenario"
    with netlib.scratch() as directory:
        done = subprocess.run([tool, "pcap", "hello", "--mac", "02:77:00:00:00:01", "--ip",
                               "10.77.0.2"], cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for mode in ("hello", "cookie"):
            data = (directory / f"hello-{mode}.pcap").read_bytes()
            magic, link, kept = *struct.unpack_from("<I16xI", data), struct.unpack_from(
                "<8xI", data, 24)[0]
            assert (magic, link, kept) == (0xa1b2c3d4, 1, 14 + 20 + 8 + 1200)
            assert data[40:46] == bytes.fromhex("027700000001")
            assert (len(data) - 24) % (16 + kept) == 0, "a frame is cut"
        line = {"cookies_sent": 0, "drop_hello_rate": 0, "drop_cookie": 0, "conns_opened": 5}
        for name, more, verdict in (("before", {}, None), ("good", {"drop_cookie": 9}, 0),
                                    ("bad", {"drop_cookie": 9, "conns_opened": 50}, 1)):
            told = {**line, **({"cookies_sent": 900, "drop_hello_rate": 1} if more else {}), **more}
            (directory / name).write_text(json.dumps({"worker": 0, "counters": told}) + "\n")
            if verdict is not None:
                done = subprocess.run([tool, "judge", "hello", directory / "before",
                                       directory / name, "--seconds", "1"], capture_output=True)
                assert done.returncode == verdict, f"the judge says {done.returncode} of {name}"
        whole = {"drop_duplicate": 0, "drop_old": 0, "drop_checksum": 0, "conns_opened": 0}
        replay = scenarios.load("replay")
        assert not list(scenarios.violations(replay, {**whole, "drop_old": 7}, 1)), "replayed late"
        assert list(scenarios.violations(replay, whole, 1)), "nothing came"
        late, good = {"seen": 90, "full": 2, "senders": 1}, {"seen": 90, "full": 80, "senders": 1}
        assert "payload" in scenarios.recording_fault(replay, late)
        assert scenarios.recording_fault(replay, good) is None
        assert "2 nodes" in scenarios.recording_fault(scenarios.load("incast"), good)
        command = scenarios.pktgen_command("oversize", "o.pcap", 3042)
        assert command.startswith("timeout ") and " -m 2048 " in command and " -j " in command
        (directory / "words").write_text("status\n")
        for path in (directory / "words", directory / "nowhere"):
            done = subprocess.run([tool, "judge", "hello", path, path, "--seconds", "1"],
                                  capture_output=True, text=True)
            assert done.returncode == 1 and done.stderr.startswith("scenario: "), done


def case(name):
    def one():
        netlib.need_daemons()
        return (with_receiver if "receiver" in scenarios.load(name) else with_nodes)(name)

    one.__name__ = name
    return one


with contextlib.ExitStack() as stack:
    netlib.run(files_and_verdicts, *map(case, args.only))
