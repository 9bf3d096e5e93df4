#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel keeps the interface: TCP, ping and other UDP ports work while a transfer runs."""

import subprocess
import sys

import netlib
from lib import options
from netlib import Cluster

ECHO_SERVER = """
import socket
s = socket.create_server(("0.0.0.0", 2222))
print("ready", flush=True)
c = s.accept()[0]
while data := c.recv(65536):
    c.sendall(data)
"""
ECHO_CLIENT = """
import os, socket, time
c = socket.create_connection(("10.77.0.2", 2222), timeout=10)
until, rounds = time.monotonic() + 5, 0
while time.monotonic() < until:
    data = os.urandom(3000)
    c.sendall(data)
    back = b""
    while len(back) < len(data):
        back += c.recv(65536)
    assert back == data
    rounds += 1
print(rounds)
"""


def a_tcp_session_lives_beside_a_transfer():
    netlib.need_daemons()
    python = sys.executable or "/usr/bin/python3"
    with Cluster(2, "--store", 256) as cluster, netlib.scratch() as directory:
        server = cluster.start(1, python, "-c", ECHO_SERVER, stdout=subprocess.PIPE, text=True)
        assert server.stdout.readline() == "ready\n"
        client = cluster.start(0, python, "-c", ECHO_CLIENT, stdout=subprocess.PIPE, text=True)
        moved = 0
        while client.poll() is None:
            netlib.transfer(cluster, directory, 32 << 20)
            moved += 1
        rounds = int(client.communicate()[0] or 0)
        assert client.returncode == 0 and rounds > 2, f"{rounds} rounds of echo"
        server.wait(timeout=netlib.PATIENCE_S)
        return f"{rounds} rounds of echo while {moved} objects of 32 MiB crossed"


REFUSED = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
s.settimeout(3)
try:
    s.send(b"x")
    s.recv(1)
except (ConnectionRefusedError, TimeoutError) as error:
    print(type(error).__name__)
"""


TAGGED = """
import socket, struct, sys
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 36, 0, 0x4000, 64, 17, 0, bytes((10, 77, 0, 1)),
                 bytes((10, 77, 0, 2)))
udp = struct.pack("!HHHH8x", 7400, 7400, 16, 0)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for tag in (b"\\x81\\x00\\x00\\x07", b""):
    s.send(bytes.fromhex(sys.argv[1].replace(":", "")) + b"\\x02" + bytes(5) + tag +
           b"\\x08\\x00" + ip + udp)
"""


def what_is_not_ours_reaches_the_kernel():
    """Nobody listens there: the kernel's refusal shows that the datagram came to the kernel."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster:
        cluster.must(0, "ping", "-c3", "-W2", "10.77.0.2")
        cluster.must(1, "ip", "addr", "add", "10.77.99.2/16", "dev", "eth0")
        for address, port, answer in (("10.77.0.2", 9999, "ConnectionRefusedError"),
                                      ("10.77.0.2", 7400, "TimeoutError"),
                                      ("10.77.99.2", 7400, "ConnectionRefusedError")):
            done = cluster.run(0, "/usr/bin/python3", "-c", REFUSED, address, port)
            assert done.stdout.strip() == answer, f"{address}:{port}: {done.stdout}{done.stderr}"
        if options.vdev() == "udp":
            return "frames are the kernel's"
        # a tagged frame is another network's; the one without a tag has a bad checksum and is ours
        mac = cluster.must(1, "cat", "/sys/class/net/eth0/address").strip()
        before = cluster.counters(1)
        cluster.must(0, "/usr/bin/python3", "-c", TAGGED, mac)
        netlib.wait_for(lambda: cluster.counters(1)["io_bad_ip"] > before["io_bad_ip"],
                        netlib.PATIENCE_S, "the second frame is there")
        assert cluster.counters(1)["io_not_ours"] == before["io_not_ours"]


netlib.run(a_tcp_session_lives_beside_a_transfer, what_is_not_ours_reaches_the_kernel)
