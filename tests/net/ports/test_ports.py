#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes joined by shared memory, without any network device: over memif; over vhost and
virtio, whose drivers report the link, interrupt, and take several queues, as cards do; over a
device whose driver does not interrupt, and says so late."""

import json
import os
import socket
import subprocess
import time

import netlib
from netlib import nodes, process

SIZES = (0, 1, 65536, (1 << 20) + 7, 32 << 20)
V4, V6 = "10.78.{}.{}", "fd78:{}::{}"  # of a rail and a node
IDLE_S = 1
NAPS = 300  # a second; a worker that has nothing to wait for takes 1,000


class Pair:
    """Two nodes, each with its control; the second's port needs the first's. ports: of each, one or several."""

    def __init__(self, directory, ports, *options, env=(), addr=V4):
        self.directory, self.addr = directory, addr
        self.ports = [[one.replace("DIR", str(directory)) for one in ([port] if isinstance(port, str) else port)]
                      for port in ports]
        self.options = options
        self.env = {**os.environ, **dict(env)}
        self.children = []

    def __enter__(self):
        try:
            return self.start()
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def start(self):
        host = f"[{V6}]" if self.addr == V6 else V4
        peers = ",".join(f"{host.format(0, node)}:7400" for node in (1, 2))
        for node, ports in enumerate(self.ports):
            rundir = self.rundir(node)
            rundir.mkdir()
            rails = [word for rail, port in enumerate(ports)
                     for word in ("--port", port, "--addr", self.addr.format(rail, node + 1) + "/24", *self.options)]
            self.spawn(node, "dataplane", "--rundir", rundir, *rails, "--udp-port", 7400, "--store", 64)
            netlib.wait_for(lambda: nodes.is_listening(rundir / "dataplane.sock", "self"), netlib.PATIENCE_S,
                            f"dataplane {node} listens")
            self.spawn(node, "control", "--rundir", rundir, "--node", node, "--nodes", peers)
        for node in (0, 1):
            netlib.wait_for(lambda: self.run(node, "status").returncode == 0, netlib.PATIENCE_S,
                            f"node {node} answers")
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            process.end_all([child.pid])
            child.wait()
        if kind:
            for log in sorted(self.directory.glob("*.log")):
                print(f"  -- {log.name}:\n{netlib.tail(log.read_text(errors='replace'))}")

    def rundir(self, node):
        return self.directory / f"node{node}"

    def spawn(self, node, kind, *argv):
        with open(self.directory / f"{kind}{node}.log", "w") as log:
            self.children.append(subprocess.Popen([str(a) for a in (nodes.binary(kind), *argv)],
                                                  stdout=log, stderr=log, env=self.env))

    def run(self, node, *argv):
        env = {"SARISSA_SOCKET": str(self.rundir(node) / "control.sock"), "PATH": "/usr/bin"}
        return subprocess.run([str(a) for a in (nodes.binary("cli"), *argv)], env=env,
                              capture_output=True, text=True, timeout=90)

    def log(self, node):
        return (self.directory / f"dataplane{node}.log").read_text(errors="replace")

    def cross(self):
        """Objects of every size from the first to the second; what the largest made."""
        for size in SIZES:
            name = f"object-{size}"
            expected = netlib.make_file(self.directory / "sent", size)
            done = self.run(0, "put", name, self.directory / "sent")
            assert done.returncode == 0, netlib.tail(done.stderr)
            begin = time.monotonic()
            done = self.run(1, "get", name, self.directory / "got", "--timeout", 60)
            assert done.returncode == 0, f"{size} bytes: {netlib.tail(done.stderr)}"
            took = time.monotonic() - begin
            assert netlib.digest_of(self.directory / "got") == expected, f"{size} bytes: other bytes"
            assert self.run(0, "rm", name).returncode == 0
        return f"{SIZES[-1] / took / 1e6:.0f} MB/s"

    def refuses_another_listener(self):
        """A third node that names the socket file of the first."""
        rundir = self.directory / "third"
        rundir.mkdir()
        done = subprocess.run([nodes.binary("dataplane"), "--rundir", rundir, "--port", self.ports[0][0],
                               "--addr", "10.79.0.9/24", "--store", "16"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "another process listens" in done.stderr, netlib.tail(done.stderr)

    def sent(self):
        """Bytes that the first has sent, by rail that is up."""
        rows = map(json.loads, self.run(0, "peers", "--json").stdout.splitlines())
        return {row["rail"]: row["tx_bytes"] for row in rows if row["up"]}

    def counters(self, node):
        return netlib.counters.read(self.rundir(node) / "counters")

    def naps(self):
        """How often a second the idle workers of each node sleep."""
        def sleeps():
            return [self.counters(node)["io_sleeps"] for node in (0, 1)]

        begin, before = time.monotonic(), sleeps()
        time.sleep(IDLE_S)
        after, seconds = sleeps(), time.monotonic() - begin  # a busy machine wakes us late
        return [(b - a) / seconds for a, b in zip(before, after)]


def objects_cross_memif():
    netlib.need_daemons()
    ports = [[f"memif:{rail},role={role},socket=DIR/memif.sock" for rail in (0, 1)] for role in ("server", "client")]
    with netlib.scratch() as directory, Pair(directory, ports, "--mtu", 9000) as pair:
        netlib.wait_for(lambda: len(pair.sent()) == 2, netlib.PATIENCE_S, "both rails are up")
        rate = pair.cross()
        netlib.until(pair.sent, lambda sent: len(sent) == 2 and min(sent.values()) > 1 << 20, "bytes by rail")
        assert pair.counters(0)["tx_chunks"] < 2 * SIZES[-1] / 8896, "its packets are shorter"
        return rate


def leave_behind(path):
    """The socket file of a process that was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))


