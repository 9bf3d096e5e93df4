# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce, gather and broadcast on four nodes, and waits that end."""

import asyncio
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import sarissa
import sarissa.aio

PARTS = [f"part/{rank}" for rank in range(4)]


def at_once(nodes, call):
    """call(rank, node) on each; the results by rank."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(call, range(len(nodes)), nodes))


def test_allreduce(nodes):
    arrays = [numpy.full((3, 1000), rank + 1, "f4") for rank in range(4)]
    totals = at_once(nodes, lambda rank, node: node.allreduce("total", PARTS, array=arrays[rank], rank=rank,
                                                              timeout=60))
    for total in totals:
        assert total.dtype == "f4" and total.shape == (3, 1000) and (total == 10).all()
    for arguments, shape in (({"dtype": "f32"}, (3, 1000)), ({}, (3, 1000)), ({"dtype": "f32", "shape": 3000}, (3000,))):
        assert nodes[0].allreduce("total", PARTS, timeout=60, **arguments).shape == shape  # it is there
    for name in ("total", *PARTS):
        nodes[0].delete(name)


def test_what_an_allreduce_refuses(node):
    for arguments, kind, word in (
            ({"array": numpy.zeros(3)}, ValueError, "rank"),
            ({"array": numpy.zeros(3), "rank": 4}, ValueError, "rank"),
            ({"array": b"bytes", "rank": 0}, TypeError, "dtype="),
            ({"array": numpy.zeros(3, "c16"), "rank": 0}, ValueError, "no reduce adds up"),
            ({"dtype": "f32", "op": "mean"}, ValueError, "mean")):
        with pytest.raises(kind, match=word):
            node.allreduce("total", PARTS, **arguments)
    with pytest.raises(TypeError, match="list of names"):
        node.allreduce("total", "part/0", dtype="f32")


def test_a_reduce_of_what_is_there_at_a_deadline(nodes):
    for rank in (0, 2):
        nodes[rank].put(PARTS[rank], numpy.full(5, rank + 1.0))
    nodes[0].reduce("some", PARTS, dtype="f64", min=2, deadline=0.05, timeout=60)
    assert nodes[1].get_array("some", "f64", timeout=60).tolist() == [4] * 5
    assert nodes[3].reduce_sources("some", timeout=60) == [sarissa.id_of(PARTS[rank]) for rank in (0, 2)]
    for arguments, word in (({"min": 2}, "both or none"), ({"deadline": 1}, "both or none"),
                            ({"min": -1, "deadline": 1}, "both or none"), ({"min": 1, "deadline": -1}, "deadline"),
                            ({"min": 1, "deadline": float("nan")}, "deadline"),
                            ({"min": 2**32, "deadline": 1}, "between"), ({"min": 5, "deadline": 1}, "")):
        with pytest.raises(ValueError, match=word):
            nodes[0].reduce("wrong", PARTS, dtype="f64", timeout=60, **arguments)
    with pytest.raises(sarissa.InvalidArgument, match="deadline"):
        nodes[0].reduce("wrong", PARTS, dtype="f64", min=2, deadline=60, timeout=1)
    with pytest.raises(sarissa.InvalidArgument):
        nodes[0].reduce("wrong", PARTS, dtype="f64", min=2, num=2, deadline=1, timeout=60)
    for name in ("some", PARTS[0], PARTS[2]):
        nodes[0].delete(name)


def test_gather(nodes):
    arrays = [numpy.arange(rank, rank + 5) for rank in range(3)]
    for rank in range(3):
        nodes[rank].put(PARTS[rank], arrays[rank])
    nodes[3].put(PARTS[3], b"bytes")
    got = nodes[0].gather(PARTS, timeout=60)
    assert [one.tolist() for one in got[:3]] == [array.tolist() for array in arrays] and got[3] == b"bytes"
    assert [bytes(one) for one in nodes[1].gather(PARTS, raw=True)][3] == b"bytes"
    assert nodes[2].gather(PARTS[3:])[0] == b"bytes"
    with pytest.raises(sarissa.NotFound, match="nobody|id:"):
        nodes[0].gather([*PARTS, "nobody"], timeout=0)
    with pytest.raises(sarissa.InvalidArgument):
        nodes[0].gather([])
    for name in PARTS:
        nodes[0].delete(name)


def test_broadcast(nodes):
    nodes[0].put("everywhere", numpy.arange(1000))
    nodes[0].broadcast("everywhere", [1, 3], timeout=60)
    assert nodes[0].info("everywhere").copies == 3
    assert nodes[1].get("everywhere", timeout=0).sum() == 999 * 500
    nodes[0].broadcast("everywhere", timeout=60)
    assert nodes[0].info("everywhere").copies == 4
    nodes[0].broadcast("everywhere", [])
    with pytest.raises(sarissa.InvalidArgument, match="no such node"):
        nodes[0].broadcast("everywhere", [9], timeout=60)
    for number in (-1, 2**32, 2**70):
        with pytest.raises(ValueError, match=f"no node has the number {number}"):
            nodes[0].broadcast("everywhere", [number], timeout=60)
    nodes[0].delete("everywhere")


def test_timeouts(node):
    """Negative ones are refused, huge ones are without end."""
    node.put("there", b"x")
    calls = {"get": lambda timeout: node.get("there", timeout), "gather": lambda timeout: node.gather(["there"], timeout),
             "broadcast": lambda timeout: node.broadcast("there", timeout=timeout),
             "reader": lambda timeout: node.reader("there", timeout).read(),
             "array": lambda timeout: node.get_array("there", "u1", timeout=timeout),
             "reduce": lambda timeout: (node.reduce("of it", ["there"], dtype="u1", timeout=timeout),
                                        node.reduce_sources("of it", timeout), node.delete("of it")),
             "allreduce": lambda timeout: (node.allreduce("of it", ["there"], dtype="u1", timeout=timeout),
                                           node.delete("of it"))}
    for call in calls.values():
        for timeout in (-1, float("nan"), float("-inf"), -10**400):
            with pytest.raises(ValueError, match="not negative"):
                call(timeout)
        for timeout in (None, float("inf"), 1e300, 10**400, 9223372036.8, 9.2e9):
            call(timeout)
    node.delete("there")


def test_a_signal_ends_them(node):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (lambda: node.gather(["never", "either"]), lambda: node.allreduce("never", PARTS, dtype="f32"),
                     lambda: node.get("never"), lambda: node.reader("never"), lambda: node.broadcast("never"),
                     lambda: node.get("never", timeout=3600)):
            begin = time.monotonic()
            with pytest.raises(Stop):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                call()
            assert time.monotonic() - begin < 20
    finally:
        signal.signal(signal.SIGALRM, before)
        node.delete("never")  # the reduce goes on without its requester


def test_close_ends_them(local):
    node, ends = local.open(), []

    def wait(call):
        try:
            call()
        except sarissa.Closed as error:
            ends.append(error)
    threads = [threading.Thread(target=wait, args=(call,)) for call in
               (lambda: node.gather(["never", "either"]), lambda: node.broadcast("never"),
                lambda: node.get("never"))]
    for thread in threads:
        thread.start()
    node.close()
    for thread in threads:
        thread.join(60)
    assert len(ends) == 3


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 5)])
def test_contributions_without_elements(nodes, local, shape):
    """As the last batch of a rank may have none: empty in, empty out, in every collective."""
    empty, names = numpy.zeros(shape, "f4"), PARTS[:2]
    for total in at_once(nodes[:2], lambda rank, node: node.allreduce("none", names, array=empty, rank=rank, timeout=60)):
        assert total.shape == shape and total.dtype == "f4"
    for op in sarissa.OPS:
        nodes[0].reduce(f"none {op}", names, op, timeout=60)
        got = nodes[1].get(f"none {op}", timeout=60)
        assert got.shape == shape and got.dtype == "f4"
        nodes[0].delete(f"none {op}")
    nodes[2].reduce("some of none", names, num=1, timeout=60)
    assert nodes[2].get("some of none", timeout=60).shape == shape
    assert [one.shape for one in nodes[2].gather([*names, "none"], timeout=60)] == [shape] * 3
    nodes[0].broadcast(names[0], timeout=60)
    assert nodes[3].get(names[0], timeout=0).shape == shape
    with nodes[3].reader(names[0], timeout=60) as reader:
        assert reader.read() == b""
    assert nodes[3].get_tensor(names[0]).shape == shape

    async def main():
        async with sarissa.aio.open(local.socket[3]) as node:
            assert (await node.allreduce("none", names)).shape == shape
            assert [one.shape for one in await node.gather(names)] == [shape] * 2
            assert [piece async for piece in node.pieces(names[0])] == []
            await node.reduce("none of aio", names, dtype="f4")
            assert len(await node.reduce_sources("none of aio")) == 2
    asyncio.run(main())
    for name in ("none", "some of none", "none of aio", *names):
        nodes[0].delete(name)


def test_a_group_of_no_elements_is_refused(node):
    """Its contributions would have none."""
    with pytest.raises(sarissa.InvalidArgument, match="element|count"):
        node.create_group("none", "f4", 0)
    group = node.create_group("some", "f4", 3)
    with group.join() as member:
        with pytest.raises(sarissa.InvalidArgument, match="0 bytes"):
            member.push(numpy.zeros(0, "f4"))
    group.remove()
