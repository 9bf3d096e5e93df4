# SPDX-License-Identifier: BSD-3-Clause
"""As A3C: each worker plays with its copy of the policy and computes a gradient; the gradients of the first workers
are added up, and the new policy goes to all that are idle.

Run by bench/ray_work.py; party.py says what a worker and a server are."""

from ray_apps import models, party

GAMES, STEPS, TESTED = 4, 8, 64


class Worker(party.Worker):
    def fresh(self):
        self.model = models.made(models.ActorCritic, self.spec["bytes"], party.SEED)
        self.game = models.Catch(GAMES, self.number)
        self.work = models.Work(self.spec["work_ms"], self.number)

    def gradient(self, weights, out):
        self.model.set(self.way.get(weights[0]))
        played = models.rollout(self.model.model, self.game, STEPS)
        gradient = self.model.gradient(models.actor_critic_loss(self.model.model, played))
        self.work.do()
        return self.way.add(gradient, out)


class Server(party.Descent):
    def fresh(self):
        self.model = models.made(models.ActorCritic, self.spec["bytes"], party.SEED)
        self.tested = models.rollout(self.model.model, models.Catch(GAMES, 0), TESTED // GAMES)

    def loss(self):
        return models.actor_critic_loss(self.model.model, self.tested).item()
