#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""More than a node has room for: refused by name, with a counter, and served again when there is
room. Nothing hangs, nothing ends, nothing grows."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import netlib
from netlib import Cluster, build_dir, network, nodes, process, state

SESSIONS = 1024  # of a node, by default
MANY = 120
STOPS = 8


# [G1.11]
def more_clients_than_sessions():
    netlib.need_daemons()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    with Cluster(1, "--store", 32) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "sent", 4096)
        cluster.must(0, "sarissa", "put", "there", directory / "sent")
        path = str(state.node_dir(cluster.config, 0) / "control.sock")
        held = []
        for _ in range(SESSIONS):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].connect(path)
        done = cluster.run(0, "sarissa", "stat", "there", timeout=20)
        assert done.returncode == 1 and "raise --sessions" in done.stderr, \
            f"exit {done.returncode}: {done.stderr}"
        held.pop().close()
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "stat", "there").returncode == 0,
                        netlib.PATIENCE_S, "there is room again after a client has gone")
        for one in held:
            one.close()
        cluster.check_daemons()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def connected(cluster):
    """How many sockets of clients control has, those that it is about to close among them."""
    path = state.node_dir(cluster.config, 0) / "control.sock"
    return sum(flags != nodes.LISTENS for flags in
               nodes.socket_flags(path, cluster.pid(0, "control")))


def spent_in_a_second(pid):
    before = process.cpu_seconds(pid)
    time.sleep(1)
    return process.cpu_seconds(pid) - before


def more_clients_than_descriptors():
    """Control turns them away without spinning, and lives."""
    netlib.need_daemons()
    netlib.need_command("prlimit")
    with Cluster(1, "--store", 32) as cluster:
        pid = cluster.pid(0, "control")
        netlib.wait_for(lambda: not connected(cluster), netlib.PATIENCE_S,
                        "those who looked whether it answers have gone")
        limit = len(os.listdir(f"/proc/{pid}/fd")) + 21
        subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={limit}:{limit}"], check=True)
        path = str(state.node_dir(cluster.config, 0) / "control.sock")
        held = []
        for _ in range(60):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].connect(path)
        time.sleep(0.5)
        spent = netlib.measured(lambda: spent_in_a_second(pid), lambda spent: spent < 0.2)
        assert spent[-1] < 0.2, f"it spent {spent} s of a second"
        assert cluster.run(0, "sarissa", "ls", timeout=20).returncode != 0
        for one in held:
            one.close()
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "ls").returncode == 0, netlib.PATIENCE_S,
                        "there is room again")
        log = nodes.log_file(cluster.config, 0, "control").read_text()
        assert log.count("no descriptors for another client") == 1, log


def no_descriptor_even_to_turn_them_away():
    """Then they wait until there is one."""
    netlib.need_daemons()
    netlib.need_command("prlimit")
    with Cluster(1, "--store", 32) as cluster:
        pid = cluster.pid(0, "control")
        before = ":".join(open_files(pid))
        subprocess.run(["prlimit", "--pid", str(pid), "--nofile=5:"], check=True)
        late = cluster.start(0, "sarissa", "ls", stdout=subprocess.DEVNULL)
        log = nodes.log_file(cluster.config, 0, "control")
        netlib.wait_for(lambda: "no descriptors for another client" in log.read_text(),
                        netlib.PATIENCE_S, "it has none")
        subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={before}"], check=True)
        late.wait(timeout=netlib.PATIENCE_S)
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "ls", timeout=40).returncode == 0,
                        netlib.PATIENCE_S, "it lets in again")
        cluster.check_daemons()


