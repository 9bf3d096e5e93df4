# SPDX-License-Identifier: BSD-3-Clause
"""As IMPALA: the learner gives its policy to all actors, which play and give back what they have seen; the learner
learns from it.

Run by bench/ray_work.py; party.py says what a worker and a server are."""

import numpy

from ray_apps import models, party

GAMES, TESTED, LEARNT = 4, 64, 64


def steps_of(size):
    """The rollouts are a sixteenth of the policy in size."""
    return max(1, size // 16 // (GAMES * (models.SIDE ** 2 + 3) * 4))


class Worker(party.Worker):
    def fresh(self):
        self.model = models.made(models.ActorCritic, self.spec["bytes"], party.SEED)
        self.game = models.Catch(GAMES, self.number)
        self.work = models.Work(self.spec["work_ms"], self.number)

    def play(self, weights, out):
        self.model.set(self.way.get(weights[0]))
        played = models.rollout(self.model.model, self.game, steps_of(self.spec["bytes"]))
        self.work.do()
        return self.way.give(played, out)


class Server(party.Server):
    def fresh(self):
        self.model = models.made(models.ActorCritic, self.spec["bytes"], party.SEED)
        self.tested = models.rollout(self.model.model, models.Catch(GAMES, 0), TESTED // GAMES)

    def round(self):
        given = self.way.put(self.model.get())
        self.begin("play", [given])
        shape = steps_of(self.spec["bytes"]), GAMES, models.SIDE ** 2 + 3
        order = list(self.pending)
        played, lost = self.way.gather(order, shape)
        self.settle(played, lost)
        if played:
            self.learn(numpy.concatenate([played[task] for task in order if task in played], axis=1))

    def learn(self, played):
        """From some of it: each round makes one step."""
        flat = played.reshape(-1, played.shape[-1])
        some = flat[:: max(1, len(flat) // LEARNT)]
        self.model.descend(self.model.gradient(models.actor_critic_loss(self.model.model, some)))

    def loss(self):
        return models.actor_critic_loss(self.model.model, self.tested).item()
