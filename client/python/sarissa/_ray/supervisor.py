# SPDX-License-Identifier: BSD-3-Clause
"""One unprivileged node, for as long as the standard input is open: sarissa._ray.node_actor starts this as a program of
its own, so that it outlives a killed Ray worker for the moment that it needs to take the node down. It starts a
daemon that has died again. It knows nothing of Ray, and needs the standard library alone.

usage: supervisor.py JSON     standard output: one line "ready", or lines that say what is wrong
"""

import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List

READY_S, END_S = 30.0, 5.0
QUICK_S, QUICK_MAX = 5.0, 5  # so many ends, each so soon after a start: it cannot run
PR_SET_PDEATHSIG = 1


def say(line: str) -> None:
    """The reader may be gone, which the standard input tells as well."""
    try:
        print(line, flush=True)
    except OSError:
        pass


def last_line(path: str) -> str:
    """Of a log, without the time before it."""
    with open(path, errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()] or [f"its log {path} is empty"]
    first, _, rest = lines[-1].partition(" ")
    return rest if first.endswith("Z") and rest else lines[-1]


class Failed(Exception):
    """Its text is for the user."""


class Daemon:
    def __init__(self, kind: str, words: List[str], folder: str) -> None:
        self.kind, self.words = kind, words
        self.log, self.notify = f"{folder}/{kind}.log", f"{folder}/notify.sock"
        self.process: Any = None
        self.pidfd, self.begun, self.quick = -1, 0.0, 0

    def start(self) -> None:
        libc, parent = ctypes.CDLL(None), os.getpid()

        def child() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, open(self.log, "ab") as log:
            if os.path.exists(self.notify):
                os.unlink(self.notify)
            ready.bind(self.notify)
            environment = {**os.environ, "NOTIFY_SOCKET": self.notify}
            environment.pop("WATCHDOG_USEC", None)
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                            env=environment, preexec_fn=child)
            self.pidfd, self.begun = os.pidfd_open(self.process.pid), time.monotonic()
            self._wait_ready(ready)

    def _wait_ready(self, ready: socket.socket) -> None:
        until = self.begun + READY_S
        while time.monotonic() < until:
            come, _, _ = select.select([ready, self.pidfd, 0], [], [], until - time.monotonic())
            if ready in come and ready.recv(512).startswith(b"READY=1"):
                return
            if self.pidfd in come:
                raise Failed(f"its {self.kind} has ended: {last_line(self.log)}")
            if 0 in come:
                raise Failed("nobody needs it any more")
        raise Failed(f"its {self.kind} is not ready after {READY_S:.0f} s: {last_line(self.log)}")

    def again(self) -> None:
        """After its end."""
        self.process.wait()
        os.close(self.pidfd)
        self.quick = self.quick + 1 if time.monotonic() - self.begun < QUICK_S else 0
        if self.quick >= QUICK_MAX:
            raise Failed(f"its {self.kind} ends again and again: {last_line(self.log)}")
        self.start()

    def end(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def watch(daemons: List[Daemon], raylet: List[int]) -> None:
    """Until the standard input ends, or SIGTERM, or the Ray node has gone: an actor may stay for a while then."""
    while True:
        come, _, _ = select.select([0, *raylet, *(one.pidfd for one in daemons)], [], [])
        if 0 in come or set(raylet) & set(come):
            return
        for one in daemons:
            if one.pidfd in come:
                one.again()


def stop(*_: Any) -> None:
    raise Failed("it was told to end")


def main(how: Dict[str, Any]) -> None:
    folder = how["folder"]
    with open(f"{folder}/lock", "w") as lock:  # says that the folder is in use
        fcntl.flock(lock, fcntl.LOCK_EX)
        daemons = [Daemon(kind, how[kind], folder) for kind in ("dataplane", "control")]
        try:
            for one in daemons:
                one.start()
            say("ready")
            watch(daemons, [os.pidfd_open(pid) for pid in how["raylet"]])
        except ProcessLookupError:
            say("its Ray node has ended")
        except Failed as error:
            say(str(error))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for one in reversed(daemons):
                one.end()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if os.fork():  # Ray kills the children of a worker that ends, and this one has something to do then
        os._exit(0)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(json.loads(sys.argv[1]))
