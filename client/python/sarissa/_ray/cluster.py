# SPDX-License-Identifier: BSD-3-Clause
"""init() and shutdown(): one node on each Ray node, from the driver. A thread of the driver gives a node to a Ray node
that joins, and starts a node again whose actor or supervisor has gone; a daemon that dies is started again by its
supervisor. It knows nothing of objects."""

from __future__ import annotations

import errno
import logging
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from .._errors import Error
from . import place
from .node_actor import Answer, NodeActor

LOG = logging.getLogger("sarissa.ray")
WATCH_S, RETRY_S, STOP_S = 0.5, 10.0, 15.0
SEEDS_MAX = 32


class RayNode(NamedTuple):
    """A Ray node and its node of sarissa. address: "IP:PORT", or "" of an existing node."""

    ray_node: str
    ip: str
    number: Optional[int]
    address: str
    socket: str


class Started(NamedTuple):
    actor: Any
    ends: Any  # what its wait() returns
    node: RayNode


def live() -> Dict[str, str]:
    """Ray nodes and their addresses."""
    return {one["NodeID"]: one["NodeManagerAddress"] for one in ray.nodes() if one["Alive"]}


def actor_on(ray_node: str, ip: str) -> Any:
    where = NodeAffinitySchedulingStrategy(node_id=ray_node, soft=False)
    return ray.remote(NodeActor).options(num_cpus=0, max_concurrency=4, max_restarts=0, scheduling_strategy=where,
                                      runtime_env={}).remote(ip)


def one_line(error: BaseException) -> str:
    """What a user can do something about: the last line of what Ray says."""
    text = str(getattr(error, "cause", None) or error)
    if "No module named 'sarissa'" in text:
        return "its Python has no package sarissa: install it there, or set PYTHONPATH for `ray start`"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__




def failure(ray_node: str, ip: str, why: str) -> Error:
    return Error(errno.EIO, f"Ray node {ray_node[:12]} ({ip}): no node of sarissa: {why}")


def answers(asked: Sequence[Tuple[str, str, Any]], timeout: float) -> List[Any]:
    """Values of what was asked of actors, all at a time. asked: Ray node, IP, reference. Error names the Ray node."""
    until, values = time.monotonic() + timeout, []
    for ray_node, ip, reference in asked:
        try:
            answer: Answer = ray.get(reference, timeout=max(0.1, until - time.monotonic()))
        except Exception as error:
            late = isinstance(error, TimeoutError)
            raise failure(ray_node, ip, f"it does not answer after {timeout:.0f} s: look at the logs of this Ray node"
                          if late else one_line(error)) from None
        if answer.error:
            raise failure(ray_node, ip, answer.error)
        values.append(answer.value)
    return values


class Cluster:
    """The nodes of this driver's job."""

    def __init__(self, existing: bool, how: Dict[str, Any], timeout: float) -> None:
        self._existing, self._how, self._timeout = existing, how, timeout
        self._started: Dict[str, Started] = {}
        self._seeds: List[str] = []
        self._numbers = 0
        self._late: Dict[str, float] = {}  # Ray nodes that could not get one: when to try again
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="sarissa-ray-watch")

    def begin(self) -> None:
        """All or none."""
        try:
            self._add(live())
        except BaseException:
            self.end()
            raise
        self._thread.start()

    def nodes(self) -> List[RayNode]:
        with self._lock:
            return [one.node for one in self._started.values()]

    def _add(self, ray_nodes: Dict[str, str]) -> None:
        """A node on each of these."""
        actors = {ray_node: actor_on(ray_node, ip) for ray_node, ip in ray_nodes.items()}
        try:
            made = self._adopt(ray_nodes, actors) if self._existing else self._start(ray_nodes, actors)
        except BaseException:
            self._end(actors.values())
            raise
        with self._lock:
            for one in made:
                self._started[one.ray_node] = Started(actors[one.ray_node], actors[one.ray_node].wait.remote()
                                                      if not self._existing else None, one)

    def _ask(self, ray_nodes: Dict[str, str], references: Sequence[Any]) -> List[Any]:
        return answers([(*one, reference) for one, reference in zip(ray_nodes.items(), references)], self._timeout)

    def _adopt(self, ray_nodes: Dict[str, str], actors: Dict[str, Any]) -> List[RayNode]:
        paths = self._ask(ray_nodes, [one.existing.remote() for one in actors.values()])
        return [RayNode(*one, None, "", path) for one, path in zip(ray_nodes.items(), paths)]

    def _start(self, ray_nodes: Dict[str, str], actors: Dict[str, Any]) -> List[RayNode]:
        """The first ones are the seeds of all: each has its number from here, so none waits for another."""
        addresses = self._ask(ray_nodes, [one.prepare.remote() for one in actors.values()])
        if not self._seeds:
            self._seeds = addresses[:SEEDS_MAX]
        numbers = range(self._numbers, self._numbers + len(addresses))
        self._numbers += len(addresses)
        paths = self._ask(ray_nodes, [one.start.remote(number, self._seeds, self._how)
                                      for one, number in zip(actors.values(), numbers)])
        self._ask(ray_nodes, [one.meet.remote(list(numbers), 0.9 * self._timeout) for one in actors.values()])
        return [RayNode(*one, number, address, path)
                for one, number, address, path in zip(ray_nodes.items(), numbers, addresses, paths)]

    # --- the thread

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_S):
            try:
                self._look()
            except Exception as error:
                if self._stop.is_set() or not ray.is_initialized():
                    return
                LOG.warning("sarissa.ray: cannot look after the nodes: %s", one_line(error))

    def _look(self) -> None:
        alive, now = live(), time.monotonic()
        with self._lock:
            known = dict(self._started)
        for ray_node, one in known.items():
            if ray_node not in alive:
                self._forget(ray_node)
            elif one.ends is not None and ray.wait([one.ends], timeout=0)[0]:
                self._forget(ray_node)
                LOG.warning("sarissa.ray: Ray node %s (%s): its node has ended (%s): starting it again", ray_node[:12],
                            one.node.ip, self._why(one.ends))
        for ray_node, ip in alive.items():
            if ray_node not in self._started and self._late.get(ray_node, 0) <= now and not self._stop.is_set():
                self._join(ray_node, ip)

    @staticmethod
    def _why(ends: Any) -> str:
        try:
            return str(ray.get(ends))
        except Exception as error:
            return one_line(error)

    def _forget(self, ray_node: str) -> None:
        with self._lock:
            gone = self._started.pop(ray_node)
        ray.kill(gone.actor)

    def _join(self, ray_node: str, ip: str) -> None:
        try:
            self._add({ray_node: ip})
        except Error as error:
            self._late[ray_node] = time.monotonic() + RETRY_S
            LOG.warning("sarissa.ray: %s", error.strerror)

    # --- the end

    @staticmethod
    def _end(actors: Any) -> None:
        """Waits until nothing of them is left."""
        actors = list(actors)
        try:
            ray.wait([one.stop.remote() for one in actors], num_returns=len(actors), timeout=STOP_S)
            for one in actors:
                ray.kill(one)
        except Exception as error:
            LOG.warning("sarissa.ray: cannot take the nodes down: %s", one_line(error))

    def end(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            actors, self._started = [one.actor for one in self._started.values()], {}
        if actors and ray.is_initialized():
            self._end(actors)
