# SPDX-License-Identifier: BSD-3-Clause
"""What Dask's workers do in a measurement (dask_driver.py tells them to).

An object is a numpy array that its worker has made before. What a worker has got at last stays in
`taken` until it is checked; the time is taken as soon as its task runs, which is when all that the
task asked for has arrived. Times are CLOCK_MONOTONIC ns."""

import ctypes
import os
import time

import numpy

library = ctypes.CDLL(os.environ["SARISSA_PAYLOAD"])
library.payload_digest_of.restype = ctypes.c_uint64

made = numpy.empty(0, numpy.uint8)
taken = []


def digest(array):
    told = library.payload_digest_of(array.ctypes.data_as(ctypes.c_void_p),
                                     ctypes.c_uint64(array.nbytes))
    return f"{told:016x}"


def make(size, f32, dask_worker):
    """The array that this worker gives; tells its digest."""
    global made
    taken.clear()
    made = numpy.zeros(size, numpy.uint8)
    library.payload_make(made.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(size),
                         ctypes.c_uint32(int(dask_worker.name) + 1), ctypes.c_int(f32))
    made = made.view(numpy.float32) if f32 else made
    return digest(made)


def give(at_ns):
    """Made already; a task that comes later gives it not before at_ns."""
    time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
    return made


def part(array, index, count):
    return array[index * len(array) // count:(index + 1) * len(array) // count]


def same(array):
    return array


def total(*arrays):
    out = arrays[0] + arrays[1]
    for array in arrays[2:]:
        out += array
    return out


def take(*arrays):
    """Objects, each of them whole."""
    end_ns = time.monotonic_ns()
    taken[:] = arrays
    return end_ns


def take_parts(*arrays):
    """One object in parts, which are joined when it is checked."""
    end_ns = time.monotonic_ns()
    taken[:] = [arrays]
    return end_ns


def take_total(*arrays):
    taken[:] = [total(*arrays)]
    return time.monotonic_ns()


def check():
    return [digest(numpy.concatenate(one) if isinstance(one, tuple) else one) for one in taken]
