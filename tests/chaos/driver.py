#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A task on a node: puts, gets, reduces, deletes, as its seed says, and looks at every byte.

usage: driver.py SEED WHO DIRECTORY [work|calm|sweep]

  work    until the file DIRECTORY/stop is there; errors with a name are part of life
  calm    a round of each kind, which must succeed: nothing disturbs any more
  sweep   looks whether all is there that must be, and deletes whatever was ever put

Exit status 1: something was wrong; the journal DIRECTORY/WHO.log tells what.
"""

import errno
import faulthandler
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
import content  # noqa: E402
import journal  # noqa: E402
import sarissa  # noqa: E402

LIVE_BYTES = 6 << 20    # that a driver keeps
GET_S = 8.0
REDUCE_S = 10.0
LATE_S = 5.0            # that a call may take beyond its timeout, on a busy machine
NO_TIMEOUT_S = 45.0     # for calls that take none
CALM_S = 30.0           # in which everything must succeed when nothing disturbs
PAUSE_S = 0.03
SLOW_S = 0.3            # that a slow writer takes
HELD = 3                # views that are kept while other calls are made

CUT_OFF = {errno.EHOSTUNREACH}  # not known here, but a part of the directory is out of reach
# what the interface names for a node, a peer or an object that has gone, or for no room or time
NAMED = {errno.ECONNREFUSED, errno.ENOTCONN, errno.ETIMEDOUT, errno.EAGAIN}
ALLOWED = {
    "put": NAMED | {errno.ENOSPC, errno.ESTALE},
    "get": NAMED | CUT_OFF | {errno.ENOSPC, errno.ESTALE, errno.ENOENT, errno.ENODATA},  # see judge_losses
    "reduce": NAMED | {errno.ENOSPC},
    "sources": NAMED | {errno.ENOENT, errno.ECANCELED, errno.ENODATA, errno.ENOSPC, errno.ESTALE},
    "delete": NAMED | CUT_OFF | {errno.ENOENT},
    "open": NAMED | {errno.ENOENT},
}
NO_NODE = {errno.ECONNREFUSED, errno.ENOTCONN}


class Wrong(Exception):
    """What must not be."""


def where(names):
    """Who has them, for the report."""
    return "".join(subprocess.run(["sarissa", "stat", name, "--json"], capture_output=True,
                                  text=True).stdout for name in sorted(names)[:3])


class Driver:
    def __init__(self, seed, who, directory):
        self.seed, self.who, self.directory = seed, who, directory
        self.journal = journal.Writer(directory / f"{who}.log")
        self.draw = random.Random(f"{seed}/{who}")
        self.node = None
        self.held = []       # (name, view): must stay as they are, whatever happens
        self.mine = []       # names that are ours to delete, oldest first
        self.number = 0
        self.must = False    # errors are not part of life

    # ---- one call --------------------------------------------------------------------------

    def call(self, op, name, limit, function, *argv, allowed=None):
        """The result and 0, or None and the number of an error that has its place here."""
        self.journal.line("call", f"{limit + LATE_S:.0f}", op, name)
        begin, code, result = time.monotonic(), 0, None
        try:
            result = function(*argv)
        except sarissa.Error as error:
            code, text = error.errno, str(error)
        took = time.monotonic() - begin
        self.journal.line("done", f"{took:.3f}",
                          f"{errno.errorcode.get(code, code)}: {text}" if code else "ok")
        if took > limit + LATE_S:
            raise Wrong(f"{op} {name} took {took:.1f} s of {limit:.0f}")
        if code and code not in (ALLOWED[op] if allowed is None else allowed):
            raise Wrong(f"{op} {name}: {text}")
        if code in NO_NODE:
            self.node = None
        return result, code

    def open(self):
        """A connection; waits for a node that is away."""
        until = time.monotonic() + CALM_S
        while self.node is None and not self.stopped():
            self.node, _ = self.call("open", "-", NO_TIMEOUT_S, sarissa.open)
            if self.node is None:
                if self.must and time.monotonic() > until:
                    raise Wrong("the node is not there")
                time.sleep(0.1)
        return self.node is not None

    def stopped(self):
        return not self.must and (self.directory / "stop").exists()

    # ---- what a task does ------------------------------------------------------------------

    def put(self, kind=None):
        kind = kind or self.draw.choice("bbn")
        size = self.draw.choice(content.SUM_SIZES) if kind == "n" else \
            self.draw.randrange(1, 2 ** self.draw.randint(*content.SIZE_BITS))
        self.number += 1
        name = content.name_of(kind, self.who, self.number, size)
        data, begun = content.bytes_of(self.seed, name), f"{time.monotonic():.6f}"
        self.journal.line("try", name, begun)
        if self.draw.random() < 0.1:
            code = self.write_slowly(name, data)
        else:
            _, code = self.call("put", name, NO_TIMEOUT_S, self.node.put, name, data)
        if code == 0:
            self.journal.line("put", name, begun)
            self.mine.append(name)
        return name, code

    def write_slowly(self, name, data):
        """Piece by piece; who kills this process is likely to meet it here."""
        writer, code = self.call("put", name, NO_TIMEOUT_S, self.node.create, name, len(data))
        if code:
            return code
        half = len(data) // 2
        writer.data[:half] = data[:half]
        _, code = self.call("put", name, NO_TIMEOUT_S, writer.publish, half)
        self.journal.line("slow", name)
        time.sleep(self.draw.random() * SLOW_S)
        writer.data[half:] = data[half:]
        if code == 0:
            _, code = self.call("put", name, NO_TIMEOUT_S, writer.seal)
        if writer.data is not None:
            self.call("put", name, NO_TIMEOUT_S, writer.abort, allowed=set(errno.errorcode))
        return code

    def hold(self, name, view):
        """What a reader has does not change under it."""
        self.held.append((name, view))
        if len(self.held) > HELD:
            name, view = self.held.pop(0)
            self.compare(f"{name} (held)", view, content.bytes_of(self.seed, name))

    def get(self, name=None, limit=GET_S):
        name = name or self.somebodys("bn")
        if name is None:
            return 0
        view, code = self.call("get", name, limit, self.node.get, name, limit, True)
        if code == 0:
            self.compare(name, view, content.bytes_of(self.seed, name))
            if not self.must and self.draw.random() < 0.1:
                self.hold(name, view)
        return code

    def compare(self, name, view, expected):
        if view != expected:
            at = next((i for i, (a, b) in enumerate(zip(view, expected)) if a != b), -1)
            raise Wrong(f"{name}: {len(view)} bytes of {len(expected)}, other from byte {at}")

    def somebodys(self, kinds, size=None):
        """An object that somebody has put, or None."""
        logs = sorted(self.directory.glob("*.log"))
        self.draw.shuffle(logs)
        for path in logs:
            names = [n for n in journal.living(journal.recent(path))
                     if content.kind_of(n) in kinds and size in (None, content.size_of(n))]
            if names:
                return self.draw.choice(names)
        return None

    def sources(self):
        size = self.draw.choice(content.SUM_SIZES)
        wanted = self.draw.randint(2, 6)
        found = (self.somebodys("n", size) for _ in range(3 * wanted))
        return list(dict.fromkeys(name for name in found if name))[:wanted]

    def reduce(self, names=None, num=None, spread=None, limit=REDUCE_S):
        names = names or self.sources()
        if len(names) < 2:
            return 0
        if num is None:
            num = self.draw.choice((0, len(names) - 1))
        if spread is None:
            spread = self.draw.random() < 0.3
        self.number += 1
        target = content.name_of("r", self.who, self.number, content.size_of(names[0]))
        self.journal.line("try", target, f"{time.monotonic():.6f}")
        _, code = self.call("reduce", target, NO_TIMEOUT_S, lambda: self.node.reduce(
            target, names, dtype="u64", num=num, spread=spread, timeout=limit))
        if code == 0:
            code = self.result(target, names, num or len(names), limit)
        if self.node:
            self.delete(target)
        return code

    def result(self, target, names, num, limit):
        """The target must be the sum of exactly the sources that are told."""
        view, code = self.call("get", target, limit, self.node.get, target, limit, True)
        if code:
            return code
        ids, code = self.call("sources", target, limit, self.node.reduce_sources, target, limit)
        if code == 0:
            by_id = {sarissa.id_of(name): name for name in names}
            used = [by_id.get(one) for one in ids]
            if None in used or len(set(used)) != len(used) or len(used) != num:
                raise Wrong(f"{target}: is said to be of {used}, {num} of {names}")
            self.compare(target, view, content.sum_of(self.seed, used))
        elif not any(view == content.sum_of(self.seed, used)
                     for used in itertools.combinations(names, num)):
            raise Wrong(f"{target}: no sum of {num} of {names}")
        return code

    def delete(self, name=None):
        name = name or (self.mine.pop(0) if self.mine else None)
        if name is None:
            return 0
        if name in self.mine:
            self.mine.remove(name)
        self.journal.line("gone", name)
        _, code = self.call("delete", name, NO_TIMEOUT_S, self.node.delete, name, True)
        if code == 0:
            self.journal.line("deleted", name)
        return code

    # ---- lives -----------------------------------------------------------------------------

    def step(self):
        if sum(map(content.size_of, self.mine)) > LIVE_BYTES:
            return self.delete()
        op = self.draw.choices((self.put, self.get, self.reduce, self.delete), (30, 45, 15, 5))[0]
        return op()

    def work(self):
        while not self.stopped():
            if self.node or self.open():
                self.step()
            time.sleep(self.draw.random() * PAUSE_S)

    def calm(self):
        """Every kind of call, with what others have put and with our own."""
        self.must = True
        self.open()
        ends = {}
        for size in content.SUM_SIZES:
            self.number += 1
            for number in range(2):
                name = content.name_of("n", f"{self.who}.{self.number}", number, size)
                self.journal.line("try", name, f"{time.monotonic():.6f}")
                _, ends[f"put {name}"] = self.call("put", name, CALM_S, self.node.put, name,
                                                   content.bytes_of(self.seed, name))
            pair = [content.name_of("n", f"{self.who}.{self.number}", n, size) for n in range(2)]
            ends[f"reduce {pair}"] = self.reduce(pair, num=0, limit=CALM_S)
            for name in pair:
                ends[f"get {name}"] = self.get(name, CALM_S)
                ends[f"delete {name}"] = self.delete(name)
        bad = {what: errno.errorcode[code] for what, code in ends.items() if code}
        if bad:
            raise Wrong(f"nothing disturbs any more, but: {bad}")

    def sweep(self):
        """The files kept, begun, deleted and all of DIRECTORY have the names that must be there, those
        that nobody was told to be there, those that must not be, and those that may."""
        self.must = True
        self.open()
        kept, begun, deleted, every = ((self.directory / file).read_text().split()
                                       for file in ("kept", "begun", "deleted", "all"))
        listed = {info.name for info in self.node.ls()}
        back = listed & set(deleted)
        if back:
            raise Wrong(f"deleted, but there again: {' '.join(sorted(back))}: {where(back)}")
        for name in listed & set(begun):  # whole, or gone with who began it
            if self.get(name) == errno.ETIMEDOUT:
                raise Wrong(f"its creator is gone, but not {name}: {where([name])}")
        for name in kept:
            if self.get(name, CALM_S):
                raise Wrong(f"{name} is lost")
        for name in every:
            code = self.delete(name)
            if code not in (0, errno.ENOENT):
                raise Wrong(f"delete {name}: {os.strerror(code)}")


def main():
    seed, who, directory, life = *sys.argv[1:4], (sys.argv + ["work"])[4]
    faulthandler.register(signal.SIGUSR1)
    driver = Driver(seed, who, Path(directory))
    try:
        {"work": driver.work, "calm": driver.calm, "sweep": driver.sweep}[life]()
    except Wrong as wrong:
        driver.journal.line("wrong", wrong)
        print(f"{who}: {wrong}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
