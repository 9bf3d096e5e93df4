# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of objects, their digests and the common clock for measured programs in Python: payload.c, as for every
other measured system. Needs SARISSA_PAYLOAD, which names the built payload.so."""

import ctypes
import os
import time

import numpy

library = ctypes.CDLL(os.environ["SARISSA_PAYLOAD"])
library.payload_digest_of.restype = ctypes.c_uint64


def digest(array):
    told = library.payload_digest_of(array.ctypes.data_as(ctypes.c_void_p),
                                     ctypes.c_uint64(array.nbytes))
    return f"{told:016x}"


def make(size, seed, f32):
    """An array of so many bytes: of f32 gradients, or of random bytes."""
    made = numpy.zeros(size, numpy.uint8)
    library.payload_make(made.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(size),
                         ctypes.c_uint32(seed), ctypes.c_int(f32))
    return made.view(numpy.float32) if f32 else made


def now_ns():
    """CLOCK_MONOTONIC: all nodes are on one machine."""
    return time.monotonic_ns()


def sleep_until(at_ns):
    time.sleep(max(0, at_ns - now_ns()) / 1e9)
