#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/developer/bounds.md names everything that a core allots many of: what lies in a pool, and what
the engine carves per worker.

usage: bounds.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARVED = re.compile(r"\b(?:pool|engine)_carve\([^;]*?sizeof\(struct (\w+)\)", re.S)
NOT_MANY = {"engine", "list"}  # the core itself; links of a hash table, one per connection


def main():
    page = (ROOT / "docs/developer/bounds.md").read_text()
    carved = {}
    for folder in ("control/core", "dataplane/core"):
        for path in sorted((ROOT / folder).rglob("*.c")):
            for name in CARVED.findall(path.read_text()):
                carved.setdefault(name, path.relative_to(ROOT))
    if len(carved) < 20:
        print(f"only {len(carved)} pools were found: is the search still right?")
        return 1
    found = [f"{path}: struct {name} has no row with its bound in docs/developer/bounds.md"
             for name, path in carved.items() if name not in NOT_MANY and f"`{name}`" not in page]
    print("\n".join(found) if found else f"{len(carved)} kinds of things have their bounds")
    return 1 if found else 0


sys.exit(main())
