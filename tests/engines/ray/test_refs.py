# SPDX-License-Identifier: BSD-3-Clause
"""Refs through tasks and actors of two Ray nodes: values, reduces of tasks that have not run, errors, lifetimes."""

import asyncio
import gc
import os
import re
import time
from concurrent import futures

import numpy
import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import sarissa
import sarissa.ray
from conftest import until

ELEMENTS = 100_000


@pytest.fixture(scope="module")
def nodes(cluster_of):
    cluster_of(2)
    yield sarissa.ray.init(store=64, ttl=1.0)
    sarissa.ray.shutdown()


def on(node):
    return NodeAffinitySchedulingStrategy(node_id=node.ray_node, soft=False)


def other(nodes):
    """The Ray node on which the driver is not."""
    return next(one for one in nodes if one.ray_node != ray.get_runtime_context().get_node_id())


def names():
    return {one.name for one in sarissa.ray.node().ls("ray-")}


def nothing_left(limit=10.0):
    gc.collect()
    until(lambda: not names(), f"all objects gone: {names()}", limit)


@sarissa.ray.task
def scaled(array, factor):
    return array * factor


@ray.remote
def look(ref, nested):
    """What plain Ray tasks see of Refs."""
    kinds = [type(one).__mro__[1] for one in (ref, *nested)]
    return kinds, float(sarissa.ray.get(ref).sum()), [sarissa.ray.get(one) for one in nested]


@ray.remote
def make(value):
    return sarissa.ray.put(value), [sarissa.ray.put({"value": value})]


@ray.remote
class Holder:
    def __init__(self):
        self.ref = None

    def keep(self, refs):
        self.ref, = refs

    def value(self):
        return sarissa.ray.get(self.ref, timeout=20)

    def give(self):
        return self.ref

    @sarissa.ray.method
    def scaled(self, array, factor=1):
        return array * factor


def test_each_ray_node_of_a_host_has_a_node_of_its_own(nodes):
    @ray.remote
    def socket():
        return sarissa.ray.node().address
    found = ray.get([socket.options(scheduling_strategy=on(one)).remote() for one in nodes])
    assert found == [one.socket for one in nodes] and len(set(found)) == 2
    assert [one.state for one in sarissa.ray.node().nodes()] == ["up", "up"]


def test_values_come_back_as_they_were_put(nodes):
    far = {"scheduling_strategy": on(other(nodes))}
    array = numpy.arange(ELEMENTS, dtype="f4").reshape(10, -1)
    table = {"weights": array, "names": ["a", "b"], "count": 3, "function": lambda x: x + 1}
    refs = [sarissa.ray.put(value) for value in (array, table, b"bytes", None)]

    @ray.remote(**far)
    def values(given):
        first, second, third, fourth = sarissa.ray.get(given, timeout=20)
        assert (first == array).all() and first.shape == array.shape and not first.flags.writeable
        assert (second["weights"] == array).all() and second["function"](second["count"]) == 4
        return third, fourth
    assert ray.get(values.remote(refs)) == (b"bytes", None)


def test_tensors_of_torch(nodes):
    torch = pytest.importorskip("torch")
    tensors = {"f32": torch.arange(1000.0), "bf16": torch.ones(7, dtype=torch.bfloat16), "bool": torch.tensor([True, False])}

    @ray.remote(scheduling_strategy=on(other(nodes)))
    def doubled(refs):
        got = dict(zip(tensors, sarissa.ray.get(refs, timeout=20)))
        assert all(torch.equal(got[name], tensor) and got[name].dtype == tensor.dtype for name, tensor in tensors.items())
        got["f32"] += 1  # its own memory
        return sarissa.ray.put({"state": got["f32"] * 2})
    ref = ray.get(doubled.remote([sarissa.ray.put(one) for one in tensors.values()]))
    assert torch.equal(sarissa.ray.get(ref, timeout=20)["state"], (torch.arange(1000.0) + 1) * 2)
    total = sarissa.ray.reduce([sarissa.ray.put(tensors["f32"]) for _ in range(3)], "sum")
    assert torch.equal(sarissa.ray.get(total, timeout=20), tensors["f32"] * 3)
    with pytest.raises(TypeError, match="the tensor is on meta, and objects are in the memory of hosts: put tensor.cpu()"):
        sarissa.ray.put(torch.empty(3, device="meta"))


