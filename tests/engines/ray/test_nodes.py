# SPDX-License-Identifier: BSD-3-Clause
"""The nodes that sarissa.ray.init() brings up: with Ray nodes that come and go, with processes and daemons that are
killed, and on hosts where there can be none."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent import futures
from pathlib import Path

import numpy
import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import sarissa
import sarissa.ray
from conftest import node_args, until
from sarissa._ray import place
from sarissa._ray.incoming import Incoming
from sarissa._ray.memory import layout_of
from sarissa._ray.cluster import STOP_S

TTL_S = 1.0
RUNTIME = f"/tmp/ray-test-{os.getpid()}"
EXISTING = f"{RUNTIME}/sarissa/local/0/control.sock"  # of a local cluster that a test starts


def on(node, **more):
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node.ray_node, soft=False), **more}


def other(nodes):
    """The Ray node on which the driver is not."""
    return next(one for one in nodes if one.ray_node != ray.get_runtime_context().get_node_id())


def processes(folder, kind="sarissa-"):
    """Numbers of those whose arguments name the run folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(folder in word for word in words) and (kind in words[0] or any(kind in word for word in words[1:4])):
            found.append(int(path.parent.name))
    return found


def folder_of(node):
    return os.path.dirname(node.socket)


def left_of(folders):
    return [one for one in folders if os.path.exists(one) or processes(one) or processes(one, "supervisor")]


@pytest.fixture(scope="module")
def ray_cluster(cluster_of):
    return cluster_of(2, env_vars={"SARISSA_SOCKET": EXISTING})


@pytest.fixture
def nodes(ray_cluster):
    yield sarissa.ray.init(store=64, ttl=TTL_S)
    folders = [folder_of(one) for one in sarissa.ray.nodes()]
    sarissa.ray.shutdown()
    assert folders and left_of(folders) == []


@ray.remote(num_cpus=0)
class Owner:
    def make(self):
        self.ref = sarissa.ray.put(numpy.ones(1000))
        return self.ref, os.getpid()


@ray.remote(num_cpus=0, max_retries=0)
def holds_and_waits(path):
    ref = sarissa.ray.put(numpy.ones(1000))
    Path(path).write_text(f"{os.getpid()} {ref.name}")
    time.sleep(600)


def exists(name):
    return any(one.name == name for one in sarissa.ray.node().ls(name))


def test_a_killed_worker_or_actor_leaves_no_object(nodes, tmp_path):
    note = tmp_path / "note"
    task = holds_and_waits.options(**on(other(nodes))).remote(str(note))
    pid, name = until(lambda: note.exists() and note.read_text(), "the task runs").split()
    assert exists(name)
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: not exists(name), "the object of the killed worker goes", TTL_S + 5)
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(task)
    actor = Owner.options(**on(other(nodes))).remote()
    ref, pid = ray.get(actor.make.remote())
    assert sarissa.ray.get(ref, timeout=20).sum() == 1000
    os.kill(pid, signal.SIGKILL)
    until(lambda: not exists(ref.name), "the object of the killed actor goes", TTL_S + 5)
    with pytest.raises(sarissa.Deleted, match="the process that owned it"):
        sarissa.ray.get(ref, timeout=20)


def test_the_value_of_a_task_outlives_its_worker(nodes):
    @sarissa.ray.task(num_cpus=0, max_retries=0, max_calls=1, **on(other(nodes)))
    def once():
        return numpy.full(1000, os.getpid())
    ref = once.remote()
    pid = int(sarissa.ray.get(ref, timeout=20)[0])
    until(lambda: not os.path.exists(f"/proc/{pid}"), "its worker ends")
    time.sleep(TTL_S + 1)  # nothing tells that an object stays
    fresh = sarissa.open(nodes[0].socket)
    assert fresh.info(ref.name).leases == 1
    fresh.close()


def test_killed_daemons_are_a_named_error_and_then_work_again(nodes):
    far = other(nodes)

    @sarissa.ray.task(num_cpus=0, **on(far))
    def large():
        return numpy.ones(1 << 18)

    @ray.remote(num_cpus=0, **on(far))
    def waits(refs):
        return float(sarissa.ray.get(refs[0], timeout=60).sum())
    lost, later = large.remote(), sarissa.ray.ref()
    assert sarissa.ray.wait([lost], timeout=20)[0]
    sarissa.ray.free(sarissa.ray.put("settled"))
    second = large.remote()
    until(lambda: exists(second.name) and sarissa.ray.node().info(second.name).copies == 1, "only its node has it")
    waiting = waits.remote([later])
    for pid in processes(folder_of(far)):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises((sarissa.Lost, sarissa.Deleted, sarissa.PartialError), match="put it again|out of reach"):
        sarissa.ray.get(second, timeout=60)
    assert sarissa.ray.get(large.remote(), timeout=60).sum() == 1 << 18
    sarissa.ray.put(numpy.ones(10), ref=later)
    assert ray.get(waiting, timeout=60) == 10
    assert [one.ray_node for one in sarissa.ray.nodes()] == [one.ray_node for one in nodes]


def test_a_killed_supervisor_takes_its_node_along_and_another_comes(nodes):
    far = other(nodes)
    old = processes(folder_of(far))
    supervisor, = processes(folder_of(far), "supervisor")
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not set(old) & set(processes(folder_of(far))), "the daemons end with it")
    again = until(lambda: [one for one in sarissa.ray.nodes() if one.ray_node == far.ray_node and one.number > 1], "a new one")

    @sarissa.ray.task(num_cpus=0, **on(again[0]))
    def value():
        return numpy.ones(1000)
    assert sarissa.ray.get(value.remote(), timeout=30).sum() == 1000


