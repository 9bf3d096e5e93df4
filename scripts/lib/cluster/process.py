# SPDX-License-Identifier: BSD-3-Clause
"""Daemons that outlive the script that started them: known by pid and start time."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def stat_fields(pid):
    """/proc/PID/stat after the name, or None: state is [0], parent [1], session [3], utime [11],
    stime [12], start [19]."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def children(pid):
    """The processes that it has started and that have not ended."""
    return [int(p.name) for p in Path("/proc").iterdir()
            if p.name.isdigit() and (stat_fields(p.name) or "??")[1] == str(pid)]


def session(pid):
    fields = stat_fields(pid)
    return int(fields[3]) if fields else None


def spawn(argv, log, pid_file, env=None):
    """Starts a daemon; its output is appended to log."""
    with open(log, "ab") as out:
        child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True, env=env,
                                 close_fds=True)
    note(child.pid, pid_file)
    return child


def note(pid, pid_file):
    """Whole or not at all: half of it would say that the process has ended."""
    fields = stat_fields(pid)
    part = pid_file.with_suffix(".part")
    part.write_text(f"{pid} {fields[19] if fields else 0}\n")
    part.rename(pid_file)


def alive(pid_file):
    """The pid, or None when it is not running (or the number belongs to another by now)."""
    try:
        pid, start = pid_file.read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    fields = stat_fields(pid)
    if fields is None or fields[19] != start or fields[0] in "ZX":
        return None
    return int(pid)


def cpu_seconds(pid):
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S if fields else 0.0


def run_seconds(pid):
    """The same of all threads, where the kernel counts in ns; time it did not count is in ticks."""
    total = 0
    for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(stat.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9 if total else cpu_seconds(pid)


def resident_bytes(pid):
    """VmRSS, shared pages included."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def end(pid, number=signal.SIGKILL, wait_s=5.0):
    """Sends the signal and waits; true when the process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, number)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        gone = bool(poll.poll(wait_s * 1000))
    except ProcessLookupError:
        gone = True
    finally:
        os.close(handle)
    if gone:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return gone


def end_all(pids, grace_s=3.0):
    """TERM to all, then KILL to those that stay."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    until = time.monotonic() + grace_s
    for pid in pids:
        if not end_within(pid, until):
            end(pid)


def end_within(pid, until):
    while time.monotonic() < until:
        fields = stat_fields(pid)
        if fields is None or fields[0] in "ZX":
            return True
        time.sleep(0.01)
    return False
