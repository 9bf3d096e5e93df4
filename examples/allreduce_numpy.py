#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every task gives an array, and every task gets the sum: allreduce_numpy.py RANK TASKS [STEPS], one on each node.
The store holds what two steps need, however many there are; a task that is killed leaves nothing of its own."""

import sys

import numpy
import sarissa

rank, tasks = int(sys.argv[1]), int(sys.argv[2])
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 3
with sarissa.open() as node, node.lease() as lease:
    for step in range(steps):
        gradient = numpy.full(100_000, rank + step, "f4")
        parts = [f"gradient/{step}/{i}" for i in range(tasks)]
        lease.put(parts[rank], gradient)
        total = node.allreduce(f"gradient/{step}", parts, dtype="f4", shape=gradient.shape, timeout=60)
        print("step", step, "sum", total[0])
        if step:  # all have put their parts of this step, so all have the sum of the one before
            lease.drop(f"gradient/{step - 1}/{rank}")
            if rank == 0:
                node.delete(f"gradient/{step - 1}")
    if rank == 0:  # a late rank may still want the last sum
        node.reduce_sources(f"gradient/{steps - 1}", timeout=60)  # when the reduce has ended, and can be given an end
        node.expire(f"gradient/{steps - 1}", 60)
