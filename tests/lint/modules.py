#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The modules of control/core only use modules below them: looked up in the symbols of the built objects,
and in what the files include. Of another module they include its entry headers only; state.h, which
opens all modules, is for the files that wire them (the folder itself) and for tests.

usage: modules.py BUILD_DIR [--table]    --table: which module uses which, and the cycles of files in a module
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

# lowest first (docs/developer/architecture.md)
ORDER = ("base", "message", "planner", "cluster", "directory", "lease", "flow", "store", "transfer",
         "reduce/participant", "reduce/coordinator", "reduce/requester", "group", "session", "control.c")
TOP = ORDER[-1]
# what another module may include of one, beside all of the first three; all else of a module is its own
ENTRY = {"cluster": {"state.h"}, "directory": {"state.h"}, "flow": {"state.h"}, "lease": {"state.h"},
         "store": {"state.h", "await.h"}, "transfer": {"fetch.h", "serve.h"},
         "reduce/participant": set(), "reduce/coordinator": {"wrong.h"},
         "reduce/requester": {"requester.h"}, "group": {"state.h"}, "session": set()}
OPEN = ("control.h",)  # the shell's, which every module includes
CORE = Path(__file__).resolve().parents[2] / "control/core"


def room_of(name):
    """Of an object's name, such as reduce_participant_pull.c.o."""
    modules = [module for module in ORDER if name.startswith(module.replace("/", "_") + "_")]
    return modules[0] if modules else TOP


def symbols(build):
    """object -> (names that it defines, names that it uses)"""
    folder = Path(build) / "control/core/libcontrol-core.a.p"
    objects = sorted(folder.glob("*.c.o"))
    if not objects:
        return {}
    out = subprocess.run(["nm", "-g", "-A", *objects], capture_output=True, text=True,
                         check=True).stdout
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    for line in out.splitlines():
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        (used if kind == "U" else defined)[Path(path).name].add(symbol)
    return {path.name: (defined[path.name], used[path.name]) for path in objects}


def uses(objects):
    """(object, object that it uses, symbol), but for what wiring.c does for a module below"""
    home = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}
    return [(name, home[symbol], symbol) for name, (_, used) in objects.items()
            for symbol in sorted(used) if symbol in home and not symbol.startswith("wiring_")]


def goes_up(one):
    return ORDER.index(room_of(one[1])) > ORDER.index(room_of(one[0]))


def reachable(start, after):
    seen, todo = set(), [start]
    while todo:
        for other in after[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return seen


def cycles(every):
    """Groups of files of which each uses each, directly or not; the largest first."""
    after = collections.defaultdict(set)
    for name, other, _ in every:
        after[name].add(other)
    reach = {name: reachable(name, after) for name in list(after)}
    groups = {frozenset(other for other in reach[name] if name in reach.get(other, ()))
              for name in reach}
    return sorted((sorted(group) for group in groups if len(group) > 1), key=len, reverse=True)


def table(every):
    count = collections.Counter((room_of(name), room_of(other)) for name, other, _ in every)
    print(f"{'uses':20}", *(f"{module.split('/')[-1][:6]:>6}" for module in ORDER))
    for module in ORDER:
        print(f"{module:20}", *(f"{count[module, other] if module != other else 0 or '.':>6}"
                              for other in ORDER))
    for group in cycles(every):
        print(f"a cycle of {len(group)}:", *(name.removesuffix(".c.o") for name in group))


def module_of_file(name):
    return next((module for module in ORDER if name.startswith(f"{module}/")), TOP)


def includes():
    """(file, header of control/core that it includes, by its path there)"""
    for path in sorted(CORE.rglob("*.[ch]")):
        for header in re.findall(r'#\s*include "([^"]+)"', path.read_text()):
            header = header.removeprefix("core/") if header.startswith("core/") else \
                str((path.parent / header).resolve().relative_to(CORE)) \
                if (path.parent / header).exists() else ""
            if header and header not in OPEN:
                yield str(path.relative_to(CORE)), header


def wrong(name, header):
    """Why a file must not include a header of control/core, or None."""
    module, other = module_of_file(name), module_of_file(header)
    if ORDER.index(other) > ORDER.index(module):
        return f"{module} is below {other}"
    entry = ENTRY.get(other)
    if module not in (other, TOP) and entry is not None and \
            header.removeprefix(f"{other}/") not in entry:
        return f"that header is {other}'s own: " + \
            (f"include {' or '.join(sorted(entry))} of it" if entry else "send it a message")
    return None


def main():
    objects = symbols(sys.argv[1])
    every = uses(objects)
    if len(every) < 500:
        print(f"only {len(every)} uses were found in {len(objects)} objects: is the search still right?")
        return 1
    if "--table" in sys.argv:
        table(every)
    up = sorted(filter(goes_up, every))
    for name, other, symbol in up:
        print(f"{name.removesuffix('.o')} uses {symbol} of {other.removesuffix('.o')}: "
              f"{room_of(name)} is below {room_of(other)}")
    above = [(name, header, why) for name, header in includes() if (why := wrong(name, header))]
    for name, header, why in above:
        print(f"{name} includes {header}: {why}")
    up += above
    print(f"{len(up)} uses are wrong" if up else f"{len(objects)} objects only use modules below them")
    return 1 if up else 0


sys.exit(main())
