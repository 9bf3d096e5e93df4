# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.dask sends what an array is at that moment, however it has changed since it was put, and what
arrives may be written as without the plugin."""

import functools
import gc
from array import array

import distributed
import numpy
import pytest
from dask_cluster import dask, until  # noqa: F401  (a fixture)
from test_dask import objects

MIB = 1 << 20
KINDS = {  # of 2 MiB; what adds 1 to all of its bytes; the value of one
    "array": (lambda: numpy.zeros(2 * MIB, "u1"), lambda a: numpy.add(a, 1, out=a), lambda a: int(a[MIB])),
    "fortran": (lambda: numpy.zeros((2, MIB), "u1", order="F"), lambda a: numpy.add(a, 1, out=a),
                lambda a: int(a[1, -1])),
    "memoryview": (lambda: memoryview(bytearray(2 * MIB)),
                   lambda a: numpy.add(numpy.asarray(a), 1, out=numpy.asarray(a)), lambda a: a[MIB]),
    "bytearray": (lambda: bytearray(2 * MIB), lambda a: numpy.add(numpy.frombuffer(a, "u1"), 1,
                                                                  out=numpy.frombuffer(a, "u1")), lambda a: a[MIB]),
    "array.array": (lambda: array("B", bytes(2 * MIB)), lambda a: numpy.add(numpy.frombuffer(a, "u1"), 1,
                                                                         out=numpy.frombuffer(a, "u1")), lambda a: a[MIB]),
}


class Server:
    def __init__(self, kind):
        self.state, self.kind = KINDS[kind][0](), kind

    def step(self):
        KINDS[self.kind][1](self.state)

    def step_one(self):
        """A change of one byte."""
        numpy.frombuffer(self.state, "u1")[MIB] += 1

    def read(self):
        return self.state


def train(server, kind):
    seen = [KINDS[kind][2](server.read().result())]
    for change in (server.step, server.step, server.step_one if kind != "fortran" else server.step):
        change().result()
        seen += [KINDS[kind][2](server.read().result()) for _ in range(2)]
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_actor_is_now(dask, local, kind):
    before = dask.counts()
    server = dask.client.submit(Server, kind, actor=True, workers=[dask.address[0]], pure=False).result()
    assert dask.submit(train, server, kind, node=1).result() == [0, 1, 1, 2, 2, 3, 3]
    told = dask.since(before)
    assert told["put"] == 3 and told["passed on"] == 3 and told["arrived"] == 6, told  # the first time as bytes
    if kind == "array":  # not at once: what has changed may still be asked for
        del server
        gc.collect()
        until(lambda: not objects(local), lambda: objects(local))


def normalize(a):
    a -= a.mean()
    return float(abs(a.sum())), a.flags.writeable


def at(dask, node, future):
    """The first and the last element, as a worker has them."""
    def ends(key, dask_worker):
        return dask_worker.data[key][[0, -1]].tolist()
    return dask.client.run(ends, future.key, workers=[dask.address[node]]).popitem()[1]


@pytest.mark.parametrize("count", [1 << 16, 1 << 17, 1 << 18, 1 << 20])
def test_a_task_in_place(dask, count):
    made = dask.submit(numpy.arange, float(count), node=0)
    total, writeable = dask.submit(normalize, made, node=1).result()
    assert writeable and total < 1e-3
    assert at(dask, 0, made) == [0.0, count - 1.0]  # the sender's is as it was


def test_each_kind_may_be_written(dask):
    for kind, (make, change, value) in KINDS.items():
        def work(thing, node):  # writes when both have it: each may have got it from the other
            distributed.Event(f"{kind}-{node}").set()
            distributed.Event(f"{kind}-{3 - node}").wait()
            KINDS[kind][1](thing)
            return KINDS[kind][2](thing)
        _, readers = dask.read_by(make, {node: functools.partial(work, node=node) for node in (1, 2)})
        assert dask.client.gather(readers) == [1, 1], kind


def test_what_a_task_has_changed_goes_on_as_it_is(dask):
    """The receiver writes into its copy: that one changes, and neither the sender's nor that of others."""
    def raise_all(a):
        a += 1
    made = dask.submit(numpy.zeros, MIB, node=0)
    distributed.wait(dask.submit(raise_all, made, node=1))
    first = dask.submit(lambda a: a, made, node=1)  # that worker's array, as it is now
    assert dask.submit(lambda a: float(a[0]), first, node=2).result() == 1.0
    distributed.wait(dask.submit(raise_all, made, node=1))
    second = dask.submit(lambda a: a, made, node=1)
    assert dask.submit(lambda a: float(a[-1]), second, node=3).result() == 2.0
    assert at(dask, 0, made) == [0.0, 0.0]


def test_a_client_that_changes_what_it_scattered(dask):
    whole = numpy.zeros(MIB)
    seen = []
    for step in range(3):
        future = dask.client.scatter(whole, hash=False, broadcast=step == 1)
        whole += 1  # after the scatter, as before the next one
        seen.append(dask.submit(lambda a: (float(a[0]), float(a[-1])), future, node=3).result())
    assert seen == [(0, 0), (1, 1), (2, 2)]


def test_variables_and_queues(dask):
    """They hold futures; what is read is the array of then."""
    name, state = distributed.Variable("weights"), numpy.zeros(MIB)
    for step in range(3):
        state += 1
        name.set(dask.client.scatter(state, hash=False))
        assert dask.submit(lambda a: float(a[7]), name.get(), node=2).result() == step + 1
