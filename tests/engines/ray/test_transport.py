# SPDX-License-Identifier: BSD-3-Clause
"""The tensor transport of Ray Direct Transport (sarissa.ray.register_transport): four actors, each with a node of
Sarissa of its own in a network namespace, on links of 100 Mbit/s.

Values, the bytes that cross the sender's link, receives that are cut off, and what is left of dead actors. The two Ray
nodes are Ray's own cluster_utils on this host: their sockets of Sarissa lead into the namespaces."""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pytest
import ray
import torch
from ray.cluster_utils import Cluster
from ray.exceptions import RayDirectTransportError, RayTaskError

import sarissa
import sarissa.ray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "net"))
import netlib  # noqa: E402

NODES = 4
RATE = 100  # Mbit/s
MIB = 1 << 20
STORE_MIB = 192  # of each node
RAYS_LIMIT_S = 8  # of a receive: then Ray aborts it
LEASE_S = 10
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
          torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64,
          torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2]

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no worker can import this file
NAMES = sarissa.ray.register_transport()  # before the first class whose methods name it

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


@ray.remote(enable_tensor_transport=True, num_cpus=0)
class Actor:
    def __init__(self, registers=False):
        if registers:
            sarissa.ray.register_transport()

    def node(self):
        return os.environ["SARISSA_SOCKET"], os.getpid()

    @ray.method(tensor_transport="sarissa")
    def make(self, name, *arguments):
        return VALUES[name](*arguments)

    @ray.method(tensor_transport="sarissa_numpy")
    def make_array(self, name):
        return VALUES[name]()

    def differs(self, value, name, *arguments):
        """Where a value that has come is not the one that is made here; and whether it can be written to."""
        wanted = VALUES[name](*arguments)
        for here in flat(value):
            here[...] = here
        return [number for number, (a, b) in enumerate(zip(flat(value), flat(wanted))) if not same(a, b)] \
            if len(flat(value)) == len(flat(wanted)) else "other parts"

    def sum_of(self, tensor):
        return float(tensor.sum(dtype=torch.float64))

    def put(self, size):
        return [ray.put(torch.full((size,), 2.0), _tensor_transport="sarissa")]

    def get(self, refs, timeout=None):
        return float(ray.get(refs[0], timeout=timeout).sum())

    def kept(self):
        """Tensors that Ray keeps in this process."""
        return ray._private.worker.global_worker.rdt_manager.rdt_store.get_num_objects()


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [part for one in value for part in flat(one)] if isinstance(value, (list, tuple)) else [value]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and \
            bytes(a.reshape(-1).view(torch.uint8).numpy()) == bytes(b.contiguous().reshape(-1).view(torch.uint8).numpy())
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def every_type():
    bits = torch.arange(64, dtype=torch.uint8) % 2
    return {"types": [torch.ones(8).to(dtype) if dtype == torch.complex32 else bits.to(dtype) for dtype in DTYPES],
            "strided": [torch.arange(12).view(3, 4).t(), torch.arange(20.0)[::3], torch.ones(1).expand(5)],
            "shapes": [torch.tensor(7.5), torch.empty(0, 3), torch.arange(24.0).view(2, 3, 4)],
            "lazy": torch.tensor([1 + 2j, 3j]).conj().resolve_conj(), "gradient": torch.ones(3, requires_grad=True).detach()}


