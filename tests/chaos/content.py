# SPDX-License-Identifier: BSD-3-Clause
"""The content of a run's objects: a function of the run's seed and of the object's name, so that
any reader that knows the name can check the bytes.

A name is KIND-WHO-NUMBER-BYTES. Kind b: any bytes. Kind n: numbers, u64 lanes whose upper half is
zero, so that a sum of lanes is the sum of the whole taken as one integer. Kind r: a result.
"""

import random

LANE_BYTES = 8
SUM_SIZES = (512, 40_000, 200_000, 1_200_000)  # both sides of what the directory adds up itself
SIZE_BITS = (1, 21)                            # of other objects: 1 byte to 2 MiB


def name_of(kind, who, number, size):
    return f"{kind}-{who}-{number}-{size}"


def kind_of(name):
    return name.split("-", 1)[0]


def node_of(name):
    """Where it was put: WHO begins with the node."""
    return int(name.split("-")[1].split(".")[0])


def size_of(name):
    return int(name.rsplit("-", 1)[1])


def bytes_of(seed, name):
    size = size_of(name)
    data = random.Random(f"{seed}/{name}").randbytes(size)
    if kind_of(name) == "b":
        return data
    mask = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * (size // LANE_BYTES), "little")
    return (int.from_bytes(data, "little") & mask).to_bytes(size, "little")


def sum_of(seed, names):
    total = sum(int.from_bytes(bytes_of(seed, name), "little") for name in names)
    return total.to_bytes(size_of(names[0]), "little")
