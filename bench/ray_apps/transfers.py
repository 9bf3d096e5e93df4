# SPDX-License-Identifier: BSD-3-Clause
"""One array to all workers, and the sum of an array of each node at the caller: the transfers alone.

Run by bench/ray_work.py; party.py says what a worker and a server are. A round is timed by itself, from the call to
the last byte. What is put before it and checked after it is outside of the time."""

import time

import numpy
import ray

from ray_apps import party


def array_of(number, size):
    return numpy.full(size // 4, number + 1, "f4")


class Worker(party.Worker):
    def fresh(self):
        self.array = None

    def take(self, given):
        self.array = self.way.get(given[0])
        return time.monotonic()

    def taken(self):
        """Whether all elements are what they should be, which are the same."""
        right = bool((self.array == 1).all())
        self.array = None
        return right

    def make(self, out):
        """Its array; a collective begins when add is called."""
        self.array = array_of(self.number, self.spec["bytes"])
        return None if self.way.of_all else self.way.add(self.array, out)

    def add(self):
        self.way.add(self.array, None)

    def nothing(self):
        pass

    def added(self, one, two):
        return one + two


class Broadcast(party.Server):
    def fresh(self):
        self.array = array_of(0, self.spec["bytes"])

    def timed(self):
        given = self.way.put(self.array)
        span = party.Span()
        self.ask("take", [given])
        ends, lost = self.way.results(list(self.pending))
        self.settle(ends, lost)
        took = span.end(max(ends.values()))
        if not all(ray.get([worker.taken.remote() for worker in self.workers])):
            raise ValueError("a node has wrong bytes")
        return took

    def loss(self):
        return 0.0


class Reduce(party.Server):
    def fresh(self):
        self.array, self.value = array_of(0, self.spec["bytes"]), 0.0

    def timed(self):
        own = self.way.own(self.array)
        self.begin("make")
        self.way.end(list(self.pending))
        span = party.Span()
        if self.how == "tree":
            total = self.array + ray.get(self.tree(list(self.pending.items())))
            self.settle(list(self.pending), [])
        else:
            if self.way.of_all:
                self.settle(list(self.pending), [])
                self.ask("add")
            total, _ = self.sum(len(self.pending), self.array.shape, own)
        took = span.end()
        self.check(total)
        return took

    def tree(self, parts):
        """Tasks of Ray that add two arrays each, where one of the two is."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2])
            parts = [(worker.added.remote(one, two), worker) for (one, worker), (two, _) in pairs] + \
                parts[len(parts) // 2 * 2:]
        return parts[0][0]

    def check(self, total):
        right = sum(number + 1 for number in range(len(self.workers) + 1))
        if not (total == right).all():
            raise ValueError("the sum is wrong")
        self.value = float(total[0])

    def loss(self):
        return self.value


class Empty(party.Server):
    """Tasks without data: what Ray itself costs."""

    def fresh(self):
        pass

    def round(self):
        self.ask("nothing")
        self.settle(*self.way.results(list(self.pending)))

    def loss(self):
        return 0.0