def test_refs_through_tasks_and_actors(nodes):
    far = {"scheduling_strategy": on(other(nodes))}
    ref = sarissa.ray.put(numpy.ones(ELEMENTS))
    kinds, total, nested = ray.get(look.options(**far).remote(ref, [ref, sarissa.ray.put("text")]))
    assert kinds == [sarissa.Ref] * 3 and total == ELEMENTS and nested[1] == "text"
    result, (inner,) = ray.get(make.options(**far).remote(7))
    assert sarissa.ray.get([result, inner], timeout=20) == [7, {"value": 7}]
    actor = Holder.options(**far).remote()
    product = sarissa.ray.call(actor.scaled, ref, factor=3)  # a value for the method, as Ray has it
    assert sarissa.ray.get(scaled.remote(product, 2), timeout=20).sum() == 6 * ELEMENTS
    ray.get(actor.keep.remote([scaled.remote(ref, 5)]))  # its task may run later
    assert ray.get(actor.value.remote()).sum() == 5 * ELEMENTS
    assert sarissa.ray.get(ray.get(actor.give.remote()), timeout=20)[0] == 5
    assert ray.get(actor.scaled.remote(4, factor=2)) == 8  # a call of Ray's own


def test_a_ref_named_before_its_task(nodes):
    @ray.remote
    def produce(out, fails):
        if fails:
            raise ValueError("no value today")
        sarissa.ray.put(numpy.full(10, 4.0), ref=out)
    ref = sarissa.ray.ref()
    assert sarissa.ray.wait([ref], timeout=0.1) == ([], [ref])
    produce.remote(ref, False)
    assert sarissa.ray.get(ref, timeout=20)[0] == 4
    failing = sarissa.ray.ref()
    failing.bind(produce.remote(failing, True))
    with pytest.raises(ValueError, match="no value today"):
        sarissa.ray.get(failing, timeout=20)


def test_a_ref_whose_task_has_failed_without_bind_is_named(nodes):
    @ray.remote(max_retries=0)
    def fails(out):
        raise ValueError("no value today")
    ref, whole = sarissa.ray.ref(), sarissa.ray.put(numpy.ones(3))
    fails.remote(ref)
    total = sarissa.ray.reduce([ref, whole])
    with futures.ThreadPoolExecutor() as pool:
        for ended in [pool.submit(sarissa.ray.get, one, 60) for one in (ref, total)]:
            with pytest.raises(sarissa.NotFound, match="no task or actor has the Ref any more: bind"):
                ended.result(90)
    sarissa.ray.put(numpy.ones(3), ref=ref)  # late, but of use
    assert sarissa.ray.get([ref, total], timeout=20)[1].sum() == 6


def test_a_reduce_ends_by_a_ref_without_a_task_beside_a_task_that_runs(nodes):
    @ray.remote(num_cpus=0)
    class Gate:
        def __init__(self):
            self.opened = asyncio.Event()

        async def open(self):
            self.opened.set()

        async def wait(self):
            await self.opened.wait()

    @sarissa.ray.task(num_cpus=0.1)
    def behind(gate):
        ray.get(gate.wait.remote())
        return numpy.ones(3)
    gate, ref = Gate.remote(), sarissa.ray.ref()
    total = sarissa.ray.reduce([behind.remote(gate), ref], num=1, cancel=False)
    with futures.ThreadPoolExecutor() as pool:
        ended = pool.submit(sarissa.ray.get, total, 60)
        assert not futures.wait([ended], 1.0).done
        sarissa.ray.put(numpy.ones(3) * 2, ref=ref)
        futures.wait([ended], 10)
        in_time = ended.done()
        gate.open.remote()
        assert in_time and ended.result()[0] == 2


def test_a_reduce_of_tasks_that_have_not_run_takes_the_first_and_cancels_the_rest(nodes):
    @ray.remote(num_cpus=0)
    class Gate:
        def __init__(self):
            self.open = False

        def opened(self):
            self.open = True

        def is_open(self):
            return self.open

    @sarissa.ray.task(num_cpus=0.1)
    def late(gate, value):
        while gate is not None and not ray.get(gate.is_open.remote()):
            time.sleep(0.02)
        return numpy.full(ELEMENTS, value)
    gate, closed = Gate.remote(), Gate.remote()
    refs = [late.remote(gate, 1.0), late.remote(closed, 100.0), late.remote(gate, 2.0), late.remote(closed, 200.0)]
    total = sarissa.ray.reduce(refs, "sum", num=2)
    ready, not_ready = sarissa.ray.wait([total], timeout=0.5)
    assert (ready, not_ready) == ([], [total])
    gate.opened.remote()
    assert (sarissa.ray.get(total, timeout=30) == 3).all()
    assert total.sources() == ([refs[0], refs[2]], [refs[1], refs[3]])
    for ref in (refs[1], refs[3]):
        with pytest.raises(ray.exceptions.TaskCancelledError):
            sarissa.ray.get(ref, timeout=30)


