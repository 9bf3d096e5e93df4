# SPDX-License-Identifier: BSD-3-Clause
"""Futures, wait(), as_completed(), and Refs."""

import concurrent.futures
import gc
import os
import pickle
import subprocess
import sys
import threading

import numpy
import pytest
import sarissa


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "sarissa-futures"]


def test_what_blocking_calls_do(nodes):
    node = nodes[0]
    late = [node.get_future(f"f/{number}") for number in range(300)]
    puts = [nodes[1].put_future(f"f/{number}", numpy.full(3, number)) for number in range(300)]
    assert [put.result(30) for put in puts] == [None] * 300
    for number, future in enumerate(late):
        got = future.result(30)
        assert got.tolist() == [number] * 3 and not got.flags.writeable
    assert node.get_future("f/1", raw=True).result(30).nbytes == 24
    total = node.allreduce_future("f/sum", ["f/1", "f/2"]).result(30)
    assert total.tolist() == [3] * 3
    node.put_object("f/object", {"a": 1})
    assert node.get_object_future("f/object").result(30) == {"a": 1}
    with pytest.raises(sarissa.NotPickled):
        node.get_object_future("f/1").result(30)
    with pytest.raises(sarissa.Exists):
        node.put_future("f/1", numpy.ones(3)).result(30)
    with pytest.raises(sarissa.TimedOut):
        node.get_future("f/nobody", timeout=0.05).result(30)
    with pytest.raises(TypeError):
        node.put_future("f/none", None)
    for name in [f"f/{number}" for number in range(300)] + ["f/sum", "f/object"]:
        node.delete(name)


def test_more_than_one_connection_has(node):
    futures = [node.get_future("f/many") for _ in range(2300)]
    node.put("f/many", b"x")
    views = [future.result(60) for future in futures]
    assert all(view == b"x" for view in views)
    node.delete("f/many")


def test_cancel(node):
    future = node.get_future("f/cancelled")
    called = threading.Event()
    future.add_done_callback(lambda _: called.set())
    assert not future.done() and future.cancel() and future.cancel() and called.wait(30)
    assert concurrent.futures.wait([future], 30).done == {future}
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    node.put("f/cancelled", b"x")
    done = node.get_future("f/cancelled")
    assert done.result(30) == b"x" and not done.cancel()
    node.delete("f/cancelled")
    while node._pump._waiting:  # the cancelled one ends
        pass
    assert sum(one.asked for one in node._connections._all()) == 0


def test_close_ends_them_and_the_thread(local):
    before = threads()
    node = local.open()
    future = node.get_future("f/never")
    assert len(threads()) == len(before) + 1
    node.close()
    with pytest.raises(sarissa.Closed):
        future.result(30)
    with pytest.raises(sarissa.Closed):
        node.get_future("f/never")
    assert threads() == before
    node = local.open()
    future = node.get_future("f/never")
    future.add_done_callback(lambda _: node.close())  # in the thread itself
    node.put("f/never", b"x")
    assert future.result(30) == b"x"
    for thread in threads():
        if thread not in before:
            thread.join(30)
            assert not thread.is_alive()
    with pytest.raises(sarissa.Closed):
        node.info("f/never")
    with local.open() as other:
        other.delete("f/never")


def test_nobody_refers_to_the_node(local):
    before = threads()
    future = local.open().get_future("f/kept")  # which keeps it
    with local.open(1) as other:
        other.put("f/kept", b"x")
        assert future.result(30) == b"x"
        other.delete("f/kept")
    gc.collect()
    for thread in threads():
        if thread not in before:
            thread.join(30)
            assert not thread.is_alive()


def test_no_view_is_kept(local):
    with local.open() as node:
        node.put("f/view", b"x" * 100)
        assert node.get_future("f/view").result(30) == b"x" * 100
        node.put_future("f/other", b"y").result(30)
        gc.collect()
        assert node._open().views == 0
        node.delete("f/view")
        node.delete("f/other")


