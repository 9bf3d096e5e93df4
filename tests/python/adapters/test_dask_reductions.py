# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.dask.reductions(): dask.array's sums, means and extremes as reduces of the store, with the results that
Dask has, also where a store is too small or a worker dies."""

import os
import signal
import time

import numpy
import pytest
import sarissa.dask
from conftest import Local
from dask import array as da, config
from dask_cluster import dask, plugged, until  # noqa: F401  (a fixture)
from test_dask import objects

MIB = 1 << 20
CHUNKS = (2, 512, 512)  # of float64: a result of one axis has chunks of 2 MiB


def data(dtype="f8", shape=(8, 512, 1024)):
    return da.arange(numpy.prod(shape), chunks=-1, dtype=dtype).reshape(shape).rechunk(CHUNKS)


def reduced(array):
    """Whether a reduce of the store makes it."""
    return any(str(name).startswith("sarissa-") for name in array.dask.layers)


@pytest.mark.parametrize("op", ["sum", "mean", "min", "max"])
@pytest.mark.parametrize("how", [{"axis": 0}, {"axis": -3, "keepdims": True}])
def test_large_results(dask, local, op, how):
    array = data()
    with sarissa.dask.reductions():
        ours = getattr(array, op)(**how)
    own = getattr(array, op)(**how)
    assert reduced(ours) and not reduced(own)
    assert (ours.shape, ours.chunks, ours.dtype) == (own.shape, own.chunks, own.dtype)
    plain = numpy.arange(array.size, dtype="f8").reshape(array.shape)
    assert numpy.allclose(ours.compute(), getattr(plain, op)(**how))
    until(lambda: not objects(local), lambda: objects(local))


def test_other_types_and_products(dask):
    array = data("i4", (4, 512, 1024)) % 3 + 1
    with sarissa.dask.reductions():
        ours = [array.sum(axis=0), array.prod(axis=0), array.mean(axis=0), da.nansum(array, axis=0)]
    own = [array.sum(axis=0), array.prod(axis=0), array.mean(axis=0), da.nansum(array, axis=0)]
    assert all(map(reduced, ours))
    results = [dask.client.gather(dask.client.compute(arrays)) for arrays in (ours, own)]
    for one, other in zip(*results):
        assert one.dtype == other.dtype and (one == other).all()


def test_a_nan_wins(dask):
    array = data()
    array = da.where(array == 5, numpy.nan, array)
    with sarissa.dask.reductions():
        ours = array.max(axis=0)
    result = ours.compute()
    assert numpy.isnan(result.flat[5]) and numpy.isnan(result).sum() == 1


def test_what_is_left_to_dask():
    """Small results, other functions, objects, axes of one chunk, and what is built outside."""
    array = data()
    small = da.ones((64, 64), chunks=8)
    with sarissa.dask.reductions():
        left = [array.sum(), array.std(axis=0), array.argmax(axis=0), array.cumsum(axis=0), small.sum(axis=0),
                array.rechunk((8, 512, 512)).sum(axis=0), array.astype("c16").sum(axis=0)]
        with pytest.raises(Exception, match="(?i)axis"):
            array.sum(axis=7)
    assert not any(map(reduced, [*left, array.sum(axis=0)]))


def test_without_a_cluster():
    """A graph that is computed by threads alone gives the same."""
    with sarissa.dask.reductions():
        ours = data().sum(axis=0)
    assert reduced(ours)
    with config.set(scheduler="threads"):
        assert ours.compute()[0, 0] == sum(range(0, 8 * 512 * 1024, 512 * 1024))


def test_a_store_that_is_too_small(tmp_path):
    """512 MiB of sources in three stores of 64 MiB: those that find no room come as bytes."""
    small = Local(3, f"python-small-{os.getpid()}", 64)
    try:
        with plugged(small, tmp_path) as dask:
            array = ones(64)
            with sarissa.dask.reductions():
                total = array.sum(axis=0)
            assert reduced(total) and (total.compute() == 64).all()
            assert dask.counts()["not put"] > 0
            until(lambda: not objects(small), lambda: objects(small))
    finally:
        small.run("down")


def ones(count):
    return da.ones((count, MIB), chunks=(1, MIB))


def test_a_worker_that_dies_meanwhile(dask):
    """The last test of this cluster. Its tasks are done again elsewhere."""
    def slow(block):
        time.sleep(0.2)
        return block
    array = ones(24).map_blocks(slow, dtype="f8")
    with sarissa.dask.reductions():
        total = array.sum(axis=0)
    future = dask.client.compute(total)
    until(lambda: sum(len(keys) for keys in dask.client.has_what().values()) > 2)
    dask.children[4].send_signal(signal.SIGKILL)
    assert (future.result(timeout=60) == 24).all()
