# SPDX-License-Identifier: BSD-3-Clause
"""One rank of the programs of `bench torch`: torch_work.py SYSTEM RANK RANKS STORE TIMEOUT. SYSTEM is a
backend of torch.distributed, whose operations take up to TIMEOUT seconds, or elastic: an ElasticGroup of sarissa.torch.

It takes lines of JSON, each with the name of a function below and its arguments, and answers each with a line. It does
not know what is measured beside it."""

import datetime
import hashlib
import json
import sys
import time
from functools import lru_cache, partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

SYSTEM, RANK, RANKS, STORE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
TIMEOUT = datetime.timedelta(seconds=float(sys.argv[5]))
AFTER_STEPS = 3  # an ElasticGroup goes on for, after a death
CLASSES = 1000
SMALL_INPUTS, SMALL_HIDDEN = 64, 250  # of the model whose steps one rank delays: 1 MB


class Block(nn.Module):
    """Two convolutions of 3 x 3 and what passes them by, as in He et al., Deep Residual Learning, figure 5 left."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.past = nn.Identity() if inputs == outputs else \
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.past(x))


class ResNet18(nn.Module):
    """11.7 million parameters."""

    def __init__(self):
        super().__init__()
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(*(Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])))
        self.head = nn.Linear(512, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def small():
    return nn.Sequential(nn.Linear(SMALL_INPUTS, SMALL_HIDDEN), nn.ReLU(), nn.Linear(SMALL_HIDDEN, CLASSES - 76))


def bytes_of(model):
    return sum(one.numel() * one.element_size() for one in model.parameters())


def digest(model):
    state = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
    return hashlib.sha256(state).hexdigest()


@lru_cache(maxsize=None)
def trained():
    torch.manual_seed(0)
    model = DistributedDataParallel(ResNet18())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def backward(model, optimizer, random, shape):
    optimizer.zero_grad()
    images, labels = torch.randn(shape, generator=random), torch.randint(0, 900, shape[:1], generator=random)
    functional.cross_entropy(model(images), labels).backward()


def step(model, optimizer, random, shape):
    backward(model, optimizer, random, shape)
    optimizer.step()


def prepared():
    torch.manual_seed(0)
    model = small()
    return model, torch.optim.SGD(model.parameters(), lr=0.01), torch.Generator().manual_seed(RANK)


def together(group, model, optimizer):
    """Joins, and waits until all have."""
    group.sync(model, optimizer)
    while len(group.ranks()) < RANKS:
        time.sleep(0.01)


# --- what a line may ask for

def ready():
    """What PyTorch loads when it is first used is loaded then."""
    if SYSTEM != "elastic":
        model, optimizer, random = prepared()
        step(DistributedDataParallel(model), optimizer, random, (8, SMALL_INPUTS))
    return {}


def allreduce(nbytes, count):
    """Sums of powers of two, where RANKS is one, so that the last one is right to the bit."""
    tensor = torch.full((nbytes // 4,), float(RANK + 1))
    dist.all_reduce(tensor)
    dist.barrier()
    began = time.monotonic()
    for _ in range(count):
        dist.all_reduce(tensor)
    seconds = time.monotonic() - began
    right = torch.full_like(tensor, RANKS * (RANKS + 1) / 2 * float(RANKS) ** count)
    return {"seconds": seconds / count, "right": torch.equal(tensor, right) if RANKS & RANKS - 1 == 0 else
            torch.allclose(tensor, right)}


def ddp(steps, batch, side):
    model, optimizer = trained()
    random = torch.Generator().manual_seed(RANK)
    step(model, optimizer, random, (batch, 3, side, side))
    dist.barrier()
    began = time.monotonic()
    for _ in range(steps):
        step(model, optimizer, random, (batch, 3, side, side))
    seconds = (time.monotonic() - began) / steps
    return {"seconds": seconds, "bytes": bytes_of(model.module), "digest": digest(model.module)}


def slow_rank(seconds, step_s, factor, policy=None):
    """About so long, with steps that compute for step_s, and factor times that at the last rank. policy: of the hook of
    sarissa.torch; None: without it all wait for all."""
    model, optimizer, random = prepared()
    model, shape = DistributedDataParallel(model), (8, SMALL_INPUTS)
    state = hooked(model, policy, 2 * step_s * factor ** 2) if policy else None
    step(model, optimizer, random, shape)  # in the first all wait for all
    began, steps, most = time.monotonic(), 0, sys.maxsize if policy else int(seconds / (step_s * factor))
    while steps < most and (state is None or time.monotonic() < began + seconds):
        time.sleep(step_s * (factor if RANK == RANKS - 1 else 1))
        try:
            step(model, optimizer, random, shape)
        except Exception:
            if state is None or time.monotonic() < began + seconds:
                raise
            break  # others have ended already
        steps += 1
    spent = time.monotonic() - began
    if state is not None:
        state.close()
    return {"seconds": min(spent, seconds) if policy else spent, "steps": steps, "bytes": bytes_of(model.module)}


def hooked(model, policy, timeout):
    import sarissa.torch
    state = sarissa.torch.HookState(policy, timeout=timeout)
    model.register_comm_hook(state, sarissa.torch.k_of_n_hook)
    return state


def dead_rank(nbytes):
    """Until one of the others is killed: when the error has come."""
    tensor = torch.zeros(nbytes // 4)
    dist.barrier()
    say({"begun": time.monotonic()})
    try:
        while True:
            dist.all_reduce(tensor)
    except Exception as error:
        return {"at": time.monotonic(), "told": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def elastic_death():
    """The steps of an ElasticGroup in which one is killed: when the first one without it has ended."""
    import sarissa.torch
    model, optimizer, random = prepared()
    at, after = None, 0
    with sarissa.torch.ElasticGroup("bench", min_ranks=1) as group:
        together(group, model, optimizer)
        say({"begun": time.monotonic()})
        while after < AFTER_STEPS:
            backward(model, optimizer, random, (8, SMALL_INPUTS))
            seen = torch.tensor([float(at is not None)])  # by which all end with the same step
            group.allreduce([*model.parameters(), seen])
            optimizer.step()
            if at is None and (seen or any(event.kind == "left" for event in group.events())):
                at = time.monotonic()
            after += bool(seen)
    return {"at": at, "bytes": bytes_of(model), "digest": digest(model)}


# --- the program

ASKED = {one.__name__: one for one in (ready, allreduce, ddp, slow_rank, dead_rank, elastic_death)}


def say(told):
    print(json.dumps(told), flush=True)


def main():
    torch.set_num_threads(1)
    if SYSTEM == "sarissa":
        import sarissa.torch  # noqa: F401  registers the backend
    if SYSTEM != "elastic":
        dist.init_process_group(SYSTEM, init_method=f"file://{STORE}", rank=RANK, world_size=RANKS, timeout=TIMEOUT)
    for line in sys.stdin:
        given = json.loads(line)
        try:
            say(partial(ASKED[given.pop("do")], **given)())
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


if __name__ == "__main__":
    main()
