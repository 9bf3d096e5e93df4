# SPDX-License-Identifier: BSD-3-Clause
"""Watches of a name prefix, blocking and with asyncio, and the examples of all docstrings."""

import asyncio
import doctest
import threading
import time

import numpy
import pytest
import sarissa
import sarissa.aio

SECONDS = 60


def told(event):
    return event.kind, event.name, event.size


def test_a_watch_tells_what_becomes_of_objects(nodes):
    nodes[1].put("watched/there", b"there")
    nodes[1].put("other/there", b"not watched")
    with nodes[0].watch("watched/") as watch:
        assert told(watch.get(SECONDS)) == ("complete", "watched/there", 5)
        with nodes[2].create("watched/growing", 1 << 20) as writer:
            assert told(watch.get(SECONDS)) == ("appeared", "watched/growing", 1 << 20)
            writer.write(bytes(1 << 20))
        event = next(watch)
        assert told(event) == ("complete", "watched/growing", 1 << 20)
        assert event.id == sarissa.id_of("watched/growing")
        nodes[3].delete("watched/growing")
        assert told(next(iter(watch)))[:2] == ("gone", "watched/growing")
        with pytest.raises(sarissa.TimedOut, match="wait longer"):
            watch.get(0.02)
        with pytest.raises(sarissa.TimedOut):
            watch.get(0)
        with pytest.raises(ValueError, match="-1"):
            watch.get(-1)
    with pytest.raises(StopIteration):
        next(watch)
    with pytest.raises(ValueError, match="closed"):
        watch.get()
    for name in ("watched/there", "other/there"):
        nodes[0].delete(name)


def test_what_a_watch_refuses(node):
    with pytest.raises(sarissa.NameTooLong):
        node.watch("n" * 256)
    with pytest.raises(TypeError):
        node.watch(b"bytes")
    with pytest.raises(ValueError, match="no UTF-8"):
        node.watch("\ud800")
    watches = [node.watch("none/") for _ in range(64)]
    with pytest.raises(sarissa.StoreFull, match="watch"):
        node.watch("none/").get(SECONDS)
    del watches


def test_the_end_of_a_node_ends_its_watches(local):
    node, ends = local.open(), []

    def wait():
        try:
            node.watch("none/").get()
        except sarissa.Closed as error:
            ends.append(error)
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.02)
    node.close()
    thread.join(SECONDS)
    assert len(ends) == 1
    with pytest.raises(sarissa.Closed):
        node.watch()


def test_async_for(local, nodes):
    async def main():
        async with sarissa.aio.open(local.socket[1]) as node:
            got, puts = [], [node.put(f"async/{i}", b"x" * i) for i in range(1, 51)]
            await asyncio.gather(*puts)
            async for event in node.watch("async/"):
                got.append(event)
                if len(got) == 50:
                    await asyncio.gather(*[node.delete(f"async/{i}") for i in range(1, 51)])
                if len(got) == 100:
                    break
            assert {told(event) for event in got[:50]} == {("complete", f"async/{i}", i) for i in range(1, 51)}
            assert {event.kind for event in got[50:]} == {"gone"}
            watch = node.watch("async/")
            ending = asyncio.ensure_future(watch.__anext__())
            await asyncio.sleep(0.02)
            ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending
            watch = node.watch("async/")
            ending = asyncio.ensure_future(watch.__anext__())
            await asyncio.sleep(0.02)
            node.node.close()
            with pytest.raises(sarissa.Closed):
                await ending
    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_the_examples_of_docstrings(local, monkeypatch):
    monkeypatch.setenv("SARISSA_SOCKET", local.socket[0])
    with local.open() as node:
        names = {"node": node, "numpy": numpy, "sarissa": sarissa}
        modules = (sarissa, sarissa._node, sarissa._leases, sarissa._streams, sarissa.aio,
                   sarissa._cluster, sarissa._ranks.communicator, sarissa._futures, sarissa._refs)
        for module in modules:
            done = doctest.testmod(module, extraglobs=names)
            assert done.attempted > 0 and done.failed == 0, module.__name__
            for info in node.ls():
                node.delete(info.id, raw=True)
