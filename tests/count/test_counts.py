#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that the pure cores need for work of known size, against those that are on record.

Callgrind counts them, so the machine's load and clock do not matter; compiler, flags and the
instruction sets of the processor do, and each such combination has its own record in expected.json.
More than the record fails, beyond a tolerance of SHARE and SLACK instructions per unit of work.
Exit 77: no valgrind, or no record of this combination.

usage: test_counts.py PROGRAM COMPILER-AND-FLAGS [--record]
"""

import collections
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected.json")
SHARE = 0.03
SLACK = 2
NAMED = re.compile(r"(c?fn)=\((\d+)\)(?: (\S+))?")


def inclusive(lines):
    """Function -> instructions of all calls to it, with all that they call."""
    names, total, callee = {}, collections.Counter(), None
    for line in lines:
        named = NAMED.match(line)
        if named:
            kind, number, name = named.groups()
            names.setdefault(number, name)
            if kind == "cfn":
                callee = names[number]
        elif line.startswith("calls="):  # the next line: where from, and what they cost
            total[callee] += int(next(lines).split()[1])
    return total


def counted(program):
    """"work: function" -> instructions per unit of that work; and the level of the kernels."""
    with tempfile.TemporaryDirectory(prefix="sarissa-counts-") as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             f"--callgrind-out-file={folder}/out", program], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"counts ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        told = [line.split() for line in done.stdout.splitlines()]
        level = next(words[1] for words in told if words[0] == "level")
        works = [words for words in told if words[0] != "level"]
        counts = {}
        for number, (work, units, *functions) in enumerate(works, 1):
            with open(f"{folder}/out.{number}") as lines:
                total = inclusive(iter(lines))
            for function in functions:
                counts[f"{work}: {function}"] = round(total[function] / int(units), 1)
    return counts, level


def offences(counts, record):
    for name in sorted(counts.keys() | record.keys()):
        now, then = counts.get(name), record.get(name)
        if now is None or then is None:
            yield f"{name}: {'not counted' if now is None else 'not on record'}"
        elif now > then * (1 + SHARE) + SLACK:
            yield f"{name}: {now} instructions, on record are {then} ({now / then - 1:+.1%})"


def main():
    program, flags = sys.argv[1:3]
    if shutil.which("valgrind") is None:
        print("skip: no valgrind here: scripts/setup installs it")
        return 77
    counts, level = counted(program)
    expected = json.loads(EXPECTED.read_text())
    key = f"{flags} {level}"
    if sys.argv[3:] == ["--record"]:
        expected[key] = counts
        EXPECTED.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
        return 0
    again = f"{sys.argv[0]} {program} '{flags}' --record"
    if key not in expected:
        print(f"skip: no counts are on record for {key}; to record them: {again}")
        return 77
    wrong = list(offences(counts, expected[key]))
    print("\n".join(wrong))
    if wrong:
        print(f"meant so? Then record it, and say why in the commit: {again}")
    return 1 if wrong else 0


sys.exit(main())
