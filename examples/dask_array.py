#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A computation of dask.array whose blocks travel through the store: dask_array.py SCHEDULER [WORKERS]"""

import sys

import dask.array
import distributed
import sarissa.dask

with distributed.Client(sys.argv[1]) as client:
    client.wait_for_workers(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    client.register_worker_plugin(sarissa.dask.Plugin())  # the one line
    ones = dask.array.ones((1024, 1024), chunks=(512, 512))
    product = (ones @ ones.T).persist()
    print("mean", product.mean().compute())
    parts = [client.submit(lambda i=i: i * dask.array.ones(200_000).compute()) for i in range(8)]
    print("sum", sarissa.dask.reduce(parts).result()[0])  # added up in the network
