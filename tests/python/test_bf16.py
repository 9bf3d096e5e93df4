# SPDX-License-Identifier: BSD-3-Clause
"""bf16, a type that numpy has only with ml_dtypes: arrays, sums and groups of it come as Tensors."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import sarissa
import sarissa.aio
from sarissa._arrays import Meaning

ONE, TWO, THREE = 0x3F80, 0x4000, 0x4040


def tensor(node, name, bits, shape=(2, 3)):
    """One of another library, which gives it by DLPack."""
    node.put(f"bits of {name}", numpy.full(shape, bits, "u2"))
    view = node._view(f"bits of {name}", 0)
    node.delete(f"bits of {name}")
    return sarissa.Tensor(view, Meaning("bfloat16", shape))


def bits(got):
    """Those of a Tensor, read as another library would."""
    if isinstance(got, numpy.ndarray):  # ml_dtypes is here
        assert got.dtype.name == "bfloat16"
        return got.view("u2").tolist()
    assert isinstance(got, sarissa.Tensor) and got.dtype == "bfloat16"
    with pytest.raises(TypeError, match="ml_dtypes"):
        got.numpy()
    memory, code, width, shape = sarissa._sarissa.dlpack_import(got.__dlpack__())
    assert (code, width) == (4, 16) and shape == got.shape
    return numpy.frombuffer(memory, "u2").reshape(shape).tolist()


def test_put_and_get(nodes):
    nodes[0].put("bf16", tensor(nodes[0], "bf16", ONE))
    for got in (nodes[0].get("bf16"), nodes[1].get("bf16", timeout=20), nodes[1].get_tensor("bf16"),
                nodes[0].gather(["bf16"])[0], nodes[0].get_array("bf16", "bf16", (2, -1)),
                nodes[0].get_tensor("bf16", dtype="bf16", shape=(2, 3))):
        assert bits(got) == [[ONE] * 3] * 2
    nodes[0].delete("bf16")
    with nodes[0].create("bf16", dtype="bf16", shape=(3,)) as writer:
        writer.data[:] = numpy.full(3, TWO, "u2").tobytes()
    assert bits(nodes[0].get("bf16")) == [TWO] * 3
    nodes[0].delete("bf16")


def test_reduces(nodes):
    for rank, value in enumerate((ONE, TWO)):
        nodes[rank].put(f"bf16/{rank}", tensor(nodes[rank], f"bf16/{rank}", value))
    nodes[0].reduce("bf16", ["bf16/0", "bf16/1"])
    assert bits(nodes[1].get("bf16", timeout=20)) == [[THREE] * 3] * 2
    nodes[0].reduce("bf16 named", ["bf16/0", "bf16/1"], dtype="bf16")
    assert bits(nodes[1].get_array("bf16 named", "bf16", (2, 3), timeout=20)) == [[THREE] * 3] * 2
    assert bits(nodes[1].get_tensor("bf16 named", dtype="bf16", shape=(2, 3), timeout=20)) == [[THREE] * 3] * 2
    for name in ("bf16", "bf16 named", "bf16/0", "bf16/1"):
        nodes[0].delete(name)


def test_allreduces(nodes, local):
    names = ["bf16/0", "bf16/1"]
    given = [tensor(nodes[0], f"bf16/{rank}", value) for rank, value in enumerate((ONE, TWO))]
    with ThreadPoolExecutor(2) as pool:
        got = pool.map(lambda rank: nodes[rank].allreduce("bf16", names, array=given[rank], rank=rank, timeout=60), (0, 1))
        assert [bits(one) for one in got] == [[[THREE] * 3] * 2] * 2

    async def main():
        async with sarissa.aio.open(local.socket[2]) as node:
            assert bits(await node.allreduce("bf16", names, dtype="bf16", shape=(2, 3))) == [[THREE] * 3] * 2
            assert bits(await node.get_array("bf16", "bf16", (2, 3))) == [[THREE] * 3] * 2
    asyncio.run(main())
    for name in ("bf16", *names):
        nodes[0].delete(name)


def test_groups(nodes):
    group = nodes[0].create_group("bf16", "bf16", 6)
    with group.join() as member:
        member.push(tensor(nodes[0], "bf16", ONE))
        assert bits(member.pull(timeout=60).array) == [ONE] * 6
    group.remove()
