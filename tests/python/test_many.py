# SPDX-License-Identifier: BSD-3-Clause
"""More views and writers in one process than one connection has: no call notices."""

import asyncio
import gc
import threading

import numpy
import pytest
import sarissa
import sarissa.aio

COUNT = 2500


@pytest.fixture(scope="module")
def names(local):
    made = [f"many/{number}" for number in range(COUNT)]

    async def put():
        async with sarissa.aio.open(local.socket[0]) as node:
            await asyncio.gather(*[node.put(name, name.encode() * 50) for name in made])

    async def delete():
        async with sarissa.aio.open(local.socket[0]) as node:
            await asyncio.gather(*[node.delete(name, raw=True) for name in made])
    asyncio.run(put())
    yield made
    asyncio.run(delete())


def right(got, names):
    return len(got) == len(names) and all(one == name.encode() * 50 for one, name in zip(got, names))


@pytest.mark.parametrize("place", [0, 1])
def test_a_gather(local, names, place):
    with local.open(place) as node:
        got = node.gather(names, timeout=60)
        assert right(got, names)
        again = node.gather(names[:700], timeout=60)
        assert right(again, names[:700])
        with pytest.raises(sarissa.NotFound):
            node.gather([*names, "nobody"], timeout=0)


def test_gets_and_all_else_beside_them(local, names):
    with local.open() as node, node.lease() as lease:
        got = [node.get(name, timeout=60) for name in names]
        assert right(got, names)
        node.put("many more", numpy.arange(100_000))
        writers = [lease.create(f"writer/{number}", 100) for number in range(1100)]
        for writer in writers:
            writer.write(b"x" * 100)
            writer.seal()
        assert node.info("writer/1099").leases == 1
        with node.reader("many more", timeout=60) as reader:
            assert len(reader.read()) == 800_000
        assert node.get_tensor("many more").shape == (100_000,)
        assert node.get_array("many more", "u1").nbytes == 800_000
        node.put("part", numpy.ones(3))
        assert node.allreduce("all of it", ["part"], dtype="f64", timeout=60).tolist() == [1, 1, 1]
        for name in ("many more", "part", "all of it"):
            node.delete(name)
        del got
        gc.collect()
        assert len(node.gather(names[:10])) == 10


def test_asyncio(local, names):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            got = await asyncio.wait_for(asyncio.gather(*[node.get(name) for name in names]), 60)
            assert right(got, names)
            more = await asyncio.wait_for(node.gather(names), 60)
            assert right(more, names)
            await node.put("many more", b"x" * (5 << 20))
            pieces = [bytes(piece) async for piece in node.pieces("many more", timeout=60)]
            assert b"".join(pieces) == b"x" * (5 << 20)
            del got, more
            gc.collect()
            assert (await node.get("many more"))[0] == ord("x")
            await node.delete("many more")
            assert len(node._lines) <= 6
    asyncio.run(main())


def test_results_of_groups(local):
    with local.open() as node:
        group = node.create_group("many", "i4", 1)
        with group.join() as member:
            kept = []
            for number in range(1100):
                member.push(numpy.array([number], "i4"))
                kept.append(member.pull(timeout=60))
            assert [int(one.array[0]) for one in kept] == list(range(1100))
        group.remove()


def waits(node, count, ends):
    """So many threads that wait for an object that nobody has put, when all of them do."""
    def wait():
        try:
            ends.append(bytes(node.get("late", timeout=120)))
        except BaseException as error:
            ends.append(error)
    begun = [threading.Thread(target=wait, daemon=True) for _ in range(count)]
    for thread in begun:
        thread.start()
    while sum(one.asked for one in node._connections._all()) + len(ends) < count:
        pass
    return begun


@pytest.mark.parametrize("held, waiting", [(0, 1100), (990, 80)])
def test_waits_take_room_as_well(local, names, held, waiting):
    ends = []
    with local.open() as node, local.open() as other:
        views = [node.get(name, timeout=60) for name in names[:held]]
        begun = waits(node, waiting, ends)
        other.put("late", b"x")
        for thread in begun:
            thread.join(60)
        assert [one for one in ends if one != b"x"] == [] and len(ends) == waiting
        assert sum(one.asked for one in node._connections._all()) == 0
        other.delete("late")
        del views


def test_close_ends_waits_of_all_connections(local, names):
    ends = []
    node = local.open()
    held = [node.get(names[0]) for _ in range(1000)]
    begun = waits(node, 1, ends)
    more = node.gather([names[0]] * 2500)
    node.close()
    begun[0].join(60)
    assert len(ends) == 1 and isinstance(ends[0], sarissa.Closed)
    del held, more
