# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.dask where the store is full, where a node or its control dies, under encryption, with another
version of Dask, and when it is unregistered: Dask's results come all the same, as bytes."""

import gc
import importlib
import json
import os
import signal
import threading
import time

import distributed
import distributed.comm.utils
import numpy
import pytest
import sarissa.dask
from conftest import Local
from dask_cluster import Dask, plugged, register, until
from distributed.security import Security
from test_dask import objects

protocol = importlib.import_module("distributed.protocol.serialize")
MIB = 1 << 20
BOUND_S = 20.0  # below the 30 s that a call without a time limit may take


@pytest.fixture
def small():
    """Three nodes of 64 MiB."""
    made = Local(3, f"python-small-{os.getpid()}", 64)
    yield made
    made.run("down")


@pytest.fixture
def dask(small, tmp_path):
    with plugged(small, tmp_path) as made:
        yield made


def filled(number, mib=8):
    return numpy.full(mib * MIB, number, "u1")


def as_before(local, dask):
    """Through the store, in all directions."""
    def through():
        before = dask.counts()
        made = [dask.submit(filled, node, 1, node=node) for node in range(3)]
        totals = [dask.submit(lambda *a: sum(int(one[7]) for one in a), *made, node=node) for node in range(3)]
        assert dask.client.gather(totals) == [3, 3, 3]
        return dask.since(before)["arrived"] == 6
    until(through, lambda: dask.counts())


def test_inputs_of_three_stores(small, dask):
    """200 MiB from a node of 64 MiB to one of 64 MiB, which keeps them all."""
    made = [dask.submit(filled, number, node=number % 2) for number in range(25)]
    totals = [dask.submit(lambda *a: sum(int(one[0]) + int(one[-1]) for one in a), *made, node=node)
              for node in (1, 2)]
    assert dask.client.gather(totals) == 2 * [2 * sum(range(25))]
    assert dask.counts()["arrived"] > 0
    del made, totals
    until(lambda: not objects(small), lambda: objects(small))
    as_before(small, dask)


def test_a_full_store_keeps_no_array(small, dask):
    """Those that were in a message with one that found no room, in a process that does not collect cycles."""
    dask.client.run(gc.disable)
    made = [dask.submit(filled, number, node=0) for number in range(10)]
    totals = [dask.submit(lambda *a: sum(int(one[0]) for one in a), *made, node=node) for node in (1, 2)]
    assert dask.client.gather(totals) == [45, 45] and 0 < dask.counts()["put"] < 10
    del made, totals
    until(lambda: not objects(small), lambda: objects(small))


class Server:
    def __init__(self):
        self.state = filled(9)

    def read(self):
        return self.state


def test_a_full_store_at_the_receiver(small, dask):
    """All of it is in use there: tasks, an actor's answer, which Dask asks for once, and scatters."""
    full = small.open(2)
    full.put("ballast", bytes(60 * MIB))
    before = dask.counts()
    made, sums = dask.read_by(lambda: filled(7), {node: lambda a: int(a.sum()) for node in (1, 2)})
    assert dask.client.gather(sums) == 2 * [7 * 8 * MIB]
    server = dask.client.submit(Server, actor=True, workers=[dask.address[0]]).result()
    for _ in range(2):  # the second time it is an id
        assert dask.submit(lambda one: int(one.read().result()[0]), server, node=2).result() == 9
    told = dask.since(before)
    assert told["as bytes"] == 2 and told["arrived"] == 1, told
    for how in ({"broadcast": True}, {"workers": [dask.address[2]]}, {"workers": [dask.address[2]], "direct": True}):
        future = dask.client.scatter(filled(5), hash=False, **how)
        assert dask.submit(lambda a: int(a[-1]), future, node=2).result() == 5, how
    del made, server, future
    full.delete("ballast")
    full.close()
    as_before(small, dask)


