# SPDX-License-Identifier: BSD-3-Clause
"""An array that all actors read, and the mean of what they make of it, as their tasks end.

  python examples/ray_broadcast.py [ACTORS]        # in a Python that has Ray, with PYTHONPATH=build/client/python
"""

import sys

import numpy
import ray

import sarissa.ray


@ray.remote(num_cpus=0.1)
class Model:
    def __init__(self, number):
        self.number = number

    @sarissa.ray.method
    def predict(self, weights):
        """weights comes as its value: a view of the store of this actor's node."""
        return weights * self.number


def main(actors):
    models = [Model.remote(number + 1) for number in range(actors)]
    weights = sarissa.ray.put(numpy.ones(1_000_000, numpy.float32))
    answers = [sarissa.ray.call(one.predict, weights) for one in models]  # Refs, at once
    mean = sarissa.ray.get(sarissa.ray.reduce(answers, "avg"), timeout=60)
    print(f"the mean of {actors} answers is {mean[0]}")
    first = sarissa.ray.reduce([sarissa.ray.call(one.predict, weights) for one in models], "sum", num=1)
    used, others = first.sources(timeout=60)
    print(f"the first answer makes {len(used)} of {actors}; {len(others)} are not in it")


if __name__ == "__main__":
    ray.init()
    sarissa.ray.init()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
