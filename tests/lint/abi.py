#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The binary interface of libsarissa is the one in libsarissa.abi, or has more functions than that: programs that were
linked with an earlier library of the same soname go on. Skipped without abidiff (Debian: abigail-tools).

The headers decide what programs see, so a library of empty functions stands in for the real one. Its dump has no types
of the inside and no paths. tests/unit/install/public_header.py sees that the real library exports the same functions.

usage: abi.py          compare
       abi.py --renew  write libsarissa.abi, after a change that is meant: a member in the place of reserved ones,
                       or before a release with another soname
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).resolve().parent / "libsarissa.abi"
SKIP = 77
DUMP = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-architecture", "--no-elf-needed",
        "--no-parameter-names"]
COMPARE = ["--no-architecture", "--no-added-syms", "--no-show-locs"]


def stand_in():
    """A body for each function of the headers, and a variable for each enum, which no function names."""
    headers = sorted((ROOT / "include/sarissa").glob("*.h"))
    text = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in headers), flags=re.S)
    return "".join([f"#include <sarissa/{path.name}>\n" for path in headers] +
                   [f"{one} {{ __builtin_trap(); }}\n"
                    for one in re.findall(r"^(?!typedef)(\w[\w *]*?\bsar_\w+\([^;{]*\));", text, flags=re.M)] +
                   [f"enum {name} abi_{name};\n" for name in re.findall(r"^enum (sar_\w+) {", text, flags=re.M)])


def dumped(folder):
    (folder / "stand_in.c").write_text(stand_in())
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-w", "-g", "-shared", "-fPIC", "-I", ROOT / "include", "-Wl,-soname,libsarissa.so.0",
                    "stand_in.c", "-o", "libsarissa.so"], cwd=folder, check=True)
    subprocess.run(["abidw", *DUMP, "--out-file", "now.abi", "libsarissa.so"], cwd=folder, check=True)
    return folder / "now.abi"


def main():
    if not shutil.which("abidiff"):
        print("abidiff is not here: install abigail-tools (scripts/setup)")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        now = dumped(Path(folder))
        if sys.argv[1:] == ["--renew"]:
            shutil.copyfile(now, KEPT)
            return 0
        done = subprocess.run(["abidiff", *COMPARE, KEPT, now], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr + "programs that were linked before may break: keep sizes, places and types, or "
              "see 'tests/lint/abi.py --renew'")
    return 1 if done.returncode else 0


sys.exit(main())
