# SPDX-License-Identifier: BSD-3-Clause
"""A driver of its own process, for tests that kill it: brings nodes up, and puts objects in itself, in a task and in an
actor. It prints the nodes as JSON, and waits.

usage: driver.py ADDRESS
"""

import json
import sys
import time

import numpy
import ray

import sarissa.ray


@ray.remote(num_cpus=0)
class Owner:
    def make(self):
        self.ref = sarissa.ray.put(numpy.ones(1000))


@sarissa.ray.task(num_cpus=0)
def made():
    return numpy.ones(1000)


if __name__ == "__main__":
    ray.init(address=sys.argv[1], log_to_driver=False)
    nodes = sarissa.ray.init(store=64, ttl=1.0)
    owner, mine, tasks = Owner.remote(), sarissa.ray.put(b"mine"), made.remote()
    ray.get(owner.make.remote())
    sarissa.ray.get(tasks)
    print(json.dumps([one._asdict() for one in nodes]), flush=True)
    time.sleep(600)
