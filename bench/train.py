# SPDX-License-Identifier: BSD-3-Clause
"""One worker of data-parallel training by a sarissa.Group, for `bench train`: train.py RANK, one per node.
It takes a line with a JSON object (the fields of `Run`), answers when it has its images, takes the time to
start at, trains for so many seconds, and answers with what it saw. The gradients are real; how long a device would compute them is slept, because eight devices do not
fit into two cores. No part of it knows how the group is made."""

import dataclasses
import gzip
import json
import sys
import time

import numpy

DIGITS = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
TESTS = 360  # images of the digits that are never trained with
SLOT_S = 1.0  # so long the same workers are slow
SLOWEST, FASTEST = 5.0, 2.0  # times as slow, after the stragglers of Serene's evaluation
JITTER = 0.1


@dataclasses.dataclass
class Run:
    group: str
    policy: str
    workers: int
    data: str
    seed: int
    seconds: float
    work_ms: float
    batch: int
    rate: float  # of learning, for the mean of one gradient of each worker
    sample_s: float
    swaps: list  # [seconds after the start, policy], done by worker 0
    switch: str  # address of an aggregator, or None
    start_s: float = 0.0  # of the monotonic clock, which the nodes of one machine share


def digits():
    """8 x 8 images of handwritten digits, UCI, as Debian's python3-sklearn has them: 1,797 with their labels."""
    with gzip.open(DIGITS, "rt") as file:
        table = numpy.loadtxt(file, delimiter=",", dtype=numpy.float32)
    table = table[numpy.random.default_rng(0).permutation(len(table))]
    return table[:, :-1] / 16, table[:, -1].astype(int), (64, 64, 10), TESTS


def synthetic():
    """28 x 28 images: ten smooth shapes, each moved and under noise, 12,000 with their labels."""
    random = numpy.random.default_rng(7)
    x, y = numpy.meshgrid(numpy.arange(28), numpy.arange(28))
    images = numpy.empty((12000, 784), numpy.float32)
    labels = random.integers(0, 10, len(images))
    waves = random.uniform(0.1, 0.7, (10, 3, 2)) * random.choice((-1, 1), (10, 3, 2))
    for i, label in enumerate(labels):
        dx, dy = random.uniform(-2.5, 2.5, 2)
        shape = sum(numpy.cos(kx * (x - dx) + ky * (y - dy)) for kx, ky in waves[label])
        images[i] = (shape / 3 + random.normal(0, 1.2, (28, 28))).ravel()
    return images, labels, (784, 128, 10), 2000


SETS = {"digits": digits, "synthetic": synthetic}


class Network:
    """A perceptron with one hidden layer. All its parameters are one vector of f32."""

    def __init__(self, sizes):
        self.inputs, self.hidden, self.outputs = sizes
        self.shapes = ((self.inputs, self.hidden), (self.hidden,), (self.hidden, self.outputs), (self.outputs,))
        self.count = sum(int(numpy.prod(shape)) for shape in self.shapes)

    def first(self, seed):
        random, vector = numpy.random.default_rng(seed), numpy.zeros(self.count, numpy.float32)
        for weights in self.parts(vector)[::2]:
            weights[:] = random.normal(0, 1 / numpy.sqrt(len(weights)), weights.shape)
        return vector

    def parts(self, vector):
        out, at = [], 0
        for shape in self.shapes:
            size = int(numpy.prod(shape))
            out.append(vector[at:at + size].reshape(shape))
            at += size
        return out

    def forward(self, vector, images):
        first, bias, second, last = self.parts(vector)
        hidden = numpy.maximum(images @ first + bias, 0)
        return hidden, hidden @ second + last

    def gradient(self, vector, images, labels):
        """Of the mean cross-entropy."""
        _, _, second, _ = self.parts(vector)
        hidden, scores = self.forward(vector, images)
        scores -= scores.max(axis=1, keepdims=True)
        odds = numpy.exp(scores)
        odds /= odds.sum(axis=1, keepdims=True)
        odds[numpy.arange(len(labels)), labels] -= 1
        odds /= len(labels)
        back = (odds @ second.T) * (hidden > 0)
        out = numpy.empty(self.count, numpy.float32)
        for part, value in zip(self.parts(out), (images.T @ back, back.sum(0), hidden.T @ odds, odds.sum(0))):
            part[:] = value
        return out

    def accuracy(self, vector, images, labels):
        return float((self.forward(vector, images)[1].argmax(axis=1) == labels).mean())


