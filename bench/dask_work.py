# SPDX-License-Identifier: BSD-3-Clause
"""What Dask's workers do in a measurement (dask_driver.py tells them to).

An object is a numpy array that its worker has made before. What a worker has got at last stays in
`taken` until it is checked; the time is taken as soon as its task runs, which is when all that the
task asked for has arrived. Times are CLOCK_MONOTONIC ns."""

import time

import numpy
import payload

made = numpy.empty(0, numpy.uint8)
taken = []


def make(size, f32, dask_worker):
    """The array that this worker gives; tells its digest."""
    global made
    taken.clear()
    made = payload.make(size, int(dask_worker.name) + 1, f32)
    return payload.digest(made)


def name(dask_worker):
    return int(dask_worker.name)


def give(at_ns):
    """Made already; a task that comes later gives it not before at_ns."""
    payload.sleep_until(at_ns)
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


def take_after(array, end_ns):
    """An object that was not to be asked for before another node had ended at end_ns."""
    return take(array)


def take_parts(*arrays):
    """One object in parts, which are joined when it is checked."""
    end_ns = time.monotonic_ns()
    taken[:] = [arrays]
    return end_ns


def take_total(*arrays):
    taken[:] = [total(*arrays)]
    return time.monotonic_ns()


def check():
    return [payload.digest(numpy.concatenate(one) if isinstance(one, tuple) else one) for one in taken]
