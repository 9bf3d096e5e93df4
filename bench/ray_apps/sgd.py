# SPDX-License-Identifier: BSD-3-Clause
"""Asynchronous SGD: a parameter server adds the gradients of the first workers to its model, and gives it to these.

Run by bench/ray_work.py; party.py says what a worker and a server are."""

from ray_apps import models, party

BATCH, TESTED = 8, 64


class Worker(party.Worker):
    def fresh(self):
        self.model = models.made(models.AlexNet, self.spec["bytes"], party.SEED)
        self.work = models.Work(self.spec["work_ms"], self.number)
        self.step = 0

    def gradient(self, weights, out):
        self.model.set(self.way.get(weights[0]))
        self.step += 1
        some, labels = models.images(BATCH, 1000 * self.number + self.step)
        gradient = self.model.gradient(models.image_loss(self.model.model, some, labels))
        self.work.do()
        return self.way.add(gradient, out)


class Server(party.Descent):
    def fresh(self):
        self.model = models.made(models.AlexNet, self.spec["bytes"], party.SEED)

    def loss(self):
        return models.image_loss(self.model.model, *models.images(TESTED, 0)).item()