VALUES = {
    "every type": every_type,
    "large": lambda size, value=1.0: torch.full((size // 4,), value),
    "meta": lambda: torch.empty(3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(1000), 0.1, 0, torch.qint8),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "too large": lambda: torch.zeros(400 * MIB, dtype=torch.uint8),
    "arrays": lambda: {"a": [numpy.arange(6.0).reshape(2, 3).T, numpy.array("2026-11-28", "M8[D]"), numpy.zeros((0, 2))],
                       "r": numpy.ones(3, [("x", "i4"), ("y", "f8")])},
    "objects": lambda: numpy.array([{}, []], object),
}


class World:
    """The nodes of both, and actors by number of node: two nodes of Sarissa for each Ray node."""

    def __init__(self, cluster, rays):
        self.cluster, self.rays = cluster, rays
        self.sockets = [cluster.inside(node, [])["env"]["SARISSA_SOCKET"] for node in range(NODES)]

    def actor(self, node, registers=False, **options):
        if node % 2:  # another node than that of its Ray node
            options["runtime_env"] = {"env_vars": {"SARISSA_SOCKET": self.sockets[node]}}
        made = Actor.options(resources={f"host{node // 2}": 1}, **options).remote(registers)
        assert ray.get(made.node.remote())[0] == self.sockets[node]
        return made

    def objects(self, node=1):
        with sarissa.open(self.sockets[node]) as opened:
            return [info for info in opened.ls("rdt/")]

    def until_none(self, seconds=netlib.PATIENCE_S):
        netlib.wait_for(lambda: not self.objects(), seconds, "the objects are deleted")

    def arriving(self, node, bytes_there):
        """Waits until that node has some of the one object, and not all."""
        def some():
            for info in self.objects(node):
                if info.local_ready is not None and bytes_there <= info.local_ready < info.size:
                    return True
            return False
        netlib.wait_for(some, netlib.PATIENCE_S, "a part has arrived")


@pytest.fixture(scope="module")
def world():
    os.environ.update(RAY_rdt_fetch_fail_timeout_milliseconds=str(RAYS_LIMIT_S * 1000), RAY_USAGE_STATS_ENABLED="0")
    ray._private.ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS = RAYS_LIMIT_S  # it has been read already
    folder = tempfile.mkdtemp(prefix="r.", dir="/tmp")
    rays = None
    with netlib.Cluster(NODES, "--rate", RATE, "--vdev", "udp", "--store", STORE_MIB) as cluster:
        world = World(cluster, None)
        os.environ["SARISSA_SOCKET"] = world.sockets[0]  # of the driver
        try:
            world.rays = rays = Cluster()
            for host in range(NODES // 2):
                rays.add_node(num_cpus=1, object_store_memory=100 * MIB, resources={f"host{host}": 10},
                              env_vars={"SARISSA_SOCKET": world.sockets[2 * host]}, include_dashboard=False,
                              **({"temp_dir": folder} if host == 0 else {}))
            ray.init(address=rays.address, log_to_driver=False)
            assert sarissa.ray.register_transport() == NAMES == ["sarissa", "sarissa_numpy"]
            yield world
        finally:
            ray.shutdown()
            if rays is not None:
                rays.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def actors(world):
    return [world.actor(node) for node in range(NODES)]


def test_tensors_of_every_type_and_form_arrive_as_they_were(world, actors):
    made = actors[0].make.remote("every type")
    assert ray.get([actor.differs.remote(made, "every type") for actor in actors[1:]]) == [[], [], []]
    assert same(ray.get(made)["types"][0], every_type()["types"][0])  # of the driver
    del made
    world.until_none()


def test_arrays_of_numpy_arrive_as_they_were(world, actors):
    made = actors[1].make_array.remote("arrays")
    assert ray.get(actors[2].differs.remote(made, "arrays")) == []
    del made
    world.until_none()


def test_what_is_put_is_got_by_any_process(world, actors):
    refs = ray.get(actors[1].put.remote(1000))
    of_driver = ray.put(torch.full((10,), 3.0, dtype=torch.bfloat16), _tensor_transport="sarissa")
    assert ray.get([actors[2].get.remote(refs), actors[3].get.remote([of_driver])]) == [2000.0, 30.0]
    target = torch.empty(1000)
    ray.experimental.set_target_for_ref(refs[0], [target])
    assert ray.get(refs[0]) is target and bool((target == 2).all())
    assert ray.get(refs[0], _use_object_store=True).sum() == 2000
    del refs, of_driver
    world.until_none()


def test_one_tensor_of_many_readers_leaves_its_sender_once(world, actors):
    size = 16 * MIB
    before = world.cluster.counters(0)["tx_chunk_bytes"]
    made = actors[0].make.remote("large", size)
    assert ray.get([actor.sum_of.remote(made) for actor in actors[1:]]) == [size / 4] * 3
    sent = world.cluster.counters(0)["tx_chunk_bytes"] - before
    assert size <= sent < 2 * size, f"{sent / size:.2f} times"


def test_what_the_transport_does_not_take_is_named_and_the_actor_lives_on(world, actors):
    for name, words in [("meta", "float32, shape (3,)) is on device meta.*return tensor.cpu()"),
                        ("quantized", "qint8.*dequantize"), ("sparse", "layout sparse_coo.*to_dense"),
                        ("too large", "419430400")]:
        with pytest.raises(RayTaskError, match=words.replace("(", r"\(").replace(")", r"\)")):
            ray.get(actors[1].differs.remote(actors[2].make.remote(name), name))
    with pytest.raises(RayTaskError, match="Python objects.*astype"):
        ray.get(actors[1].differs.remote(actors[2].make_array.remote("objects"), "objects"))
    assert ray.get(actors[1].sum_of.remote(actors[2].make.remote("large", 4000))) == 1000
    netlib.wait_for(lambda: ray.get(actors[2].kept.remote()) == 0, netlib.PATIENCE_S, "Ray keeps nothing of them")


def test_ray_aborts_a_receive_that_takes_too_long_and_no_actor_is_lost(world, actors):
    pids = ray.get([actor.node.remote() for actor in actors])
    size = (RAYS_LIMIT_S + 4) * RATE * 10**6 // 8
    before = world.cluster.counters(1)["rx_chunk_bytes"]
    made = actors[0].make.remote("large", size)
    with pytest.raises(RayTaskError, match="was aborted|transfer may have failed"):
        ray.get(actors[1].sum_of.remote(made))
    assert ray.get([actor.node.remote() for actor in actors]) == pids
    assert ray.get(actors[1].sum_of.remote(actors[2].make.remote("large", 4000))) == 1000  # the next of the same thread
    assert world.cluster.counters(1)["rx_chunk_bytes"] - before < size, "the receive went on"
    del made
    world.until_none()


def test_a_sender_and_its_node_die_amid_a_receive_and_the_receiver_goes_on(world, actors):
    sender, size = world.actor(3), 32 * MIB
    made = sender.make.remote("large", size)
    taken = actors[1].sum_of.remote(made)
    world.arriving(1, MIB)
    begin = time.monotonic()
    ray.kill(sender)
    for daemon in ("control", "dataplane"):
        world.cluster.verb("kill", 3, daemon)
    with pytest.raises(RayDirectTransportError, match="have not come from Ray node .*lost|gone|dead"):
        ray.get(taken)
    assert time.monotonic() - begin < RAYS_LIMIT_S - 2, "Ray's own limit ended it"
    assert ray.get(actors[1].sum_of.remote(actors[2].make.remote("large", 4000))) == 1000
    world.cluster.verb("start", 3)
    assert ray.get(actors[1].sum_of.remote(actors[3].make.remote("large", 8000))) == 2000  # of an actor that has seen it
    del made, taken
    world.until_none()


def test_a_killed_actor_leaves_no_object(world, actors):
    sender = world.actor(2)
    made = sender.make.remote("large", MIB)
    assert ray.get(actors[1].sum_of.remote(made)) == MIB / 4
    assert len(world.objects()) == 1
    ray.kill(sender)
    world.until_none(LEASE_S + netlib.PATIENCE_S)


def test_actors_that_ray_has_restarted_receive_and_send(world, actors):
    receiver, sender = world.actor(1, max_restarts=1), world.actor(2, registers=True, max_restarts=1)
    assert ray.get(receiver.sum_of.remote(sender.make.remote("large", 4000))) == 1000

    def pid(actor):
        try:
            return ray.get(actor.node.remote(), timeout=10)[1]
        except ray.exceptions.RayActorError:
            return None
    both = [receiver, sender]
    before = [pid(actor) for actor in both]
    for actor in both:
        ray.kill(actor, no_restart=False)
    for actor, old in zip(both, before):
        netlib.wait_for(lambda: pid(actor) not in (old, None), netlib.PATIENCE_S, "it is back")
    assert ray.get(receiver.sum_of.remote(sender.make.remote("large", 8000))) == 2000


def test_a_ray_without_transports_of_others_is_refused_by_a_sentence(monkeypatch):
    monkeypatch.delattr(ray.experimental, "register_tensor_transport")
    with pytest.raises(RuntimeError, match=f"Ray {ray.__version__} takes no tensor transports.*install Ray 2.60"):
        sarissa.ray.register_transport()


def test_the_program_of_the_page_runs_on_nodes_of_init(world, capsys):
    page = (netlib.ROOT / "docs/user/ray.md").read_text().partition("## Ray Direct Transport")[2]
    netlib.wait_for(lambda: not world.objects(), netlib.PATIENCE_S, "what killed actors had has gone")
    names, program = {"__name__": "__main__"}, page.split("```python")[1].split("```")[0]
    try:
        exec(program.replace("ray.init()\n", "", 1).replace("ray.init()", "ray.init(store=64)"), names)
        assert capsys.readouterr().out.strip() == "[1000.0, 1000.0, 1000.0]"
        assert len(sarissa.ray.node().ls("rdt/")) == 1 and not world.objects()
        names.clear()  # Ray keeps its classes, and these keep the names
        netlib.wait_for(lambda: not sarissa.ray.node().ls("rdt/"), netlib.PATIENCE_S, "the object is deleted")
    finally:
        sarissa.ray.shutdown()
