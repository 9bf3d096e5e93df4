# SPDX-License-Identifier: BSD-3-Clause
"""Dask for the tests of sarissa.dask: a scheduler on node 0 and a worker on each node."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import distributed
import pytest
import sarissa.dask

PATIENCE_S = 60
HERE = Path(__file__).parent


def until(holds, told=lambda: ""):
    """A list of objects may lack a node that does not answer for a moment, on a busy machine."""
    late = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(sarissa.PartialError):
            if holds():
                return
        assert time.monotonic() < late, f"it does not come about: {told()}"
        time.sleep(0.02)


def register(client, plugin):
    """In Dask of today, and in Debian's."""
    (getattr(client, "register_plugin", None) or client.register_worker_plugin)(plugin)


class Dask:
    """Its processes, each on the node whose socket it is given (None: on none)."""

    def __init__(self, local, folder, sockets, tls=(), memory=0, **client):
        self.folder, self.tls, self.memory, self.children, self.client = folder, tls, memory, [], None
        try:
            self.begin(local, folder, sockets, client)
        except BaseException:
            self.close()
            raise

    def begin(self, local, folder, sockets, client):
        scheduler = self.start("scheduler", local.socket[0], "--port", "0", "--host", "127.0.0.1",
                               "--dashboard-address", "127.0.0.1:0", "--scheduler-file", folder / "scheduler")
        for number, socket in enumerate(sockets):
            self.worker(socket, number)
        self.scheduler = scheduler
        until(lambda: (folder / "scheduler").exists())
        self.client = distributed.Client(scheduler_file=str(folder / "scheduler"), **client)
        self.client.wait_for_workers(len(sockets), timeout=PATIENCE_S)
        self.learn()

    def worker(self, socket, number):
        self.start("worker", socket, "--scheduler-file", self.folder / "scheduler", "--host", "127.0.0.1",
                   "--name", number, "--no-nanny", "--nthreads", 2, "--memory-limit", self.memory,
                   "--local-directory", self.folder)

    def learn(self):
        named = self.client.run(lambda dask_worker: dask_worker.name)
        self.address = {int(name): address for address, name in named.items()}

    def start(self, kind, socket, *argv):
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
               "SARISSA_SOCKET": socket or "/nonexistent/node",
               "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{HERE}:{HERE.parent}",
               "DASK_DISTRIBUTED__COMM__RETRY__COUNT": "3",
               # every 2 s it drops copies, also those of a replicate() under way, which then sends them again
               "DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False"}
        with open(self.folder / f"log.{kind}", "ab") as log:
            child = subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard",
                                      *map(str, self.tls), *map(str, argv)], env=env, stdout=log, stderr=subprocess.STDOUT)
        self.children.append(child)
        return child

    def submit(self, function, *arguments, node=None):
        where = {} if node is None else {"workers": [self.address[node]], "allow_other_workers": False}
        return self.client.submit(function, *arguments, pure=False, **where)

    def read_by(self, make, readers, node=0):
        """A future of make() at a node, and one of each of readers, by node: it is made when all of them wait for it."""
        opened, wait = self.gate()
        made = self.submit(lambda: wait() and make(), node=node)
        futures = [self.submit(function, made, node=at) for at, function in readers.items()]
        opened(made, len(futures))
        return made, futures

    def read_at_once(self, value, readers):
        """A future of each of readers, by node, of a value that is there already: they begin together."""
        opened, wait = self.gate()
        begin = self.submit(wait, node=0)
        futures = [self.submit(lambda given, _, function=function: function(given), value, begin, node=at)
                   for at, function in readers.items()]
        opened(begin, len(futures))
        return futures

    def gate(self):
        """What a task waits with, and what ends that when so many others wait for the task."""
        name = uuid.uuid4().hex

        def wait():
            return distributed.Event(name).wait()

        def waiting(key, dask_scheduler):
            return len(dask_scheduler.tasks[key].waiters) if key in dask_scheduler.tasks else 0

        def opened(task, count):
            until(lambda: self.client.run_on_scheduler(waiting, key=task.key) == count)
            distributed.Event(name, client=self.client).set()
        return opened, wait

    def counts(self):
        return sarissa.dask.counts(self.client)

    def since(self, before):
        return {key: count - before[key] for key, count in self.counts().items()}

    def close(self):
        if self.client is not None:
            self.client.close()
        for child in self.children:
            child.kill()
            child.wait()


@contextlib.contextmanager
def plugged(local, folder, **how):
    """A Dask with the plugin. how: that of Dask, and the plugin's arguments."""
    plugin = how.pop("plugin", {"ttl": 1.0})
    made = Dask(local, folder, local.socket, **how)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SARISSA_SOCKET", local.socket[0])  # the client's host has a node
            register(made.client, sarissa.dask.Plugin(**plugin))
            yield made
    finally:
        made.close()
        sarissa.dask.close()
    assert sarissa.dask._store is None


@pytest.fixture(scope="module")
def dask(local, tmp_path_factory):
    with plugged(local, tmp_path_factory.mktemp("dask")) as made:
        yield made
