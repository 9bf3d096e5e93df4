# SPDX-License-Identifier: BSD-3-Clause
"""The package for asyncio: thousands of operations on one thread, ends of tasks, ends of nodes."""

import asyncio
import gc
import threading

import numpy
import pytest
import sarissa
import sarissa.aio

MIB = 1 << 20


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def test_a_thousand_gets_wait_on_one_thread(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            gets = [asyncio.ensure_future(node.get(f"many-{i}")) for i in range(1000)]
            await asyncio.sleep(0)
            before = threading.active_count()
            await asyncio.gather(*[node.put(f"many-{i}", numpy.full(3, i)) for i in range(500)])
            await asyncio.get_running_loop().run_in_executor(
                None, lambda: [nodes[0].put(f"many-{i}", numpy.full(3, i)) for i in range(500, 1000)])
            got = await asyncio.gather(*gets)
            assert [one.tolist() for one in got] == [[i] * 3 for i in range(1000)]
            assert before == 1
            del got, gets
            await asyncio.gather(*[node.delete(f"many-{i}") for i in range(1000)])
    run(main())


def test_calls_answer_as_the_blocking_ones(local):
    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            array = numpy.arange(6.0).reshape(2, 3)
            await node.put("array", array)
            await node.put("array", array)
            assert (await node.get("array")).tolist() == array.tolist()
            assert bytes(await node.get("array", raw=True)) == array.tobytes()
            assert (await node.get_array("array", "f64", (3, 2))).shape == (3, 2)
            assert (await node.info("array")).size == 48
            with pytest.raises(sarissa.Exists, match=r"not as an array of <f8, shape \(6,\)"):
                await node.put("array", array.ravel())
            with pytest.raises(sarissa.Exists):
                await node.put("array", b"other")
            with pytest.raises(sarissa.NotFound, match="'nobody'"):
                await node.get("nobody", timeout=0)
            with pytest.raises(sarissa.TimedOut, match="'nobody'"):
                await node.get("nobody", timeout=0.02)
            with pytest.raises(ValueError):
                await node.get("nobody", timeout=-1)
            with pytest.raises(TypeError):
                await node.put("objects", numpy.array([None]))
            await node.delete("array")
            with pytest.raises(sarissa.NotFound):
                await node.info("array")
    run(main())


def test_collectives(local):
    async def main():
        opened = [sarissa.aio.open(path) for path in local.socket]
        names = [f"aio/{rank}" for rank in range(4)]
        totals = await asyncio.gather(*[node.allreduce("aio", names, array=numpy.full(5, rank, "i4"), rank=rank)
                                        for rank, node in enumerate(opened)])
        assert [total.tolist() for total in totals] == [[6] * 5] * 4
        await opened[0].reduce("aio max", names, "max", dtype="i32")
        assert len(await opened[0].reduce_sources("aio max")) == 4
        await opened[0].reduce("aio some", [*names, "never"], dtype="i32", min=3, deadline=0, timeout=60)
        assert len(await opened[0].reduce_sources("aio some")) == 4
        await opened[0].broadcast("aio max")
        assert (await opened[0].info("aio max")).copies == 4
        await opened[1].put("bytes", b"bytes")
        await opened[1].put("array", numpy.arange(3))
        got = await opened[2].gather(["bytes", "array"])
        assert got[0] == b"bytes" and got[1].tolist() == [0, 1, 2]
        del totals, got
        await asyncio.gather(*[opened[3].delete(name) for name in ("aio", "aio max", "aio some", "bytes", "array", *names)])
        for node in opened:
            node.close()
    run(main())


def test_pieces_come_as_they_are_written(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[2]) as node:
            with nodes[0].create("growing", 6 * MIB) as writer:
                got, pieces = b"", node.pieces("growing")
                writer.write(b"a" * 3 * MIB)
                writer.flush()
                while len(got) < 2 * MIB:  # the last chunk that is not full comes with the rest
                    got += bytes(await anext_of(pieces))
                writer.write(b"b" * 3 * MIB)
            async for piece in pieces:
                got += bytes(piece)
            assert got == b"a" * 3 * MIB + b"b" * 3 * MIB
        nodes[0].delete("growing")
    run(main())


def anext_of(iterator):
    return iterator.__anext__()  # anext() is of Python 3.10


def test_a_cancelled_task_leaves_nothing(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            tasks = [asyncio.ensure_future(node.get(f"never-{i}")) for i in range(100)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(node.get("never"), 0.02)
            await node.put("there", b"x")
            task = asyncio.ensure_future(node.get("there"))
            await asyncio.sleep(0)
            task.cancel()
            assert await node.get("there") == b"x"
            while node._waiting:
                await asyncio.sleep(0.001)
            gc.collect()
            assert len([await node.get("there", raw=True) for _ in range(1024)]) == 1024  # all pins
            await node.delete("there")
    run(main())


def test_close_ends_tasks(local):
    async def main():
        node = sarissa.aio.open(local.socket[0])
        tasks = [asyncio.ensure_future(node.get("never")) for _ in range(3)]
        await asyncio.sleep(0)
        node.close()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [sarissa.Closed] * 3
        with pytest.raises(sarissa.Closed):
            await node.get("never")
        node.close()
    run(main())


def test_more_than_the_queue_holds_wait(local, monkeypatch):
    monkeypatch.setattr(sarissa.aio, "CAPACITY", 10)

    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            await asyncio.gather(*[node.put(f"turn-{i}", b"x") for i in range(100)])
            assert await node.gather([f"turn-{i}" for i in range(5)]) == [b"x"] * 5
            await asyncio.gather(*[node.delete(f"turn-{i}") for i in range(100)])
            with pytest.raises(sarissa.Busy):
                await node.gather([f"turn-{i}" for i in range(50)], timeout=0)
    run(main())
