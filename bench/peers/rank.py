# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a peer's side of a measurement, in Python: what the ranks of all peers share.

A program derives from Rank and calls serve(). It takes lines, answers each with one JSON object:

  fill BYTES SEED      makes the bytes that the rank gives                              {"digest"}
  fill-f32 BYTES SEED  the same with an array of gradient.h                             {"digest"}
  ready LATER          what is given is there from here on; 1: when the rank arrives    {}
  OP AT_NS             one of broadcast gather reduce allreduce p2p, not before AT_NS   {"spans"}
  check                of what was taken; then what was given goes                      {"digests"}

A span is [start, end] of the call, CLOCK_MONOTONIC ns. What can be made ready once is outside of it, as in gloo.cc."""

import json
import sys

import numpy
import payload

OPERATIONS = ("broadcast", "gather", "reduce", "allreduce", "p2p")
SMALL_BYTES = 64 << 10  # up to here an object is not cut in parts


def bounds(whole, index, count):
    """Of a part of an array, in elements; all parts together are the array."""
    return index * len(whole) // count, (index + 1) * len(whole) // count


def part(whole, index, count):
    first, last = bounds(whole, index, count)
    return whole[first:last]


class Rank:
    """Who derives has a method for each operation, which takes into `take` and may note in `taken` what it took."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.give = self.take = numpy.empty(0, numpy.uint8)
        self.taken = []

    def fill(self, size, seed, f32):
        """take has room for an object of each rank where this rank gathers or sums, else for one."""
        self.forget()
        self.give = payload.make(size, seed, f32)
        rooms = self.ranks if f32 or self.rank == 0 else 1
        self.take = numpy.zeros((rooms, len(self.give)), self.give.dtype)
        self.filled()
        return {"digest": payload.digest(self.give)}

    def forget(self):
        """Before the memory of give and take goes."""

    def filled(self):
        """give and take are new."""

    def ready(self, later):
        """What is given is there from here on, unless it comes later."""

    def arrive(self):
        """What comes later is there from here on: called in the time of a call."""

    def after(self):
        """Follows each call, outside its time."""

    def measure(self, op, at_ns):
        self.taken = []
        payload.sleep_until(at_ns)
        start_ns = payload.now_ns()
        self.arrive()
        getattr(self, op)()
        end_ns = payload.now_ns()
        self.after()
        return {"spans": [[start_ns, end_ns]]}

    def check(self):
        return {"digests": [payload.digest(one) for one in self.taken]}

    def act(self, verb, words):
        if verb in ("fill", "fill-f32"):
            return self.fill(int(words[0]), int(words[1]), verb == "fill-f32")
        if verb == "ready":
            self.ready(words[0] == "1")
            return {}
        if verb in OPERATIONS:
            return self.measure(verb, int(words[0]))
        return self.check() if verb == "check" else {"error": "not understood"}


def serve(rank):
    for line in sys.stdin:
        verb, *words = line.split()
        print(json.dumps(rank.act(verb, words)), flush=True)
