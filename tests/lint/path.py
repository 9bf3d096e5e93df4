#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The path of a chunk in docs/architecture.md, 3, is the one in the sources: each function is defined
in the file that its row names and called by the row that it names, and the sums are right.

usage: path.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(r"\*\*([^*]+)\*\*: (\d+) functions in (\d+) files, (\d+) deep\.\n\n((?:\|.*\n)+)")
ROW = re.compile(r"\| (\d+) \| `(\w+)` \| `([\w/.]+)` \| (?:(\d+)(?:, as `(\w+)`)?)? ?\|")


def body(function, source):
    """The text between the braces, which clang-format puts into column 0; None: not defined."""
    found = re.search(rf"^\w[^;{{}}=]*\b{function}\([^;{{}}]*\)\n{{\n(.*?)^}}", source, re.M | re.S)
    return found and found.group(1)


def check(title, told, rows):
    bodies, depth, files = {}, {}, set()
    tables_of_ports = "".join(path.read_text() for path in (ROOT / "dataplane/io").glob("*.c"))
    for number, function, name, caller, alias in rows:
        where = f"{title}, row {number}: {function}"
        path = ROOT / "dataplane" / name
        source = path.read_text() if path.is_file() else ""
        bodies[number], depth[number] = body(function, source), depth.get(caller, 0) + 1
        files.add(name)
        if bodies[number] is None:
            yield f"{where} is not defined in dataplane/{name}"
        if caller and not re.search(rf"(?<!\w){alias or function}\(", bodies.get(caller) or ""):
            yield f"{where} is not called by row {caller}"
        if alias and not re.search(rf"\.{alias} = {function}\b", tables_of_ports):
            yield f"{where} is nobody's {alias}"
    counted = (len(rows), len(files), max(depth.values()))
    if counted != told:
        yield f"{title}: {counted} functions, files, deep; the page says {told}"


def main():
    page = (ROOT / "docs/architecture.md").read_text()
    tables = TABLE.findall(page)
    offences = [] if len(tables) == 2 else [f"{len(tables)} tables of the path instead of 2"]
    for title, functions, files, deep, table in tables:
        rows = ROW.findall(table)
        if len(rows) != table.count("\n") - 2:
            offences.append(f"{title}: {len(rows)} rows are understood of {table.count(chr(10)) - 2}")
        offences += check(title, (int(functions), int(files), int(deep)), rows)
    print("\n".join(offences) if offences else "the path of a chunk is as told")
    return 1 if offences else 0


sys.exit(main())
