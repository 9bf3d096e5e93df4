# SPDX-License-Identifier: BSD-3-Clause
"""How arrays travel in the applications: Ray's own object store, gloo's collectives, Sarissa.

Each has the same calls, for the server (the driver of Ray) and for its workers, which are actors:

  put(array)            server: for all workers; what it returns goes to them in the arguments of a task
  call(method, ...)     server: begins a task that gives an array or a part of a sum
  get(given)            worker: the array
  add(array, out)       worker: what a task returns that gives a part of a sum; out: what call() has added
  give(array, out)      worker: what a task returns that gives an array
  own(array)            server: an array of its own that a sum begins with
  sum(tasks, num, shape, own)
                        server: (sum, tasks that are in it, tasks whose workers are lost) of the first num
  gather(tasks, shape)  server: ({task: array of that shape}, tasks whose workers are lost)
  results(tasks)        server: the same of what Ray itself brings back

A sum is None when a member was lost and the round must be made again. The models do not know of any of it."""

import datetime
import os

import numpy
import ray
import sarissa

LOST = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError, ray.exceptions.NodeDiedError)
GLOO_S = 30.0  # after it a member gives up that waits for one which has died


class Way:
    of_all = False  # whether each round takes all workers

    def call(self, method, *arguments):
        return method.remote(*arguments, None)

    def results(self, tasks):
        values, lost, left = {}, [], list(tasks)
        while left:
            ready, left = ray.wait(left)
            try:
                values[ready[0]] = ray.get(ready[0])
            except LOST:
                lost.append(ready[0])
        return values, lost

    def own(self, array):
        return array

    def end(self, tasks):
        """Waits for tasks whose results nobody wants."""
        if tasks:
            ray.wait(tasks, num_returns=len(tasks), fetch_local=False)

    def close(self):
        """Of the server or of a worker."""


class Store(Way):
    """Ray's object store: the first num gradients are got and added up, as they come."""

    def __init__(self, how, rank, count, meeting):
        pass

    def put(self, array):
        return ray.put(array)

    def get(self, given):
        return ray.get(given)

    def add(self, array, out):
        return array

    give = add

    def sum(self, tasks, num, shape, own=None):
        total, used, lost, left = None if own is None else own.copy(), [], [], list(tasks)
        while left and len(used) < num:
            ready, left = ray.wait(left, num_returns=min(num - len(used), len(left)))
            for task in ready:
                try:
                    array = ray.get(task)
                except LOST:
                    lost.append(task)
                    continue
                total = array.copy() if total is None else numpy.add(total, array, out=total)
                used.append(task)
        return total, used, lost

    def gather(self, tasks, shape):
        return self.results(tasks)


