#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A driver for test_lease.py: puts objects that a lease holds, or gets them. It says a line when it has
come so far, and goes on when it is told one.

usage: lease_task.py LIBRARY put COUNT TTL_S [NAME]    lease of the session, or the one of that name
       lease_task.py LIBRARY get COUNT
"""

import ctypes
import sys

SIZES = (1 << 10, 40 << 10, 100 << 10)  # in the directory's answer; of a few chunks; of many


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint8 * 16)]


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64), ("ready", ctypes.c_uint64),
                ("reserved", ctypes.c_uint64 * 5)]


def content(i):
    return bytes([i % 251]) * SIZES[i % len(SIZES)]


def step(what):
    print(what, flush=True)
    return sys.stdin.readline()


class Node:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.sar_error_detail.restype = ctypes.c_char_p
        self.lib.sar_id_of.restype = Id
        self.handle = ctypes.c_void_p()
        self.must(self.lib.sar_open(None, ctypes.byref(self.handle)))

    def must(self, result):
        if result < 0:
            sys.exit(f"{result}: {self.lib.sar_error_detail().decode()}")

    def id(self, name):
        return self.lib.sar_id_of(name, ctypes.c_size_t(len(name)))

    def lease(self, ttl_s, name):
        lease = ctypes.c_uint64()
        self.must(self.lib.sar_lease(self.handle, name, ctypes.c_int64(int(ttl_s * 1e9)),
                                     ctypes.byref(lease)))
        self.must(self.lib.sar_set_lease(self.handle, lease))
        return lease

    def put(self, i):
        name = b"leased/%d" % i
        self.must(self.lib.sar_put(self.handle, self.id(name), name, content(i),
                                   ctypes.c_uint64(len(content(i)))))

    def get(self, i):
        b = Buffer()
        self.must(self.lib.sar_get(self.handle, self.id(b"leased/%d" % i), ctypes.c_int64(int(30e9)),
                                   ctypes.byref(b)))
        if ctypes.string_at(b.data, b.size) != content(i):
            sys.exit(f"leased/{i} has other bytes")
        self.lib.sar_release(self.handle, ctypes.byref(b))


def main(library, verb, count, ttl_s="1", name=None):
    node = Node(library)
    if verb == "get":
        for i in range(int(count)):
            node.get(i)
        step("got")
        return
    lease = node.lease(float(ttl_s), name.encode() if name else None)
    for i in range(int(count)):
        node.put(i)
    while step("ready") == "put\n":
        node.put(int(count))
        count = int(count) + 1
    node.must(node.lib.sar_lease_end(node.handle, lease))


main(*sys.argv[1:])
