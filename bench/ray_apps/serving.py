# SPDX-License-Identifier: BSD-3-Clause
"""An ensemble that is served: a batch of images goes to all models, their votes come back, and the most win.

Run by bench/ray_work.py; party.py says what a worker and a server are. The votes are small and come as results of
Ray's tasks in every system, inside Ray's own messages."""

import numpy
import torch

from ray_apps import models, party

IMAGE_BYTES = 4 * models.CHANNELS * models.SIDE ** 2


class Worker(party.Worker):
    def fresh(self):
        self.model = models.made(models.Residual, self.number, self.number)
        self.work = models.Work(self.spec["work_ms"], self.number)

    def vote(self, query):
        images = self.way.get(query[0])
        with torch.no_grad():
            votes = self.model.model(torch.from_numpy(numpy.array(images))).argmax(1).numpy()
        self.work.do()
        return votes.astype("u1")


class Server(party.Server):
    def fresh(self):
        self.asked, self.elected = 0, 0

    def round(self):
        self.asked += 1
        images, _ = models.images(max(1, self.spec["bytes"] // IMAGE_BYTES), self.asked)
        given = self.way.put(images)
        self.ask("vote", [given])
        votes, lost = self.way.results(list(self.pending))
        self.settle(votes, lost)
        counted = sum(numpy.eye(models.CLASSES)[one] for one in votes.values())
        self.elected += int((numpy.argmax(counted, 1) * numpy.arange(1, len(images) + 1)).sum()) if votes else 0

    def loss(self):
        """What all votes have elected, as a number that differs where one vote does."""
        return float(self.elected)
