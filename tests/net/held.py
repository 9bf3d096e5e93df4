#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Becomes a command of whose system calls some wait until somebody else lets them go on: those by which
control's closing threads begin (timer_settime), and the reads of its clients' sockets (recvfrom). It
cannot refuse descriptors that are sent to it either, as before Linux 6.16.

usage: held.py SOCKET COMMAND...    the seccomp listener is sent over the first connection there
       held.py                      only tries: exits with EBUSY when a container has the only listener

A test holds a Held, and starts the command through its `through`.
"""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import threading

from netlib import Skip

CALLS = {"x86_64": {"setsockopt": 54, "recvfrom": 45, "timer_settime": 223, "seccomp": 317},
         "aarch64": {"setsockopt": 208, "recvfrom": 207, "timer_settime": 110, "seccomp": 277}}
NUMBERS = CALLS[os.uname().machine]
NAMES = {number: name for name, number in NUMBERS.items()}
SOL_SOCKET, SO_PASSRIGHTS = 1, 83
PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER, NEW_LISTENER = 1, 8
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO, NOTIFY = 0x7fff0000, 0x00050000, 0x7fc00000
NUMBER, LEVEL, OPTION = 0, 24, 32  # in struct seccomp_data, little endian
NOTIF_RECV, NOTIF_SEND, NOTIF_BYTES, CONTINUE = 0xc0502100, 0xc0182101, 80, 1

PROGRAM = [(LOAD, 0, 0, NUMBER),
           (JUMP_EQUAL, 7, 0, NUMBERS["recvfrom"]), (JUMP_EQUAL, 6, 0, NUMBERS["timer_settime"]),
           (JUMP_EQUAL, 0, 6, NUMBERS["setsockopt"]),
           (LOAD, 0, 0, LEVEL), (JUMP_EQUAL, 0, 4, SOL_SOCKET),
           (LOAD, 0, 0, OPTION), (JUMP_EQUAL, 0, 2, SO_PASSRIGHTS),
           (RETURN, 0, 0, ERRNO | errno.ENOPROTOOPT), (RETURN, 0, 0, NOTIFY), (RETURN, 0, 0, ALLOW)]


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


class Held:
    """decide(name): called in a thread of its own for each such call, which goes on when it returns."""

    def __init__(self, directory, decide):
        self.path = str(directory / "held.sock")
        self.through = [os.path.abspath(__file__), self.path]
        if subprocess.run(self.through[:1], check=False).returncode == errno.EBUSY:
            raise Skip("a container has the one seccomp listener that there can be")
        self.decide, self.ended = decide, False
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(self.path)
        self.server.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        listener = None
        while not self.ended:
            readable, _, _ = select.select([self.server, *([listener] if listener else [])], [], [], 0.1)
            if self.server in readable:
                taken, _ = self.server.accept()
                _, (listener,), _, _ = socket.recv_fds(taken, 1, 1)
                taken.close()
            elif readable and not self.one(listener):
                listener = None

    def one(self, listener):
        """In a thread of its own: one that is held must not keep the others."""
        call = bytearray(NOTIF_BYTES)
        try:
            fcntl.ioctl(listener, NOTIF_RECV, call)
        except OSError as error:
            return error.errno == errno.ENOENT  # it has gone meanwhile
        threading.Thread(target=self.let_go, args=(listener, call), daemon=True).start()
        return True

    def let_go(self, listener, call):
        number, = struct.unpack_from("=Q", call)
        self.decide(NAMES[struct.unpack_from("=i", call, 16)[0]])
        try:
            fcntl.ioctl(listener, NOTIF_SEND, bytearray(struct.pack("=QqiI", number, 0, 0, CONTINUE)))
        except OSError:
            pass  # the process is gone

    def end(self):
        self.ended = True
        self.thread.join()
        self.server.close()


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("=HBBI", *line) for line in PROGRAM)
    program = Filter(len(PROGRAM), code)
    listener = -1
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        listener = libc.syscall(NUMBERS["seccomp"], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        print(f"no seccomp filter: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        sys.exit(ctypes.get_errno())
    if len(sys.argv) == 1:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(sys.argv[1])
        socket.send_fds(s, [b"x"], [listener])
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
