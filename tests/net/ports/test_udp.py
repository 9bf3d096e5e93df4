#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The port of UDP sockets: bursts over a network with losses, reduces, kills, devices and buffers that
refuse, two nodes on one address, and two nodes of an ordinary user without any right."""

import array
import contextlib
import json
import os
import subprocess

import netlib
from netlib import Cluster, network, nodes, process

MIB = 1 << 20
UDP = ("--vdev", "udp")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all", "--no-new-privs")

PROGRAMS = {"dataplane": "dataplane/sarissa-dataplane", "control": "control/sarissa-control",
            "cli": "client/cli/sarissa"}


def bursts(counters):
    return counters["tx_pkts"] / max(1, counters["io_tx_bursts"])


def a_burst(cluster, directory):
    """Packets, in a transfer."""
    before = cluster.counters(0)
    netlib.transfer(cluster, directory, 16 * MIB)
    return bursts({name: count - before[name] for name, count in cluster.counters(0).items()})


def until_single(pair):
    """All that node 0 has sent are single packets, when the last one has been counted."""
    return netlib.until(lambda: pair.counters(0), lambda sent: sent["io_tx_bursts"] == sent["tx_pkts"],
                        "bursts and packets")


def losses_are_repaired():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, *UDP) as cluster, netlib.scratch() as directory:
        sent = netlib.measured(lambda: a_burst(cluster, directory), lambda packets: packets > 4)
        assert sent[-1] > 4, f"{sent} packets a burst"
        cluster.verb("fault", "all", "--loss", 3)
        for size in (1, 70000, 16 * MIB + 7):
            netlib.transfer(cluster, directory, size)
        assert cluster.counters(0)["tx_chunk_resends"] > 0
        cluster.check_daemons()


def workers_and_ipv6():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--workers", 2, "--ipv6", *UDP) as cluster, \
            netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 16 * MIB)
        sent = [one["tx_chunks"] for one in cluster.worker_counters(0)]
        assert min(sent) > 0, f"chunks by worker: {sent}"


def sums_are_right():
    netlib.need_daemons()
    count, each = 4, 2 * MIB
    with Cluster(count, "--store", 64, *UDP) as cluster, netlib.scratch() as directory:
        for node in range(count):
            (directory / "part").write_bytes(array.array("f", [node + 1.0]).tobytes() * (each // 4))
            cluster.must(node, "sarissa", "put", f"part{node}", directory / "part")
        cluster.must(0, "sarissa", "reduce", "sum", *[f"part{n}" for n in range(count)], "--wait",
                     "--timeout", 60)
        for node in (0, count - 1):
            cluster.must(node, "sarissa", "get", "sum", directory / "sum", "--timeout", 60)
            want = array.array("f", [count * (count + 1) / 2]).tobytes() * (each // 4)
            assert (directory / "sum").read_bytes() == want, f"node {node} has another sum"


def a_transfer_outlives_its_dataplanes():
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--rate", 100, *UDP) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 24 * MIB)
        cluster.must(0, "sarissa", "put", "cut", directory / "sent")
        child = cluster.start(1, "sarissa", "get", "cut", directory / "got", "--timeout", 90)
        for node, arrived in ((0, 4 * MIB), (1, 10 * MIB)):
            netlib.until_arrived(cluster, 1, arrived)
            cluster.verb("kill", node, "dataplane")
            cluster.verb("start", node, "dataplane")
        assert child.wait(timeout=120) == 0
        assert netlib.digest_of(directory / "got") == expected


def a_device_without_checksums():
    """Older kernels then refuse bursts (EIO), which is told once; newer ones cut them themselves."""
    netlib.need_daemons()
    netlib.need_command("ethtool")
    with Cluster(2, "--store", 64, *UDP) as cluster, netlib.scratch() as directory:
        cluster.must(0, "ethtool", "-K", "eth0", "tx", "off")
        netlib.transfer(cluster, directory, 8 * MIB)
        netlib.transfer(cluster, directory, 8 * MIB, source=1, targets=(0,))
        refused = cluster.counters(0)["io_gso_refused"]
        told = nodes.log_file(cluster.config, 0, "dataplane").read_text().count("takes no bursts")
        assert told == (1 if refused else 0), f"{refused} refused, told {told} times"
        cluster.check_daemons()
        return f"{refused} bursts refused"


def a_device_that_refuses_bursts_is_told():
    """While it refuses, not for ever: by the log once, by status and by doctor."""
    library = netlib.build_dir() / "tests/net/librefuse_bursts.so"
    with local("udp:127.0.0.1", "udp:127.0.0.2",
               options=("--mtu", 1500), preload={0: library}) as pair:
        pair.cross(4 * MIB)
        sent = until_single(pair)
        assert sent["io_gso_refused"] == 1 and sent["io_gso_off"] == 1 and sent["io_tx_lost"] == 0, sent
        assert pair.log(0).count("takes no bursts (Input/output error)") == 1, pair.log(0)
        assert pair.link(0) == "udp 127.0.0.1 (gso refused, gro)", pair.link(0)
        assert pair.link(1) == "udp 127.0.0.2 (gso, gro)", pair.link(1)
        finding = pair.findings(0)["link"]
        assert finding["level"] == "warn" and "takes no bursts" in finding["text"], finding


def a_narrowed_device_takes_bursts():
    """Packets that are longer than the device takes are lost one by one as well: that is counted, and no
    reason to send single packets from then on."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64, *UDP) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, MIB)  # what the path carries is known
        netlib.make_file(directory / "sent", 4 * MIB)
        cluster.must(0, "sarissa", "put", "wide", directory / "sent")
        cluster.must(0, "ip", "link", "set", "eth0", "mtu", 1400)
        cluster.run(1, "sarissa", "get", "wide", directory / "got", "--timeout", 5)
        after = cluster.counters(0)
        assert after["io_tx_refused"] > 0, after
        assert after["io_gso_refused"] == after["io_gso_off"] == 0, after
        assert "takes no bursts" not in nodes.log_file(cluster.config, 0, "dataplane").read_text()
        cluster.check_daemons()


