#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A file becomes an object while it is read, and readers on other nodes follow it: stream_file.py put FILE
NAME | get NAME, which writes to standard output."""

import os
import shutil
import sys

import sarissa

with sarissa.open() as node:
    if sys.argv[1] == "put":
        with open(sys.argv[2], "rb") as file, node.create(sys.argv[3], os.fstat(file.fileno()).st_size) as writer:
            shutil.copyfileobj(file, writer, 1 << 20)
    else:
        for piece in node.reader(sys.argv[2], timeout=60).pieces():  # without a copy
            sys.stdout.buffer.write(piece)
