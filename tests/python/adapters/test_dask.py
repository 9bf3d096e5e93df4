# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.dask, on Debian's Dask and on that of the engines: a worker on each of four nodes, a scheduler and a
client on node 0."""

import gc
import os
import re
import signal
import sys
import traceback
import types
import uuid
from pathlib import Path

import distributed
import numpy
import pytest
import sarissa.dask
from conftest import NODES, ROOT
from dask_cluster import dask, register, until  # noqa: F401  (a fixture)
from test_examples import start, told

MIB = 1 << 20
PATIENCE_S = 60


def objects(local):
    with local.open(0) as node:
        return [info.name for info in node.ls("dask")]


def where_is(array):
    """The line of /proc/self/maps, and whether it may be written."""
    for line in open("/proc/self/maps"):
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if begin <= array.ctypes.data < end:
            return line, array.flags.writeable, array.sum()
    return "", None, None


def test_the_example(dask, local):
    assert told(start(local, 0, "dask_array.py", dask.client.scheduler.address)) == b"sum 28.0\nmean 262144.0\n"
    assert dask.counts()["arrived"] > 0


def test_the_page(dask, local, tmp_path):
    """The programs of docs/user/dask.md, one after the other."""
    first, second = re.findall(r"```python\n(.*?)```", (ROOT / "docs/user/dask.md").read_text(), re.S)
    assert "distributed.Client()" in first and "client.register_plugin(" in first
    if not hasattr(distributed.Client, "register_plugin"):
        first = first.replace("client.register_plugin", "client.register_worker_plugin")
    program = tmp_path / "page.py"
    program.write_text("import dask.array, numpy\n" + first.replace("Client()", f"Client({dask.client.scheduler.address!r})") +
                       "gradients = dask.array.ones((4, 1 << 18), chunks=(1, 1 << 18))\n" +
                       second.replace("gradient.compute()", "print(gradient.compute().sum())") +
                       "weights = client.scatter(numpy.ones(1 << 18), broadcast=True)\n"
                       "print(client.submit(numpy.sum, weights).result())\n"
                       "print(sarissa.dask.counts(client)['arrived'] > 0)\n")
    assert told(start(local, 0, program)) == b"262144.0\n262144.0\nTrue\n"


def test_a_cluster_in_one_process_ends_without_a_line(local, tmp_path):
    """Its threads have ended when its workers leave."""
    program = tmp_path / "one.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                       "import distributed, sarissa.dask\nfrom dask_cluster import register\n"
                       "client = distributed.Client(n_workers=2, processes=False, dashboard_address=None)\n"
                       "register(client, sarissa.dask.Plugin())\n"
                       "print(client.submit(sum, [1, 2]).result())\n")
    child = start(local, 0, program)
    out, error = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, out) == (0, b"3\n") and b"schedule new futures" not in error, error.decode()


@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_between_workers(dask, local, writeable):
    """They are as the sender's. What nobody may write is mapped, without a copy."""
    def make(writeable):
        array = numpy.arange(MIB, dtype="f8").reshape(1024, 1024)
        array.flags.writeable = writeable
        return array
    before = dask.counts()
    whole, ends = dask.read_by(lambda: make(writeable), {node: where_is for node in range(1, NODES)})
    for line, written, total in dask.client.gather(ends):
        assert ("memfd" in line or writeable) and written is writeable and total == MIB * (MIB - 1) // 2, line
    assert dask.since(before) == {"put": 1, "passed on": 2, "arrived": 3, "as bytes": 0, "not put": 0}
    assert objects(local)
    del whole, ends
    gc.collect()
    until(lambda: not objects(local), lambda: objects(local))  # released by Dask, gone here