def test_wait(nodes):
    node = nodes[0]
    node.put("w/1", b"1")
    node.put("w/2", b"2")
    names = ["w/0", "w/1", "w/2", "w/3"]
    assert sarissa.wait(names, 2, node=node) == (["w/1", "w/2"], ["w/0", "w/3"])
    assert sarissa.wait(names, 4, timeout=0, node=node) == (["w/1", "w/2"], ["w/0", "w/3"])
    assert sarissa.wait(names, 3, timeout=0.1, node=node) == (["w/1", "w/2"], ["w/0", "w/3"])
    ready, rest = sarissa.wait(names, 1, 30, node)
    assert len(ready) == 1 and sorted(ready + rest) == names
    timer = threading.Timer(0.05, nodes[1].put, ("w/3", b"3"))
    timer.start()
    ref = sarissa.Ref("w/3", node)
    assert sarissa.wait([ref, "w/0"], node=node) == ([ref], ["w/0"])
    timer.join()
    future, foreign = node.get_future("w/0"), concurrent.futures.Future()
    foreign.set_result(1)
    assert sarissa.wait([future, foreign], timeout=30) == ([foreign], [future])
    assert sarissa.wait([future, foreign], 2, timeout=0) == ([foreign], [future])
    assert not future.cancelled() and future._waiters == future._done_callbacks == []
    assert sarissa.wait([foreign, foreign], 2) == ([foreign, foreign], [])
    assert list(sarissa.as_completed([foreign, foreign])) == [foreign, foreign]
    for wrong in (0, 3):
        with pytest.raises(ValueError):
            sarissa.wait(["a", "b"], wrong, node=node)
    with pytest.raises(TypeError):
        sarissa.wait("w/1", node=node)
    future.cancel()
    for name in names[1:]:
        node.delete(name)


def test_as_completed(nodes):
    node = nodes[0]
    node.put("a/1", b"1")
    seen = []
    for name in sarissa.as_completed(["a/0", "a/1", "a/2"], timeout=30, node=node):
        seen.append(name)
        if len(seen) < 3:
            nodes[1].put(["a/2", "a/0"][len(seen) - 1], b"x")
    assert seen == ["a/1", "a/2", "a/0"]
    with pytest.raises(sarissa.TimedOut, match="1 of 2"):
        list(sarissa.as_completed(["a/1", "a/nobody"], timeout=0.1, node=node))
    first = sarissa.as_completed(["a/1", "a/nobody"], node=node)
    assert next(first) == "a/1"
    first.close()
    for number in range(3):
        node.delete(f"a/{number}")


def test_refs(local, node, monkeypatch):
    node.put("r/1", numpy.arange(3))
    node.put_object("r/2", {"a": 1})
    ref = sarissa.Ref("r/1", node)
    assert ref == sarissa.Ref("r/1") == sarissa.Ref(sarissa.id_of("r/1")) != sarissa.Ref("r/2") and ref != "r/1"
    assert len({ref, sarissa.Ref("r/1"), sarissa.Ref("r/2")}) == 2
    same = pickle.loads(pickle.dumps(ref))
    assert same == ref and same.path == local.socket[0] and eval(repr(same), {"sarissa": sarissa}).path == ref.path
    assert same.get(timeout=30).tolist() == [0, 1, 2] and same.node is ref.node is not node
    monkeypatch.setenv("SARISSA_SOCKET", local.socket[1])
    anywhere = sarissa.Ref("r/2")
    assert anywhere.get_object(timeout=30) == {"a": 1} and anywhere.node is sarissa.Ref("x").node is not ref.node
    assert sarissa.wait([anywhere, "r/nobody"]) == ([anywhere], ["r/nobody"])
    assert anywhere.get_future().result(30).nbytes == anywhere.info().size
    closed = anywhere.node
    closed.close()
    assert anywhere.get(timeout=30) and anywhere.node is not closed
    anywhere.delete()
    ref.delete()
    anywhere.node.close()
    ref.node.close()


def test_refs_and_nodes_in_other_processes(local, node):
    node.put("r/far", b"abc")
    task = ("import pickle, sys\n"
            "ref, node = pickle.load(sys.stdin.buffer)\n"
            "print(bytes(ref.get(timeout=30)), bytes(node.get('r/far', timeout=30)), node.address == sys.argv[1])\n")
    with local.open(1) as other:
        sent = pickle.dumps((sarissa.Ref("r/far"), other))
    done = subprocess.run([sys.executable, "-c", task, local.socket[1]], input=sent, stdout=subprocess.PIPE,
                          env={**os.environ, "SARISSA_SOCKET": local.socket[2]})
    assert done.stdout == b"b'abc' b'abc' True\n"
    ref = sarissa.Ref("r/far", node)
    assert ref.get() == b"abc"
    child = os.fork()
    if child == 0:
        os._exit(0 if ref.get(timeout=30) == b"abc" else 1)
    assert os.waitpid(child, 0)[1] == 0
    ref.delete()
    ref.node.close()