def slowness(seed, rank, workers, at_s):
    """Of a worker at a time: one or two workers, drawn for each slot, are 2 to 5 times as slow."""
    slot = numpy.random.default_rng((seed, int(at_s // SLOT_S)))
    slow = slot.permutation(workers)[:slot.integers(1, 3)]
    return slot.uniform(FASTEST, SLOWEST, workers)[rank] if rank in slow else 1.0


class Device:
    """Computes for as long as a device of its own would, which is slow at times."""

    def __init__(self, run, rank):
        self.run, self.rank, self.jitter = run, rank, numpy.random.default_rng((run.seed, 1000 + rank))

    def computed(self, begin_s, work):
        run = self.run
        result = work()
        seconds = run.work_ms / 1e3 * self.jitter.uniform(1 - JITTER, 1 + JITTER) * \
            slowness(run.seed, self.rank, run.workers, begin_s - run.start_s)
        time.sleep(max(0.0, begin_s + seconds - time.monotonic()))
        return result


class Worker:
    def __init__(self, run, rank):
        self.run, self.rank = run, rank
        images, labels, sizes, tests = SETS[run.data]()
        self.network = Network(sizes)
        self.tests = images[:tests], labels[:tests]
        own = numpy.arange(tests + rank, len(images), run.workers)
        self.images, self.labels = images[own], labels[own]
        self.random = numpy.random.default_rng((run.seed, rank))
        self.parameters = self.origin = self.network.first(run.seed)
        self.residual = None  # a gradient that came too late to count
        self.samples, self.rounds, self.waited_s, self.cpu_s, self.steps, self.refused = [], [], 0.0, 0.0, 0, 0
        self.spans, self.swapped = [], []  # with swaps: steps and changes of policy, in seconds after the start

    def gradient(self):
        chosen = self.random.integers(0, len(self.images), self.run.batch)
        return self.network.gradient(self.parameters, self.images[chosen], self.labels[chosen])

    def train(self, node):
        run = self.run
        if self.rank == 0:
            node.create_group(run.group, dtype="float32", count=self.network.count, op="sum", policy=run.policy,
                              members=run.workers, results="total", switch=run.switch)
        group, swaps = opened(node, run.group), [tuple(one) for one in run.swaps]
        device, shown, before = Device(run, self.rank), -1, time.process_time()
        with group.join() as member:
            time.sleep(max(0.0, run.start_s - time.monotonic()))
            while (now := time.monotonic()) < run.start_s + run.seconds:
                if self.rank == 0 and swaps and now >= run.start_s + swaps[0][0]:
                    self.swap(group, swaps.pop(0)[1])
                gradient = device.computed(now, self.gradient)
                if self.residual is not None:
                    gradient += self.residual
                begin = time.monotonic()
                self.push(member, gradient)
                result = member.pull(timeout=run.seconds)
                end = time.monotonic()
                self.waited_s += end - begin
                self.steps += 1
                if run.swaps and result is not None:
                    self.spans.append((now - run.start_s, begin - run.start_s, end - run.start_s, result.round,
                                       result.version))
                if result is not None and result.round != shown:
                    shown = result.round
                    self.parameters = self.origin - run.rate / run.workers * result.array
                    self.see(end - run.start_s, result)
            self.cpu_s = time.process_time() - before
            ended = group.info() if self.rank == 0 else None
        return ended

    def push(self, member, gradient):
        import sarissa
        while True:
            try:
                member.push(gradient)
                self.residual = None
            except sarissa.Late:
                self.residual, self.refused = gradient, self.refused + 1
            except sarissa.Busy:  # a policy that is stricter than before has this worker wait
                member.pull(timeout=self.run.seconds)
                continue
            return

    def swap(self, group, policy):
        begin = time.monotonic() - self.run.start_s
        version = group.policy(policy)
        self.swapped.append((begin, time.monotonic() - self.run.start_s, policy, version))

    def see(self, at_s, result):
        if self.rank == 0:
            self.rounds.append((at_s, result.round, result.version, result.count,
                                max((one[2] for one in result.members), default=0)))
        if not self.samples or at_s - self.samples[-1][0] >= self.run.sample_s:
            self.samples.append((at_s, self.parameters))

    def told(self):
        curve = [(at, self.network.accuracy(one, *self.tests)) for at, one in self.samples]
        return {"curve": curve, "steps": self.steps, "waited_s": self.waited_s, "cpu_s": self.cpu_s,
                "refused": self.refused, "rounds": self.rounds, "spans": self.spans, "swapped": self.swapped}


def opened(node, name, patience_s=30.0):
    """A group that worker 0 makes."""
    import sarissa
    until = time.monotonic() + patience_s
    while True:
        try:
            return node.group(name)
        except sarissa.NotFound:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def main():
    import sarissa
    rank = int(sys.argv[1])
    with sarissa.open() as node:
        for line in sys.stdin:
            try:
                worker = Worker(Run(**json.loads(line)), rank)
                print(json.dumps({"ready": rank}), flush=True)
                worker.run.start_s = float(next(sys.stdin))
                info = worker.train(node)
                print(json.dumps({**worker.told(), "info": info}, default=str), flush=True)
            except Exception as error:
                print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
