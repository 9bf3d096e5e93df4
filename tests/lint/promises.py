#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each promise of docs/user/guarantees.md (G4.1) and each section of rules of docs/developer/protocol*.md (P6.1)
is cited where code keeps it and where a test shows it, and no citation names an id that does not exist.

usage: promises.py
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, tracked_files  # noqa: E402

PROMISE = re.compile(r"^(?:\| |(?:- )?\*\*)(G\d+\.\d+)\b", re.M)
HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)(?: to \d+\.(\d+))? ", re.M)
NO_RULES = {"P1", "P6", "P15"}  # an overview, a heading alone, and considerations
MARK = re.compile(r"\[([GP]\d+(?:\.\d+)?)\]")
CODE = ("control/", "dataplane/", "client/", "include/", "ebpf/")


def ids_of(guarantees, protocol):
    ids = set(PROMISE.findall(guarantees))
    for number, last in HEADING.findall(protocol):
        section, _, first = number.partition(".")
        ids |= {f"P{section}.{k}" for k in range(int(first), int(last) + 1)} if last else {f"P{number}"}
    return ids - NO_RULES


def complaints(ids, marks):
    """marks: (id, file)"""
    for one, name in sorted(marks):
        if one not in ids:
            yield f"{name}: [{one}] names no promise and no section of rules"
    for what, places in (("code", CODE), ("test", ("tests/",))):
        cited = {one for one, name in marks if name.startswith(places)}
        for one in sorted(ids - cited):
            yield f"{one}: no {what} says [{one}]"


def main():
    pages = [(ROOT / f"docs/developer/protocol{part}.md").read_text() for part in ("", "-connections", "-sending")]
    ids = ids_of((ROOT / "docs/user/guarantees.md").read_text(), "\n".join(pages))
    marks = {(one, name) for name in tracked_files()
             if name.startswith((*CODE, "tests/")) and name.endswith((".c", ".h", ".py"))
             and not name.startswith("tests/lint/") for one in MARK.findall((ROOT / name).read_text())}
    found = list(complaints(ids, marks))
    print("\n".join(found) if found else f"{len(ids)} promises and rules have code and test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
