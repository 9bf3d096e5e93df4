# SPDX-License-Identifier: BSD-3-Clause
"""Ray's objects through the store: broadcasts along trees, and sums in the network.

    ray.init()
    sarissa.ray.init()                                # a node on each Ray node, until the driver ends

    @sarissa.ray.task
    def gradient(weights, batch):                     # Refs among the arguments come as their values
        return numpy.ones(1000) * batch

    weights = sarissa.ray.put(numpy.zeros(1000))      # a sarissa.Ref, which tasks take and return
    refs = [gradient.remote(weights, batch) for batch in range(8)]
    total = sarissa.ray.reduce(refs, "sum", num=6)    # of the first six that come; the others are cancelled
    sarissa.ray.get(total)

put, get, wait, reduce and allreduce work in the driver, in tasks and in actors. Arrays of numpy come as read-only
views of the store, tensors of torch as copies, all else as pickle makes it. An object lives as long as a Ref of it
is in scope anywhere, and at most some seconds longer than the process that has made its first Ref. docs/user/ray.md
says more."""

from __future__ import annotations

import atexit
from typing import Any, Callable, List, Optional, Sequence, Tuple

import ray

from ._node import Node
from ._operations import ttl_ns
from ._ray import cluster as _ray_cluster
from ._ray import owned, place, reduces, tasks, waits
from ._ray.cluster import RayNode
from ._ray.refs import Ref, new
from ._ray.tasks import Task, method

__all__ = ["RayNode", "Ref", "Task", "allreduce", "call", "free", "get", "init", "method", "node", "nodes", "put", "reduce",
           "ref", "register_transport", "shutdown", "task", "wait"]

_cluster: Optional[_ray_cluster.Cluster] = None


def init(nodes: str = "new", store: int = 256, objects: Optional[int] = None, ttl: float = 10.0, rate: Optional[int] = None,
         timeout: float = 60.0, untested: bool = False) -> List[RayNode]:
    """Starts an unprivileged node on each Ray node, for the job of this driver, and returns when all serve and reach
    one another. A Ray node that joins later gets one as well. A daemon that dies is started again. They end at
    shutdown(), and when the driver has gone. Call ray.init() before.

    nodes: "existing" takes the nodes that the hosts have, those of SARISSA_SOCKET or the default ones; then the next
    four arguments have no use. store: MiB of
    each node's memory for objects. objects: how many it holds at most. ttl: so many seconds after a process was
    killed, what it owned goes. rate: no node sends faster than so many Mbit/s. untested: also with a version of Ray
    that the package was not tested with.
    An Error names the Ray node that can have no node, and why; then none is left."""
    global _cluster
    place.check_version(untested)
    place.check_connected()
    if nodes not in ("new", "existing"):
        raise ValueError(f"nodes={nodes!r}: it is \"new\" or \"existing\"")
    ttl_ns(ttl)
    if nodes == "existing" and (store, objects, ttl, rate) != (256, None, place.TTL_S, None):
        raise ValueError("store, objects, ttl and rate are of new nodes: leave them out with nodes=\"existing\"")
    if _cluster is not None:
        raise RuntimeError("sarissa.ray.init() was called already: shutdown() ends what it has started")
    more = ([] if rate is None else ["--rate", str(rate)]) + ([] if objects is None else ["--objects", str(objects)])
    how = {"ttl": ttl, "store": store, "control": [], "dataplane": more}
    made = _ray_cluster.Cluster(nodes == "existing", how, timeout)
    try:
        made.begin()
    except BaseException:
        place.close()  # whatever used a node that was there for a moment
        raise
    _cluster = made
    return made.nodes()


def nodes() -> List[RayNode]:
    """The Ray nodes that have a node now, in the driver."""
    return [] if _cluster is None else _cluster.nodes()


@atexit.register
def shutdown() -> None:
    """Takes the nodes down, with all objects. Nothing of them is left when this returns. Call it before
    ray.shutdown(); the end of the driver does both."""
    global _cluster
    made, _cluster = _cluster, None
    if made is None:
        return
    owned.forget()
    if ray.is_initialized():
        place.close()
    made.end()


def node() -> Node:
    """The node of this process, for all other calls of sarissa. It is the connection of the process: do not close it."""
    return place.node()


def ref() -> Ref:
    """A Ref of an object that somebody will put: hand it to a task, which calls put(value, ref=it). This process owns
    the object. Ref.bind() says which Ray task that is, so that get() raises what the task raises."""
    return new()


def put(value: Any, ref: Optional[Ref] = None) -> Ref:
    """Stores a value: an array of numpy, a tensor of torch in the memory of the host, or any object that Ray can
    pickle. Returns its Ref, which is the given one where there is one. Exists when that has another value already."""
    return tasks.put(value, ref if ref is None else _checked(ref))