@pytest.mark.parametrize("dies", [0, 2])
def test_a_node_that_dies_meanwhile(small, dask, dies):
    """The sender's node, or the receiver's; Dask's processes live on."""
    made = [dask.submit(filled, number, node=0) for number in range(5)]
    distributed.wait(made)
    ends = [dask.submit(lambda a: (int(a[0]), int(a[-1])), one, node=node) for one in made for node in (1, 2)]
    until(lambda: objects_of(small, 1), lambda: "nothing is put")
    small.run("kill", str(dies))
    begin = time.monotonic()
    assert dask.client.gather(ends) == [(number, number) for number in range(5) for _ in range(2)]
    assert time.monotonic() - begin < BOUND_S
    again = [dask.submit(lambda a: int(a[5]), one, node=node) for one in made for node in (1, 2)]
    assert dask.client.gather(again) == [number for number in range(5) for _ in range(2)]
    small.run("start", str(dies))
    as_before(small, dask)


def objects_of(local, node):
    with local.open(node) as opened:
        return [info.name for info in opened.ls("dask")]


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("dies", [0, 2])
def test_a_control_that_does_not_answer(small, dask, dies, sign):
    as_before(small, dask)
    pid = next(row["control_pid"] for row in map(json.loads, small.run("status", "--json").splitlines())
               if row["node"] == dies)
    made = [dask.submit(filled, number, node=node) for node in range(2) for number in range(3)]
    distributed.wait(made)
    os.kill(pid, sign)
    totals = [dask.submit(lambda *a: sum(int(one[0]) + int(one[-1]) for one in a), *made, node=node)
              for node in range(3)]
    begin = time.monotonic()
    assert dask.client.gather(totals) == 3 * [12] and time.monotonic() - begin < BOUND_S
    if sign == signal.SIGSTOP:
        os.kill(pid, signal.SIGCONT)
    else:
        small.run("start", str(dies))
    as_before(small, dask)


def test_what_is_let_go_meanwhile(small, dask, monkeypatch):
    """The object is gone, and its sender has the array: its bytes. Who has neither says so at once."""
    made = dask.submit(filled, 3, node=0)
    distributed.wait(made)

    def asked(dask_worker, key, numbers):
        """As a message that comes late."""
        store = sarissa.dask._store
        ident = store.ident_of(dask_worker.data[key], 0, memoryview(dask_worker.data[key]))
        store.node.delete(ident, raw=True)
        one, other = (sarissa._dask.messages.send_bytes(it) for it in (ident, bytes(16)))
        return len(one.frames[0]), other
    assert dask.client.run(asked, key=made.key, numbers=0, workers=[dask.address[0]]).popitem()[1] == (8 * MIB, None)


def certificates(folder):
    made = Security.temporary()
    paths = {}
    for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_worker_cert), ("key", made.tls_worker_key)):
        paths[name] = folder / f"{name}.pem"
        paths[name].write_text(text)
    argv = ["--tls-ca-file", paths["ca"], "--tls-cert", paths["cert"], "--tls-key", paths["key"]]
    client = Security(tls_ca_file=str(paths["ca"]), tls_client_cert=str(paths["cert"]),
                      tls_client_key=str(paths["key"]), require_encryption=True)
    return argv, client


@pytest.mark.parametrize("in_clear", [False, True])
def test_encryption(small, tmp_path, recwarn, in_clear):
    """Arrays do not leave the encrypted connections unless one says so."""
    argv, security = certificates(tmp_path)
    sarissa._dask.messages._warned.clear()
    with plugged(small, tmp_path, tls=argv, security=security,
                 plugin={"in_clear": in_clear}) as dask:
        made = dask.submit(filled, 7, node=0)
        assert dask.client.gather([dask.submit(lambda a: int(a[0]), made, node=node) for node in (1, 2)]) == [7, 7]
        future = dask.client.scatter(filled(5), broadcast=True)
        assert dask.submit(lambda a: int(a[0]), future, node=2).result() == 5
        assert (dask.counts()["arrived"] > 0) is in_clear and bool(objects(small)) is in_clear
        told = [str(one.message) for one in recwarn if "ncrypt" in str(one.message)]
        assert len(told) == (not in_clear) and all("Plugin(in_clear=True)" in one for one in told)
        if not in_clear:
            with pytest.raises(RuntimeError, match="encryption"):
                sarissa.dask.reduce([made]).result()


