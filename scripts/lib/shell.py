# SPDX-License-Identifier: BSD-3-Clause
"""Running commands and speaking to the operator, for our scripts."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from lib.cluster import process

ROOT = Path(__file__).resolve().parents[2]
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEBIAN = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
TOOLS = ("python3", "meson", "ninja")
_inherited = set()  # processes of the shell that became this script


class Failure(Exception):
    """What is wrong: what to do. Scripts print it in one line and exit with `status`."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def build_dir():
    """The build to run: $SARISSA_BUILD, or build/ of the source tree."""
    return Path(os.environ.get("SARISSA_BUILD", ROOT / "build")).resolve()


def daemons_dir():
    """The build of the daemons: $SARISSA_DAEMONS, or as the rest."""
    return Path(os.environ.get("SARISSA_DAEMONS", build_dir())).resolve()


def debian_tools_only():
    """Takes folders with another python3, meson or ninja than Debian's out of PATH: those do not see Debian's
    packages. For scripts that build; what a user runs by ours keeps the user's PATH."""
    kept = [folder for folder in os.environ.get("PATH", "").split(":")
            if folder in DEBIAN or not any(os.access(f"{folder}/{name}", os.X_OK) for name in TOOLS)]
    os.environ["PATH"] = ":".join(kept + [folder for folder in DEBIAN if folder not in kept])


def say(text):
    print(text, file=sys.stderr, flush=True)


def tell(text):
    """The same where it must not matter whether anybody reads it, nor what it interrupts."""
    with contextlib.suppress(OSError, AttributeError):  # closed by the reader; from the beginning
        os.write(sys.stderr.fileno(), f"{text}\n".encode(errors="replace"))


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


class Later:
    """What would interrupt the block does so at its end. The first time that anything does, react() is
    called, which must not raise."""

    def __init__(self, react):
        self.react, self.came = react, False

    def __enter__(self):
        self.old = {number: signal.signal(number, self.note) for number in ENDS
                    if signal.getsignal(number) is not signal.SIG_IGN}
        return self

    def note(self, *_):
        if not self.came:
            self.came = True
            self.react()

    def __exit__(self, *_):
        for number, handler in self.old.items():
            signal.signal(number, handler)
        if self.came:
            raise KeyboardInterrupt


def run_to_the_end(*argv, why, env=None):
    """As run(), for what must not be cut off in the middle: an interrupt waits, and says why. Its
    session is its own, and its output goes where no reader can end it."""
    with tempfile.TemporaryFile() as out, Later(lambda: tell(f"interrupted: {why}")):
        code = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                                start_new_session=True).wait()
        out.seek(0)
        said = out.read().decode(errors="replace").strip()
    if code:
        raise Failure(f"'{' '.join(argv)}' failed ({code}): {said}")


def setup(*options):
    """Builds. An interrupt ends the build, but lets packages be installed to the end."""
    child = None
    with Later(lambda: child and child.terminate()) as later:
        child = subprocess.Popen([ROOT / "scripts/setup", *options])
        if later.came:  # before there was anybody to end
            child.terminate()
        code = child.wait()
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
        tell(f"{script}: {failure}")
        sys.exit(failure.status)
    except KeyboardInterrupt:
        tell(f"{script}: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        os._exit(1)
