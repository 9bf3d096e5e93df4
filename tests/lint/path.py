#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The path of a chunk in docs/developer/architecture.md, 3, is the one in the sources: each function is defined
in a file that its row names and called by a function that stands before it, and the sums are right.

usage: path.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"\*\*([^*]+)\*\*: (\d+) functions in (\d+) files, (\d+) deep\.\n\n((?:\|.*\n)+)")
FUNCTION = re.compile(r"`(\w+)`(?: \(as `(\w+)`\))?")
FILE = re.compile(r"`([\w/.]+)`")


def body(function, source):
    """The text between the braces, which clang-format puts into column 0; None: not defined."""
    found = re.search(rf"^\w[^;{{}}=]*\b{function}\([^;{{}}]*\)\n{{\n(.*?)^}}", source, re.M | re.S)
    return found and found.group(1)


def defined(function, names):
    """The file among these that defines it, and its body there; None, None: no file does."""
    for name in names:
        path = ROOT / "dataplane" / name
        found = body(function, path.read_text()) if path.is_file() else None
        if found is not None:
            return name, found
    return None, None


def check(title, told, rows):
    bodies, depth, files = {}, {}, set()
    tables_of_ports = "".join(path.read_text() for path in (ROOT / "dataplane/io").rglob("*.c"))
    for functions, names in rows:
        for function, alias in functions:
            called = re.compile(rf"(?<!\w){alias or function}\(")
            callers = [depth[other] for other, text in bodies.items() if called.search(text)]
            name, text = defined(function, names)
            if text is None:
                yield f"{title}: {function} is not defined in {', '.join(names)}"
            if depth and not callers:
                yield f"{title}: {function} is called by no function before it"
            if alias and not re.search(rf"\.{alias} = {function}\b", tables_of_ports):
                yield f"{title}: {function} is nobody's {alias}"
            bodies[function], depth[function] = text or "", min(callers, default=0) + 1
            files.add(name)
        for name in set(names) - files:
            yield f"{title}: {name} has none of {', '.join(f for f, _ in functions)}"
    counted = (len(bodies), len(files), max(depth.values()))
    if counted != told:
        yield f"{title}: {counted} functions, files, deep; the page says {told}"


def main():
    page = (ROOT / "docs/developer/architecture.md").read_text()
    tables = TABLE.findall(page)
    offences = [] if len(tables) == 2 else [f"{len(tables)} tables of the path instead of 2"]
    for title, functions, files, deep, table in tables:
        cells = [line.split("|") for line in table.splitlines()[2:]]
        rows = [(FUNCTION.findall(line[1]), FILE.findall(line[2])) for line in cells]
        offences += check(title, (int(functions), int(files), int(deep)), rows)
    print("\n".join(offences) if offences else "the path of a chunk is as told")
    return 1 if offences else 0


sys.exit(main())