def get(refs: Any, timeout: Optional[float] = None) -> Any:
    """The value of a Ref, or the values of a list of Refs, waiting up to timeout seconds (None: no limit). Raises what
    the task of a Ref has raised; TimedOut; Deleted for an object that nobody owns any more; Lost for one whose node
    has died. Arrays of numpy are read-only and not copied; they keep the object in the memory of this node."""
    if isinstance(refs, (list, tuple)):
        return waits.get([_checked(one) for one in refs], timeout)
    return waits.get([_checked(refs)], timeout)[0]


def wait(refs: Sequence[Any], num_returns: int = 1, timeout: Optional[float] = None) -> Tuple[List[Any], List[Any]]:
    """The first num_returns Refs whose objects are on this node, or whose tasks have failed, and the others, both in
    the order given. After timeout seconds there may be fewer."""
    if isinstance(refs, (str, bytes)) or not hasattr(refs, "__iter__"):
        raise TypeError("a list of Refs is wanted")
    return waits.wait([_checked(one) for one in refs], num_returns, timeout)


def reduce(refs: Sequence[Any], op: str = "sum", num: Optional[int] = None, dtype: Any = None,
           timeout: Optional[float] = None, cancel: bool = True) -> Ref:
    """Begins to add up arrays of one type and shape, element by element, as they are put, wherever they are: the Ref
    of the result. op: "sum", "prod", "min", "max" or "avg". The first num that come suffice (None: all). cancel: the
    Ray tasks of the others are cancelled then, where they are of task or call(); a method of an actor that runs goes
    on. Ref.sources() tells which are in the result. After timeout seconds the reduce ends without one.
    get() of the result raises the error of a task without which too few are left."""
    return reduces.reduce(refs, op, num, dtype, timeout, False, cancel)


def allreduce(refs: Sequence[Any], op: str = "sum", num: Optional[int] = None, dtype: Any = None,
              timeout: Optional[float] = None, cancel: bool = True) -> Ref:
    """reduce() whose result every node with a source gets while it is made: for a result that the tasks which have put
    the sources will get."""
    return reduces.reduce(refs, op, num, dtype, timeout, True, cancel)


def free(refs: Any) -> None:
    """Deletes the objects now, everywhere, though Refs of them are in scope. Views of them stay as they are."""
    for one in refs if isinstance(refs, (list, tuple)) else [refs]:
        _checked(one).delete()


def task(*function: Callable[..., Any], **options: Any) -> Any:
    """As ray.remote of a function, with its options: @task or @task(num_cpus=2). f.remote() returns a sarissa.ray.Ref at
    once, whose object the task will put. Refs among its arguments come as their values, and the task begins when
    their tasks have ended; Refs inside other arguments come as Refs."""
    if not function:
        return lambda one: Task(one, options)
    if len(function) > 1 or options or not callable(function[0]) or isinstance(function[0], type):
        raise TypeError("task is for functions: @sarissa.ray.task, or @sarissa.ray.task(num_cpus=2)")
    return Task(function[0], {})


def call(actor_method: Any, *args: Any, **named: Any) -> Ref:
    """call(actor.method, ...) begins a method that has the decorator sarissa.ray.method: the Ref of its value, at
    once. Arguments are those of task."""
    return tasks.call(actor_method, args, named)


def register_transport() -> List[str]:
    """Makes Sarissa a tensor transport of Ray Direct Transport, for the actors that this process makes from here on:
    "sarissa" for torch.Tensor in the memory of the host, "sarissa_numpy" for numpy.ndarray. Returns the names. It may be
    called again, and in actors. RuntimeError when the installed Ray has no such interface.

    >>> sarissa.ray.register_transport()
    ['sarissa', 'sarissa_numpy']
    >>> @ray.remote
    ... class Model:
    ...     @ray.method(tensor_transport="sarissa")
    ...     def weights(self):
    ...         return torch.ones(3)
    """
    if not place.has_transports():
        raise RuntimeError(f"Ray {ray.__version__} takes no tensor transports of others as Ray 2.55 and later do: install Ray "
                           "2.60, or use sarissa.ray.put() and get(), which need none")
    from ._ray import transport
    return transport.register()


def _checked(one: Any) -> Any:
    if isinstance(one, ray.ObjectRef):
        raise TypeError("this is a reference of Ray's: ray.get() it; sarissa.ray takes what its own put(), task and reduce() "
                        "return")
    if not (hasattr(one, "name") and hasattr(one, "get_future")):
        raise TypeError(f"a Ref is wanted, and not {type(one).__name__}: put() gives one")
    return one
