#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The kernel keeps the interface: TCP, ping and other UDP ports work while a transfer runs."""

import subprocess
import sys

import netlib
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
        server.wait(timeout=10)
        return f"{rounds} rounds of echo while {moved} objects of 32 MiB crossed"


def ping_and_foreign_ports_reach_the_kernel():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster:
        cluster.must(0, "ping", "-c3", "-W2", "10.77.0.2")
        # nobody listens there: the kernel's refusal shows that the datagram came to the kernel
        refused = cluster.run(0, "/usr/bin/python3", "-c", "import socket\n"
                              "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                              "s.connect(('10.77.0.2', 9999)); s.settimeout(3); s.send(b'x')\n"
                              "try: s.recv(1)\n"
                              "except ConnectionRefusedError: print('refused')")
        assert refused.stdout == "refused\n", netlib.tail(refused.stderr)


netlib.run(a_tcp_session_lives_beside_a_transfer, ping_and_foreign_ports_reach_the_kernel)
