# SPDX-License-Identifier: BSD-3-Clause
"""Rows of measurements: a JSON object per line, a line per repetition, only ever appended.

docs/study/results.jsonl holds the rows that the pages are made of; bench/results/rows.jsonl, which is not part of
the source, those that were measured since. A *set* is the rows of one system in one variant of a case, at
one commit on one machine. A variant is a tuning of a peer, or the port that carried our packets."""

import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from lib.bench.tables.cases import CASES
from lib.shell import ROOT, Failure, build_dir

KEPT = ROOT / "docs/study/results.jsonl"
RESULTS = ROOT / "bench/results"
ROWS = "rows.jsonl"
CORES_FULL = 0.8  # above, the machine is measured rather than the system
OTHERS_MOST = 1 / 3  # of the machine, just before a turn: above, the row does not count
ENOUGH = 3  # rows that make a set worth more than an older one
LONG_S = 60.0  # what takes longer is measured once, without warming up
BUILT_OF = ("bench", "client", "control", "dataplane", "ebpf", "include", "meson.build")
NEEDED = {"case", "command", "system", "tuning", "seconds", "measured", "commit", "machine", "release"}
NOT_RECORDED = ("op", "case", "ratio", "nodes", "bytes", "rate_mbit", "mtu", "stagger_ms")  # see the command
DIGITS = 7


def output(*argv):
    """What a command prints, or None where it fails or is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def git(*argv):
    return output("git", "-c", "safe.directory=*", "-C", ROOT, *argv)


@functools.cache
def commit():
    """The last commit that changed what is measured; with a + where sources have changed since, or the
    build is older than they are."""
    code = git("log", "-1", "--abbrev=7", "--format=%h", "--", *BUILT_OF)
    built = output("ninja", "-n", "-C", build_dir()) or ""
    clean = "no work to do" in built and not git("status", "--porcelain", "-uno", *BUILT_OF)
    return code + "+" * (not clean) if code else "?"


@functools.cache
def machine():
    model = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().split("\n")
             if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {model[0] if model else platform.machine()}, Linux " \
           f"{platform.release()}"


def release():
    """The version of the sources."""
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]


def rounded(value):
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def recorded(case, row):
    """A row as it is appended: without what it holds by node or by cause, but with what was measured."""
    numbers = {key: rounded(value) for key, value in row.items()
               if key not in NOT_RECORDED and value is not None
               and not isinstance(value, (list, dict))}
    return {"case": case.name, "command": case.command, **numbers, "release": release(),
            "commit": commit(), "machine": machine(),
            "measured": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}


def append(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


def read(path):
    """The rows of a file, which need not be there; a file of something else is refused in one line."""
    rows = []
    with contextlib.suppress(FileNotFoundError), open(path) as lines:
        try:
            for number, text in enumerate(lines, 1):
                row = json.loads(text)
                if not NEEDED <= row.keys():
                    raise ValueError
                rows.append(row)
        except (ValueError, AttributeError):
            raise Failure(f"{path}, line {number}, is no measured row: remove the line") from None
    return rows


def by_case(rows):
    """Rows of those cases that are measured by the same command today, with their ratios."""
    commands = {case.name: case.command for case in CASES}
    out = {}
    for row in rows:
        if commands.get(row["case"]) == row["command"]:
            bound = row.get("bound_seconds")
            out.setdefault(row["case"], []).append(row | {"ratio": row["seconds"] / bound if bound else 0})
    return out


def variant(row):
    """What tells the rows of a system apart: of ours the port, of a peer the tuning."""
    return row.get("vdev", "af_xdp") if row["system"] == "sarissa" else row["tuning"]


def quiet(row):
    return (row.get("other_cpu_share") or 0) <= OTHERS_MOST


def enough(rows):
    return len(rows) >= ENOUGH or any(row["seconds"] > LONG_S for row in rows)


def newest(rows):
    """Of the rows of a system in one variant, the set that counts: the youngest with enough rows, or
    else the youngest."""
    sets = {}
    for row in filter(quiet, rows):
        sets.setdefault((row["commit"], row["machine"]), []).append(row)
    return max(sets.values(), default=[],
               key=lambda same: (enough(same), max(row["measured"] for row in same)))


def sets_of(rows):
    """What counts, by case, system and variant: of the last release that was measured, and of the machine on which
    the case was measured last, for rows of two machines cannot be compared."""
    last = max((row["release"] for row in rows), default="", key=lambda text: [
        int(part) for part in re.findall(r"\d+", text)])
    out = {}
    for case, same in by_case(row for row in rows if row["release"] == last).items():
        here = max(same, key=lambda row: row["measured"])["machine"]
        same = [row for row in same if row["machine"] == here]
        for key in dict.fromkeys((row["system"], variant(row)) for row in same):
            if some := newest([row for row in same if (row["system"], variant(row)) == key]):
                out.setdefault(case, {}).setdefault(key[0], {})[key[1]] = some
    return {case.name: out[case.name] for case in CASES if case.name in out}
