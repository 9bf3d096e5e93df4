# SPDX-License-Identifier: BSD-3-Clause
"""Groups with asyncio: members on four nodes and one thread, what is refused, and tasks that are
cancelled. tests/net/reduces/test_groups.py has the calls that wait."""

import array
import asyncio
import ctypes

import numpy
import pytest
import sarissa
import sarissa.aio


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


async def work(node, rounds, rank):
    """(the last total, contributors of the last round)"""
    group = await node.group("aio")
    async with await group.join() as member:
        for _ in range(rounds):
            await member.push(numpy.full(10, 1000.0 ** rank))
            result = await member.pull(timeout=60)
        assert member.clock == rounds
        return result.array[0], await result.members(), member.number


def test_members_of_a_group_share_a_thread(local):
    async def main():
        opened = [sarissa.aio.open(path) for path in local.socket]
        group = await opened[0].create_group("aio", "f64", 10, members=4, results="total")
        with pytest.raises(sarissa.Exists):
            await opened[1].create_group("aio", "f64", 10)
        ended = await asyncio.gather(*[work(node, 20, rank) for rank, node in enumerate(opened)])
        numbers = {number for _, _, number in ended}
        for total, members, _ in ended:
            assert total == 20020020020, "under bsp the last round has all"
            assert {one.member for one in members} == numbers and {one.clock for one in members} == {20}
        assert await group.policy("ssp 2") == 2
        described = await group.info()
        assert described["policy"] == "ssp 2" and described["members"] == [] and described["round"] == 20
        await group.remove()
        with pytest.raises(sarissa.NotFound):
            await opened[3].group("aio")
        for node in opened:
            node.close()
    run(main())


def test_a_task_that_is_cancelled_leaves_its_member_usable(local):
    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            group = await node.create_group("cut", "i32", 3, members=2)
            first, second = await group.join(), await group.join()
            await first.push(numpy.array([1, 2, 3], "i4"))
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(first.pull(), 0.05)
            with pytest.raises(sarissa.TimedOut):
                await first.pull(timeout=0.05)
            with pytest.raises(sarissa.Busy, match="pull first"):
                await first.push(numpy.zeros(3, "i4"))
            with pytest.raises(TypeError):
                await first.push(numpy.zeros(3))
            with pytest.raises(sarissa.Error, match="8 bytes: group cut has 3 elements"):
                await first.push(numpy.zeros(2, "i4"))
            waiting = asyncio.ensure_future(first.pull())
            await second.push(numpy.array([10, 20, 30], "i4"))
            for result in (await waiting, await second.pull()):
                assert result.array.tolist() == [11, 22, 33] and result.round == 1
            await second.leave()
            with pytest.raises(ValueError):
                await second.pull()
            joining = asyncio.ensure_future(group.join())
            await asyncio.sleep(0)
            joining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await joining
            await first.push(numpy.array([1, 1, 1], "i4"))  # nobody else is waited for
            result = await first.pull(timeout=60)
            assert result.array.tolist() == [1, 1, 1] and len(await result.members()) == 1
            await first.leave()
            await group.remove()
    run(main())


def test_a_buffer_of_numbers_is_of_the_groups_type(node):
    """Bytes may be of any."""
    ones = numpy.ones(4, "f4")
    group = node.create_group("buffers", "f32", 4)
    with group.join() as member:
        for wrong in (memoryview(numpy.ones(4, "i4")), array.array("i", [1] * 4), (ctypes.c_int * 4)(1, 1, 1, 1)):
            with pytest.raises(TypeError, match="a contribution of <i4: the group is of f32"):
                member.push(wrong)
        for none in (memoryview(numpy.ones(4, ">f4")), memoryview(numpy.ones(16, "?"))):
            with pytest.raises(ValueError, match="no reduce adds up"):
                member.push(none)
        for right in (memoryview(ones), array.array("f", [1] * 4), (ctypes.c_float * 4)(1, 1, 1, 1), ones.tobytes(),
                      memoryview(ones).cast("B"), memoryview(ones).cast("B").cast("c"), bytearray(ones.tobytes())):
            member.push(right)
            assert member.pull(timeout=60).array.tolist() == [1] * 4
    group.remove()
