# SPDX-License-Identifier: BSD-3-Clause
"""One rank of Mooncake Store's side of a measurement: mooncake_rank.py RANK RANKS TUNING ADDRESS MASTER METADATA, over
TCP, where ADDRESS is of this rank's node and the others name Mooncake's master and its metadata server.

An object lies in the segment of the rank that puts it, once; a get goes from there into memory that is registered.
A rank learns that an object is there by asking the master, with pauses."""

import sys
import time

from gets import ReaderRank
from mooncake.store import MooncakeDistributedStore, ReplicateConfig
from rank import serve

PAUSE_S = 200e-6
PATIENCE_S = 120.0
BUFFER_BYTES = 32 << 20


class Mooncake(ReaderRank):
    def __init__(self, rank, ranks, tuning, address, master, metadata, segment):
        super().__init__(rank, ranks, tuning)
        self.store = MooncakeDistributedStore()
        code = self.store.setup(address, metadata, segment, BUFFER_BYTES, "tcp", "", master)
        if code:
            raise RuntimeError(f"Mooncake: setup failed ({code})")
        self.config = ReplicateConfig()
        self.config.replica_num = 1
        self.config.preferred_segment = self.store.get_hostname()
        self.put, self.registered = [], []

    def forget(self):
        for array in self.registered:
            self.store.unregister_buffer(array.ctypes.data)
        self.registered = []

    def filled(self):
        for array in (self.give, self.take):
            code = self.store.register_buffer(array.ctypes.data, array.nbytes)
            if code:
                raise RuntimeError(f"Mooncake: a buffer cannot be registered ({code})")
            self.registered.append(array)

    def key(self, rank, what):
        return f"{self.turn}/{rank}/{what}"

    def publish(self, what, array):
        key = self.key(self.rank, what)
        code = self.store.put_from(key, array.ctypes.data, array.nbytes, self.config)
        if code:
            raise RuntimeError(f"Mooncake: put of {key} failed ({code})")
        self.put.append(key)

    def fetch(self, wanted):
        missing = [one for one in wanted if one[3].nbytes]
        end = time.monotonic() + PATIENCE_S
        while missing:
            keys = [self.key(source, what) for source, what, _, _ in missing]
            there = [found == 1 for found in self.store.batch_is_exist(keys)]
            now = [one for one, found in zip(missing, there) if found]
            missing = [one for one, found in zip(missing, there) if not found]
            if now:
                self.get(now)
            yield from (into for _, _, _, into in now)
            if time.monotonic() > end:
                raise TimeoutError("Mooncake: an object has not come")
            if missing:
                time.sleep(PAUSE_S)

    def get(self, wanted):
        pointers, sizes = [into.ctypes.data for *_, into in wanted], [into.nbytes for *_, into in wanted]
        keys = [self.key(source, what) for source, what, _, _ in wanted]
        if self.in_parts():
            told = self.store.get_into_ranges(
                pointers, [[key] for key in keys], [[[0]] for _ in keys],
                [[[first]] for _, _, first, _ in wanted], [[[size]] for size in sizes])
            told = [of_key[0][0] for of_key in told]
        else:
            told = self.store.batch_get_into(keys, pointers, sizes)
        if told != sizes:
            raise RuntimeError(f"Mooncake: a get failed: {told}, not {sizes}")

    def check(self):
        told = super().check()
        for key in self.put:
            self.store.remove(key, force=True)
        self.put = []
        return told


def main():
    rank, ranks, tuning, *addresses, segment = sys.argv[1:]
    serve(Mooncake(int(rank), int(ranks), tuning, *addresses, int(segment)))


main()
