#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The installed headers: clean as C99 and C++11 with -pedantic, and each function of them has a version
in libsarissa.map and a manual page.

usage: public_header.py
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADERS = sorted((ROOT / "include/sarissa").glob("*.h"))
STRICT = ["-pedantic-errors", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-I", ROOT / "include"]


def unclean(language, standard, compiler):
    done = subprocess.run([*compiler.split(), f"-std={standard}", *STRICT, "-x", language, "-"], text=True,
                          input="".join(f"#include <sarissa/{header.name}>\n" for header in HEADERS),
                          capture_output=True)
    return [f"as {standard}: {line}" for line in done.stderr.splitlines() if "error" in line]


def functions():
    text = re.sub(r"/\*.*?\*/", "", "".join(header.read_text() for header in HEADERS), flags=re.S)
    return set(re.findall(r"^(?!typedef)\w[\w *]*?\b(sar_\w+)\(", text, flags=re.M))


def main():
    found = unclean("c", "c99", os.environ.get("CC", "cc"))
    found += unclean("c++", "c++11", os.environ.get("CXX", "c++"))
    declared = functions()
    exported = set(re.findall(r"\b(sar_\w+);", (ROOT / "client/libsarissa.map").read_text()))
    named = set()
    for page in (ROOT / "docs/man").glob("sar_*.3"):
        named |= set(re.findall(r"^\.Nm (sar_\w+)", page.read_text(), flags=re.M))
    found += [f"{name}: not in libsarissa.map" for name in sorted(declared - exported)]
    found += [f"{name}: in libsarissa.map, not in a header" for name in sorted(exported - declared)]
    found += [f"{name}: no manual page names it" for name in sorted(declared - named)]
    if len(declared) < 40:
        found.append(f"only {len(declared)} functions were found: is the search still right?")
    print("\n".join(found) or f"{len(declared)} functions")
    return 1 if found else 0


sys.exit(main())
