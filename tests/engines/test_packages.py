# SPDX-License-Identifier: BSD-3-Clause
"""The engines that scripts/setup --engines has installed: the versions of its list, beside our package.

A version that differs is one that nothing else here is tested with.
"""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

LIST = Path(__file__).resolve().parents[2] / "scripts/lib/engines/engines.txt"
WANTED = [line.split("==") for line in LIST.read_text().splitlines() if "==" in line]


@pytest.mark.parametrize("name, version", WANTED)
def test_versions_are_those_of_the_list(name, version):
    installed = importlib.metadata.version(name.partition("[")[0])
    assert installed.partition("+")[0] == version  # what follows + names the kind of build


def test_our_package_imports_no_engine():
    code = "import sarissa, sys; print([n for n in ('ray', 'torch', 'dask', 'distributed') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
