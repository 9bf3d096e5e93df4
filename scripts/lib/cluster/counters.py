# SPDX-License-Identifier: BSD-3-Clause
"""The dataplane's counters, from the file that it keeps in its run directory."""

import re
import struct

from lib.shell import ROOT

HEADER = struct.Struct("<QIIQ")  # struct counters_file: magic, workers, counters, stride
FIRST_BLOCK = 64


def names():
    text = (ROOT / "include/internal/counters.h").read_text()
    return re.findall(r"^\s+X\((\w+), \"", text, flags=re.M)


def of_workers(path):
    """By name, for each worker."""
    data = path.read_bytes()
    _, workers, count, stride = HEADER.unpack_from(data)
    known = names()
    assert count == len(known), f"{path} holds {count} counters, the header names {len(known)}"
    return [dict(zip(known, struct.unpack_from(f"<{count}Q", data, FIRST_BLOCK + worker * stride)))
            for worker in range(workers)]


def read(path):
    """The sum over the workers, by name."""
    workers = of_workers(path)
    return {name: sum(one[name] for one in workers) for name in workers[0]}
