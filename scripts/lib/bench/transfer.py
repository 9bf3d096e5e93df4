# SPDX-License-Identifier: BSD-3-Clause
"""One object between two nodes, timed, with the CPU time of the processes that took part and of
the whole machine, where the kernel's share shows that is charged to nobody."""

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib.cluster import network, nodes, process, state
from lib.shell import ROOT, Failure, run, say

CLUSTER = ROOT / "scripts/cluster"
ETHERNET_BYTES = 14
COUNTED_S = 1.5             # counters are as old as a second
TCP_HEADERS = 20 + 20 + 12  # IPv4, TCP, time stamps


def bound_seconds(size, rate_mbit):
    """Payload bytes over the link rate of whole frames: no protocol can be faster."""
    return size * 8 / (rate_mbit * 1e6) if rate_mbit else 0


def tcp_ratio(mtu):
    return (mtu + ETHERNET_BYTES) / (mtu - TCP_HEADERS)


def machine_cpu_seconds():
    """CPU time of the whole machine, of all cores together: that was not idle, and that programs of
    lower priority (nice) had of the rest. These give way, and nothing of ours is one."""
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    lower = fields[1]
    return ((sum(fields[:8]) - fields[3] - fields[4] - lower) / process.TICKS_PER_S,
            lower / process.TICKS_PER_S)


def system_cost():
    """Of the whole machine: seconds of all cores in the kernel, interrupts too, and task switches."""
    rows = dict(line.split(" ", 1) for line in Path("/proc/stat").read_text().splitlines())
    fields = [int(f) for f in rows["cpu"].split()]
    return (fields[2] + fields[5] + fields[6]) / process.TICKS_PER_S, int(rows["ctxt"])


def machine_busy_seconds():
    return machine_cpu_seconds()[0]


@contextlib.contextmanager
def cluster(count, *options, suffix=""):
    """A cluster under a name of its own, taken down whatever happens; count None: a topology among
    the options says how many nodes."""
    name = f"bench{os.getpid()}{suffix}"
    options = [str(o) for o in options]
    # sessions of their own: a Ctrl-C is ours, and what it cuts off is taken down, too
    apart = {"capture_output": True, "text": True, "start_new_session": True}
    try:
        done = subprocess.run([CLUSTER, "up", *([] if count is None else [str(count)]), "--name", name, "--owner",
                               str(os.getpid()), *options], **apart)
        if done.returncode:
            raise Failure(done.stderr.strip())
        yield state.load(name)
    finally:
        subprocess.run([CLUSTER, "down", "--name", name], **apart)


@contextlib.contextmanager
def scratch():
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    try:
        with tempfile.TemporaryDirectory(prefix="sarissa-bench-", dir=base) as path:
            yield Path(path)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise Failure(f"no space is left in {base or tempfile.gettempdir()}: free some") from None


def write_random(path, size):
    with open(path, "wb") as out:
        left = size
        while left > 0:
            left -= out.write(os.urandom(min(left, 1 << 22)))


def command(config, node, *argv, timeout=600):
    """Runs the `sarissa` command of a node; its failure is ours."""
    done = subprocess.run([nodes.binary("cli"), *[str(a) for a in argv]], timeout=timeout,
                          env=nodes.environment(config, node), capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"node {node}: sarissa {argv[0]}: {done.stderr.strip()}")
    return done.stdout


def entries(config):
    """Objects in each node's part of the directory."""
    rows = [[json.loads(line) for line in command(config, node, "status", "--counters",
                                                  "--json").splitlines()]
            for node in range(config["nodes"])]
    return [next(row["control"]["entries"] for row in of_node if "control" in row)
            for of_node in rows]


def shard_owner(config, name):
    """The shard owner of a free name: its count of entries rises with a probe. None: other objects
    came or went at the same time."""
    time.sleep(COUNTED_S)
    before = entries(config)
    command(config, 1, "put", name, "/dev/null")
    time.sleep(COUNTED_S)
    after = entries(config)
    command(config, 1, "rm", name)
    risen = [node for node, count in enumerate(after) if count > before[node]]
    return risen[0] if len(risen) == 1 else None


def daemons_cpu(config):
    return sum(process.cpu_seconds(pid) for pid in nodes.pids(config))


