# SPDX-License-Identifier: BSD-3-Clause
"""A wait says after five seconds, once, what it waits for: on each way of waiting, in each thread, and also when the
node itself has gone."""

import asyncio
import os
import threading
import warnings

import pytest
import sarissa
import sarissa.aio
from conftest import Local

SHORT_S = 0.3  # in place of the five seconds, so that the tests need not wait


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for module in (sarissa._patience, sarissa.aio):
        monkeypatch.setattr(module, "AFTER_S", SHORT_S)


@pytest.fixture
def said(monkeypatch):
    """The warnings, from whatever thread, as they come."""
    found, come = [], threading.Event()

    def show(message, category, filename, lineno, file=None, line=None):
        found.append((category, str(message), filename))
        come.set()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr(warnings, "showwarning", show)
        found_and_event = found, come
        yield found_and_event


WAYS = {
    "get": lambda node: node.get("never", timeout=5), "reader": lambda node: node.reader("never", timeout=5),
    "gather": lambda node: node.gather(["there", "never"], timeout=5),
    "get_array": lambda node: node.get_array("never", "f4", timeout=5),
    "allreduce": lambda node: node.allreduce("never", ["there", "lacking"], dtype="u1", timeout=5),
    "broadcast": lambda node: node.broadcast("never", timeout=5),
}


def run_in(thread, call):
    """In the main thread, or in another one."""
    if thread == "main":
        call()
    else:
        other = threading.Thread(target=call)
        other.start()
        other.join(60)


@pytest.mark.parametrize("thread", ["main", "another"])
@pytest.mark.parametrize("way", WAYS)
def test_waits_say_what_for(node, said, way, thread):
    found, come = said
    node.put("there", b"x")

    def release():
        assert come.wait(30), "no warning"
        node.delete("never") if way == "allreduce" else node.put("never", b"xxxx")

    def wait():
        try:
            WAYS[way](node)
        except sarissa.Error as error:
            assert way == "allreduce", error
    helper = threading.Thread(target=release)
    helper.start()
    run_in(thread, wait)
    helper.join(60)
    assert len(found) == 1, found
    category, text, filename = found[0]
    assert category is sarissa.WaitWarning and filename == __file__
    wanted = "1 of 2 sources of the reduce is missing" if way == "allreduce" else "'never': nobody has put it"
    assert text.startswith("waiting for ") and wanted in text and "timeout=" not in text
    for name in ("there", "never"):
        try:
            node.delete(name)
        except sarissa.NotFound:
            pass


def test_each_wait_says_it(node, said):
    found, _ = said
    for _ in range(2):  # at one place of the program
        with pytest.raises(sarissa.TimedOut):
            node.get("never", timeout=1.5)
    assert len(found) == 2


def test_short_waits_say_nothing(node, said):
    with pytest.raises(sarissa.TimedOut):
        node.get("never", timeout=0.1)
    node.put("there", b"x")
    node.get("there")
    node.delete("there")
    assert not said[0]


def test_asyncio(local, nodes, said):
    found, come = said

    async def main():
        async with sarissa.aio.open(local.socket[0]) as node:
            gets = [asyncio.ensure_future(node.get(f"never/{number}")) for number in range(5)]
            while len(node._waits) < 5:
                await asyncio.sleep(0)
            for ticket, wait in node._waits.items():  # as on a machine with nothing else to do
                node._waits[ticket] = wait._replace(since=next(iter(node._waits.values())).since)
            await asyncio.get_running_loop().run_in_executor(None, come.wait, 30)
            assert len(found) == 1
            text = found[0][1]
            assert "'never/0': nobody has put it; 'never/1'" in text and "and 2 more" in text and "timeout=" in text
            for number in range(5):
                nodes[1].put(f"never/{number}", b"x")
            assert await asyncio.gather(*gets) == [b"x"] * 5
    asyncio.run(main())
    assert len(found) == 1
    for number in range(5):
        nodes[1].delete(f"never/{number}")


@pytest.mark.parametrize("thread", ["main", "another"])
def test_a_wait_whose_node_dies(said, thread):
    """Both processes of the node are killed; the get goes on when they are there again."""
    found, come = said
    cluster = Local(nodes=1, name=f"python-dies-{os.getpid()}")
    try:
        node, got = cluster.open(), []

        def die():
            cluster.run("kill", "0")
            assert come.wait(30), "no word"
            cluster.run("start", "0")
            with cluster.open() as again:
                again.put("never", b"x")
        helper = threading.Thread(target=die)
        helper.start()
        waiter = threading.Thread(target=lambda: got.append(bytes(node.get("never", timeout=60))))
        if thread == "main":
            waiter.run()
        else:
            waiter.start()
            waiter.join(60)
        helper.join(60)
        assert got == [b"x"]
        assert any("has gone: start it again" in text for _, text, _ in found), found
    finally:
        cluster.run("down")


@pytest.mark.parametrize("thread", ["main", "another"])
def test_as_an_exception(node, said, thread):
    warnings.simplefilter("error", sarissa.WaitWarning)
    ends = []

    def wait():
        try:
            node.get("never", timeout=30)
        except Exception as error:
            ends.append(error)
    run_in(thread, wait)
    assert [type(one) for one in ends] == [sarissa.WaitWarning] and "nobody has put it" in str(ends[0])


def test_as_an_exception_in_asyncio(local, said):
    warnings.simplefilter("error", sarissa.WaitWarning)

    async def main():
        lost = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
        async with sarissa.aio.open(local.socket[0]) as node:
            ends = await asyncio.wait_for(asyncio.gather(
                *[node.get(f"never/{number}", timeout=30) for number in range(5)], return_exceptions=True), 20)
            assert {type(one) for one in ends} == {sarissa.WaitWarning} and "nobody has put it" in str(ends[4])
            await node.put("never/0", b"x")
            assert await node.get("never/0", timeout=30) == b"x"
            await node.delete("never/0")
            while node._waiting:  # the operations have ended
                await asyncio.sleep(0.01)
        return lost
    assert asyncio.run(main()) == []
