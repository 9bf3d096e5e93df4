#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Becomes a command that cannot refuse descriptors which are sent to it, as before Linux 6.16: a seccomp
filter answers setsockopt(SOL_SOCKET, SO_PASSRIGHTS) with ENOPROTOOPT.

usage: older_kernel.py COMMAND...
"""

import ctypes
import errno
import os
import struct
import sys

SETSOCKOPT = {"x86_64": 54, "aarch64": 208}[os.uname().machine]
SOL_SOCKET, SO_PASSRIGHTS = 1, 83
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000
NUMBER, LEVEL, OPTION = 0, 24, 32  # in struct seccomp_data, little endian

PROGRAM = [(LOAD, 0, 0, NUMBER), (JUMP_EQUAL, 0, 5, SETSOCKOPT),
           (LOAD, 0, 0, LEVEL), (JUMP_EQUAL, 0, 3, SOL_SOCKET),
           (LOAD, 0, 0, OPTION), (JUMP_EQUAL, 0, 1, SO_PASSRIGHTS),
           (RETURN, 0, 0, ERRNO | errno.ENOPROTOOPT), (RETURN, 0, 0, ALLOW)]


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("=HBBI", *line) for line in PROGRAM)
    program = Filter(len(PROGRAM), code)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
        sys.exit(f"no seccomp filter: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])


main()
