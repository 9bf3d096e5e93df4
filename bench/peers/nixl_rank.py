# SPDX-License-Identifier: BSD-3-Clause
"""One rank of NIXL's side of a measurement: nixl_rank.py RANK RANKS TUNING DIRECTORY, one-sided reads over UCX.

Ranks exchange the metadata of their agents through files in DIRECTORY, outside of what is measured. A rank tells
the others by a notification what can be read and where it lies. NIXL has no call that sleeps until something comes,
so that a rank that waits asks again and again, with pauses; there is no thread of NIXL's that would poll without any,
since all ranks share few cores. Over TCP the rank that is read from must ask, too: it does until all have ended."""

import sys
import time
from pathlib import Path

from gets import ReaderRank
from nixl_cu12._api import nixl_agent, nixl_agent_config
from rank import serve

PAUSE_S = 50e-6
PATIENCE_S = 120.0
END = "end"


def until(found):
    end = time.monotonic() + PATIENCE_S
    while not found():
        if time.monotonic() > end:
            raise TimeoutError("NIXL: nothing has come")
        time.sleep(PAUSE_S)


class Nixl(ReaderRank):
    def __init__(self, rank, ranks, tuning, directory):
        super().__init__(rank, ranks, tuning)
        self.directory, self.filled_times, self.registered = Path(directory), 0, []
        self.agent = nixl_agent(str(rank), nixl_agent_config(enable_prog_thread=False, backends=["UCX"]))
        self.there = {}  # (turn, source, what): address, bytes

    def forget(self):
        for registered in self.registered:
            self.agent.deregister_memory(registered)
        for other in self.others() if self.registered else []:
            self.agent.remove_remote_agent(str(other))
        self.registered = []

    def filled(self):
        """The others learn of the new memory when they load this rank's metadata: at the first call."""
        self.registered = [self.agent.register_memory([(one.ctypes.data, one.nbytes, 0, "")], "DRAM")
                           for one in (self.give, self.take)]
        self.filled_times += 1
        path = self.metadata_of(self.rank)
        path.with_suffix(".part").write_bytes(self.agent.get_agent_metadata())
        path.with_suffix(".part").rename(path)
        self.known = False

    def metadata_of(self, rank):
        return self.directory / f"agent-{rank}-{self.filled_times}"

    def ready(self, later):
        if not self.known:
            for other in self.others():
                until(self.metadata_of(other).exists)
                self.agent.add_remote_agent(self.metadata_of(other).read_bytes())
                self.agent.make_connection(str(other))
            self.known = True
        super().ready(later)
        self.take_notes()

    def tell(self, what, address=0, size=0):
        for other in self.others():
            self.agent.send_notif(str(other), f"{self.turn} {what} {address} {size}".encode())

    def publish(self, what, array):
        self.tell(what, array.ctypes.data, array.nbytes)

    def take_notes(self):
        for source, notes in self.agent.get_new_notifs().items():
            for note in notes:
                turn, what, address, size = note.decode().split()
                self.there[int(turn), int(source), what] = int(address), int(size)

    def read(self, source, what, first, into):
        address, _ = self.there[self.turn, source, what]
        mine = self.agent.get_xfer_descs([(into.ctypes.data, into.nbytes, 0)], "DRAM")
        theirs = self.agent.get_xfer_descs([(address + first, into.nbytes, 0)], "DRAM")
        handle = self.agent.initialize_xfer("READ", mine, theirs, str(source))
        self.agent.transfer(handle)
        return handle

    def fetch(self, wanted):
        missing, reading = [one for one in wanted if one[3].nbytes], []
        end = time.monotonic() + PATIENCE_S
        while missing or reading:
            self.take_notes()
            found = [one for one in missing if (self.turn, *one[:2]) in self.there]
            missing = [one for one in missing if (self.turn, *one[:2]) not in self.there]
            reading += [(self.read(*one), one[3]) for one in found]
            states = [(self.agent.check_xfer_state(handle), handle, into) for handle, into in reading]
            reading = [(handle, into) for state, handle, into in states if state == "PROC"]
            for state, handle, into in states:
                if state == "ERR":
                    raise RuntimeError("NIXL: a read has failed")
                if state == "DONE":
                    handle.release()
                    yield into
            if time.monotonic() > end:
                raise TimeoutError("NIXL: nothing has come")
            if missing or reading:
                time.sleep(PAUSE_S)

    def after(self):
        """The memory of a rank can be read until all have ended."""
        def ended():
            self.take_notes()
            return all((self.turn, other, END) in self.there for other in self.others())

        self.tell(END)
        until(ended)
        self.there = {key: value for key, value in self.there.items() if key[0] > self.turn}


def main():
    rank, ranks, tuning, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    serve(Nixl(rank, ranks, tuning, directory))


main()