def test_an_allreduce_of_actors(nodes):
    actors = [Holder.options(scheduling_strategy=on(one)).remote() for one in nodes]
    refs = [sarissa.ray.call(one.scaled, numpy.ones(ELEMENTS), factor=number + 1) for number, one in enumerate(actors)]
    total = sarissa.ray.allreduce(refs, "sum")
    for one in actors:
        one.keep.remote([total])
    assert [value.sum() for value in ray.get([one.value.remote() for one in actors])] == [3 * ELEMENTS] * 2


def test_the_error_of_a_task_is_raised_by_get(nodes):
    @sarissa.ray.task(max_retries=0)
    def fails(how):
        if how == "dies":
            os._exit(1)
        raise KeyError(how)
    with pytest.raises(KeyError, match="by name"):
        sarissa.ray.get(fails.remote("by name"), timeout=20)
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        sarissa.ray.get(fails.remote("dies"), timeout=20)
    whole = sarissa.ray.put(numpy.ones(3))
    for num in (None, 2):
        total = sarissa.ray.reduce([whole, fails.remote("in a sum")], "sum", num=num)
        with pytest.raises(KeyError, match="in a sum"):
            sarissa.ray.get(total, timeout=20)
    assert sarissa.ray.get(sarissa.ray.reduce([whole, fails.remote("in reserve")], "sum", num=1), timeout=20).sum() == 3
    failing = fails.remote("first")
    with pytest.raises(KeyError, match="first"):  # of the task that it waits for
        sarissa.ray.get(scaled.remote(failing, 2), timeout=20)
    assert sarissa.ray.wait([failing], timeout=20) == ([failing], [])


def test_a_task_that_waits_gives_its_cpus_to_others(nodes):
    whole = {"num_cpus": 2, "scheduling_strategy": on(nodes[0])}

    @sarissa.ray.task(**whole)
    def outer():
        return sarissa.ray.get(scaled.options(**whole).remote(numpy.ones(3), 2))
    assert sarissa.ray.get(outer.remote(), timeout=30).sum() == 6


def test_objects_go_with_their_last_ref(nodes):
    nothing_left()
    actor = Holder.remote()
    ref = sarissa.ray.put(numpy.ones(ELEMENTS))
    ray.get(actor.keep.remote([ref]))
    name = ref.name
    del ref
    gc.collect()
    sarissa.ray.put("a")  # goes at once, and tells that the thread has seen the one before
    until(lambda: names() == {name}, "only the object that the actor has a Ref of")
    assert ray.get(actor.value.remote()).sum() == ELEMENTS
    back = ray.get(actor.give.remote())
    ray.kill(actor)
    assert sarissa.ray.get(back, timeout=20).sum() == ELEMENTS
    del back
    nothing_left()
    waiting = make.remote(1)  # a result that nobody has asked for yet
    ray.wait([waiting])
    assert len(names()) == 2
    result, _ = ray.get(waiting)
    assert sarissa.ray.get(result) == 1
    del waiting, result, _
    nothing_left()


def test_a_store_has_room_for_what_follows_what_nobody_needs(nodes):
    actor, weights = Holder.options(scheduling_strategy=on(other(nodes))).remote(), None
    for step in range(20):  # 8 MiB each, in stores of 64 MiB
        weights = sarissa.ray.put(numpy.full(1 << 20, float(step)))
        got = sarissa.ray.get(sarissa.ray.call(actor.scaled, weights, factor=2), timeout=60)
        assert got[-1] == 2 * step
    kept = []
    with pytest.raises(sarissa.StoreFull, match="store full"):
        while len(kept) < 9:
            kept.append(sarissa.ray.put(numpy.full(1 << 20, float(len(kept)))))


def test_a_coroutine_of_an_actor(nodes):
    @ray.remote(num_cpus=0)
    class Async:
        @sarissa.ray.method
        async def scaled(self, array, factor):
            await asyncio.sleep(0)
            return array * factor
    actor = Async.remote()
    refs = [sarissa.ray.call(actor.scaled, sarissa.ray.put(numpy.ones(1000)), number) for number in (1, 2)]
    assert sarissa.ray.get(sarissa.ray.reduce(refs), timeout=30)[0] == 3
    assert ray.get(actor.scaled.remote(2, factor=3)) == 6


