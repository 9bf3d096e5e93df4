# SPDX-License-Identifier: BSD-3-Clause
"""The models of the applications in PyTorch, of a size that is asked for, their data and their environment.

Used by the programs beside it, which run on Ray. A model gives its parameters and gradients as one flat array, as
parameter servers do. It does not know how arrays travel."""

import time

import numpy
import torch
from torch import nn
from torch.nn import functional

CLASSES, CHANNELS, SIDE = 10, 3, 32  # of images
ACTIONS = 3


def width_of(parameters, fixed, linear):
    """Of the middle of two layers next to each other: width ** 2 + linear * width + fixed parameters."""
    return max(8, int((-linear + (linear ** 2 + 4 * max(0, parameters - fixed)) ** 0.5) / 2))


class AlexNet(nn.Module):
    """Convolutions, then three dense layers that have most of the parameters, for images of 32 x 32."""

    def __init__(self, size):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(CHANNELS, 16, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        width = width_of(size // 4, 6000, 512 + CLASSES)
        self.classifier = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                        nn.Linear(width, CLASSES))

    def forward(self, images):
        return self.classifier(self.features(images))


class Residual(nn.Module):
    """A small residual network, one of an ensemble: its channels differ by its number."""

    def __init__(self, number):
        super().__init__()
        channels = 8 + 2 * (number % 4)
        self.first = nn.Conv2d(CHANNELS, channels, 3, stride=4, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(4))
        self.last = nn.Linear(channels, CLASSES)

    def forward(self, images):
        x = functional.relu(self.first(images))
        for one, two in zip(self.blocks[::2], self.blocks[1::2]):
            x = functional.relu(x + two(functional.relu(one(x))))
        return self.last(x.mean(dim=(2, 3)))


class ActorCritic(nn.Module):
    """A policy and a value of the screen of a game."""

    def __init__(self, size):
        super().__init__()
        width = width_of(size // 4, ACTIONS + 1, SIDE * SIDE + ACTIONS + 3)
        self.body = nn.Sequential(nn.Linear(SIDE * SIDE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.policy, self.value = nn.Linear(width, ACTIONS), nn.Linear(width, 1)

    def forward(self, screens):
        x = self.body(screens)
        return self.policy(x), self.value(x).squeeze(-1)


class Flat:
    """A model whose parameters are one array of f32."""

    def __init__(self, model, learning_rate=0.05):
        self.model, self.learning_rate = model, learning_rate
        self.parameters = list(model.parameters())
        self.count = sum(p.numel() for p in self.parameters)

    def get(self):
        return torch.cat([p.detach().reshape(-1) for p in self.parameters]).numpy()

    def set(self, array):
        at = 0
        with torch.no_grad():
            for p in self.parameters:
                numpy.copyto(p.numpy(), array[at:at + p.numel()].reshape(p.shape))
                at += p.numel()

    def gradient(self, loss):
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, self.parameters)]).numpy()

    def descend(self, gradient):
        """gradient may be read-only; it is as long as the parameters."""
        at = 0
        with torch.no_grad():
            for p in self.parameters:
                view = p.numpy()
                view -= self.learning_rate * gradient[at:at + p.numel()].reshape(p.shape)
                at += p.numel()


def made(kind, size, seed):
    """The same parameters on every node that names the same seed."""
    torch.manual_seed(seed)
    return Flat(kind(size))


def images(count, seed):
    """Images of ten classes: a pattern of its own for each class, and noise."""
    patterns = numpy.random.default_rng(1).normal(size=(CLASSES, CHANNELS, SIDE, SIDE)).astype("f4")
    random = numpy.random.default_rng(seed)
    labels = random.integers(CLASSES, size=count)
    noise = random.normal(size=(count, CHANNELS, SIDE, SIDE)).astype("f4")
    return patterns[labels] + 2 * noise, labels


def image_loss(model, some, labels):
    return functional.cross_entropy(model(torch.from_numpy(some)), torch.from_numpy(labels))


class Catch:
    """A game, several at once: something falls down the screen, and the player moves to be below it."""

    def __init__(self, games, seed):
        self.random = numpy.random.default_rng(seed)
        self.games = games
        self.row = self.random.integers(SIDE - 1, size=games)
        self.column, self.player = self.random.integers(SIDE, size=(2, games))

    def screens(self):
        out = numpy.zeros((self.games, SIDE, SIDE), "f4")
        every = numpy.arange(self.games)
        out[every, self.row, self.column] = 1
        out[every, SIDE - 1, self.player] = -1
        return out.reshape(self.games, -1)

    def play(self, actions):
        """The rewards of a step: 1 near the place where it falls, -1 far from it."""
        self.player = numpy.clip(self.player + actions - 1, 0, SIDE - 1)
        self.row += 1
        rewards = 1 - 4 * numpy.abs(self.player - self.column) / SIDE
        fallen = self.row >= SIDE - 1
        self.row[fallen] = 0
        self.column[fallen] = self.random.integers(SIDE, size=int(fallen.sum()))
        return rewards.astype("f4")


def rollout(model, game, steps):
    """One array of f32 [steps, games, screen + action + reward + probability of the action]."""
    out = numpy.empty((steps, game.games, SIDE * SIDE + 3), "f4")
    with torch.no_grad():
        for step in out:
            step[:, :-3] = game.screens()
            policy, _ = model(torch.from_numpy(step[:, :-3].copy()))
            chances = torch.softmax(policy, -1).numpy()
            actions = (chances.cumsum(-1) < game.random.random((game.games, 1))).sum(-1).clip(0, ACTIONS - 1)
            step[:, -3], step[:, -2] = actions, game.play(actions)
            step[:, -1] = chances[numpy.arange(game.games), actions]
    return out


def actor_critic_loss(model, rollouts):
    """Of rollouts that a former policy may have made: weighted by importance, as IMPALA does, at most by 1."""
    data = torch.from_numpy(numpy.ascontiguousarray(rollouts)).reshape(-1, rollouts.shape[-1])
    policy, value = model(data[:, :-3])
    chance = torch.log_softmax(policy, -1).gather(1, data[:, -3:-2].long()).squeeze(1)
    weight = (chance.detach().exp() / data[:, -1].clamp(min=1e-3)).clamp(max=1)
    gain = data[:, -2] - value
    return -(weight * chance * gain.detach()).mean() + 0.5 * gain.square().mean()


class Work:
    """What a device of the node would take besides: half to one and a half of a time, from a seed."""

    def __init__(self, milliseconds, seed):
        self.seconds, self.random = milliseconds / 1e3, numpy.random.default_rng(seed)

    def do(self):
        time.sleep(self.seconds * self.random.uniform(0.5, 1.5))
