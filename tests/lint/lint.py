#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the source tree to its rules: licence tags, sizes, forbidden dependencies, format.

usage: lint.py [BUILD_DIR]    with a build directory, what the targets are made of and link is
                              looked at, too
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import rules  # noqa: E402
from tree import ROOT, tracked_files  # noqa: E402

# program or library (where it is built) -> libraries that it must not need
LINKS = (
    ("control/sarissa-control", r"librte_"),
    ("client/cli/sarissa", r"librte_|libuv|libprotobuf-c|libsodium"),
    ("client/libsarissa.so", r"librte_|libuv|libprotobuf-c|libsodium"),
    ("dataplane/sarissa-dataplane", r"libuv|libprotobuf-c"),
)


FILE_BYTES_MAX = 2 << 20  # more is something built, or a core dump


def check_files(names, rules_of_files=rules.ALL):
    for name in names:
        if (ROOT / name).stat().st_size > FILE_BYTES_MAX:
            yield f"{name}:1: more than {FILE_BYTES_MAX >> 20} MiB: nothing so large is kept in git"
            continue
        try:
            lines = (ROOT / name).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for rule in rules_of_files:
            for number, text in rule(name, lines):
                yield f"{name}:{number}: {text}"


def check_format(names):
    sources = [name for name in names if name.endswith(rules.C_LIKE)]
    if not shutil.which("clang-format"):
        yield "clang-format is not there: run scripts/setup"
        return
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources], cwd=ROOT,
                          capture_output=True, text=True)
    seen = set()
    for line in done.stderr.splitlines():
        found = re.match(r"([^:]+):(\d+):\d+: error: ", line)
        if found and found.group(1) not in seen:
            seen.add(found.group(1))
            yield f"{found.group(1)}:{found.group(2)}: not formatted: clang-format -i"


def check_targets(build):
    """Nothing built in one of the processes may be made of another's sources."""
    done = subprocess.run(["/usr/bin/meson", "introspect", "--targets", build], capture_output=True,
                          text=True)
    if done.returncode:
        yield f"{build}: meson introspect: {done.stderr.strip()}"
        return
    homes = ("dataplane", "control", "client")
    for target in json.loads(done.stdout):
        home = Path(target["defined_in"]).relative_to(ROOT).parts[0]
        if home not in homes:
            continue
        for group in target["target_sources"]:
            for source in group.get("sources", []):
                path = Path(source)
                if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in homes and \
                        path.relative_to(ROOT).parts[0] != home:
                    yield f"{target['name']} of {home}/ is made of {path.relative_to(ROOT)}"


def check_links(build):
    for name, forbidden in LINKS:
        path = Path(build) / name
        if not path.exists():
            continue
        out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.+)\]", out):
            if re.match(forbidden, library):
                yield f"{name} links {library}"


def check_exports(build):
    library = Path(build) / "client/libsarissa.so"
    if not library.exists():
        return
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                         text=True).stdout
    for line in out.splitlines():
        kind, symbol = line.split()[-2:]
        if kind in "TDBRW" and not symbol.startswith("sar_"):
            yield f"libsarissa exports {symbol}: only sar_ names"


def main():
    names = tracked_files()
    checks = [check_files(names), check_format(names)]
    if len(sys.argv) > 1:
        build = sys.argv[1]
        checks += [check_targets(build), check_links(build), check_exports(build)]
    offences = [text for check in checks for text in check]
    for text in check_files(names, rules.HINTS):
        print(f"hint: {text}")
    print("\n".join(offences) if offences else f"{len(names)} files keep the rules")
    return 1 if offences else 0


sys.exit(main())