def test_free_and_odd_input(nodes):
    ref = sarissa.ray.put(numpy.ones(3))
    sarissa.ray.free(ref)
    with pytest.raises(sarissa.Deleted, match="the object is gone: it was freed"):
        sarissa.ray.get(ref, timeout=20)
    with pytest.raises(TypeError, match="this is a reference of Ray's"):
        sarissa.ray.get(ray.put(1))
    with pytest.raises(TypeError, match="a Ref is wanted, and not int"):
        sarissa.ray.get([1])
    for odd in (ray.put(1), 7):
        with pytest.raises(TypeError, match="reference of Ray's|a Ref is wanted, and not int"):
            sarissa.ray.reduce([odd])
    for wrong in ([], [ref] * 1025):
        with pytest.raises(ValueError, match=f"a reduce of {len(wrong)} Refs: give 1 to 1024"):
            sarissa.ray.reduce(wrong)
    with pytest.raises(TypeError, match="a Ref is wanted, and not str"):
        sarissa.ray.put(1, ref="name")
    with pytest.raises(TypeError, match="bind.. takes the Ray reference of a task, and not Ref"):
        sarissa.ray.ref().bind(ref)
    with pytest.raises(ValueError, match="num_returns=2 of 1 Refs"):
        sarissa.ray.wait([ref], num_returns=2)
    with pytest.raises(ValueError, match="num=3 of 2 Refs"):
        sarissa.ray.reduce([sarissa.ray.ref(), sarissa.ray.ref()], num=3)
    with pytest.raises(sarissa.TimedOut, match="not there after 0.2 s"):
        sarissa.ray.get(sarissa.ray.ref(), timeout=0.2)
    with pytest.raises(sarissa.InvalidArgument, match="type|elements|bytes"):
        sarissa.ray.get(sarissa.ray.reduce([sarissa.ray.put(numpy.ones(3)), sarissa.ray.put(numpy.ones(3, "f4"))]), timeout=20)
    later = sarissa.ray.ref()
    unlike = sarissa.ray.reduce([sarissa.ray.put(numpy.ones(3)), later])
    sarissa.ray.put(numpy.ones(4), ref=later)
    with pytest.raises(sarissa.InvalidArgument):
        sarissa.ray.get(unlike, timeout=20)
    with pytest.raises(ValueError, match="store, objects, ttl and rate are of new nodes"):
        sarissa.ray.init(nodes="existing", store=64)
    with pytest.raises(RuntimeError, match="was called already"):
        sarissa.ray.init()


def test_a_reduce_of_what_is_no_array_says_what_to_put(nodes):
    torch = pytest.importorskip("torch")

    @sarissa.ray.task
    def loss():
        return 0.5
    for make in (loss.remote, lambda: sarissa.ray.put({"w": numpy.ones(3)}),
                 lambda: sarissa.ray.put(torch.ones(3, requires_grad=True))):
        source = make()
        with pytest.raises(sarissa.InvalidArgument, match=re.escape(repr(source)) + r".* put numpy.asarray\(value\)"):
            sarissa.ray.get(sarissa.ray.reduce([source, sarissa.ray.put(numpy.ones(3))]), timeout=20)


def test_call_of_what_has_no_decorator_names_it(nodes):
    @ray.remote
    class Plain:
        def answer(self, x):
            return x
    actor = Plain.remote()
    with pytest.raises(TypeError, match="answer.* has no decorator @sarissa.ray.method"):
        sarissa.ray.call(actor.answer, 1)
    with pytest.raises(TypeError, match="scaled is a task: call scaled.remote()"):
        sarissa.ray.call(scaled, 1)
    assert ray.get(actor.answer.remote(1), timeout=60) == 1


def test_a_reduce_whose_source_is_gone_raises(nodes):
    first, second = (sarissa.ray.put(numpy.ones(ELEMENTS)) for _ in range(2))
    sarissa.ray.free(first)
    total = sarissa.ray.reduce([first, second], "sum")
    with futures.ThreadPoolExecutor() as pool:
        for ended in [pool.submit(sarissa.ray.get, total, 40), pool.submit(total.sources)]:
            with pytest.raises(sarissa.Lost, match=re.escape(repr(first))):
                ended.result(60)
    assert sarissa.ray.get(sarissa.ray.reduce([first, second], "sum", num=1), timeout=20)[0] == 1.0
