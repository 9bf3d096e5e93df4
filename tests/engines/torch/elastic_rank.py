# SPDX-License-Identifier: BSD-3-Clause
"""A rank of an ElasticGroup, for test_elastic.py, which starts it and kills it. A Rank is a process forked
from one that has imported torch already. It trains when it is told to, and tells each thing that happens."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback

import sarissa.torch
import torch

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["elastic_rank"])
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1).step()  # it imports much, once for all ranks


def train(wire, tell, name, min_ranks=2, policy="bsp", pause=0.05, dies_at=-1, momentum=0.9):
    """A small regression, whose loss falls. All ranks end with the step in which one of them was told to stop."""
    torch.manual_seed(os.getpid())  # what they have in common they have from the group
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum)
    truth = torch.linspace(-1, 1, 20)
    with sarissa.torch.ElasticGroup(name, min_ranks=min_ranks, policy=policy, timeout=30) as group:
        def news(what, **more):
            tell(what, events=[tuple(event) for event in group.events()], step=group.step, **more)
        group.sync(model, optimizer)
        news("synced", rank=group.rank)
        stop = torch.zeros(1)
        while not stop:
            stop.fill_(wire.poll())
            inputs = torch.randn(64, 20)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), (inputs @ truth).unsqueeze(1))
            loss.backward()
            time.sleep(pause)
            if group.step == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            group.allreduce([*model.parameters(), stop])
            optimizer.step()
            news("step", loss=loss.item(), weights=sum(float(one.detach().double().sum()) for one in model.parameters()))


def run(wire, socket, what, given, options):
    os.environ["SARISSA_SOCKET"] = socket
    torch.set_num_threads(1)

    def tell(kind, **more):
        wire.send({"what": kind, "time": time.monotonic(), **more})
    tell("ready")
    wire.recv()
    try:
        what(wire, tell, *given, **options)
        tell("end")
    except BaseException:
        tell("error", text=traceback.format_exc())
        raise


@contextlib.contextmanager
def without_main():
    """A process that is started within the block does not import pytest again."""
    main = sys.modules["__main__"]
    spec, file = main.__spec__, main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


class Rank:
    """A process that runs what(wire, tell, *given, **options) after go(), as a task of a cluster's node, and what it has
    told."""

    def __init__(self, cluster, node, what, *given, **options):
        self._wire, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=run, args=(theirs, cluster.sockets[node], what, given, options), daemon=True)
        with without_main():
            self.process.start()
        theirs.close()
        self.said, self._news = [], threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        while True:
            try:
                one = self._wire.recv()
            except (EOFError, OSError):
                break
            with self._news:
                self.said.append(one)
                self._news.notify_all()
        self.process.join()
        with self._news:
            self._news.notify_all()

    def _wait(self, until):
        with self._news:
            assert self._news.wait_for(lambda: until() or not self._thread.is_alive(), 60), self.said[-3:]

    def ready(self):
        self._wait(lambda: self.said)
        return self

    def go(self):
        self.ready()
        self._wire.send("go")
        return self

    def stop(self):
        self._wire.send("stop")
        return self

    def at(self, step):
        self._wait(lambda: self.said and self.said[-1].get("step", 0) >= step)
        return self

    def end(self):
        """The exit status."""
        self._thread.join(60)
        return self.process.exitcode

    def kill(self):
        self.process.kill()
        self.end()

    @property
    def error(self):
        return "".join(one["text"] for one in self.of("error"))

    def of(self, what):
        return [one for one in self.said if one["what"] == what]

    def events(self, kind):
        return [event for one in self.said for event in one.get("events", ()) if event[0] == kind]

    def longest_step(self):
        times = [one["time"] for one in self.of("step")]
        return max(b - a for a, b in zip(times, times[1:]))
