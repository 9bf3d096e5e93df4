#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A computation of dask.array whose blocks travel through the store: dask_array.py SCHEDULER [WORKERS]"""

import sys

import dask.array
import distributed
import numpy
import sarissa.dask

with distributed.Client(sys.argv[1]) as client:
    client.wait_for_workers(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    register = getattr(client, "register_plugin", None) or client.register_worker_plugin  # Debian 12 has the latter
    register(sarissa.dask.Plugin())  # the one line
    weights = client.scatter(numpy.arange(200_000.0), broadcast=True)  # to all workers, along a tree
    parts = [client.submit(lambda w, i=i: i * w, weights) for i in range(8)]
    print("sum", sarissa.dask.reduce(parts).result()[1])  # added up in the network
    blocks = dask.array.ones((8, 512, 512), chunks=(1, 512, 512))
    with sarissa.dask.reductions():
        mean = blocks.mean(axis=0)  # of the chunks that the workers have
    print("mean", mean.compute().sum())