def test_a_ray_node_that_joins_gets_a_node_and_one_that_leaves_takes_it_along(nodes, ray_cluster):
    joined = ray_cluster.add_node(**node_args())
    new = until(lambda: [one for one in sarissa.ray.nodes() if one not in nodes], "the third node")[0]

    @sarissa.ray.task(num_cpus=0, **on(new))
    def value():
        return numpy.full(1000, 2.0)
    here = sarissa.ray.put(numpy.ones(1000))
    assert sarissa.ray.get(sarissa.ray.reduce([here, value.remote()]), timeout=30)[0] == 3
    joined.kill_raylet()  # as a power cut of the host would
    until(lambda: left_of([folder_of(new)]) == [], "its node ends", 90)
    until(lambda: len(sarissa.ray.nodes()) == 2, "the driver has seen it", 60)
    ray_cluster.remove_node(joined, allow_graceful=False)
    assert sarissa.ray.get(sarissa.ray.put("goes on")) == "goes on"


def test_a_killed_driver_leaves_nothing(ray_cluster):
    before = set(os.listdir("/dev/shm"))
    with subprocess.Popen([sys.executable, str(Path(__file__).with_name("driver.py")), ray_cluster.address],
                          stdout=subprocess.PIPE, text=True) as driver:
        folders = [os.path.dirname(one["socket"]) for one in json.loads(driver.stdout.readline())]
        assert left_of(folders) == folders and len(folders) == 2
        driver.kill()
    until(lambda: left_of(folders) == [], "no folder, no daemon, no supervisor")
    assert {one for one in set(os.listdir("/dev/shm")) - before if "sarissa" in one} == set()


def test_a_host_without_the_command_is_named_and_the_driver_goes_on(ray_cluster, tmp_path):
    package = tmp_path / "package"
    shutil.copytree(Path(sarissa.__file__).parent, package / "sarissa")
    bare = ray_cluster.add_node(env_vars={"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin"}, **node_args())
    empty = tmp_path / "empty"
    empty.mkdir()
    try:
        with pytest.raises(sarissa.Error, match=rf"Ray node {bare.node_id[:12]} \({bare.node_ip_address}\): no node of "
                           "sarissa: a local cluster needs the command sarissa|install it"):
            sarissa.ray.init(store=64)
        assert sarissa.ray.nodes() == [] and ray.get(ray.put(1)) == 1
        assert left_of([place.folder(one["NodeID"], place.here()[1]) for one in ray.nodes()]) == []
    finally:
        ray_cluster.remove_node(bare)


def test_a_daemon_that_cannot_start_is_named(ray_cluster):
    begin = time.monotonic()
    with pytest.raises(sarissa.Error, match=r"Ray node .* \(.*\): no node of sarissa: its dataplane has ended: .*store"):
        sarissa.ray.init(store=1 << 40)
    assert time.monotonic() - begin < STOP_S  # no node waits for the end of another
    assert sarissa.ray.nodes() == []


def test_without_init_a_driver_and_a_version_that_is_not_tested(ray_cluster, monkeypatch):
    monkeypatch.delenv("SARISSA_SOCKET", raising=False)
    with pytest.raises(sarissa.NoNode, match=r"Ray node .*: no node of sarissa answers here: call sarissa.ray.init\(\)"):
        sarissa.ray.put(1)
    monkeypatch.setattr(ray, "__version__", "2.42.0")
    with pytest.raises(RuntimeError, match="is tested with Ray 2.51 and 2.60, and this is 2.42.0: install one of them"):
        sarissa.ray.init()


def test_nodes_that_hosts_have_already(ray_cluster, monkeypatch):
    with pytest.raises(sarissa.Error, match=r"Ray node .* \(.*\): .*: start a node there, or call init\(\) without"):
        sarissa.ray.init(nodes="existing")
    os.mkdir(RUNTIME, 0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", RUNTIME)
    monkeypatch.setenv("SARISSA_SOCKET", EXISTING)
    with sarissa.LocalCluster(1, store=64, name="local") as local, futures.ThreadPoolExecutor() as pool:
        found = sarissa.ray.init(nodes="existing")
        assert [one.socket for one in found] == [EXISTING] * 2

        @sarissa.ray.task(num_cpus=0, **on(other(found)))
        def value():
            return numpy.full(1000, 2.0)
        total = sarissa.ray.reduce([sarissa.ray.put(numpy.ones(1000)), value.remote()])
        assert sarissa.ray.get(total, timeout=30)[0] == 3
        refs = [sarissa.ray.put(numpy.ones(1000)), sarissa.ray.ref()]
        late = sarissa.ray.reduce(refs)
        incoming = Incoming(local[0], "nobody has it", layout_of([1000]), [numpy.empty(1000, "u1")])
        local.kill(0)
        begin = time.monotonic()
        receive = pool.submit(incoming.wait)
        for some in (refs, [late, refs[1]]):
            assert refs[1] in sarissa.ray.wait(some, num_returns=2, timeout=0.5)[1]
        for one in refs[1], late:
            with pytest.raises(sarissa.TimedOut, match="not there after 1.0 s"):
                sarissa.ray.get(one, timeout=1.0)
        incoming.abort()
        with pytest.raises(sarissa.Cancelled, match="was aborted"):
            receive.result(5)
        assert time.monotonic() - begin < 8, "timeouts and aborts work, though the node is down"
        local.start(0)
        sarissa.ray.put(numpy.ones(1000))  # with a new lease
        sarissa.ray.shutdown()
        until(lambda: not [one for one in local[0].ls("ray-") if one.leases != 1], "the objects of this driver go")
        assert [one.state for one in local[0].nodes()] == ["up"]
    shutil.rmtree(RUNTIME)
