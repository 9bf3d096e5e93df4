# SPDX-License-Identifier: BSD-3-Clause
"""Values whose large parts are not arrays of numpy alone: data frames, sparse arrays, tensors, own classes. And
clusters whose workers write what they hold to disk, come and go."""

import functools
import gc
import importlib
import signal

import distributed
import numpy
import pytest
import sarissa.dask
from conftest import NODES
from dask_cluster import dask, plugged, until  # noqa: F401  (dask is a fixture)
from test_dask import objects

MIB = 1 << 20


class Model:
    """Pickled with its array as a buffer of its own."""

    def __init__(self):
        self.name, self.weights = "linear", numpy.arange(MIB, dtype="f8")


def module(name):
    return pytest.importorskip(name)


def model():
    return Model()


def masked():
    return numpy.ma.masked_array(numpy.arange(MIB, dtype="f8"), numpy.arange(MIB) % 2)


def frame():
    return importlib.import_module("pandas").DataFrame({"a": numpy.arange(MIB), "b": numpy.arange(MIB) * 0.5})


def sparse():
    return importlib.import_module("sparse").COO(numpy.arange(MIB)[None], numpy.ones(MIB), shape=(2 * MIB,))


def tensor():
    return importlib.import_module("torch").arange(2 * MIB)


SUMS = {  # what a reader takes of it, and what that is; what it needs
    "model": (model, lambda one: float(one.weights.sum()), MIB * (MIB - 1) / 2, "numpy"),
    "masked": (masked, lambda one: float(one.sum()), MIB * (MIB - 2) / 4, "numpy"),
    "frame": (frame, lambda one: float(one["a"].sum() + one["b"].sum()), 0.75 * MIB * (MIB - 1), "pandas"),
    "sparse": (sparse, lambda one: float(one.sum()), float(MIB), "sparse"),
    "tensor": (tensor, lambda one: float(one.sum()), MIB * (2 * MIB - 1.0), "torch"),
}


@pytest.mark.parametrize("kind", SUMS)
def test_large_frames_of_any_value(dask, local, kind):
    """Two workers read it through the store, and the client does where Dask knows that it is large."""
    make, take, wanted, needs = SUMS[kind]
    module(needs)
    before = dask.counts()
    made, readers = dask.read_by(make, {1: take, 2: take})
    assert dask.client.gather(readers) == [wanted, wanted]
    told = dask.since(before)
    assert told["put"] >= 1 and told["arrived"] == 2 * told["put"] and told["as bytes"] == 0, told
    before = sarissa.dask._store.counts["arrived"]
    assert take(made.result()) == wanted
    if kind in ("frame", "masked"):  # Dask's scheduler does not know the size of the others
        assert sarissa.dask._store.counts["arrived"] > before
    del made, readers
    gc.collect()
    until(lambda: not objects(local), lambda: objects(local))


def test_a_frame_may_be_written(dask):
    """As without the plugin, and the sender's is as it was."""
    module("pandas")

    def change(one):
        one.loc[:, "a"] += 1
        return int(one["a"].iloc[0])
    made, readers = dask.read_by(frame, {1: change, 2: change})
    assert dask.client.gather(readers) == [1, 1]
    assert dask.submit(lambda one: int(one["a"].iloc[0]), made, node=0).result() == 0


def test_scatter_of_a_frame(dask):
    module("pandas")
    before = dask.counts()
    future = dask.client.scatter(frame(), broadcast=True)
    assert len(dask.client.who_has(future)[future.key]) == NODES
    assert dask.since(before)["arrived"] >= NODES
    assert dask.submit(lambda one: float(one["b"].sum()), future, node=3).result() == 0.25 * MIB * (MIB - 1)


def test_one_reader_gets_bytes(dask):
    """Each block of an all-to-all has one, and the store would only be a detour."""
    before = dask.counts()
    blocks = [dask.submit(numpy.full, MIB // 4, float(i), node=i % NODES) for i in range(NODES * NODES)]
    sums = [dask.submit(lambda *a: sum(float(one[0]) for one in a), *blocks[node * NODES:(node + 1) * NODES],
                        node=node) for node in range(NODES)]
    assert sum(dask.client.gather(sums)) == sum(range(NODES * NODES))
    assert set(dask.since(before).values()) == {0}


def test_a_shuffle_of_frames(dask):
    """Dask's own, between workers: P2P in Dask of today."""
    module("pandas")
    frames = module("dask.dataframe")
    data = frames.from_pandas(frame(), npartitions=8)
    assert int(data.shuffle("a", npartitions=8)["a"].sum().compute()) == MIB * (MIB - 1) // 2


def test_what_is_written_to_disk(local, tmp_path, monkeypatch):
    """Arrays that came through the store are views of it; a worker that needs room writes them to disk."""
    for key, value in (("TARGET", "0.1"), ("SPILL", "0.2"), ("PAUSE", "False"), ("TERMINATE", "False")):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__WORKER__MEMORY__{key}", value)
    with plugged(local, tmp_path, memory="400MiB") as dask:
        made = [dask.submit(numpy.full, MIB, float(i), node=0) for i in range(12)]  # 96 MiB
        kept = [dask.submit(lambda one: one, one, node=node) for node in (1, 2) for one in made]
        distributed.wait(kept)
        assert dask.counts()["arrived"] > 0

        def on_disk(dask_worker):
            return len(dask_worker.data.disk)
        assert all(count > 0 for count in dask.client.run(on_disk, workers=[dask.address[1], dask.address[2]]).values())
        sums = [dask.submit(lambda one: float(one[7]), one, node=3) for one in kept]
        assert dask.client.gather(sums) == 2 * [float(i) for i in range(12)]
        del made, kept, sums
        gc.collect()
        until(lambda: not objects(local), lambda: objects(local))


def test_workers_that_come_and_go(local, tmp_path):
    """As with adaptive scaling: who comes takes part, who is retired leaves its arrays to others, who is killed is
    replaced."""
    with plugged(local, tmp_path) as dask:
        dask.worker(local.socket[1], 7)
        until(lambda: len(dask.client.nthreads()) == NODES + 1)
        dask.learn()
        before = dask.counts()
        first = lambda one: float(one[0])  # noqa: E731
        pairs = [dask.read_by(functools.partial(numpy.full, MIB, float(i)), {7: first, 2: first}, node=3)
                 for i in range(4)]
        made = [one for one, _ in pairs]
        assert [dask.client.gather(readers) for _, readers in pairs] == [[float(i)] * 2 for i in range(4)]
        assert dask.since(before)["arrived"] > 0  # a connection that is new sends the first values as bytes
        dask.client.retire_workers([dask.address[3]])
        dask.children[2].send_signal(signal.SIGKILL)  # the worker of node 1
        assert [float(one.result()[0]) for one in made] == [0.0, 1.0, 2.0, 3.0]
        readers = [dask.submit(lambda one: float(one[-1]), one, node=node) for one in made for node in (0, 2)]
        assert dask.client.gather(readers) == [float(i) for i in range(4) for _ in range(2)]
