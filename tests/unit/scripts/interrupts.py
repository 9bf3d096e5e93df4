#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packages are installed to the end, whatever signals come, also if the output is not read any more;
then the script ends. Harmless steps end at once. apt-get and dpkg-query are stand-ins."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60
SOON_S = 0.2  # who ends with a signal has done so
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
APT_GET = """#!/bin/sh
trap 'exit 1' INT
case "$*" in
update | *' update' | *download-only*) phase=before ;;
*) phase=dpkg ;;
esac
echo "$phase"                       # who prints when nobody reads is ended by that
[ $phase = "$HOLD" ] || exit 0
echo $$ >"$STUBS/began"
read -r line <"$STUBS/go"
echo "whole $line"
echo whole >"$STUBS/ended"
"""
DPKG_QUERY = """#!/bin/sh
for last; do :; done
[ "$last" = spin ] || echo installed
"""
PYTHON = """if True:
    import sys
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv[1])
    from lib import shell
    from lib.bench.systems import peer
    shell.main("bench", lambda: peer.install(["spin"]))"""
SETUP = """if True:
    import sys
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv[1])
    from lib import shell
    shell.main("test", shell.setup)"""


def of_python(program):
    return [sys.executable, "-c", program, ROOT / "scripts"]


@contextlib.contextmanager
def stubs(hold):
    """A folder with the stand-ins; its environment."""
    with tempfile.TemporaryDirectory(prefix="sarissa-test-") as folder:
        for name, text in (("apt-get", APT_GET), ("dpkg-query", DPKG_QUERY),
                           ("apt-cache", "#!/bin/sh\n"), ("id", "#!/bin/sh\necho 0\n")):
            path = Path(folder, name)
            path.write_text(text)
            path.chmod(0o755)
        for name in ("began", "go"):
            os.mkfifo(Path(folder, name))
        yield Path(folder), {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOLD": hold,
                             "STUBS": folder, "SARISSA_HUGE_PAGES": "0"}


@contextlib.contextmanager
def started(argv, folder, env):
    """At the moment when apt-get is at work; it ends with the block, whatever happens."""
    child = subprocess.Popen([str(a) for a in argv], env=env, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, start_new_session=True, text=True,
                             preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in ENDS])
    signal.alarm(PATIENCE_S)  # ends us where nobody comes
    apt = int((folder / "began").read_text())
    try:
        yield child, apt
    finally:
        for pid in (apt, child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.communicate()


def signals(child, *numbers):
    """As a terminal sends them: to all in the group."""
    for number in numbers:
        os.killpg(child.pid, number)


def goes_on(folder, child):
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(SOON_S)
    assert child.poll() is None, f"has ended with {child.poll()} before the packages are there"
    with open(folder / "go", "r+b", buffering=0) as go:  # there may be nobody any more who reads it
        go.write(b"on\n")
        status = child.wait(PATIENCE_S)
    assert (folder / "ended").exists(), f"exit {status}, and apt-get was cut off"
    return status


def line_with(child, word):
    for line in child.stderr:
        if word in line:
            return
    raise AssertionError(f"nothing is said of '{word}', exit {child.wait(PATIENCE_S)}")


def packages_are_waited_for(argv, statuses):
    for number, status in statuses.items():
        with stubs("dpkg") as (folder, env), started(argv, folder, env) as (child, _):
            signals(child, number)
            line_with(child, "waits for the packages")
            signals(child, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, number)
            assert goes_on(folder, child) == status, (argv, number, child.returncode)
            assert "waits" not in child.stderr.read(), "it is said twice"


def packages_are_waited_for_when_told_at_once(argv, status):
    """Several before the first is told of."""
    with stubs("dpkg") as (folder, env), started(argv, folder, env) as (child, _):
        child.send_signal(signal.SIGSTOP)
        signals(child, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        child.send_signal(signal.SIGCONT)
        line_with(child, "waits for the packages")
        assert goes_on(folder, child) in status, (argv, child.returncode)


def packages_are_waited_for_though_nobody_reads(argv, status):
    with stubs("dpkg") as (folder, env), started(argv, folder, env) as (child, _):
        child.stderr.close()
        child.stderr = None
        signals(child, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
        assert goes_on(folder, child) == status, (argv, child.returncode)


def what_may_be_cut_off_ends_at_once(argv, status):
    with stubs("before") as (folder, env), started(argv, folder, env) as (child, _):
        signals(child, signal.SIGTERM)
        assert child.wait(PATIENCE_S) == status, (argv, child.returncode)
        assert not (folder / "ended").exists()


def main():
    setup = [ROOT / "scripts/setup", "--no-build"]
    packages_are_waited_for(setup, {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129})
    packages_are_waited_for_when_told_at_once(setup, (130, 143, 129))
    packages_are_waited_for_though_nobody_reads(setup, 130)
    what_may_be_cut_off_ends_at_once(setup, 143)
    ends = {signal.SIGINT: 130, signal.SIGTERM: 130}
    for argv in (of_python(PYTHON), of_python(SETUP)):
        packages_are_waited_for(argv, ends)
        packages_are_waited_for_when_told_at_once(argv, (130,))
        packages_are_waited_for_though_nobody_reads(argv, 130)
        what_may_be_cut_off_ends_at_once(argv, 130)


main()
