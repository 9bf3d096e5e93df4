# SPDX-License-Identifier: BSD-3-Clause
"""The files that the lints look at."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ("tests/fuzz/corpus/", "bench/results/")


def tracked_files():
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if out.returncode == 0:
        names = [name for name in out.stdout.split("\0") if name]
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                 if p.is_file() and not p.relative_to(ROOT).parts[0].startswith("build")
                 and p.relative_to(ROOT).parts[0] != ".git"]
    return [n for n in names if not n.startswith(DATA) and (ROOT / n).is_file()]
