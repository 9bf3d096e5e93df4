# SPDX-License-Identifier: BSD-3-Clause
"""Programs of a user of Dask, for `bench dask`: dask_cases.py SCHEDULER WORKERS PLUGIN, on node 0. The same
lines with and without sarissa.dask.Plugin, but for the sum, which has a call of its own there. Takes lines
CASE BYTES COUNT, answers each with {"seconds"}: until the task that asked for the bytes begins."""

import json
import sys
import time

import numpy
from distributed import Client, wait

SETTLE_S = 5.0


def make(number, size):
    return numpy.random.default_rng(number).random(size // 8)


def add(*arrays):
    out = arrays[0] + arrays[1]
    for array in arrays[2:]:
        out += array
    return out


def begun(*arrays):
    """When all arguments are here; the first elements, to be checked."""
    return time.monotonic(), [float(array[0]) for array in arrays]


def same(number):
    return number


def tasks_left(dask_scheduler):
    return len(dask_scheduler.tasks)


class Cases:
    def __init__(self, scheduler, workers, plugin):
        self.client = Client(scheduler)
        self.client.wait_for_workers(workers, timeout=60)
        self.workers, self.plugin = workers, plugin
        named = self.client.run(lambda dask_worker: dask_worker.name)
        self.address = {int(name): address for address, name in named.items()}
        if plugin:
            import sarissa.dask
            register = getattr(self.client, "register_plugin", None) or self.client.register_worker_plugin
            register(sarissa.dask.Plugin())
            self.sum = sarissa.dask.reduce

    def submit(self, function, *arguments, node=None):
        where = {} if node is None else {"workers": [self.address[node]]}
        return self.client.submit(function, *arguments, pure=False, **where)

    def made(self, count, size, node_of):
        arrays = [self.submit(make, i, size, node=node_of(i)) for i in range(count)]
        wait(arrays)
        return arrays

    def scatter_broadcast(self, size, count):
        """One array of the client to all workers."""
        array, begin = make(0, size), time.monotonic()
        future = self.client.scatter(array, broadcast=True)
        ends = self.client.gather([self.submit(begun, future, node=node) for node in range(self.workers)])
        assert all(first == [array[0]] for _, first in ends)
        return max(end for end, _ in ends) - begin

    def tree_sum(self, size, count):
        """The sum of count arrays, to worker 0."""
        arrays = self.made(count, size, lambda i: i % self.workers)
        right, begin = sum(make(i, size)[0] for i in range(count)), time.monotonic()
        total = self.sum(arrays) if self.plugin else self.tree(arrays)
        end, first = self.submit(begun, total, node=0).result()
        assert abs(first[0] - right) < 1e-6 * right
        return end - begin

    def tree(self, arrays):
        while len(arrays) > 1:
            arrays = [self.submit(add, *arrays[at:at + 2]) if at + 1 < len(arrays) else arrays[at]
                      for at in range(0, len(arrays), 2)]
        return arrays[0]

    def all_to_all(self, size, count):
        """Array i goes from worker i mod W to worker (i / W) mod W, as the blocks of a shuffle do."""
        arrays, begin = self.made(count, size, lambda i: i % self.workers), time.monotonic()
        ends = self.client.gather([
            self.submit(begun, *[array for i, array in enumerate(arrays) if i // self.workers % self.workers == node],
                        node=node) for node in range(self.workers)])
        return max(end for end, _ in ends) - begin

    def small_tasks(self, size, count):
        begin = time.monotonic()
        assert self.client.gather(self.client.map(same, range(count), pure=False)) == list(range(count))
        return time.monotonic() - begin

    def settle(self):
        """Dask forgets thousands of tasks after a case, which would cost the next one time."""
        until = time.monotonic() + SETTLE_S
        while self.client.run_on_scheduler(tasks_left) > 0 and time.monotonic() < until:
            time.sleep(0.02)


def main():
    cases = Cases(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1")
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        case, size, count = line.split()
        seconds = getattr(cases, case.replace("-", "_"))(int(size), int(count))
        cases.settle()
        print(json.dumps({"seconds": seconds}), flush=True)


main()
