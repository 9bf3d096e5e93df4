# SPDX-License-Identifier: BSD-3-Clause
"""What the applications have in common: a server, which is the driver of Ray on node 0, and a worker on each other
node, which is an actor.

Each application derives a Worker and a Server. A round ends when the server has what it waits for. The server counts
who is lost and goes on with the others. It does not know how arrays travel: ways.py does."""

import os
import time
from pathlib import Path

import numpy
import ray

from ray_apps import ways

SEED = 7


def busy_seconds():
    """CPU time of the whole machine, of all cores together."""
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Span:
    """From here to end(): seconds, and CPU seconds of the machine."""

    def __init__(self):
        self.cpu, self.begin = busy_seconds(), time.monotonic()

    def end(self, at=None):
        return (at or time.monotonic()) - self.begin, busy_seconds() - self.cpu


class Worker:
    """An actor. Who derives has fresh(): a model and data of their own, from the specification."""

    def __init__(self, number, spec):
        self.number, self.spec = number, spec
        self.fresh()

    def join(self, system, how, rank, count, meeting):
        """From here on arrays travel so."""
        self.way = ways.SYSTEMS[system](how, rank, count, meeting)

    def leave(self):
        self.way.close()
        self.fresh()

    def fresh(self):
        raise NotImplementedError


class Server:
    """Who derives has fresh() and round(). A worker is idle, or has one task that is pending."""

    def __init__(self, spec, workers, meetings):
        """workers: actors; meetings: an iterator of addresses host:port, each used once."""
        self.spec, self.workers, self.meetings = spec, list(workers), meetings
        self.fresh()

    def join(self, system, how):
        """From here on arrays travel so; how: what may be done in several ways, or ''."""
        self.system, self.how, self.idle, self.pending = system, how, list(self.workers), {}
        self.meet()

    def timed(self):
        """A round, and what it took."""
        span = Span()
        self.round()
        return span.end()

    def meet(self):
        """All who are there, in ranks: the server first."""
        meeting, count = next(self.meetings), len(self.workers) + 1
        joined = [worker.join.remote(self.system, self.how, rank, count, meeting)
                  for rank, worker in enumerate(self.workers, 1)]
        self.way = ways.SYSTEMS[self.system](self.how, 0, count, meeting)
        ray.get(joined)

    def leave(self):
        """When what is pending has ended; the next system begins with the same models."""
        self.way.results([worker.leave.remote() for worker in self.workers])
        self.way.close()
        self.fresh()

    def begin(self, method, *arguments):
        """A task for each worker that is idle, which gives an array."""
        for worker in self.idle:
            self.pending[self.way.call(getattr(worker, method), *arguments)] = worker
        self.idle = []

    def ask(self, method, *arguments):
        """The same for small results: Ray brings them."""
        for worker in self.idle:
            self.pending[getattr(worker, method).remote(*arguments)] = worker
        self.idle = []

    def settle(self, done, lost):
        """The workers of these tasks are idle, or are not there any longer."""
        self.idle += [self.pending.pop(task) for task in done]
        self.idle.sort(key=self.workers.index)  # the same order in all systems
        for task in lost:
            self.workers.remove(self.pending.pop(task))
        if lost and self.way.of_all:
            self.idle, self.pending = list(self.workers), {}
            self.meet()

    def sum(self, num, shape, own=None):
        """Of the first num arrays that are pending, and how many it is; None where a member was lost and the round
        must be made again."""
        total, used, lost = self.way.sum(list(self.pending), min(num, len(self.pending)), shape, own)
        self.settle(used, lost)
        return total, len(used)


class Descent(Server):
    """The server of a model that its workers give gradients for. Who derives has fresh(), which makes the model."""

    def round(self):
        if self.idle:
            self.given = self.way.put(self.model.get())
            self.begin("gradient", [self.given])
        total, count = self.sum(self.spec["num"], (self.model.count,))
        if count:
            self.model.descend(total / numpy.float32(count))