def patched():
    return (distributed.comm.tcp.from_frames is not distributed.comm.utils.from_frames,
            "handshake_info" in vars(distributed.comm.tcp.TCP),
            protocol.families["dask"][0].__module__.startswith("sarissa"),
            distributed.Client._scatter.__module__.startswith("sarissa"))


def state(dask_worker=None):
    return (sarissa.dask._store is not None, *patched(),
            any(one.name.startswith("sarissa-drop") for one in threading.enumerate()))


def named(name):
    distributed.__version__ = name


def test_another_version_of_dask(small, tmp_path, recwarn, monkeypatch):
    """Nothing is touched, on the client and on the workers, unless one says so."""
    dask = Dask(small, tmp_path, small.socket)
    sarissa._dask.messages._warned.clear()
    monkeypatch.setenv("SARISSA_SOCKET", small.socket[0])
    monkeypatch.setattr(distributed, "__version__", "2029.1.0")
    try:
        dask.client.run(named, "2029.1.0")
        register(dask.client, sarissa.dask.Plugin())
        assert any("2022.12.1 to 2026.8.0, and this is 2029.1.0" in str(one.message) for one in recwarn)
        made = dask.submit(filled, 7, node=0)
        assert dask.submit(lambda a: int(a[0]), made, node=1).result() == 7
        assert not any(state()) and not any(map(any, dask.client.run(state).values()))
        register(dask.client, sarissa.dask.Plugin(untested=True))
        assert all(state()) and all(map(all, dask.client.run(state).values()))
        as_before(small, dask)
    finally:
        dask.close()
        sarissa.dask.close()


def test_unregistering(small, dask):
    """All is as it was, whatever the arrays that have come; and it can be registered again."""
    made = dask.submit(filled, 7, node=0)
    got = dask.submit(lambda a: a, made, node=1)
    frozen = dask.submit(lambda a: a, dask.client.scatter(filled(3), broadcast=True), node=2)
    distributed.wait([got, frozen])
    assert all(state()) and all(map(all, dask.client.run(state).values())) and objects(small)

    def extended(dask_scheduler):
        return "sarissa" in dask_scheduler.extensions, "replicate" in vars(dask_scheduler)
    assert all(dask.client.run_on_scheduler(extended))
    dask.client.unregister_worker_plugin("sarissa")
    sarissa.dask.close()
    assert not any(state()) and not any(map(any, dask.client.run(state).values()))
    assert not any(dask.client.run_on_scheduler(extended))
    until(lambda: not objects(small), lambda: objects(small))
    for one, value in ((got, 7), (frozen, 3), (dask.client.scatter(filled(5), broadcast=True), 5)):
        assert dask.submit(lambda a: int(a.min()) + int(a.max()), one, node=0).result() == 2 * value
    assert not objects(small)
    register(dask.client, sarissa.dask.Plugin(ttl=1.0))
    as_before(small, dask)


def test_puts_that_are_given_up(small, monkeypatch):
    """Whether they are done all the same, or not: nothing of them stays."""
    monkeypatch.setenv("SARISSA_SOCKET", small.socket[0])
    monkeypatch.setattr(sarissa._dask.store, "PUT_S", -1000.0)
    store, given_up = sarissa._dask.store.Store(60.0), 0
    for number in range(40):
        monkeypatch.setattr(sarissa._dask.store, "LOOK_NS", number * 50_000)
        until(lambda: not store.away)
        thing = filled(number, 1)
        try:
            store.ident_of(thing, 0, memoryview(thing))
        except sarissa.Error:
            given_up += 1
        del thing
    assert given_up
    until(lambda: not objects(small), lambda: objects(small))
    store.close()
