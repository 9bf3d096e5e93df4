# SPDX-License-Identifier: BSD-3-Clause
"""Rows of `bench compare` as the source keeps them (docs/results.json): a line for each case, system
and tuning, with the commit that was measured. Of each turn its numbers, in a list where they differ;
what it tells by node or by cause stays in bench/results, which is not part of the source.

A *set* is the rows of one system in one tuning of a case. Measured again, it replaces the older as soon as
it has as many undisturbed turns, or as many as were wanted; until then it is only begun."""

import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from .bench_cases import CASES
from .bench_table import by_system
from .shell import ROOT, Failure, build_dir

KEPT = ROOT / "docs/results.json"
RESULTS = ROOT / "bench/results"
CORES_FULL = 0.8  # above, the machine is measured rather than the system
OTHERS_MOST = 1 / 3  # of the machine, just before a turn: above, it is not counted
DERIVED = ("op", "case", "ratio")
BUILT_OF = ("bench", "client", "control", "dataplane", "ebpf", "include", "meson.build")
DIGITS = 7
NEEDED = {"system", "tuning", "seconds"}  # of each row


def result_path(directory, case):
    return directory / f"{case.replace('/', '-')}.json"


def now():
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())


@contextlib.contextmanager
def of_ours(path):
    """Another's file, or half a one, is told in one line."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        raise Failure(f"{path} holds no results of ours: remove it") from None


def with_needed(rows):
    if not all(NEEDED <= row.keys() for row in rows):
        raise ValueError
    return rows


def said(*argv):
    """What a command says, or None where it fails or is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def git(*argv):
    return said("git", "-c", "safe.directory=*", "-C", ROOT, *argv)


@functools.cache
def code_of(name):
    """The last commit up to this one that changed what is measured."""
    return git("log", "-1", "--abbrev=7", "--format=%h", name, "--", *BUILT_OF) or name


def commit():
    """What is measured; with a + where sources have changed since, or the build is older than they."""
    if not git("rev-parse", "HEAD"):
        return "?"
    built = said("ninja", "-n", "-C", build_dir()) or ""
    clean = "no work to do" in built and not git("status", "--porcelain", "-uno", *BUILT_OF)
    return code_of("HEAD") + "+" * (not clean)


def machine():
    model = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().split("\n")
             if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {model[0] if model else platform.machine()}, Linux " \
           f"{platform.release()}"


def quiet(row):
    return (row.get("other_cpu_share") or 0) <= OTHERS_MOST


def last(rows):
    """When the youngest of the rows was measured."""
    return max(row["measured"] for row in rows)


def measured(path, case, key="rows"):
    """The rows of a case in bench/results, or those of sets that are "begun". Those of an earlier
    format do not say of when they are."""
    if not path.exists():
        return []
    with of_ours(path):
        return measured_in(path, {"begun": []} | json.loads(path.read_text()), case, key)


def measured_in(path, told, case, key):
    if told.get("command", "").partition(" ")[2] not in ("", case.command):
        return []
    old = {"commit": "?", "machine": told.get("machine") or "?",
           "measured": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(path.stat().st_mtime))}
    if isinstance(old["machine"], dict):
        old["machine"] = "{cores} cores, {model}, Linux {kernel}".format(**old["machine"])
    rows = [old | row for row in with_needed(told[key])]
    return [row | {"commit": re.sub(r"[0-9a-f]{7,}", lambda name: code_of(name[0]), row["commit"])}
            for row in rows]


def merged(kept, more):
    """The rows of a case, of each set the younger, but no disturbed ones instead of others."""
    sets, younger = by_system(kept), by_system(more)
    for name, rows in younger.items():
        old = sets.get(name)
        if not old or (last(rows) >= last(old) and any(map(quiet, rows))):
            sets[name] = rows
    return [row for rows in sets.values() for row in rows]


def short(value):
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def line(case, rows):
    """A set as one object."""
    fields = dict.fromkeys(key for row in rows for key, value in row.items()
                           if key not in DERIVED and not isinstance(value, (list, dict)))
    out = {"case": case.name, "command": case.command, "rows": len(rows)}
    for key in fields:
        values = [short(row.get(key)) for row in rows]
        if all(value == values[0] for value in values):
            values = values[0]
        if values is not None:
            out[key] = values
    return out


def rows_of(told):
    """What line() was made of."""
    rows = []
    for at in range(told["rows"]):
        row = {key: value[at] if isinstance(value, list) else value for key, value in told.items()
               if key not in ("case", "command", "rows")}
        bound = row.get("bound_seconds")
        rows.append(row | {"ratio": row["seconds"] / bound if bound else 0})
    return rows


def read(path):
    """Rows by case: of those cases that are measured by the same command today."""
    commands = {case.name: case.command for case in CASES}
    out = {}
    with of_ours(path):
        for told in json.loads(path.read_text()) if path.exists() else ():
            if commands.get(told["case"]) == told["command"]:
                out.setdefault(told["case"], []).extend(with_needed(rows_of(told)))
    return out


def write(path, rows):
    """Of all cases, in the order of their list. Whole or not at all."""
    lines = [json.dumps(line(case, same)) for case in CASES
             for same in by_system(rows.get(case.name, [])).values()]
    part = path.with_suffix(".part")
    part.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    part.rename(path)


def in_folder(directory):
    """What bench/results, or another folder, has of each case."""
    return {case.name: measured(result_path(directory, case.name), case) for case in CASES}


def together(kept_path, directory):
    """All that is known: the kept, and what has been measured since."""
    kept = read(kept_path)
    out = {name: merged(kept.get(name, []), rows) for name, rows in in_folder(directory).items()}
    return kept | {name: rows for name, rows in out.items() if rows}