def open_files(pid):
    """The soft limit and the hard one."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    return next(line for line in limits.splitlines() if "open files" in line).split()[3:5]


def a_low_limit_of_descriptors():
    """The soft one, as a shell has it, is no limit; of the hard one they speak."""
    netlib.need_daemons()
    netlib.need_command("prlimit")
    with Cluster(1, "--store", 32) as cluster:
        for kind in nodes.KINDS:
            for soft, hard in ((200, 4096), (200, 300)):
                process.end(cluster.pid(0, kind))
                nodes.start(cluster.config, 0, kind,
                            through=["prlimit", f"--nofile={soft}:{hard}"])
                netlib.wait_for(lambda pid=cluster.pid(0, kind), hard=str(hard):
                                open_files(pid) == [hard, hard], netlib.PATIENCE_S,
                                f"{kind} raises {soft} to {hard}")
                netlib.wait_for(lambda: nodes.answers(cluster.config, 0), netlib.PATIENCE_S,
                                "it answers")
        log = nodes.log_file(cluster.config, 0, "control").read_text()
        assert log.count("only 300 files may be open, and 1024 clients may need 3136") == 1, log
        assert log.count("files may be open") == 1, log


def start(cluster, node, kind, *more):
    make = nodes.dataplane_argv if kind == "dataplane" else nodes.control_argv
    state.node_dir(cluster.config, node).mkdir(parents=True, exist_ok=True)
    process.spawn(["ip", "netns", "exec", network.node_netns(cluster.name, node),
                   *make(cluster.config, node), *more],
                  nodes.log_file(cluster.config, node, kind),
                  nodes.pid_file(cluster.config, node, kind))


def end(cluster):
    process.end_all(cluster.pids())


def more_peers_than_connections():
    """Node 0 takes two; the others reach each other, and it again when it has room."""
    netlib.need_daemons()
    with Cluster(6, daemons=False) as cluster, netlib.scratch() as directory:
        try:
            for node in range(6):
                start(cluster, node, "dataplane", *(["--peers-max", 2] if node == 0 else []))
                start(cluster, node, "control")
            for node in range(6):
                netlib.wait_for(lambda: nodes.answers(cluster.config, node), netlib.PATIENCE_S,
                                "it answers")
            expected = netlib.make_file(directory / "sent", 300000)
            begin = time.monotonic()
            results = [cluster.run(node, "sarissa", "put", f"of-{node}", directory / "sent",
                                   timeout=60) for node in range(6)]
            gets = [cluster.run((node + 1) % 6, "sarissa", "get", f"of-{node}",
                                directory / "got", "--timeout", 5, timeout=60)
                    for node in range(6)]
            took = time.monotonic() - begin
            for done in results + gets:
                assert done.returncode in (0, 1, 3, 4), f"exit {done.returncode}: {done.stderr}"
                assert (done.returncode == 0) == (not done.stderr), done.stderr
            refused = cluster.counters(0)["drop_conn_full"]
            assert refused > 0, "nobody was refused"
            process.end(cluster.pid(0, "dataplane"))
            start(cluster, 0, "dataplane")
            netlib.wait_for(lambda: not cluster.run(
                0, "sarissa", "put", "late", directory / "sent").returncode,
                netlib.PATIENCE_S, "there is room again")
            for node in range(1, 6):
                cluster.must(node, "sarissa", "get", "late", directory / "got", "--timeout", 20)
                assert netlib.digest_of(directory / "got") == expected
            return f"{refused} handshakes refused, 12 calls ended in {took:.1f} s"
        finally:
            end(cluster)


GET_ALL = """
import hashlib, sys, threading
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import sarissa
count, wrong = int(sys.argv[2]), []
node = sarissa.open()
def one(i):
    try:
        view = node.get(f"part-{i}", timeout=60)
        if hashlib.sha256(view).hexdigest() != sys.argv[3 + i % 3]:
            wrong.append(f"part-{i}: other bytes")
    except sarissa.Error as error:
        wrong.append(f"part-{i}: {error}")
threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
for t in threads: t.start()
for t in threads: t.join()
print("\\n".join(wrong) or "all")
"""


def put_parts(cluster, directory, size):
    """part-i on node 1 + i % 3; returns the digests by i % 3."""
    put = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]);"
           "import sarissa; node = sarissa.open(); data = open(sys.argv[2], 'rb').read();"
           "[node.put(name, data) for name in sys.argv[3:]]")
    digests = []
    for k in range(3):
        path = directory / f"part-{k}"
        netlib.make_file(path, size)
        digests.append(netlib.hashlib.sha256(path.read_bytes()).hexdigest())
        cluster.must(1 + k, sys.executable, "-c", put, build_dir() / "client/python", path,
                     *[f"part-{i}" for i in range(k, MANY, 3)])
    return digests


def many_gets_at_one_node(size, disturb=None):
    netlib.need_daemons()
    with Cluster(4, "--rate", 400, "--store", 128) as cluster, netlib.scratch() as directory:
        digests = put_parts(cluster, directory, size)
        begin = time.monotonic()
        child = cluster.start(0, sys.executable, "-c", GET_ALL, build_dir() / "client/python", MANY,
                              *digests, stdout=subprocess.PIPE, text=True)
        if disturb:
            disturb(cluster)
        out, _ = child.communicate(timeout=120)
        took = time.monotonic() - begin
        assert out == "all\n", out
        cluster.check_daemons()
        return f"{MANY} objects of {size >> 10} KiB in {took:.2f} s"


def many_large_gets_at_once():
    return many_gets_at_one_node(256 << 10)


def many_small_gets_while_a_directory_stands_still():
    """Messages wait in slots and rings, and are answered when control runs again; it says so."""
    def stop(cluster):
        pid = cluster.pid(2, "control")
        log = nodes.log_file(cluster.config, 2, "control")
        for _ in range(STOPS):  # where no timer is due in that second, nothing was late
            os.kill(pid, signal.SIGSTOP)
            time.sleep(1)
            os.kill(pid, signal.SIGCONT)
            time.sleep(1)
            if "was held up for more than 100 ms" in log.read_text():
                break
        else:
            raise AssertionError(f"stopped {STOPS} times, and control has not noticed")
        def counted():
            lines = cluster.must(2, "sarissa", "status", "--counters", "--json").splitlines()
            return next(v["control"] for v in map(json.loads, lines) if "control" in v)

        # in its sleep, or in a turn
        netlib.until(counted, lambda control: control["ticks_late"] + control["turns_long"] > 0, "it is counted")
        netlib.until(lambda: cluster.run(2, "sarissa", "doctor").stdout, lambda told: "more than 100 ms" in told,
                     "doctor tells of it")

    return many_gets_at_one_node(2000, stop)


netlib.run(more_clients_than_sessions, more_clients_than_descriptors,
           no_descriptor_even_to_turn_them_away, a_low_limit_of_descriptors, more_peers_than_connections, many_large_gets_at_once,
           many_small_gets_while_a_directory_stands_still)
