# SPDX-License-Identifier: BSD-3-Clause
"""Dask's side of a measurement, as a user of Dask would write it: a client that submits tasks to one
worker per node. dask_driver.py SCHEDULER WORKERS TUNING, on node 0. Takes lines, answers each with
one JSON object.

  fill BYTES           each worker makes the bytes that it gives                   {"digests"}
  fill-f32 BYTES       the same with arrays of gradient.h                          {"digests"}
  ready OP LATER       what is given lies in the workers' memory from here on; or,
                       if LATER is 1, is given when its node arrives               {}
  go OP AT_NS...       the operation; AT_NS: when each node arrives, node 0 first  {"spans"}
  check                what the workers have got, by node; then all is released    {"taken"}

TUNING default: broadcast by a task at each worker that asks for the whole object; reduce as a tree
of sums of two, wherever the scheduler puts them; allreduce as that and a broadcast. hand, up to
64 KiB: one task at each worker that takes the sum asks for all arrays; above, the object is cut in as
many parts as there are workers: each gets (or adds up) one part, and those that take the result get
the parts from all. A gather is one task at worker 0 that asks for all objects; a p2p, one at worker 1 that asks
for the object of 0, and then one at 0 for that of 1."""

import sys
import time

import dask_work as work
from distributed import Client, wait
from driver import serve

SMALL_BYTES = 64 << 10


class Driver:
    def __init__(self, scheduler, count, tuning):
        self.client = Client(scheduler)
        self.client.wait_for_workers(count, timeout=60)
        self.count, self.tuning = count, tuning
        self.address = {node: address for address, node in self.client.run(work.name).items()}
        self.turn, self.futures = 0, []

    def submit(self, function, *arguments, node=None):
        """At a node, or where the scheduler wants it."""
        where = {} if node is None else {"workers": [self.address[node]]}
        future = self.client.submit(function, *arguments, pure=False, **where)
        self.futures.append(future)
        return future

    def by_node(self, told):
        return [told[self.address[node]] for node in range(self.count)]

    def fill(self, size, f32):
        self.size = size
        self.parts = 1 if self.tuning == "default" or size <= SMALL_BYTES else self.count
        return {"digests": self.by_node(self.client.run(work.make, size, f32))}

    def give(self, node, at_ns):
        """The parts of a node's object."""
        whole = self.submit(work.give, at_ns, node=node)
        return [whole] if self.parts == 1 else [
            self.submit(work.part, whole, index, self.parts, node=node)
            for index in range(self.parts)]

    def ready(self, op, later):
        self.later = later
        givers = [0] if op == "broadcast" else range(self.count)
        self.given = [] if later and op != "broadcast" else [self.give(node, 0) for node in givers]
        wait(self.futures)
        return {}

    def go(self, op, arrivals_ns):
        if op == "broadcast":
            ends = self.broadcast(arrivals_ns)
        elif op == "p2p":
            ends = self.round_trip(arrivals_ns[0])
        else:
            sleep_until(min(arrivals_ns))
            if self.later:
                self.given = [self.give(node, at_ns) for node, at_ns in enumerate(arrivals_ns)]
            ends = {"gather": self.gather, "reduce": self.reduce, "allreduce": self.allreduce}[op]()
        ends = dict(zip(ends, self.client.gather(list(ends.values()))))
        return {"spans": [[[begin, ends[node]]] if node in ends else []
                          for node, begin in enumerate(self.begins(op, arrivals_ns))]}

    def begins(self, op, arrivals_ns):
        """Node 0 asks at once, whenever its own array comes."""
        return [min(arrivals_ns)] + arrivals_ns[1:] if op != "broadcast" else arrivals_ns

    def broadcast(self, arrivals_ns):
        order = sorted(range(1, self.count), key=lambda node: arrivals_ns[node])
        sleep_until(arrivals_ns[order[0]])
        parts = self.given[0]
        if len(parts) > 1:
            parts = [self.submit(work.same, part, node=index)
                     for index, part in enumerate(parts)]
        ends = {}
        for node in order:
            sleep_until(arrivals_ns[node])
            ends[node] = self.submit(work.take_parts, *parts, node=node)
        return ends

    def gather(self):
        return {0: self.submit(work.take, *[parts[0] for parts in self.given], node=0)}

    def round_trip(self, at_ns):
        """The second transfer waits for the end of the first: a task's inputs are fetched when all of them exist."""
        sleep_until(at_ns)
        there = self.submit(work.take, self.given[0][0], node=1)
        return {0: self.submit(work.take_after, self.given[1][0], there, node=0), 1: there}

    def reduce(self):
        return self.sums([0])

    def allreduce(self):
        return self.sums(range(self.count))

    def sums(self, takers):
        if self.tuning == "hand" and self.parts == 1:
            arrays = [parts[0] for parts in self.given]
            return {node: self.submit(work.take_total, *arrays, node=node) for node in takers}
        if self.parts == 1:
            parts = [self.tree([parts[0] for parts in self.given])]
        else:
            parts = [self.submit(work.total, *[parts[index] for parts in self.given], node=index)
                     for index in range(self.parts)]
        return {node: self.submit(work.take_parts, *parts, node=node) for node in takers}

    def tree(self, arrays):
        while len(arrays) > 1:
            arrays = [self.submit(work.total, *arrays[at:at + 2]) if at + 1 < len(arrays)
                      else arrays[at] for at in range(0, len(arrays), 2)]
        return arrays[0]

    def check(self):
        told = self.by_node(self.client.run(work.check))
        self.given, self.futures = [], []
        return {"taken": told}


def sleep_until(at_ns):
    time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)


serve(Driver(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
