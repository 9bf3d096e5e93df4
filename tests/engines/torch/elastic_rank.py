# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of an ElasticGroup and of DDP, for test_elastic.py and test_hook.py, which start and kill them. A Rank is a
process forked from one that has imported torch already. It trains when it is told to, and tells what happens."""

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
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["elastic_rank"])
if (HERE := os.path.dirname(__file__)) not in os.environ.get("PYTHONPATH", ""):  # the server looks nowhere else
    os.environ["PYTHONPATH"] = HERE + os.pathsep + os.environ.get("PYTHONPATH", "")
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


def ddp(wire, tell, rank, size, file, policy, pause=0.0, steps=None, dies_at=-1, buckets=25, dtype=torch.float32):
    """Steps until the parent says stop, or so many; it says stop in any case. policy None: gloo averages."""
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(30, 600), torch.nn.Tanh(), torch.nn.Linear(600, 600), torch.nn.Tanh(),
                                torch.nn.Linear(600, 1)).to(dtype)
    wrapped = DistributedDataParallel(model, bucket_cap_mb=buckets)
    state = None
    if policy is not None:
        state = sarissa.torch.HookState(policy, timeout=30)
        wrapped.register_comm_hook(state, sarissa.torch.k_of_n_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    torch.manual_seed(rank)
    step = 0
    while not wire.poll() and step != steps:
        inputs = torch.randn(16, 30, dtype=dtype)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(wrapped(inputs), inputs.sum(1, keepdim=True))
        time.sleep(pause)
        if step == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        step += 1
        tell("step", step=step, loss=loss.item(), rounds=state.rounds if state else None,
             weights=[float(one.detach().double().norm()) for one in model.parameters()])
    wire.recv()
    if state is not None:
        state.close()
    os._exit(0)  # the end of gloo's group would wait for the others


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