class Gloo(Way):
    """Collectives of torch.distributed, as ray.util.collective makes them: all members take part in each, so a
    sum has all workers in it. After the loss of a member the others make a new group. An array for all is a sum
    with zeros unless how is "broadcast": gloo's ring is faster than its tree."""

    of_all = True

    def __init__(self, how, rank, count, meeting):
        import torch
        from torch import distributed
        self.torch, self.distributed, self.rank, self.count = torch, distributed, rank, count
        self.sent, self.is_tree = None, how == "broadcast"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
        self.close()
        distributed.init_process_group("gloo", init_method=f"tcp://{meeting}", rank=rank, world_size=count,
                                       timeout=datetime.timedelta(seconds=GLOO_S))

    def put(self, array):
        self.kept = self.torch.from_numpy(array)
        self.sent = self.distributed.broadcast(self.kept, 0, async_op=True) if self.is_tree else \
            self.distributed.all_reduce(self.kept, async_op=True)
        return array.shape

    def get(self, given):
        array = self.torch.zeros(*given)
        if self.is_tree:
            self.collective(self.distributed.broadcast, array, 0)
        else:
            self.collective(self.distributed.all_reduce, array)
        return array.numpy()

    def add(self, array, out):
        self.collective(self.distributed.reduce, self.torch.from_numpy(array), 0)

    def give(self, array, out):
        self.collective(self.distributed.gather, self.torch.from_numpy(array), None, 0)

    def collective(self, call, *arguments):
        """A member that fails leaves the group, so that the others fail, too, and wait for nobody."""
        try:
            call(*arguments)
        except RuntimeError:
            self.close()
            raise

    def sum(self, tasks, num, shape, own=None):
        total = self.torch.zeros(shape) if own is None else self.torch.from_numpy(own.copy())
        if lost := self.lost(tasks, self.distributed.reduce, total, 0):
            return None, [], lost
        return total.numpy(), list(tasks), []

    def gather(self, tasks, shape):
        parts = [self.torch.empty(*shape) for _ in range(self.count)]
        if lost := self.lost(tasks, self.distributed.gather, parts[0], parts, 0):
            return {}, lost
        return dict(zip(tasks, (part.numpy() for part in parts[1:]))), []

    def results(self, tasks):
        if lost := self.lost(tasks):
            return {}, lost
        return super().results(tasks)

    def lost(self, tasks, call=None, *arguments):
        """Takes part in the round: none if it is done, else the tasks whose workers were lost."""
        try:
            if self.sent:
                self.sent.wait()
            if call:
                self.collective(call, *arguments)
            ray.get(list(tasks))
            return []
        except (RuntimeError, *LOST):
            self.close()
        out = [task for task in tasks if self.is_lost(task)]
        if not out:
            raise RuntimeError("gloo failed, and no member was lost")
        return out

    def is_lost(self, task):
        try:
            ray.get(task)
        except LOST:
            return True
        except RuntimeError:
            pass  # a survivor, whose collective has failed
        return False

    def close(self):
        self.sent = None  # it would keep the connections
        if self.distributed.is_initialized():
            self.distributed.destroy_process_group()


class Sarissa(Way):
    """sarissa.ray: a task has the Ref of its value before it runs, and the first num values are added up on their
    way. Who is lost is told by the tasks of Ray."""

    def __init__(self, how, rank, count, meeting):
        import sarissa.ray
        self.store, self.tasks = sarissa.ray, {}

    def put(self, array):
        return self.store.put(array)

    own = put

    def get(self, given):
        return self.store.get(given)

    def call(self, method, *arguments):
        out = self.store.ref()
        self.tasks[out] = method.remote(*arguments, out)
        return out.bind(self.tasks[out])

    def add(self, array, out):
        self.store.put(array, out)

    give = add

    def sum(self, tasks, num, shape, own=None):
        left, lost = list(tasks), []
        while left:
            sources = left + ([] if own is None else [own])
            total = self.store.reduce(sources, num=min(num, len(left)) + len(sources) - len(left), cancel=False)
            try:
                value = self.store.get(total)
            except (*LOST, sarissa.Lost):
                left, lost = self.without_lost(left, lost)
                continue
            used = [one for one in total.sources()[0] if one is not own]
            _, lost = self.without_lost([one for one in left if one not in used], lost)
            self.forget([*used, *lost])
            return value, used, lost
        return None, [], lost

    def gather(self, tasks, shape):
        left, lost = list(tasks), []
        while left:
            try:
                arrays = dict(zip(left, self.store.get(left)))
            except (*LOST, sarissa.Lost):
                left, lost = self.without_lost(left, lost)
                continue
            self.forget([*left, *lost])
            return arrays, lost
        return {}, lost

    def without_lost(self, refs, lost):
        """Those whose values are there or will be, and the others."""
        ended = set(ray.wait([self.tasks[ref] for ref in refs], num_returns=len(refs), timeout=0)[0]) if refs else ()
        lost = lost + [ref for ref in refs if self.tasks[ref] in ended and self.is_lost(ref)]
        return [ref for ref in refs if ref not in lost], lost

    def is_lost(self, ref):
        """Its task has failed, or has ended on a node that has died since."""
        try:
            ray.get(self.tasks[ref])
            info = self.store.node().info(ref.name)
        except (*LOST, sarissa.NotFound, sarissa.PartialError):  # the latter: a dead node may have known it
            return True
        return not (info.copies or info.partial)

    def end(self, refs):
        super().end([self.tasks[ref] for ref in refs])

    def forget(self, refs):
        for ref in refs:
            del self.tasks[ref]


SYSTEMS = {"sarissa": Sarissa, "ray": Store, "ray-gloo": Gloo}
