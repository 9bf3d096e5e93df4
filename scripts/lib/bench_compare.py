# SPDX-License-Identifier: BSD-3-Clause
"""The whole table of measurements against their bounds and against other systems.

  bench compare                            everything
  bench compare --only 'broadcast/*' 'reduce/*' --system all
  bench compare --list                     the cases, each with the command that measures it alone

Every case is a command of scripts/bench. Its rows go to RESULTS/CASE.json; the table is printed at
the end, also after an interrupt, then of the cases that are complete."""

import argparse
import fnmatch
import json
import os
import platform
import time
from pathlib import Path

from . import bench_lookup, bench_ops, bench_options, shell
from .bench_cases import CASES
from .bench_sum import REDUCES
from .bench_table import by_system, middle, number, percent
from .shell import ROOT, Failure, say

CORES_FULL = 0.8  # above, the machine is measured rather than the system


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN",
                        help="of the cases' names, such as 'broadcast/*' or '*3498*'")
    parser.add_argument("--system", choices=bench_options.SYSTEMS, default="all",
                        help="who takes part, where the case's operation knows of it")
    parser.add_argument("--tuning", nargs="+", default=["hand"], metavar="T",
                        help="of OpenMPI (default: hand; its defaults take several times as long)")
    parser.add_argument("--repeat", type=int, default=5, metavar="R")
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results", metavar="DIR")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--json", action="store_true", help="one JSON object per case at the end")
    args = parser.parse_args(argv)
    args.cases = [case for case in CASES
                  if any(fnmatch.fnmatch(case.name, pattern) for pattern in args.only)]
    if not args.cases:
        raise Failure("--only names no case: see bench compare --list", 2)
    if args.repeat < 1:
        raise Failure("--repeat is at least 1", 2)
    return args


def rows_of(case, args):
    """Runs the case's command; peers take part where the command knows of them."""
    op, *argv = case.command.split()
    argv += ["--repeat", str(args.repeat)]
    if op == "lookup":
        return lookup_rows(bench_lookup.parse(argv))
    system = args.system
    if op not in REDUCES and system == "all":
        system = "both"
    return list(bench_ops.results(bench_options.parse(
        op, [*argv, "--system", system, "--tuning", *args.tuning])))


def lookup_rows(options):
    """With a table of its own: percentiles of single calls."""
    rows = list(bench_lookup.results(options))
    bench_lookup.table(options, rows)
    return [bench_lookup.as_result(row) for row in rows]


def machine():
    model = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().split("\n")
             if line.startswith("model name")]
    return {"cores": os.cpu_count(), "model": model[0] if model else "", "kernel": platform.release()}


def keep(case, args, rows):
    """Whole or not at all, so that an interrupt leaves no half file."""
    args.results.mkdir(parents=True, exist_ok=True)
    path = args.results / f"{case.name.replace('/', '-')}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"case": case.name, "command": f"scripts/bench {case.command}",
                                "limits": case.limits, "machine": machine(), "rows": rows},
                               indent=1) + "\n")
    part.rename(path)


def summary(case, rows):
    """One object per system of a case, with the medians of all numbers."""
    for name, same in by_system(rows).items():
        numbers = {key: middle(same, key) for key, value in same[0].items()
                   if isinstance(value, (int, float)) and not isinstance(value, bool)}
        ratios = [row["ratio"] for row in same if row.get("ratio")]
        ours = same[0]["system"] == "sarissa"
        yield {"case": case.name, "label": name, **numbers, "runs": len(same),
               "ratio_min": min(ratios, default=None), "ratio_max": max(ratios, default=None),
               "cpu_share": middle(same, "cpu_share"), "verdict": verdict(case, numbers, ours)}


def verdict(case, numbers, ours):
    """Which limits of the case hold; limits are ours, peers are there to compare."""
    if not ours:
        return ""
    missed = [f"{key} > {most:g}" for key, most in case.limits.items()
              if numbers.get(key) is not None and numbers[key] > most]
    text = f"missed: {', '.join(missed)}" if missed else "met" if case.limits else ""
    full = (numbers.get("cpu_share") or 0) > CORES_FULL
    return text + (" (cores full)" if full else "")


def table(lines):
    say(f"{'case':<28}{'system':<26}{'seconds':>10}{'ratio':>7}{'min':>7}{'max':>7}{'CPU':>6}{'other':>6}"
        f"{'late S/B':>10}{'blocked s':>11}{'copies':>8}{'re-sent':>9}  limits")
    for one in lines:
        bound = one.get("bound_seconds")
        ratios = [number(one.get(key) if bound else None, ".3f")
                  for key in ("ratio", "ratio_min", "ratio_max")]
        late = one.get("late_share") if one.get("stagger_ms") else None
        say(f"{one['case']:<28}{one['label']:<26}{one['seconds']:>10.6f}"
            f"{ratios[0]:>7}{ratios[1]:>7}{ratios[2]:>7}{percent(one['cpu_share']):>6}"
            f"{percent(one.get('other_cpu_share')):>6}"
            f"{number(late, '.3f'):>10}{number(one.get('blocked_mean_seconds'), '.4f'):>11}"
            f"{number(one.get('source_copies'), '.2f'):>8}"
            f"{percent(one.get('resent_share'), 2):>9}  {one['verdict']}")


def show_cases(cases):
    for case in cases:
        limits = ", ".join(f"{key} <= {most:g}" for key, most in case.limits.items())
        print(f"{case.name:<28}scripts/bench {case.command}" + (f"   [{limits}]" if limits else ""))


def main(argv):
    args = parse(argv)
    if args.list:
        return show_cases(args.cases)
    shell.require_root("scripts/bench")
    lines = []
    try:
        for at, case in enumerate(args.cases, 1):
            say(f"bench: {case.name} ({at} of {len(args.cases)}): {case.command}")
            begin = time.monotonic()
            rows = rows_of(case, args)
            keep(case, args, rows)
            lines += summary(case, rows)
            say(f"bench: {case.name} took {time.monotonic() - begin:.0f} s")
    finally:
        if lines:
            table(lines)
        for one in lines if args.json else ():
            print(json.dumps(one), flush=True)
    return any(one["verdict"].startswith("missed") for one in lines)
