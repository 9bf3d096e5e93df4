# SPDX-License-Identifier: BSD-3-Clause
"""The asyncio forms at par with the blocking ones: what is missing has a name here, and a call means one thing."""

import asyncio
import inspect
import os
import threading

import numpy
import pytest
import sarissa
import sarissa.aio

# a task is a future; ranks are threads or processes; pieces() is the reader
BLOCKING_ONLY = {"get_future", "get_object_future", "put_future", "allreduce_future", "communicator", "reader"}
AIO_ONLY = {"pieces", "data"}  # data: of a blocking Writer an attribute
PAIRS = ((sarissa.Node, sarissa.aio.Node), (sarissa.Group, sarissa.aio.Group), (sarissa.Lease, sarissa.aio.Lease),
         (sarissa.GroupMember, sarissa.aio.GroupMember), (sarissa.Writer, sarissa.aio.Writer),
         (sarissa.Result, sarissa.aio.Result))


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(call):
    return [(one.name, one.default) for one in inspect.signature(call).parameters.values()]


@pytest.mark.parametrize("blocking, aio", PAIRS, ids=lambda kind: kind.__qualname__)
def test_what_one_has_the_other_has(blocking, aio):
    assert public(blocking) - public(aio) <= BLOCKING_ONLY | {"count"}  # count: of a result, whose members are asked for
    assert public(aio) - public(blocking) <= AIO_ONLY
    for name in public(blocking) & public(aio):
        ours, theirs = getattr(blocking, name), getattr(aio, name)
        if callable(ours) and callable(theirs):
            assert parameters(ours) == parameters(theirs) and theirs.__doc__, name


def test_the_modules_have_the_same_verbs():
    for name in ("open", "wait", "as_completed"):
        assert parameters(getattr(sarissa, name)) == parameters(getattr(sarissa.aio, name)), name


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def test_a_reduce_begins_and_does_not_wait(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            await node.reduce("begun", ["first", "second"], dtype="f8")
            assert await node.reduce_progress("begun") == ([], [sarissa.id_of("first"), sarissa.id_of("second")])
            await node.put("first", numpy.ones(3))
            ends = asyncio.ensure_future(node.reduce_sources("begun", timeout=60))
            await node.put("second", numpy.ones(3))
            assert await ends == [sarissa.id_of("first"), sarissa.id_of("second")]
            assert (await node.get("begun", timeout=60)).tolist() == [2, 2, 2]
            with pytest.raises(sarissa.NotFound, match="'nobody'"):
                await node.reduce_sources("nobody", timeout=0)
            for name in ("begun", "first", "second"):
                await node.delete(name)
    run(main())


def test_many_wait_for_ends_of_reduces_on_one_thread(local):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            targets = [f"end/{number}" for number in range(200)]
            for target in targets:
                await node.reduce(target, ["source of all"], dtype="f8")
            ends = [asyncio.ensure_future(node.reduce_sources(target, timeout=60)) for target in targets]
            await node.put("source of all", numpy.ones(3))
            assert await asyncio.gather(*ends) == [[sarissa.id_of("source of all")]] * 200
            await asyncio.gather(*[node.delete(name) for name in ["source of all", *targets]])
    run(main())


def test_lifetimes(local):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            await node.put("for a while", b"x", ttl=100)
            assert 0 < (await node.info("for a while")).expires <= 100
            await node.expire("for a while", None)
            assert (await node.info("for a while")).expires is None
            async with await node.lease(ttl=10) as lease:
                await lease.put("leased", b"x")
                async with await lease.create("written", 4) as writer:
                    assert await writer.write(b"abcd") == 4
                await lease.hold("for a while")
                assert [(await node.info(name)).leases for name in ("leased", "written", "for a while")] == [1, 1, 1]
                await lease.drop("for a while")
            for name in ("leased", "written", "for a while"):
                while await node.ls(name):
                    pass  # it is being deleted
    run(main())


def test_piece_by_piece(local):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            async with await node.create("array", dtype="f4", shape=(2, 3)) as writer:
                writer.array[:] = 7
            assert (await node.get("array")).tolist() == [[7] * 3] * 2
            assert (await node.get_tensor("array")).__dlpack_device__() == (1, 0)
            with pytest.raises(ZeroDivisionError):
                async with await node.create("given up", 10):
                    1 / 0
            with pytest.raises(sarissa.NotFound):
                await node.info("given up")
            strided = numpy.arange(1 << 19, dtype="i4")[::2]
            await node.put("strided", strided)
            await node.put("strided", strided)
            assert (await node.get("strided")).tolist() == strided.tolist()
            await node.put_object("object", {"large": numpy.zeros(1 << 18), "small": 1})
            assert (await node.get_object("object"))["large"].shape == (1 << 18,)
            for name in ("array", "strided", "object"):
                await node.delete(name)
    run(main())


def test_the_cluster(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            assert sorted(await node.nodes()) == sorted(nodes[1].nodes())
            nodes[0].put("held", b"x" * 100_000)
            assert await node.holders("held") == nodes[2].holders("held") == [sarissa.Holder(0, True, 100_000)]
            assert [one.name for one in await node.ls("hel")] == ["held"]
            assert await node.explain_policy("bsp") == nodes[0].explain_policy("bsp")
            assert node.address == local.socket[1]
            await node.delete("held")
            with pytest.raises(sarissa.NotFound, match="'held'"):
                await node.holders("held")
    run(main())


def test_waits(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            await node.put("done", b"x")
            assert await sarissa.aio.wait(["not yet", "done"], node=node) == (["done"], ["not yet"])
            assert await sarissa.aio.wait(["not yet", "done"], 2, 0, node) == (["done"], ["not yet"])
            task = asyncio.ensure_future(asyncio.sleep(0, 7))
            assert await sarissa.aio.wait([task], node=node) == ([task], [])
            with pytest.raises(ValueError, match="3 of 1 things"):
                await sarissa.aio.wait(["done"], 3, node=node)
            seen = []
            async for thing in sarissa.aio.as_completed(["later", sarissa.Ref("done"), task], node=node):
                seen.append(thing)
                if len(seen) == 2:
                    nodes[0].put("later", b"x")
            assert seen[2] == "later" and set(seen[:2]) == {sarissa.Ref("done"), task}
            with pytest.raises(sarissa.TimedOut, match="1 of 2 things"):
                async for _ in sarissa.aio.as_completed(["never", "done"], 0.02, node):
                    pass
            for name in ("done", "later"):
                await node.delete(name)
    run(main())


def polls():
    """Descriptors of this process that queues wait at."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += "eventpoll" in os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # that of the folder itself
            pass
    return found


def test_a_gather_of_many_opens_no_queue(local, nodes):
    names, got = [f"of many/{number}" for number in range(1400)], []
    with local.open(1) as node:
        for name in names:
            nodes[0].put(name, b"x")
        before = polls()
        waiting = threading.Thread(target=lambda: got.extend(node.gather([*names, "late"], timeout=60)))
        waiting.start()
        while sum(one.asked for one in node._connections._all()) != 401:
            pass  # the first thousand has come, and it waits for the last name
        assert polls() == before
        nodes[0].put("late", b"x")
        waiting.join(60)
        assert got == [b"x"] * 1401
        got.clear()
        for name in [*names, "late"]:
            node.delete(name)
