#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every task gives an array, and every task gets the sum: allreduce_numpy.py RANK TASKS, one on each node."""

import sys

import numpy
import sarissa

rank, tasks = int(sys.argv[1]), int(sys.argv[2])
with sarissa.open() as node:
    for step in range(3):
        gradient = numpy.full(100_000, rank + step, "f4")
        parts = [f"gradient/{step}/{i}" for i in range(tasks)]
        total = node.allreduce(f"gradient/{step}", parts, array=gradient, rank=rank, timeout=60)
        print("step", step, "sum", total[0])
        node.expire(parts[rank], 60)  # a late rank may still need it
