# SPDX-License-Identifier: BSD-3-Clause
"""Running commands and speaking to the operator, for our scripts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from . import process

ROOT = Path(__file__).resolve().parents[2]
_inherited = set()  # processes of the shell that became this script


class Failure(Exception):
    """What is wrong: what to do. Scripts print it in one line and exit with `status`."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def build_dir():
    """The build to run: $SARISSA_BUILD, or build/ of the source tree."""
    return Path(os.environ.get("SARISSA_BUILD", ROOT / "build")).resolve()


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*argv, input=None, check=True, env=None, timeout=None):
    """Runs a command, returns its standard output; a failure names the command."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, input=input, capture_output=True, text=True, env=env,
                              timeout=timeout)
    except FileNotFoundError:
        raise Failure(f"{argv[0]} is not there: run scripts/setup") from None
    if check and done.returncode != 0:
        text = done.stderr.strip() or done.stdout.strip()
        raise Failure(f"'{' '.join(argv)}' failed ({done.returncode}): {text}")
    return done.stdout


def succeeds(*argv):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def setup():
    """Builds. An interrupt ends the build, but lets packages be installed to the end."""
    child = subprocess.Popen([ROOT / "scripts/setup"])
    try:
        code = child.wait()
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
        raise
    if code:
        raise Failure("scripts/setup failed")


def require_root(script):
    if os.geteuid() != 0:
        raise Failure(f"{script} needs root (namespaces, eBPF): run it with sudo")


def _interrupt(*_):
    raise KeyboardInterrupt


def end_cleanly():
    """A terminal that closes and a polite kill end a script as Ctrl-C does: it cleans up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def end_children():
    """Clients that wait have nobody else who would end them. Daemons are in sessions of their own."""
    process.end_all([pid for pid in process.children(os.getpid())
                     if pid not in _inherited and process.session(pid) == os.getsid(0)])


def main(script, function):
    """Runs function(); turns failures into one line and an exit status."""
    end_cleanly()
    _inherited.update(process.children(os.getpid()))
    try:
        try:
            sys.exit(function() or 0)
        finally:
            end_children()
    except Failure as failure:
        say(f"{script}: {failure}")
        sys.exit(failure.status)
    except KeyboardInterrupt:
        say(f"{script}: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        os._exit(1)
