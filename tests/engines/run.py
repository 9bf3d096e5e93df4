#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs one file of tests with the Python that has the engines, by pytest; skipped where there is none.

meson calls it for each test of the suite engines. It does not know what the tests need.

usage: run.py FILE [PYTEST OPTION...]
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib import engines  # noqa: E402

SKIPPED = 77  # what meson takes for it

if __name__ == "__main__":
    if not engines.is_there():
        print(f"skip: no engines in {engines.folder()}: scripts/setup --engines")
        sys.exit(SKIPPED)
    python = engines.python()
    os.execv(python, [python, "-B", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", *sys.argv[1:]])
