# SPDX-License-Identifier: BSD-3-Clause
"""put_object() and get_object(): pickles with their buffers beside them."""

import asyncio
import gc
import pickle
import struct

import numpy
import pytest
import sarissa
import sarissa.aio
from sarissa import _objects


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


VALUES = {
    "none": None, "text": "ä" * 3, "dict": {"a": [1, 2.5, b"x"], "b": (True, None)}, "own class": Point(7),
    "large bytes": b"x" * (3 << 20), "bytearray": bytearray(b"abc"),
}


@pytest.mark.parametrize("which", VALUES)
def test_what_is_put_comes_back(nodes, which):
    name = f"objects/{which}"
    nodes[0].put_object(name, VALUES[which])
    for node in nodes[:2]:
        assert node.get_object(name, timeout=30) == VALUES[which]
    nodes[0].put_object(name, VALUES[which])  # the same again
    nodes[0].delete(name)


@pytest.mark.parametrize("count", [10, 1 << 20])
def test_arrays_come_as_views_of_the_store(nodes, count):
    given = {"w": numpy.arange(count, dtype="f8"), "f": numpy.asfortranarray(numpy.ones((3, count))),
             "empty": numpy.empty((0, 3)), "strided": numpy.arange(2 * count)[::2], "n": count}
    nodes[1].put_object("objects/arrays", given)
    got = nodes[1].get_object("objects/arrays", timeout=30)
    assert list(got) == list(given) and got["n"] == count
    for key in ("w", "f", "empty", "strided"):
        assert numpy.array_equal(got[key], given[key]) and got[key].dtype == given[key].dtype
    view = nodes[1]._view("objects/arrays", 0)
    for key in ("w", "f"):
        at = got[key].__array_interface__["data"][0]
        assert view.address <= at and at + got[key].nbytes <= view.address + view.nbytes
        assert at % 64 == 0 and not got[key].flags.writeable
    far = nodes[2].get_object("objects/arrays", timeout=30)
    assert numpy.array_equal(far["w"], given["w"])
    nodes[1].put_object("objects/arrays", given)
    with pytest.raises(sarissa.Exists):
        nodes[1].put_object("objects/arrays", {**given, "n": -1})
    nodes[1].delete("objects/arrays")


def test_the_object_lives_as_long_as_a_view(local):
    node = local.open()
    node.put_object("objects/lives", [numpy.arange(1000), numpy.arange(1000)])
    second = node.get_object("objects/lives")[1][10:20]
    gc.collect()
    assert node._open().views == 1
    node.delete("objects/lives")
    assert second.tolist() == list(range(10, 20))
    del second
    gc.collect()
    assert node._open().views == 0
    node.close()


def test_asyncio(local):
    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            await node.put_object("objects/aio", {"a": numpy.arange(3)})
            got = await node.get_object("objects/aio", timeout=30)
            assert got["a"].tolist() == [0, 1, 2] and not got["a"].flags.writeable
            await node.delete("objects/aio")
    asyncio.run(main())


def test_time_to_live(node):
    node.put_object("objects/ttl", 1, ttl=100)
    assert 0 < node.info("objects/ttl").expires <= 100
    node.delete("objects/ttl")
    with pytest.raises(ValueError):
        node.put_object("objects/ttl", 1, ttl=0)
    with pytest.raises(sarissa.NotFound):
        node.info("objects/ttl")


def damaged():
    good = bytearray(_objects.parts_of([numpy.arange(100)]).layout.size)
    _objects.parts_of([numpy.arange(100)]).write(memoryview(good))

    def with_field(at, code, value):
        made = bytearray(good)
        struct.pack_into(code, made, at, value)
        return made
    return {
        "bytes": b"abc", "empty": b"", "long bytes": b"x" * 1000, "pickle": pickle.dumps([1] * 50),
        "version": with_field(8, "<I", 2), "too many buffers": with_field(12, "<I", 2**32 - 1),
        "one buffer more": with_field(12, "<I", 2), "long pickle": with_field(16, "<Q", 2**64 - 1),
        "long buffer": with_field(24, "<Q", 2**64 - 1), "short": good[:-1], "longer": good + b"x", "head": good[:24],
    }


@pytest.mark.parametrize("which", damaged())
def test_what_is_no_such_object_is_refused_by_name(node, which):
    node.put("objects/bad", damaged()[which])
    try:
        with pytest.raises(sarissa.NotPickled, match="'objects/bad'"):
            node.get_object("objects/bad")
    finally:
        node.delete("objects/bad")


def test_an_array_is_no_pickle(node):
    node.put("objects/array", numpy.arange(100))
    with pytest.raises(ValueError, match=r"put_object.*get\(\)"):
        node.get_object("objects/array")
    node.delete("objects/array")
    with pytest.raises(sarissa.NotFound):
        node.get_object("objects/array", timeout=0)
