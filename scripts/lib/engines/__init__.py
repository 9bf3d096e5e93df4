# SPDX-License-Identifier: BSD-3-Clause
"""Finds the virtual environment of the engines: Ray, PyTorch, Dask of today and the peers, from PyPI.

scripts/setup --engines makes it; scripts/test and scripts/bench run programs in it. It does not import
the engines: they are there for its own Python alone.
"""

import os
from pathlib import Path

from lib.shell import ROOT, Failure

VARIABLE = "SARISSA_ENGINES"


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
