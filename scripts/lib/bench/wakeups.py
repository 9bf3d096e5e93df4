# SPDX-License-Identifier: BSD-3-Clause
"""What ran on the cores while something was measured: from the kernel's trace of task switches, by
the name of the thread. Daemons of other clusters have the same names as ours."""

import contextlib
import os
import re
import statistics
from collections import defaultdict
from pathlib import Path

from lib.shell import run, say

TRACING = Path("/sys/kernel/tracing")
EVENTS = ("sched/sched_switch", "irq/softirq_entry", "irq/softirq_exit")
BUFFER_KIB = 8192  # of each core
LINE = re.compile(r"\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+): (.*)$")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> "
                    r"next_comm=(.*) next_pid=(\d+)")
SOFT, IDLE = "soft interrupts", "idle"


class Core:
    """One core as the trace goes on. Only what lies between start and end counts."""

    def __init__(self, start_ns, end_ns):
        self.start_ns, self.end_ns = start_ns, end_ns
        self.name, self.since_ns = None, start_ns
        self.soft_ns = None

    def between(self, from_ns, to_ns):
        return max(0, min(to_ns, self.end_ns) - max(from_ns, self.start_ns))

    def within(self, at_ns):
        return self.start_ns <= at_ns < self.end_ns


def name_of(comm, pid):
    return IDLE if pid == "0" else re.sub(r"[-/:]?\d+$", "", comm)


def take_switch(core, at_ns, text, asleep, times, took):
    prev, prev_pid, state, comm, pid = SWITCH.match(text).groups()
    took[name_of(prev, prev_pid)] += core.between(core.since_ns, at_ns)
    core.name, core.since_ns = name_of(comm, pid), at_ns
    asleep[prev_pid] = not state.startswith("R")
    # one that was preempted goes on: nobody has woken it
    if core.within(at_ns) and pid != "0" and asleep.get(pid, True):
        times[core.name] += 1


def take_soft(core, at_ns, begins, times, took):
    if begins:
        core.soft_ns = at_ns
    elif core.soft_ns is not None:
        times[SOFT] += core.within(core.soft_ns)
        took[SOFT] += core.between(core.soft_ns, at_ns)
        core.soft_ns = None


def account(lines, start_ns, end_ns):
    """How often each name was woken, and for how many ns it ran, soft interrupts in it included."""
    times, took, asleep = defaultdict(int), defaultdict(int), {}
    cores = defaultdict(lambda: Core(start_ns, end_ns))
    for match in filter(None, map(LINE.search, lines)):
        number, seconds, micros, event, text = match.groups()
        at_ns = (int(seconds) * 1_000_000 + int(micros)) * 1000
        if event == "sched_switch":
            take_switch(cores[number], at_ns, text, asleep, times, took)
        else:
            take_soft(cores[number], at_ns, event == "softirq_entry", times, took)
    for core in cores.values():
        if core.name is not None:
            took[core.name] += core.between(core.since_ns, end_ns)
    return {name: (times[name], took[name]) for name in {*times, *took}}


class Wakeups:
    """An instance of the kernel's trace of our own; takes turns with nothing."""

    def __init__(self):
        self.turns = defaultdict(list)  # by system: what account() says of each turn

    def __enter__(self):
        with contextlib.ExitStack() as stack:  # whatever fails leaves nothing behind
            self.begin_instance(stack)
            self.stack = stack.pop_all()
        return self

    def begin_instance(self, stack):
        if not (TRACING / "instances").exists():
            run("mount", "-t", "tracefs", "nodev", TRACING)
            stack.callback(run, "umount", TRACING, check=False)  # another may be using it
        self.at = TRACING / "instances" / f"sarissa-{os.getpid()}"
        self.at.mkdir()
        stack.callback(self.at.rmdir)
        self.write("tracing_on", 0)
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", BUFFER_KIB)
        for event in EVENTS:
            self.write(f"events/{event}/enable", 1)

    def __exit__(self, *_):
        with self.stack:
            self.write("tracing_on", 0)

    def write(self, name, value):
        (self.at / name).write_text(f"{value}\n")

    def begin(self):
        self.write("trace", "")
        self.write("tracing_on", 1)

    def end(self, system, start_ns, end_ns):
        self.write("tracing_on", 0)
        with open(self.at / "trace", encoding="utf-8", errors="replace") as lines:
            self.turns[system].append((end_ns - start_ns, account(lines, start_ns, end_ns)))

    def tell(self):
        for system, turns in self.turns.items():
            mean_us = statistics.mean(ns for ns, _ in turns) / 1e3
            say(f"{system}: means of {len(turns)} turns of {mean_us:.0f} us on {os.cpu_count()} cores")
            say(f"{'what ran':<24}{'woken':>8}{'us in all':>11}{'us each':>9}")
            names = {name for _, ran in turns for name in ran}
            rows = [(name, *(sum(ran.get(name, (0, 0))[i] for _, ran in turns) / len(turns)
                             for i in (0, 1))) for name in names]
            for name, times, ns in sorted(rows, key=lambda row: -row[2]):
                if times < 0.1 and ns < 10_000:
                    continue
                each = f"{ns / 1e3 / times:.1f}" if times >= 0.5 else "-"
                say(f"{name:<24}{times:>8.1f}{ns / 1e3:>11.0f}{each:>9}")
            woken = sum(times for name, times, _ in rows if name not in (SOFT, IDLE))
            say(f"{'all that was woken':<24}{woken:>8.1f}")
