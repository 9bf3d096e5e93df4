# SPDX-License-Identifier: BSD-3-Clause
"""The measured programs of a system, one per node: lines to each, one JSON object back."""

import json
import os
import select
import subprocess
import sys
import time

from lib.cluster import network, process
from lib.shell import Failure, build_dir


class Task:
    """One program. `alive` says whether it still runs; the descriptors are ours from here on."""

    def __init__(self, label, to_fd, from_fd, alive):
        self.label, self.to_fd, self.from_fd, self.alive = label, to_fd, from_fd, alive
        self.rest = b""

    def send(self, *words):
        try:
            os.write(self.to_fd, (" ".join(str(w) for w in words) + "\n").encode())
        except BrokenPipeError:
            raise Failure(f"{self.label} has ended") from None

    def line(self, until):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.from_fd], [], [],
                                        min(1.0, max(0.0, until - time.monotonic())))
            data = os.read(self.from_fd, 1 << 16) if ready else None
            if data == b"" or (data is None and not self.alive()):
                raise Failure(f"{self.label} has ended before it answered")
            if data is None and time.monotonic() > until:
                raise Failure(f"{self.label} does not answer in time")
            self.rest += data or b""
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def answer(self, until):
        told = json.loads(self.line(until))
        if "error" in told:
            raise Failure(f"{self.label}: {told['error']}")
        return told

    def ask(self, *words, patience_s=120.0):
        self.send(*words)
        return self.answer(time.monotonic() + patience_s)

    def close(self):
        for fd in {self.to_fd, self.from_fd}:
            os.close(fd)


def ask_all(tasks, lines, patience_s=120.0):
    """Sends to every task its line (words), then takes all answers, in the order of the tasks."""
    until = time.monotonic() + patience_s
    for task, words in zip(tasks, lines):
        task.send(*words)
    return [task.answer(until) for task in tasks]


def built(name):
    """One of our programs for measurements."""
    program = build_dir() / "bench" / name
    if not program.exists():
        raise Failure(f"{program} is not there: run scripts/setup")
    return program


class Program:
    """A program inside a node that takes lines as a Task, and ends with its input."""

    def __init__(self, config, node, label, *argv, env=None, log=sys.stderr):
        self.child = subprocess.Popen(
            ["ip", "netns", "exec", network.node_netns(config["name"], node),
             *[str(a) for a in argv]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log)
        self.task = Task(label, self.child.stdin.fileno(), self.child.stdout.fileno(),
                         lambda: self.child.poll() is None)

    def __enter__(self):
        return self.task

    def __exit__(self, *_):
        end_programs([self])


def end_programs(programs):
    for program in programs:
        program.child.stdin.close()
    for program in programs:
        try:
            program.child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.end(program.child.pid)
            program.child.wait()
        program.child.stdout.close()