def test_what_a_message_may_hold(dask, local):
    """Bytes, records, arrays in lists, what is not contiguous, what is too small."""
    def make():
        return {"list": [numpy.full(MIB, 7, "u1"), "text"], "bytes": b"b" * MIB, "array": bytearray(MIB),
                "fortran": numpy.asfortranarray(numpy.arange(2 * MIB, dtype="u1").reshape(2, MIB)),
                "strided": numpy.arange(4 * MIB, dtype="u1")[::2], "small": numpy.arange(3),
                "dates": numpy.full(MIB // 8, "2026-11-26", "M8[D]"),
                "records": numpy.zeros(MIB // 8, [("a", "f4"), ("b", "i4")]),
                "same": numpy.broadcast_to(numpy.arange(3.0), (MIB, 3))}

    def check(got):
        wanted = make()
        for key, value in wanted.items():
            if isinstance(value, numpy.ndarray):
                assert got[key].dtype == value.dtype and (got[key] == value).all(), key
            elif key != "list":
                assert type(got[key]) is type(value) and got[key] == value, key
        assert (got["list"][0] == 7).all() and got["list"][1] == "text"
        return len(wanted)
    before = dask.counts()
    made, readers = dask.read_by(make, {2: check, 3: check}, node=1)
    assert dask.client.gather(readers) == [9, 9]
    told = dask.since(before)
    assert told["arrived"] == 14 and told["put"] == 7, told  # "same" has a small frame
    before = sarissa.dask._store.counts["arrived"]
    assert check(made.result()) == 9  # the client is on a node, and gets ids too
    assert sarissa.dask._store.counts["arrived"] - before == 7
    del made, readers
    until(lambda: not objects(local), lambda: objects(local))


def test_memory_that_no_object_is_made_of(dask, local):
    """It goes Dask's own way, between workers, to the client and in a scatter."""
    def make():
        return memoryview(b"abcdefgh" * (MIB // 4))[::2]
    before = dask.counts()
    made = dask.submit(make, node=1)
    assert bytes(made.result(PATIENCE_S)) == b"aceg" * (MIB // 4)
    assert dask.submit(lambda got: bytes(got) == b"aceg" * (MIB // 4), made, node=2).result(PATIENCE_S)
    assert dask.since(before)["not put"] >= 1
    assert bytes(dask.client.scatter(make(), hash=False).result(PATIENCE_S)) == b"aceg" * (MIB // 4)


@pytest.mark.parametrize("by", ["client", "scheduler"])
def test_scatter_with_broadcast(dask, local, monkeypatch, by):
    """The host of the client has a node, or that of the scheduler has one."""
    if by == "scheduler":
        monkeypatch.setattr(sarissa.dask, "_store", None)
    before = dask.counts()
    array = numpy.arange(MIB, dtype="f8")
    future = dask.client.scatter(array, broadcast=True)
    assert len(dask.client.who_has(future)[future.key]) == NODES
    assert dask.counts()["arrived"] - before["arrived"] == NODES
    assert f"-{os.getpid() if by == 'client' else dask.scheduler.pid}-" in " ".join(objects(local))
    ends = dask.client.gather([dask.submit(where_is, future, node=node) for node in range(NODES)])
    assert all(writeable and total == array.sum() for _, writeable, total in ends), ends
    parts = dask.client.scatter({"a": numpy.ones(10), "b": 7}, broadcast=True)  # nothing that is large
    assert parts["a"].result().sum() == 10 and parts["b"].result() == 7
    del future, parts
    until(lambda: not objects(local), lambda: objects(local))  # though the client still has the array


def test_scatter(dask, local):
    """Without a broadcast, of several things, of one array twice at once, to some workers."""
    whole = numpy.arange(MIB, dtype="f8")
    before, arrived = dict(sarissa.dask._store.counts), dask.counts()
    mixed = dask.client.scatter([whole, [numpy.full(MIB, 7, "u1"), "text"], b"b" * MIB, 7], hash=False)
    again = [dask.client.scatter(whole, hash=False, broadcast=True, asynchronous=True) for _ in range(2)]
    again = dask.client.sync(lambda: distributed.utils.All(again))
    some = dask.client.scatter(whole, workers=[dask.address[1]], broadcast=True)
    assert list(dask.client.who_has(some).values()) == [(dask.address[1],)]
    for one in (mixed[0], *again, some):
        _, writeable, total = dask.submit(where_is, one).result()
        assert writeable and total == whole.sum()
    array, text = mixed[1].result()
    assert (array == 7).all() and text == "text" and mixed[2].result() == b"b" * MIB and mixed[3].result() == 7
    assert sarissa.dask._store.counts["put"] > before["put"] and dask.since(arrived)["arrived"] >= 4 + 2 * NODES
    del mixed, again, some, one
    until(lambda: not objects(local), lambda: objects(local))


def test_replicate(dask):
    before = dask.counts()
    made = dask.submit(lambda: numpy.ones(MIB), node=3)
    distributed.wait(made)
    dask.client.replicate([made])
    assert len(dask.client.who_has(made)[made.key]) == NODES
    assert dask.counts()["arrived"] - before["arrived"] == NODES - 1


def test_reduces(dask, local):
    futures = [dask.submit(lambda i=i: numpy.full((4, MIB // 8), i, "f8"), node=i % NODES) for i in range(6)]
    total = sarissa.dask.reduce(futures)
    largest = sarissa.dask.reduce(futures, "max")
    assert (total.result() == 15).all() and total.result().shape == (4, MIB // 8)
    assert largest.result().max() == 5
    totals = sarissa.dask.allreduce(futures[:NODES])
    assert [int(one.result()[0, 0]) for one in totals] == [6] * NODES
    del futures, total, largest, totals
    until(lambda: not objects(local), lambda: objects(local))


def test_a_reduce_begins_when_the_results_are_sources(dask, local):
    """The last ones wait for a thread. A reduce that begins without them may send two sums over a link."""
    futures = [dask.submit(lambda: numpy.ones(MIB // 2), node=i % NODES) for i in range(2 * NODES)]
    distributed.wait(futures)
    gate = uuid.uuid4().hex
    busy = [dask.submit(lambda: distributed.Event(gate).wait(), node=NODES - 1) for _ in range(2)]
    total = sarissa.dask.reduce(futures)
    until(lambda: len([name for name in objects(local) if name.count("/") == 2]) >= 2 * NODES - 2)
    begun = [name for name in objects(local) if name.startswith("dask-reduce/") and name.count("/") == 1]
    distributed.Event(gate, client=dask.client).set()
    assert (total.result() == len(futures)).all() and distributed.wait(busy)
    assert not begun


def reducing(dask_worker):
    """How many threads wait for the result of a reduce."""
    return sum(frame.f_code.co_name == "result_of" for top in sys._current_frames().values()
               for frame, _ in traceback.walk_stack(top))


def test_a_reduce_that_nobody_wants_ends(dask, local):
    """Released, or without a source that was cancelled: it leaves neither a thread nor an object."""
    go = distributed.Event("go")

    def late():
        distributed.Event("go").wait()
        return numpy.ones(MIB // 8)
    there = dask.submit(lambda: numpy.ones(MIB // 8), node=0)
    never = dask.submit(late, node=1)

    def waiting():
        return sum(dask.client.run(reducing).values())
    for call, end in ((sarissa.dask.reduce, lambda totals: totals.clear()),
                      (sarissa.dask.allreduce, lambda totals: totals.clear()),
                      (sarissa.dask.reduce, lambda totals: dask.client.cancel([never], force=True))):
        totals = [call([there, never])]
        until(lambda: waiting() == 1, waiting)
        assert any(name.startswith("dask-reduce/") for name in objects(local))
        end(totals)
        gc.collect()
        until(lambda: waiting() == 0, waiting)
    go.set()
    assert there.result().sum() == MIB // 8
    del there, never, totals
    gc.collect()
    until(lambda: not objects(local), lambda: objects(local))


def test_a_reduce_goes_on_at_another_worker(dask, local, monkeypatch):
    """As when the one that has begun it was killed: the task comes to another one, with the same names."""
    number = uuid.uuid4()
    monkeypatch.setattr(sarissa._dask.reduces, "uuid", types.SimpleNamespace(uuid4=lambda: number))
    base = f"dask-reduce/{number.hex}"
    with local.open(1) as node:
        node.reduce(base, [f"{base}/{i}" for i in range(3)], dtype="f8", timeout=PATIENCE_S)
    futures = [dask.submit(lambda i=i: numpy.full(MIB // 8, i, "f8"), node=i) for i in range(3)]
    total = sarissa.dask.reduce(futures)
    assert (total.result() == 3).all()
    del futures, total
    gc.collect()
    until(lambda: not objects(local), lambda: objects(local))


def test_another_version_is_refused(dask):
    plugin = sarissa.dask.Plugin()
    plugin.version, plugin.name = "0.0.7", "older"
    with pytest.raises(RuntimeError, match="0.0.7.*install one version"):
        register(dask.client, plugin)
    dask.client.unregister_worker_plugin("older")


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), 1e10])
def test_a_time_that_no_lease_can_have(ttl):
    with pytest.raises(ValueError, match="ten years"):
        sarissa.dask.Plugin(ttl)


def test_objects_that_others_delete(dask, local):
    """Who has the array puts it again."""
    made = dask.submit(lambda: numpy.arange(MIB, dtype="f8"), node=0)
    first = dask.submit(lambda array: array, made, node=1)
    distributed.wait(first)
    with local.open(2) as node:
        for info in node.ls("dask/"):
            node.delete(info.id, raw=True)
    before = dask.counts()
    for got in (made, first):
        readers = dask.read_at_once(got, {node: where_is for node in (2, 3)})
        assert [one[2] for one in dask.client.gather(readers)] == 2 * [MIB * (MIB - 1) // 2]
    told = dask.since(before)
    assert told["put"] >= 1 and told["arrived"] >= 1 and told["as bytes"] == 0, told
    del made, first, got, readers
    until(lambda: not objects(local), lambda: objects(local))


def test_a_worker_without_a_node(dask, local, monkeypatch):
    """It takes part Dask's own way, and so do the others towards it."""
    dask.start("worker", None, "--scheduler-file", dask.folder / "scheduler", "--host", "127.0.0.1", "--name", 9,
               "--no-nanny", "--nthreads", 1, "--memory-limit", 0, "--local-directory", dask.folder)
    until(lambda: len(dask.client.nthreads()) == NODES + 1)
    dask.learn()
    made = dask.submit(lambda: numpy.ones(MIB), node=0)
    assert dask.submit(where_is, made, node=9).result()[2] == MIB
    back = dask.submit(lambda: numpy.full(MIB, 2.0), node=9)
    assert dask.submit(where_is, back, node=0).result()[2] == 2 * MIB
    async def relays(client, store):  # as if that worker had come just now
        return ["127.0.0.1:1"]
    for _ in range(2):
        future = dask.client.scatter(numpy.ones(MIB), broadcast=True)
        assert len(dask.client.who_has(future)[future.key]) == NODES + 1
        assert dask.submit(where_is, future, node=9).result()[2] == MIB
        monkeypatch.setattr(sarissa._dask.scheduler, "_relays", relays)
    until(lambda: f"-{os.getpid()}-" not in " ".join(objects(local)), lambda: objects(local))
    del future
    dask.children.pop().kill()
    until(lambda: len(dask.client.nthreads()) == NODES)
    log = (dask.folder / "log.worker").read_text()
    assert log.count("arrays go Dask's own way") == 1, log[-2000:]


def test_a_killed_workers_objects_go(dask, local):
    def same(array):
        return array
    kept, (got, other) = dask.read_by(lambda: numpy.ones(MIB), {0: same, 2: same}, node=3)
    distributed.wait([got, other])
    del other
    assert objects(local)
    dask.children[4].send_signal(signal.SIGKILL)
    dask.children[4].wait()
    assert got.result().sum() == MIB
    before = dask.counts()
    again = dask.read_at_once(got, {node: where_is for node in (1, 2)})
    assert [one[2] for one in dask.client.gather(again)] == [MIB, MIB]
    told = dask.since(before)  # its reader holds it
    assert told["put"] == told["as bytes"] == told["not put"] == 0 and told["passed on"] == told["arrived"] > 0, told
    del kept, got, again
    gc.collect()
    until(lambda: not objects(local), lambda: objects(local))


def test_reduces_that_fail(dask):
    """The last one: Dask's client keeps the frame that an exception was raised in, and so these futures."""
    futures = [dask.submit(lambda: numpy.ones((4, MIB // 8)), node=i) for i in range(2)]
    for wrong, how, kind, words in ((futures, {"op": "mean"}, ValueError, "mean"), ([], {}, ValueError, "1 to 1024"),
                                    (1025 * futures[:1], {}, ValueError, "in steps"), ([7], {}, TypeError, "no future"),
                                    (futures, {"timeout": -1}, ValueError, "not negative")):
        for call in (sarissa.dask.reduce, sarissa.dask.allreduce):
            with pytest.raises(kind, match=words):
                call(wrong, **how)

    def fails():
        raise KeyError("of the task")
    with pytest.raises(KeyError):
        sarissa.dask.reduce([*futures, dask.submit(fails)]).result(timeout=PATIENCE_S)
    with pytest.raises((ValueError, sarissa.Error)):
        sarissa.dask.reduce([futures[0], dask.submit(lambda: numpy.ones(3))]).result(timeout=PATIENCE_S)
    with pytest.raises(TypeError, match=r"and not str: use numpy.asarray\(value\)"):
        sarissa.dask.reduce([dask.submit(lambda: "text")]).result(timeout=PATIENCE_S)