class Local:
    """Nodes on loopback addresses of a network namespace of their own."""

    def __init__(self, directory, *ports, wrapper=(), options=(), preload=()):
        self.directory, self.ports, self.wrapper, self.options = directory, ports, wrapper, options
        self.preload = dict(preload)  # of dataplanes, by node
        self.netns = f"sar-udp-{os.getpid()}"
        self.children = []

    def __enter__(self):
        try:
            network.run("ip", "netns", "add", self.netns)
            network.run("ip", "-n", self.netns, "link", "set", "lo", "up")
            self.directory.chmod(0o755)
            netlib.copy_build(self.directory / "build", *PROGRAMS.values())
            for node, port in enumerate(self.ports):
                self.begin(node, port)
            for node in range(len(self.ports)):
                netlib.wait_for(lambda node=node: self.sarissa(node, "status").returncode == 0,
                                netlib.PATIENCE_S, f"node {node} answers")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            process.end_all([child.pid])
            child.wait()
        network.run("ip", "netns", "del", self.netns)
        if kind:
            for log in sorted(self.directory.glob("*.log")):
                print(f"  -- {log.name}:\n{netlib.tail(log.read_text(errors='replace'))}")

    def begin(self, node, port):
        rundir = self.rundir(node)
        rundir.mkdir()
        if self.wrapper:
            os.chown(rundir, 65534, 65534)
        port = (port,) if isinstance(port, str) else port
        self.spawn(node, "dataplane", "--rundir", rundir, "--port", *port, "--store", 64,
                   *self.options)
        netlib.wait_for(lambda: (rundir / "dataplane.sock").exists(), netlib.PATIENCE_S,
                        f"dataplane {node} listens")
        peers = ",".join(f"127.0.0.{n + 1}:{7400 if isinstance(self.ports[n], str) else 7401}"
                         for n in range(len(self.ports)))
        self.spawn(node, "control", "--rundir", rundir, "--node", node, "--nodes", peers)

    def rundir(self, node):
        return self.directory / f"node{node}"

    def program(self, kind, wrapper):
        """For another user: the copy, as he may not be allowed to enter the checkout."""
        return self.directory / "build" / PROGRAMS[kind] if wrapper else nodes.binary(kind)

    def argv(self, *argv):
        return [str(a) for a in ("ip", "netns", "exec", self.netns, *self.wrapper, *argv)]

    def spawn(self, node, kind, *argv):
        with open(self.directory / f"{kind}{node}.log", "w") as log:
            library = self.preload.get(node) if kind == "dataplane" else None
            self.children.append(subprocess.Popen(
                self.argv(*(["env", f"LD_PRELOAD={library}"] if library else []), self.program(kind, self.wrapper), *argv),
                stdout=log, stderr=log, start_new_session=True))

    def sarissa(self, node, *argv, **how):
        socket = self.rundir(node) / "control.sock"
        return subprocess.run(self.argv(self.program("cli", self.wrapper), "--socket", socket, *argv),
                              capture_output=True, timeout=120, **how)

    def cross(self, size):
        data = os.urandom(size)
        for verb, node, name, given in (("put", 0, f"o{size}", data), ("get", 1, f"o{size}", None)):
            done = self.sarissa(node, verb, name, "-", input=given)
            assert done.returncode == 0, f"{verb} of {size} bytes: {done.stderr.decode()}"
        assert done.stdout == data, f"{size} bytes: others arrived"

    def link(self, node):
        """What status says of the node's port."""
        rows = map(json.loads, self.sarissa(node, "status", "--json").stdout.splitlines())
        return next(row["link"] for row in rows if row["self"])

    def findings(self, node):
        rows = map(json.loads, self.sarissa(node, "doctor", "--json").stdout.splitlines())
        return {row["check"]: row for row in rows}

    def counters(self, node):
        return netlib.counters.read(self.rundir(node) / "counters")

    def log(self, node, kind="dataplane"):
        return (self.directory / f"{kind}{node}.log").read_text(errors="replace")

    def alive(self):
        return all(child.poll() is None for child in self.children)