def measure(case, system, config, size, body):
    """Runs body(), which returns (seconds, CPU seconds of its processes), and makes the row."""
    busy = machine_busy_seconds()
    seconds, cpu = body()
    busy = machine_busy_seconds() - busy
    bound = bound_seconds(size, config["rate"])
    return {"op": "transfer", "case": case, "system": system, "nodes": config["nodes"],
            "bytes": size, "rate_mbit": config["rate"], "mtu": config["mtu"],
            "seconds": seconds, "bound_seconds": bound, "ratio": seconds / bound if bound else 0,
            "goodput_mbit": size * 8 / seconds / 1e6,
            "cpu_seconds_per_gb": cpu / (size / 1e9),
            "machine_cpu_seconds_per_gb": busy / (size / 1e9)}


def get_seconds(config, node, name, target):
    """`sarissa get`: the time that the command itself measured, and CPU seconds."""
    before = daemons_cpu(config) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime + \
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
    told = json.loads(command(config, node, "--json", "get", name, target, "--timeout", 300))
    seconds = told["duration_ns"] / 1e9
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = daemons_cpu(config) + usage.ru_utime + usage.ru_stime - before
    return seconds, cpu


def sarissa_case(case, config, size, repeat, target=None):
    """Gets into a file in memory, or into target."""
    with scratch() as directory:
        write_random(directory / "sent", size)
        for turn in range(-1, repeat):  # the first only warms up
            name = f"bench-{case}-{turn}"
            command(config, 0, "put", name, directory / "sent")
            row = measure(case, "sarissa", config, size,
                          lambda: get_seconds(config, 1, name, target or directory / "got"))
            command(config, 0, "rm", name)
            if turn >= 0:
                yield row


def offloads_off(config):
    """On every device of the path: TCP then moves single frames, as AF_XDP does."""
    for node in range(config["nodes"]):
        run("ip", "netns", "exec", network.node_netns(config["name"], node), "ethtool", "-K",
            "eth0", "gso", "off", "tso", "off", "gro", "off")
        run("ip", "netns", "exec", network.switch_netns(config["name"]), "ethtool", "-K",
            f"p{node}", "gso", "off", "tso", "off", "gro", "off")


def tcp_seconds(config, size):
    """One iperf3 flow of so many bytes; CPU of both ends as iperf3 accounts for them."""
    def inside(node, *argv):
        return ["ip", "netns", "exec", network.node_netns(config["name"], node), *argv]

    server = subprocess.Popen(inside(1, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 5
        while ":5201 " not in run(*inside(1, "ss", "-ltn")):
            if time.monotonic() > until:
                raise Failure("iperf3 does not listen")
            time.sleep(0.02)
        end = json.loads(run(*inside(0, "iperf3", "-J", "-n", str(size), "-c",
                                     network.node_ip(1)), timeout=600))["end"]
        server.wait(timeout=10)
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            server.wait()
    # what is still on its way when the sender ends is not received
    seconds = size / (end["sum_received"]["bytes"] / end["sum_received"]["seconds"])
    share = end["cpu_utilization_percent"]
    return seconds, (share["host_total"] + share["remote_total"]) / 100 * seconds


def tcp_case(case, config, size, repeat, system="tcp"):
    for turn in range(-1, repeat):
        row = measure(case, system, config, size, lambda: tcp_seconds(config, size))
        if turn >= 0:
            yield row


def all_cases(args):
    store = max(args.size, args.unshaped_size) // (1 << 20) + 64
    common = ("--mtu", args.mtu, "--store", store)
    say(f"bench: two nodes, {args.rate:g} Mbit/s, MTU {args.mtu}")
    with cluster(2, "--rate", args.rate, *common) as config:
        yield from sarissa_case("shaped", config, args.size, args.repeat)
        run(CLUSTER, "fault", "--name", config["name"], "all", "--loss", "1")
        yield from sarissa_case("shaped, 1 % loss", config, args.size, args.repeat)
    say("bench: two nodes, no rate limit")
    with cluster(2, *common) as config:
        # iperf3 throws away what it has received; here it is in the store by then
        yield from sarissa_case("unshaped", config, args.unshaped_size, args.repeat, "/dev/null")
    with cluster(2, *common, "--bare") as config:
        yield from tcp_case("unshaped", config, args.unshaped_size, args.repeat, "tcp, gso")
        offloads_off(config)
        yield from tcp_case("unshaped", config, args.unshaped_size, args.repeat)
    with cluster(2, "--rate", args.rate, *common, "--bare") as config:
        yield from tcp_case("shaped", config, args.size, args.repeat)
