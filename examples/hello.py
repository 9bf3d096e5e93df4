#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An array goes into the store and comes back, without a copy: hello.py"""

import numpy
import sarissa

with sarissa.open() as node, node.lease() as lease:  # what the lease holds goes when it ends
    lease.put("hello", numpy.arange(12.0).reshape(3, 4))
    array = node.get("hello", timeout=10)
    print(array.shape, array.dtype, array.sum(), "read-only:", not array.flags.writeable)
    try:
        node.get("nobody", timeout=0)
    except sarissa.NotFound as error:
        print(error.strerror)
