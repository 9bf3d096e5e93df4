# SPDX-License-Identifier: BSD-3-Clause
"""The operations over a store whose only transfer is a get: what a user of one writes who needs collectives.

A rank of such a peer (mooncake_rank.py, nixl_rank.py) derives from ReaderRank and says how ranks learn that something
is there (publish) and how they read it (fetch).

TUNING default: each receiver gets the whole object from its giver; who sums gets all arrays and adds them up. hand,
above 64 KiB: an object is cut in as many parts as there are ranks: each rank gets (or adds up) one part, and
those that take the result get the parts from all. gather and p2p are gets of whole objects."""

from rank import SMALL_BYTES, Rank, bounds, part

GIVEN = "give"     # an object as it was given
RESULT = "result"  # what a rank has to pass on


class ReaderRank(Rank):
    def __init__(self, rank, ranks, tuning):
        super().__init__(rank, ranks)
        self.tuning = tuning
        self.turn, self.later = 0, False

    def publish(self, what, array):
        """From here on the others can fetch the array, which stays as it is until the end of the call."""
        raise NotImplementedError

    def fetch(self, wanted):
        """wanted: (source, what, first byte, where to). Waits until each is there and has come; yields where it
        is as it comes, in any order."""
        raise NotImplementedError

    def others(self):
        return [rank for rank in range(self.ranks) if rank != self.rank]

    def ready(self, later):
        self.turn += 1
        self.later = later
        if not later:
            self.publish(GIVEN, self.give)

    def arrive(self):
        if self.later:
            self.publish(GIVEN, self.give)

    def in_parts(self):
        return self.tuning == "hand" and self.give.nbytes > SMALL_BYTES

    def get_all(self, wanted):
        for _ in self.fetch(wanted):
            pass

    def of_given(self, source, index, into):
        """The part of an object that a rank has given."""
        first, last = bounds(self.give, index, self.parts)
        return source, GIVEN, first * self.give.itemsize, into[:last - first]

    def get_results(self, owners):
        """Each owner's result is a part of take[0]; this rank has its own."""
        into = self.take[0]
        self.get_all([(owner, RESULT, 0, part(into, index, self.parts))
                      for index, owner in enumerate(owners) if owner != self.rank])
        self.taken = [into]

    def broadcast(self):
        if self.rank == 0:
            return
        if self.in_parts():
            self.parts = self.ranks - 1
            mine = part(self.take[0], self.rank - 1, self.parts)
            self.get_all([self.of_given(0, self.rank - 1, mine)])
            self.publish(RESULT, mine)
            self.get_results(range(1, self.ranks))
        else:
            self.get_all([(0, GIVEN, 0, self.take[0])])
            self.taken = [self.take[0]]

    def gather(self):
        if self.rank == 0:
            self.get_all([(source, GIVEN, 0, self.take[source]) for source in self.others()])
            self.taken = [self.take[source] for source in self.others()]

    def reduce(self):
        self.sum(self.rank == 0)

    def allreduce(self):
        self.sum(True)

    def sum(self, takes):
        if self.in_parts():
            self.sum_parts(takes)
        elif takes:
            self.take[0][:] = self.give
            self.add(self.take[0], [(source, GIVEN, 0, self.take[at]) for at, source in enumerate(self.others(), 1)])
            self.taken = [self.take[0]]

    def add(self, total, wanted):
        for array in self.fetch(wanted):
            total += array

    def sum_parts(self, takes):
        self.parts = self.ranks
        mine = part(self.take[0], self.rank, self.parts)
        mine[:] = part(self.give, self.rank, self.parts)
        self.add(mine, [self.of_given(source, self.rank, self.take[at]) for at, source in enumerate(self.others(), 1)])
        self.publish(RESULT, mine)
        if takes:
            self.get_results(range(self.ranks))

    def p2p(self):
        if self.rank > 1:
            return
        source, what = (0, GIVEN) if self.rank == 1 else (1, RESULT)
        self.get_all([(source, what, 0, self.take[0])])
        if self.rank == 1:
            self.publish(RESULT, self.give)
        self.taken = [self.take[0]]
