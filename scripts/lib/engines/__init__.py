# SPDX-License-Identifier: BSD-3-Clause
"""Finds the virtual environment of the engines: Ray, PyTorch, Dask of today and the peers, from PyPI.

scripts/setup --engines makes it; scripts/test and scripts/bench run programs in it. It does not import
the engines: they are there for its own Python alone. Peers that only measurements need are installed when they are
asked for.
"""

import os
import subprocess
from pathlib import Path

from lib.shell import ROOT, Failure, run_to_the_end, say

VARIABLE = "SARISSA_ENGINES"
PEERS = Path(__file__).resolve().parent / "peers.txt"
INSTALLED = "peers.txt"  # in the folder: the list that was installed


def folder():
    """$SARISSA_ENGINES, or .venv-engines of the checkout. It need not exist."""
    return Path(os.environ.get(VARIABLE) or ROOT / ".venv-engines").absolute()


def is_there():
    return (folder() / "bin/python").exists()


def python():
    """The interpreter that has the engines."""
    if not is_there():
        raise Failure(f"no engines in {folder()}: `scripts/setup --engines` installs them there from PyPI")
    return folder() / "bin/python"


def missing(module):
    """Why the interpreter cannot import a module: the last line that it prints. None: it can."""
    done = subprocess.run([python(), "-c", f"import {module}"], capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else None


def install_peers():
    """The list of peers, without what their packages name as needed: CUDA libraries, which these do not use here."""
    kept = folder() / INSTALLED
    if kept.exists() and kept.read_text() == PEERS.read_text():
        return
    say(f"bench: installing {PEERS.relative_to(ROOT)} into {folder()}, for the comparison only")
    run_to_the_end(str(python()), "-m", "pip", "install", "--disable-pip-version-check", "--retries", "2", "--no-deps", "-q",
                   "-r", str(PEERS), why="waits for the packages, then ends")
    kept.write_text(PEERS.read_text())


def need(system, module, is_peer=False):
    """Fails in one line where a system cannot run here; a peer is installed first."""
    why = missing(module)
    if why and is_peer:
        try:
            install_peers()
        except Failure as failure:
            raise Failure(f"{system} cannot be installed: {str(failure).splitlines()[-1]}: leave it out (--system)") from None
        why = missing(module)
    if why:
        raise Failure(f"{system} cannot run here: {why}: leave it out (--system)")
