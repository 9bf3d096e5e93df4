# SPDX-License-Identifier: BSD-3-Clause
"""What the measured reduces must come to, found without any of the measured systems."""

import functools

from lib.bench.task import built
from lib.shell import run

REDUCES = ("reduce", "allreduce")
ELEMENT_BYTES = 4


def fill_verb(op):
    """How a task is told to make what it gives."""
    return "fill-f32" if op in REDUCES else "fill"


@functools.lru_cache(maxsize=64)
def digest_of(size, seeds):
    return run(built("sum"), size, *seeds).strip()


def sum_digest(size, seeds):
    """Of the sum of the arrays that tasks make from these seeds, whatever their order."""
    return digest_of(size, tuple(sorted(seeds)))
