#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/operator/operations.md names every counter and every reason, logs.md beside it every line of the logs that
is a warning or an error, and none that is not there any more. No cell of a table is a page of advice.

usage: operations.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, LOGS = (ROOT / "docs/operator" / name for name in ("operations.md", "logs.md"))
CELL = 400  # letters
LITERAL = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf"\b(log_error|log_warning|port_fail)\(((?:[^;\"]|{LITERAL})*?)\);")
CORE_CALL = re.compile(r"env_log\(c, CONTROL_LOG_(?:ERROR|WARNING)")
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:ll|l|z|h)?[a-zA-Z]")
USAGE = "see --help"  # of a wrong option: the line says all
TABLES = (("include/internal/counters.h", "COUNTERS"),
          ("include/internal/peer_counters.h", "PEER_COUNTERS"),
          ("include/internal/peer_counters.h", "PEER_GAUGES"),
          ("include/internal/control_counters.h", "CONTROL_COUNTERS"),
          ("include/internal/control_counters.h", "CONTROL_GAUGES"))
SHORT = 8  # parts of a line below this many letters say nothing


def literals(text):
    """String literals, those that stand side by side joined."""
    groups = re.findall(rf"{LITERAL}(?:\s*{LITERAL})*", text)
    return ["".join(part[1:-1] for part in re.findall(LITERAL, group)) for group in groups]


def plain(text):
    return CONVERSION.sub("...", text.replace('\\"', '"'))


def lines_of_shells(text):
    for function, arguments in CALL.findall(text):
        parts = [plain(part) for part in literals(arguments)]
        if function == "port_fail":
            yield ": ".join(parts)
        elif parts and not parts[0].endswith(USAGE) and len(re.findall(r"[a-z]", parts[0])) > SHORT:
            yield parts[0]


def lines_of_core(text):
    """Put together with text_add: every part counts."""
    for call in CORE_CALL.finditer(text):
        body = text[text.rindex("\n{\n", 0, call.start()):call.start()]
        for part in literals("".join(re.findall(rf"text_add\(&t,[^;]*;", body))):
            if len(part.strip(" :,")) >= SHORT:
                yield part.strip(" :,")


def log_lines():
    for folder in ("control", "dataplane"):
        for path in sorted((ROOT / folder).rglob("*.c")):
            text = path.read_text()
            core = path.is_relative_to(ROOT / "control/core")
            for line in (lines_of_core if core else lines_of_shells)(text):
                yield path.relative_to(ROOT), line


def names(header, macro):
    """The entries of an X-macro table: name -> its first text."""
    text = (ROOT / header).read_text()
    table = re.search(rf"#define {macro}\(X\)(.*?[^\\])\n\n", text, flags=re.S).group(1)
    return dict(re.findall(r'X\((\w+), "([^"]*)"', table))


def offences(page, logs):
    counters = {name for header, macro in TABLES for name in names(header, macro)}
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+)", page, flags=re.M)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    for name in sorted(counters - told):
        yield f"the counter {name} has no row"
    for name in sorted(told - counters):
        yield f"a row for {name}, which is no counter"
    for name, text in names("include/internal/record.h", "REASONS").items():
        if name != "NONE" and not re.search(rf"^\| (?:.*; )?{re.escape(text)}(?:; .*)? \| ", page, re.M):
            yield f"the reason '{text}' has no row"
    found = set()
    for path, line in log_lines():
        found.add(line)
        if line not in logs:
            yield f"{path}: the line '{line}' is not in {LOGS.name}"
    for row in re.findall(r"^\|.*", page + logs, flags=re.M):
        for cell in row.strip("|").split(" | "):
            if len(cell.strip()) > CELL:
                yield f"a cell of {len(cell)} letters, '{cell.strip()[:40]}...': write it below a heading"
    if len(found) < 40:
        yield f"only {len(found)} lines of the logs were found: is the search still right?"


def main():
    found = [f"docs/operator/operations.md: {text}" for text in offences(PAGE.read_text(), LOGS.read_text())]
    print("\n".join(found) if found else "docs/operator names all of it")
    return 1 if found else 0


sys.exit(main())
