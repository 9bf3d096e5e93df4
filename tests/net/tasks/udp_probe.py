# SPDX-License-Identifier: BSD-3-Clause
"""Numbered datagrams through kernel sockets, to see what a path does to them.

usage: udp_probe.py receive COUNT | send COUNT IP

It receives until its input has ended, which says that all has been sent, and it is quiet since then.
"""

import json
import os
import select
import socket
import struct
import sys
import time
import zlib

PORT = 7400
SO_NO_CHECK = 11  # our own check sees corruption, so the kernel must let it pass
SO_RCVBUFFORCE = 33
IP_RECVTOS = 13
LOOK_S, QUIET_S = 0.1, 1.0
ECT0, CE = 2, 3  # RFC 3168
RUN_BYTES = 4  # tells the datagrams of this run from those that an earlier one left on the way


def seal(number, body):
    return struct.pack("!II", number, zlib.crc32(struct.pack("!I", number) + body)) + body


def receive(count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 27)
    s.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
    s.bind(("0.0.0.0", PORT))
    print("ready", flush=True)
    seen, highest, late, corrupt, marked, run = {}, -1, 0, 0, 0, None
    s.settimeout(LOOK_S)
    all_sent = False
    while True:
        try:
            data, control, _, _ = s.recvmsg(4096, 64)
        except TimeoutError:
            if all_sent:
                break
            if select.select([sys.stdin], [], [], 0)[0]:
                all_sent = True
                s.settimeout(QUIET_S)
            continue
        if seal(struct.unpack("!I", data[:4])[0], data[8:]) != data:
            corrupt += 1
            continue
        number, this_run = struct.unpack("!I", data[:4])[0], data[8:8 + RUN_BYTES]
        run = this_run if number == 0 or run is None else run
        if this_run != run:
            continue
        seen[number] = seen.get(number, 0) + 1
        marked += any(value[0] & 3 == CE for _, _, value in control)
        late += seen[number] == 1 and number < highest
        highest = max(highest, number)
    print(json.dumps({"missing": 100 * (count - len(seen) - corrupt) / count,
                      "duplicated": 100 * sum(n - 1 for n in seen.values()) / count,
                      "late": 100 * late / count, "corrupt": 100 * corrupt / count,
                      "marked": 100 * marked / count}))


def send(count, ip):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
    s.connect((ip, PORT))
    run = os.urandom(RUN_BYTES)
    for number in range(count):
        s.send(seal(number, run + os.urandom(200 + number % 1000)))
        if number % 20 == 0:
            time.sleep(0.0003)


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]))
else:
    send(int(sys.argv[2]), sys.argv[3])
