# SPDX-License-Identifier: BSD-3-Clause
"""Asynchronous SGD: the driver is the parameter server, and each step takes the first gradients that come. The others
count in the next step, as in Hoplite's first application.

  python examples/ray_sgd.py [WORKERS] [STEPS]     # in a Python that has Ray, with PYTHONPATH=build/client/python
"""

import sys

import numpy
import ray

import sarissa.ray

FEATURES, RATE = 100, 0.1
TRUTH = numpy.linspace(-1, 1, FEATURES)


@ray.remote(num_cpus=0.1)
class Worker:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)

    @sarissa.ray.method
    def gradient(self, weights):
        """Of the squared error on a batch of rows."""
        rows = self.random.normal(size=(256, FEATURES))
        return rows.T @ (rows @ (weights - TRUTH)) / len(rows)


def main(workers, steps):
    actors = [Worker.remote(seed) for seed in range(workers)]
    weights, num = numpy.zeros(FEATURES), max(1, workers // 2)
    ref = sarissa.ray.put(weights)
    of = {sarissa.ray.call(one.gradient, ref): one for one in actors}  # which actor makes which gradient
    for step in range(steps):
        total = sarissa.ray.reduce(list(of), "avg", num=num, cancel=False)
        weights = weights - RATE * sarissa.ray.get(total, timeout=60)
        ref = sarissa.ray.put(weights)  # the old weights go when no task needs them
        used, _ = total.sources()
        for gradient in used:
            actor = of.pop(gradient)
            of[sarissa.ray.call(actor.gradient, ref)] = actor
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step}: error {numpy.abs(weights - TRUTH).mean():.4f}", flush=True)


if __name__ == "__main__":
    ray.init()
    sarissa.ray.init()
    main(*(int(word) for word in (sys.argv[1:] + ["4", "40"][len(sys.argv) - 1:])))
