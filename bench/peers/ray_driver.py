# SPDX-License-Identifier: BSD-3-Clause
"""Ray's side of a measurement, as a user of Ray would write it: a driver on node 0 and an actor on each node, which has
the resource nodeI. ray_driver.py NODES TUNING. Takes lines, answers each with one JSON object, as dask_driver.py does.

What is given lies in the store of its actor's node (ray.put) before the start. What a task asks for Ray has fetched
when the task begins; that is the end of a get. TUNING default: each receiver asks for the whole object; who sums asks
for all arrays; allreduce is that, and then all ask for the sum. tree: a binary tree of sums of two, each on the node
of its first array. parts: the object is cut in as many parts as there are nodes: each gets (or adds up) one
part, and those that take the result ask for all parts. hand: the best of these by operation and size."""

import os
import sys

import payload
import ray
from driver import serve
from rank import SMALL_BYTES, part


@ray.remote(num_cpus=0, max_concurrency=4)
class Work:
    """Of one node. Givers that come later wait in one of its threads."""

    def __init__(self, node):
        self.node, self.made, self.taken = node, None, []

    def make(self, size, f32):
        self.taken = []
        self.made = payload.make(size, self.node + 1, f32)
        return payload.digest(self.made)

    def put(self, parts):
        return [ray.put(part(self.made, index, parts)) for index in range(parts)]

    def give(self, at_ns, index, parts):
        payload.sleep_until(at_ns)
        return part(self.made, index, parts)

    def same(self, array):
        return array.copy()

    def total(self, *arrays):
        out = arrays[0] + arrays[1]
        for array in arrays[2:]:
            out += array
        return out

    def take(self, *arrays):
        end_ns = payload.now_ns()
        self.taken = [[array] for array in arrays]
        return end_ns

    def take_after(self, array, end_ns):
        return self.take(array)

    def take_parts(self, *arrays):
        end_ns = payload.now_ns()
        self.taken = [arrays]
        return end_ns

    def take_total(self, *arrays):
        self.taken = [[self.total(*arrays)]]
        return payload.now_ns()

    def check(self):
        import numpy
        told = [payload.digest(numpy.concatenate(arrays)) for arrays in self.taken]
        self.taken = []
        return told


def best(op, size):
    """What was the best of those that we tried."""
    if size <= SMALL_BYTES:
        return "default"
    return "parts" if op in ("broadcast", "reduce", "allreduce") else "default"


class Driver:
    def __init__(self, count, tuning):
        ray.init(address=os.environ["RAY_ADDRESS"], _node_ip_address=os.environ["SARISSA_RAY_NODE_IP"],
                 log_to_driver=False, logging_level="warning")
        self.count, self.tuning = count, tuning
        self.nodes = [Work.options(resources={f"node{node}": 1}).remote(node) for node in range(count)]

    def fill(self, size, f32):
        self.size, self.given = size, []
        return {"digests": ray.get([node.make.remote(size, f32) for node in self.nodes])}

    def ready(self, op, later):
        self.later = later and op != "broadcast"
        self.way = best(op, self.size) if self.tuning == "hand" else self.tuning
        self.parts = 1 if self.way != "parts" else self.count - (op == "broadcast")
        givers = self.nodes[:1] if op == "broadcast" else self.nodes
        self.given = [] if self.later else ray.get([node.put.remote(self.parts) for node in givers])
        return {}

    def give(self, arrivals_ns):
        return [[node.give.remote(at_ns, index, self.parts) for index in range(self.parts)]
                for node, at_ns in zip(self.nodes, arrivals_ns)]

    def go(self, op, arrivals_ns):
        if op != "broadcast":
            payload.sleep_until(min(arrivals_ns))
        if self.later:
            self.given = self.give(arrivals_ns)
        ends = self.broadcast(arrivals_ns) if op == "broadcast" else getattr(self, op)()
        ends = dict(zip(ends, ray.get(list(ends.values()))))
        begins = arrivals_ns if op == "broadcast" else [min(arrivals_ns), *arrivals_ns[1:]]
        return {"spans": [[[begin, ends[node]]] if node in ends else [] for node, begin in enumerate(begins)]}

    def broadcast(self, arrivals_ns):
        order = sorted(range(1, self.count), key=lambda node: arrivals_ns[node])
        payload.sleep_until(arrivals_ns[order[0]])
        parts = self.given[0]
        if len(parts) > 1:
            parts = [self.nodes[index].same.remote(one) for index, one in enumerate(parts, 1)]
        ends = {}
        for node in order:
            payload.sleep_until(arrivals_ns[node])
            ends[node] = self.nodes[node].take_parts.remote(*parts)
        return ends

    def gather(self):
        return {0: self.nodes[0].take.remote(*[parts[0] for parts in self.given[1:]])}

    def p2p(self):
        """The second transfer waits for the end of the first: a task's arguments are fetched when all exist."""
        there = self.nodes[1].take.remote(self.given[0][0])
        return {0: self.nodes[0].take_after.remote(self.given[1][0], there), 1: there}

    def reduce(self):
        return self.sums([0])

    def allreduce(self):
        return self.sums(range(self.count))

    def sums(self, takers):
        arrays = [parts[0] for parts in self.given]
        if self.way == "default" and (len(takers) == 1 or self.size <= SMALL_BYTES):
            return {node: self.nodes[node].take_total.remote(*arrays) for node in takers}
        if self.way == "parts":
            parts = [node.total.remote(*[parts[index] for parts in self.given])
                     for index, node in enumerate(self.nodes)]
        else:
            parts = [self.tree(arrays) if self.way == "tree" else self.nodes[0].total.remote(*arrays)]
        return {node: self.nodes[node].take_parts.remote(*parts) for node in takers}

    def tree(self, arrays):
        step = 1
        while step < len(arrays):
            for at in range(0, len(arrays) - step, 2 * step):
                arrays[at] = self.nodes[at].total.remote(arrays[at], arrays[at + step])
            step *= 2
        return arrays[0]

    def check(self):
        told = ray.get([node.check.remote() for node in self.nodes])
        self.given = []
        return {"taken": told}


serve(Driver(int(sys.argv[1]), sys.argv[2]))
