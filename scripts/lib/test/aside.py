# SPDX-License-Identifier: BSD-3-Clause
"""Suites that only compute, run by another scripts/test on what the cores have left over while tests of
real processes wait for links and timers. Whatever wakes up takes the core from them at once, so they
change no test that has limits of time; they themselves must have none but generous ones.

A group of processes has the kernel's word for that (cpu.idle). In its own session alone a process of
policy idle would share the core with other sessions, where the kernel groups by sessions.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
GONE_S = 30


def cgroup_parents():
    """Where a group below our own one can be made, in this order."""
    ours = {controllers: path.lstrip("/") for _, controllers, path in
            (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())}
    for mount in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options = mount.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            yield from (Path(where, path) for controllers, path in ours.items() if "cpu" in controllers.split(","))
        elif kind == "cgroup2":
            yield Path(where, ours.get("", ""))


def idle_cgroup():
    """A new group whose processes run when no others want to, or None."""
    for parent in cgroup_parents():
        for old in parent.glob("sarissa-aside-*"):  # of those that were killed
            with contextlib.suppress(OSError):
                old.rmdir()
        group = parent / f"sarissa-aside-{os.getpid()}"
        try:
            if (control := parent / "cgroup.subtree_control").exists():
                control.write_text("+cpu")
            group.mkdir()
            (group / "cpu.idle").write_text("1")
            return group
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
    return None


class Aside:
    """Runs a scripts/test beside the block, until results() has waited for it."""

    def __init__(self, command):
        self.command = command
        self.child = self.group = None

    def __enter__(self):
        self.group = idle_cgroup()
        if self.group is None and AUTOGROUP.exists() and AUTOGROUP.read_text().strip() != "0":
            return self
        self.file = tempfile.NamedTemporaryFile(prefix="sarissa-test-", suffix=".json")
        with contextlib.suppress(subprocess.SubprocessError):  # the kernel may not let it in
            self.child = subprocess.Popen(
                [*self.command, "--results", self.file.name], stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=self.become_idle)
        return self

    def become_idle(self):
        if self.group:
            (self.group / "cgroup.procs").write_text("0")
        else:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    def runs(self):
        """False where the kernel cannot do it: the suites are to be run in their turn."""
        return self.child is not None

    def results(self):
        """Of each test: suite, name, result, seconds, text. Waits for the last one, which from now on has as
        much of the cores as others."""
        if self.group:
            (self.group / "cpu.idle").write_text("0")
        code = self.child.wait()
        text = Path(self.file.name).read_text()
        return json.loads(text) if text else [["aside", "all", "FAIL", 0, f"exit {code}, and no results: see above"]]

    def __exit__(self, *_):
        if self.child and self.child.poll() is None:
            self.child.terminate()  # it ends what it has started
            self.child.wait()
        until = time.monotonic() + GONE_S
        while self.group and self.group.exists() and time.monotonic() < until:
            for pid in (self.group / "cgroup.procs").read_text().split():  # what it could not end
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                self.group.rmdir()
            time.sleep(0.02)