def objects_cross_virtio():
    """Its memory must be one file that both map: that is in ordinary pages. Over IPv6 a driver that can
    is asked for checksums of UDP; vhost is given packets in two pieces."""
    netlib.need_daemons()
    ports = ["vhost:DIR/vhost.sock", "vdev:net_virtio_user0,path=DIR/vhost.sock,queues=2"]
    with netlib.scratch() as directory:
        leave_behind(directory / "vhost.sock")
        with Pair(directory, ports, "--workers", 2, "--vlan", 7, "--mtu", 9000, addr=V6,
                  env={"SARISSA_ORDINARY_PAGES": "1"}) as pair:
            netlib.wait_for(lambda: "the link is up" in pair.log(0), netlib.PATIENCE_S, "link up")
            assert "Unknown" not in pair.log(0), "a speed that is no speed"
            rate = pair.cross()
            netlib.until(lambda: pair.counters(0)["io_tx_in_place"], lambda count: count > SIZES[-1] / 8896,
                         "packets that vhost was given in place")
            pair.refuses_another_listener()
            seen = netlib.measured(pair.naps, lambda naps: max(naps) < NAPS)
            assert max(seen[-1]) < NAPS, f"idle workers slept {seen} times a second: no interrupts"
            return f"{rate}, idle {seen[-1][0]:.0f} and {seen[-1][1]:.0f} sleeps/s"


def objects_cross_a_device_that_refuses_interrupts():
    """DPDK's failsafe device does so at its start, where the program has no service core."""
    netlib.need_daemons()
    ports = ["memif:0,role=server,socket=DIR/memif.sock",
             "vdev:net_failsafe0,dev(net_memif0,role=client,socket=DIR/memif.sock,"
             "socket-abstract=no)"]
    with netlib.scratch() as directory, \
            Pair(directory, ports, "--mtu", 1400, "--log-level", "debug") as pair:
        if "Failed to install Rx interrupts" not in pair.log(1):
            raise netlib.Skip("this DPDK's failsafe device has interrupts")
        return pair.cross()


MOVES = """
import socket, struct, sys
ip, mac = socket.inet_aton(sys.argv[1]), bytes.fromhex("025a00c0ffee")
arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x800, 6, 4, 1, mac, ip, bytes(6), ip)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
s.setsockopt(263, 1, struct.pack("iHH8s", socket.if_nametoindex("eth0"), 1, 0, b""))  # promiscuous
s.send(bytes([255]) * 6 + mac + bytes.fromhex("0806") + arp)
s.settimeout(10)
while s.recv(65536)[:6] != mac:
    pass
print("frames go there")
"""


def a_peer_that_moves_to_another_link_address_is_heard_of():
    """A gratuitous ARP request, as bonds and moved machines send it: it asks for the peer's own
    address, not for ours."""
    netlib.need_daemons()
    with netlib.Cluster(2, "--vdev", "tap", "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.transfer(cluster, directory, 1 << 20)
        said = cluster.must(1, "/usr/bin/python3", "-c", MOVES, netlib.network.node_ip(1))
        assert said.strip() == "frames go there", said


netlib.run(objects_cross_memif, objects_cross_virtio,
           objects_cross_a_device_that_refuses_interrupts,
           a_peer_that_moves_to_another_link_address_is_heard_of)
