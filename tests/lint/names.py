#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the documents name is there: files, options, functions, counters, tests, what their links lead to, and
the files that comments name. And each option of our programs stands in its manual page. Prose is at most 120 characters wide.

usage: names.py
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, tracked_files  # noqa: E402

FILE = re.compile(r"(?<![\w./*<-])((?:[a-z][\w-]*/)*[a-z][\w-]*\.(?:c|h|py|proto|bpf\.c|md|json))\b")
LINK = re.compile(r"\]\(([^)\s#]+)[^)\s]*\)")
COMMENT = {"c": re.compile(r"/\*.*?\*/", re.S), "python": re.compile(r'""".*?"""|#[^\n]*', re.S),
           "other": re.compile(r"(?!)")}
# code, tables, pictures, lines of the logs
NO_PROSE = re.compile(r"^```(?:.|\n)*?^```$|^(?: {4}|\||!\[|- `).*", re.M)
OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z0-9]+)*(?![\w-])")
WORD = re.compile(r"`([a-z]\w*_\w+)`")
# how our programs and scripts declare an option
DECLARED = (r'"--([a-z][a-z0-9-]+)', r'\{\s*"([a-z][a-z0-9-]+)",\s*(?:\d|required_a|no_a)',
            r'\{[\s\\]*"([a-z][a-z0-9-]+)", (?:"[A-Z][][A-Z,./]*"|NULL),', r"^\s*--([a-z-]+)\)")
MANUALS = {"control/shell/options.c": "sarissa-control.8", "dataplane/io/node/options.c": "sarissa-dataplane.8",
           "dataplane/switch/main.c": "sarissa-switch.8", "client/cli/table.c": "sarissa.1",
           "include/internal/plan_options.h": "sarissa.1"}
WIDTH = 120
# of others, and examples
FOREIGN = {"--cflags", "--libs", "--now", "--status", "--in", "--out", "dpdk-devbind.py",
           "dpdk-telemetry.py", "crc32_iscsi_by16_10", "before.json", "after.json", "program.py",
           "tests/python/adapters/test_NAME.py", "test_NAME_faults.py"}
# pages of what is not built yet: they may name options and counters that are not there
DESIGNS = {"docs/developer/protocol-views.md"}


def text_of(name):
    try:
        return (ROOT / name).read_text().replace("\\-", "-")
    except (UnicodeDecodeError, OSError):
        return ""


def declared(text):
    return {f"--{name}" for way in DECLARED for name in re.findall(way, text, flags=re.M)}


def comments(name, text):
    kind = "python" if name.endswith(".py") else "c" if name.endswith((".c", ".h")) else "other"
    return "\n".join(COMMENT[kind].findall(text))


def offences(names):
    documents = [n for n in names if n.endswith(".md") or n.startswith("docs/man/")]
    sources = {n: text_of(n) for n in names if n not in documents}
    words = set(re.findall(r"\w+", "\n".join(sources.values())))
    words |= {Path(n).stem for n in names}
    words |= {"_".join(Path(n).with_suffix("").parts[2:]) for n in names if n.startswith("tests/unit/")}
    options = set().union(*(declared(text) for text in sources.values()))
    ends = {"/".join(Path(n).parts[k:]) for n in names for k in range(len(Path(n).parts))}
    commented = {n: comments(n, text) for n, text in sources.items() if not n.startswith("tests/lint/")}
    for page, text in [*((page, text_of(page)) for page in documents), *commented.items()]:
        for name in sorted(set(FILE.findall(text)) - FOREIGN - ends):
            yield f"{page}: there is no file {name}"
    for page in documents:
        text = text_of(page)
        for link in sorted(set(LINK.findall(text)) if page.endswith(".md") else ()):
            if "://" not in link and not (ROOT / page).parent.joinpath(link).exists():
                yield f"{page}: the link to {link} leads nowhere"
        for line in NO_PROSE.sub("", text).splitlines() if page.endswith(".md") and page != "CHANGELOG.md" else ():
            if len(line) > WIDTH:
                yield f"{page}: a line of {len(line)} characters, {WIDTH} are the most: {line[:50]}..."
        if page in DESIGNS:
            continue
        for name in sorted(set(OPTION.findall(text)) - options - FOREIGN):
            yield f"{page}: nothing takes the option {name}"
        for name in sorted(set(WORD.findall(text)) - words - FOREIGN):
            yield f"{page}: no source has {name}"
    for source, manual in MANUALS.items():
        text = re.sub(r"Fl -(?=[a-z])", "--", text_of(f"docs/man/{manual}"))
        for name in sorted(declared(sources[source]) - set(OPTION.findall(text))):
            yield f"docs/man/{manual}: {name} is missing"
    if len(options) < 100 or len(documents) < 20:
        yield f"{len(options)} options, {len(documents)} documents: is the search still right?"


def main():
    found = list(offences(tracked_files()))
    print("\n".join(found) if found else "what the documents name is there")
    return 1 if found else 0


sys.exit(main())