@contextlib.contextmanager
def local(*ports, **how):
    netlib.need_daemons()
    netlib.need_command("setpriv")
    with netlib.scratch() as directory, Local(directory, *ports, **how) as pair:
        yield pair
        assert pair.alive(), "a daemon has died"


def an_ordinary_user_needs_no_right():
    with local("udp:127.0.0.1", "udp:127.0.0.2", wrapper=NOBODY) as pair:
        for size in (0, 1, 65536, 20 * MIB + 5):
            pair.cross(size)
        status = pair.sarissa(0, "status").stdout.decode()
        assert "udp 127.0.0.1 (gso, gro)" in status, status
        assert bursts(pair.counters(0)) > 1


def a_small_buffer_is_full_and_no_more():
    with local("udp:127.0.0.1,buffer=1", "udp:127.0.0.2,buffer=1") as pair:
        pair.cross(2 * MIB)
        netlib.wait_for(lambda: pair.counters(0)["io_tx_full"] + pair.counters(1)["io_rx_lost"] > 0,
                        netlib.PATIENCE_S, "a full buffer is counted")


def without_segments():
    with local("udp:127.0.0.1,single", "udp:127.0.0.2", options=("--mtu", 1500)) as pair:
        pair.cross(4 * MIB)
        until_single(pair)


def all_addresses():
    """Answers come from the address that peers know, whatever the kernel would have taken."""
    with local("udp:127.0.0.1", ("udp:0.0.0.0", "--addr", "127.0.0.2", "--udp-port", 7401)) as pair:
        pair.cross(4 * MIB)
        assert bursts(pair.counters(1)) >= 1


def one_line(pair, port, *words, options=(), wrapper=()):
    rundir = pair.directory / ("other-user" if wrapper else "other")
    rundir.mkdir(exist_ok=True)
    os.chown(rundir, 65534, 65534)
    argv = pair.argv(*wrapper, pair.program("dataplane", wrapper), "--rundir", rundir, "--port", port,
                     "--store", 16, *options)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    lines = done.stderr.strip().splitlines()
    assert done.returncode in (1, 2) and len(lines) == 1, f"{port}: {done.returncode}: {done.stderr}"
    missing = [word for word in words if word not in lines[0]]
    assert not missing, f"{port}: '{lines[0]}' does not speak of {missing}"


def what_cannot_be_is_told():
    with local("udp:127.0.0.1", "udp:127.0.0.2") as pair:
        one_line(pair, "udp:127.0.0.1", "another node has this address")
        one_line(pair, "udp:10.99.0.1", "no interface has this address")
        one_line(pair, "udp:nope0", "no such address or interface")
        one_line(pair, "udp:0.0.0.0", "--addr")
        one_line(pair, "udp:127.0.0.3", "--addr is another", options=("--addr", "127.0.0.4"))
        one_line(pair, "udp:127.0.0.3", "--mtu", options=("--capture", "/dev/null", "--mtu", 1279))
        one_line(pair, "udp:127.0.0.3", "tcpdump", options=("--capture", "/dev/null"))
        one_line(pair, "udp:127.0.0.3", "gateway", options=("--gateway", "127.0.0.9"))
        one_line(pair, "udp:127.0.0.3,fast", "single and buffer")
        one_line(pair, "af_xdp:lo", "--port udp:", wrapper=NOBODY)
        pair.cross(MIB)


netlib.run(losses_are_repaired, workers_and_ipv6, sums_are_right, a_transfer_outlives_its_dataplanes,
           a_device_without_checksums, a_device_that_refuses_bursts_is_told, a_narrowed_device_takes_bursts, an_ordinary_user_needs_no_right,
           a_small_buffer_is_full_and_no_more, without_segments, all_addresses, what_cannot_be_is_told)
