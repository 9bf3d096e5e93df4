#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The installed headers: clean as C99 and C++11 with -pedantic; each function of them has a
manual page, and the library exports it and nothing else; their structs have room for later members.

usage: public_header.py BUILD
"""

import os
import re
import subprocess
import sys
from pathlib import Path

SETTLED = {"sar_id", "sar_range"}  # as iovec is: callers have arrays of them, and nothing will be added
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


def without_room():
    """Structs that grow by a later version would overwrite what follows them in older programs."""
    text = "".join(header.read_text() for header in HEADERS)
    structs = re.findall(r"^typedef struct (sar_\w+) \{$(.*?)^\} \1;$", text, flags=re.M | re.S)
    return [f"{name}: reserves nothing, and has no size as its first member" for name, body in structs
            if name not in SETTLED and not re.search(r"\breserved\[\d+\];|\A\s*size_t size;", body)]


def symbols(library):
    """What it exports. Before the first release there is one version, and no symbol has it in its name here."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return {line.split()[2].removesuffix("@@SARISSA_0.1") for line in lines} - {"SARISSA_0.1"}


def main():
    found = unclean("c", "c99", os.environ.get("CC", "cc"))
    found += unclean("c++", "c++11", os.environ.get("CXX", "c++"))
    declared = functions()
    exported = symbols(Path(sys.argv[1]) / "client/libsarissa.so")
    named = set()
    for page in (ROOT / "docs/man").glob("sar_*.3"):
        named |= set(re.findall(r"^\.Nm (sar_\w+)", page.read_text(), flags=re.M))
    found += [f"{name}: the library does not export it: see libsarissa.map" for name in sorted(declared - exported)]
    found += [f"{name}: exported, and in no header" for name in sorted(exported - declared)]
    found += [f"{name}: no manual page names it" for name in sorted(declared - named)]
    found += without_room()
    if len(declared) < 40:
        found.append(f"only {len(declared)} functions were found: is the search still right?")
    print("\n".join(found) or f"{len(declared)} functions")
    return 1 if found else 0


sys.exit(main())
