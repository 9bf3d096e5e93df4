# SPDX-License-Identifier: BSD-3-Clause
"""The whole table of measurements against their bounds and against other systems.

  bench compare                            every case, but those of 1 GiB (--huge): takes hours
  bench compare --only 'broadcast/*' 'reduce/*' --system all --vdev udp
  bench compare --resume --seconds 120     measures what is missing, and ends after two minutes
  bench compare --list                     the cases, how long each takes, the command that measures it alone
  bench compare --show                     the table of what has been measured

Cases on the same links are run on the same clusters, and the systems take turns. Each repetition is appended to
RESULTS/rows.jsonl as soon as it has ended; the table is printed at the end, also after an interrupt.
RESULTS/compare.json and RESULTS/*.svg hold the medians and the figures. `bench report` takes the rows
over into docs/study/results.jsonl, and rewrites the pages.

With --resume a row counts if it is of this machine, no older than --since, not disturbed by other programs, and, if
it is ours, of this commit."""

import json
import math
import time
from pathlib import Path

from lib import engines, options, shell
from lib.bench import ops, options as bench_options
from lib.bench.tables import expect, figures as bench_figures, report as bench_report, rows as bench_rows
from lib.bench.tables.cases import CASES, rank
from lib.bench.tables.rows import CORES_FULL, LONG_S
from lib.bench.tables.table import Columns, grouped, label, middle, name_of
from lib.shell import Failure, say

MOMENT = "0000-00-00T00:00Z"  # 0: any digit
CASE_COLUMNS = Columns("case<32", "system<26", "seconds>10.6f", "ratio>7.3f", "min>7.3f", "max>7.3f", "CPU>6.0%",
                       "CPU s>7.2f", "other>6.0%", "wire MB>9.1f", "late S/B>10.3f", "blocked s>11.4f",
                       "copies>8.2f", "re-sent>9.2%", "runs>6")


def parse(argv):
    parser = options.Parser(prog="bench compare", description=__doc__)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN",
                        help="of the cases' names, such as 'broadcast/*' or '*3498*'")
    parser.add_argument("--huge", action="store_true",
                        help="the cases of 1 GiB, too: 8 to 16 GiB of memory for each system")
    parser.add_argument("--system", choices=bench_options.SYSTEMS,
                        help="contenders, where the case's operation has them (all; in *-engines engines)")
    parser.add_argument("--tuning", nargs="+", default=["hand"], metavar="T",
                        help="of the others (default: hand), but in *-default, which are their defaults")
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R")
    parser.add_argument("--results", type=Path, default=bench_rows.RESULTS, metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="measure only what is missing")
    parser.add_argument("--since", default="", metavar="TIME",
                        help="rows from before it count as missing: 2026-01-31T23:59Z, or its beginning")
    parser.add_argument("--seconds", type=options.SECONDS, default=math.inf, metavar="S",
                        help="begin nothing that would end later")
    parser.add_argument("--list", action="store_true", help="only print the cases")
    parser.add_argument("--show", action="store_true", help="only print the table of the results")
    parser.add_argument("--json", action="store_true", help="one JSON object per case at the end")
    args = parser.parse_args(argv)
    cases = {case.name: case for case in CASES if args.huge or not case.huge}
    args.cases = [cases[name] for name in options.chosen(
        "--only", args.only, cases, "see scripts/bench compare --list (1 GiB: with --huge)")]
    if len(args.since) > len(MOMENT) or any(not one.isdecimal() if form == "0" else one != form
                                            for one, form in zip(args.since, MOMENT)):
        raise Failure(f"--since {args.since}: name a time like 2026-01-31T23:59Z, or its beginning", 2)
    args.until = time.monotonic() + args.seconds
    args.missing = {}  # systems that could not run, by name: why
    return args


def without_engines(cases):
    """The cases that can be measured where no engines are; a line says how many others there were."""
    out = [case for case in cases if not case.engines]
    if not out:
        engines.python()  # fails, and says what to do
    if len(out) < len(cases):
        say(f"bench: without {len(cases) - len(out)} cases *-engines: no engines in {engines.folder()}: `scripts/setup "
            "--engines` installs them there")
    return out


class Result:
    """What has been measured of a case: known tells how long it takes, rows are those that count."""

    def __init__(self, case, args, known):
        self.case, self.repeat = case, args.repeat
        self.path = args.results / bench_rows.ROWS
        self.known = known.get(case.name, [])
        self.rows = [row for row in self.known if args.resume and not args.show and
                     row["measured"] >= args.since and self.counts(row)]

    @staticmethod
    def counts(row):
        if row["system"] == "sarissa" and (row["commit"] != bench_rows.commit() or
                                           bench_rows.variant(row) != options.vdev()):
            return False
        return row["machine"] == bench_rows.machine() and bench_rows.quiet(row)

    def wanted(self, name):
        """How many rows of the system are missing, of those that count."""
        have = [row for row in self.rows if label(row) == name and bench_rows.quiet(row)]
        return 0 if any(row["seconds"] > LONG_S for row in have) else max(0, self.repeat - len(have))

    def add(self, rows):
        for row in rows:
            recorded = bench_rows.recorded(self.case, row)
            bench_rows.append(self.path, [recorded])
            self.rows.append(row | recorded)


def run_of(case, args):
    """The options of a case, whose own come last: they count. Peers take part where its operation
    knows of them."""
    op, *argv = case.command.split()
    system = args.system or ("engines" if case.engines else "all")
    return bench_options.parse(op, ["--system", system, "--tuning", *args.tuning, *argv])


def groups(results, args):
    """Cases, with their options, by the links that they are run on; what is worth most is first."""
    out = {}
    for result in sorted(results, key=lambda result: rank(result.case)):
        run = run_of(result.case, args)
        links = run.nodes, run.rate, run.mtu, tuple(run.kill)
        out.setdefault((rank(result.case), links), []).append((result, run))
    return out.values()


def pruned(result, run):
    """Only those systems stay that rows are missing of."""
    missing = [(name, tuning) for name, _, tuning in ops.kinds(run)
               if result.wanted(name_of(name, tuning))]
    run.systems = [name for name in run.systems if name in dict(missing)]
    run.tunings = {name: [tuning for tuning in tunings if (name, tuning) in missing]
                   for name, tunings in run.tunings.items() if name in dict(missing)}
    return bool(missing)


def names_of(runs):
    """The systems, each as often as it is started."""
    return [name for name, _ in dict.fromkeys((name, tuning) for run in runs
                                              for name, _, tuning in ops.kinds(run))]


def chosen(group, left):
    """The cases of a group that end in so many seconds. One that cannot is begun where each of its
    systems can take a turn, as the others' rows will come in the next slice."""
    out, total = [], 0.0
    for result, run in group:
        began = expect.start(names_of([*(run for _, run in out), run]), run.nodes)
        one = expect.case(result.known, run, result.wanted)
        if began + total + one <= left:
            out.append((result, run))
            total += one
    if not out:
        out = [(result, run) for result, run in group
               if expect.start(names_of([run]), run.nodes) +
               expect.first_turns(result.known, run, result.wanted) <= left][:1]
    return out


def measure(group, args):
    """Whether anything was there to do, and no time for it."""
    group = [(result, run) for result, run in group if pruned(result, run)]
    todo = chosen(group, args.until - time.monotonic())
    if not todo:
        return bool(group)
    with ops.Systems([run for _, run in todo]) as systems:
        for result, run in todo:
            one = expect.first_turns(result.known, run, result.wanted)
            if time.monotonic() + one > args.until:
                return True
            say(f"bench: {result.case.name}: {result.case.command}")
            result.add(ops.rows_of(
                run, systems, result.wanted, args.until,
                lambda one, run=run, known=result.known: expect.turn(
                    known, run, one.system, one.tuning)))
            args.missing |= systems.missing
    return len(todo) < len(group)


def summary(case, rows):
    """One object per system of a case, with the medians of all numbers."""
    for name, same in grouped(rows, lambda row: name_of(row["system"], bench_rows.variant(row))).items():
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
    CASE_COLUMNS.head("  limits")
    for one in lines:
        ratios = [one.get(key) if one.get("bound_seconds") else None for key in ("ratio", "ratio_min", "ratio_max")]
        late = one.get("late_share") if "/stagger-" in one["case"] else None
        wire = one["wire_bytes"] / 1e6 if "wire_bytes" in one else None
        CASE_COLUMNS.line(one["case"], one["label"], one["seconds"], *ratios, one["cpu_share"],
                          one.get("cpu_seconds"), one.get("other_cpu_share"), wire, late,
                          one.get("blocked_mean_seconds"), one.get("source_copies"), one.get("resent_share"),
                          one["runs"], rest=f"  {one['verdict']}")


def show_cases(args, known):
    """In the order in which they are measured, and for how long with these systems; what is missing
    with --resume."""
    for result in sorted((Result(case, args, known) for case in args.cases),
                         key=lambda result: rank(result.case)):
        case, run = result.case, run_of(result.case, args)
        seconds = pruned(result, run) and expect.start(
            names_of([run]), run.nodes) + expect.case(result.known, run, result.wanted)
        limits = ", ".join(f"{key} <= {most:g}" for key, most in case.limits.items())
        print(f"{case.name:<32}{seconds:>5.0f} s  scripts/bench {case.command}" +
              (f"   [{limits}]" if limits else ""))


def known_rows(args):
    """By case: those that the pages are made of, and those of RESULTS."""
    kept, own = bench_rows.read(bench_rows.KEPT), bench_rows.read(args.results / bench_rows.ROWS)
    return bench_rows.by_case(kept + [row for row in own if row not in kept])


def show(results, known):
    """The sets that count, as in the report."""
    sets = bench_rows.sets_of([row for rows in known.values() for row in rows])
    for result in results:
        result.rows = [row for variants in sets.get(result.case.name, {}).values()
                       for rows in variants.values() for row in rows]


def leave(folder, lines):
    """The medians, and figures of all that FOLDER has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compare.json").write_text(json.dumps(lines, indent=1) + "\n")
    rows = bench_rows.read(folder / bench_rows.ROWS)
    try:
        bench_figures.draw(bench_report.best_of(bench_rows.sets_of(rows)), folder)
    except Failure as failure:
        say(f"bench: no figures: {failure}")


def measure_all(args, results):
    if any([measure(group, args) for group in groups(results, args)]):
        say("bench: more is missing than there was time for: --resume goes on")


def main(argv):
    args = parse(argv)
    if not args.list and not args.show:
        shell.require_root("scripts/bench")
        options.check_folder("--results", args.results)
        if not engines.is_there():
            args.cases = without_engines(args.cases)
    known = known_rows(args)
    if args.list:
        return show_cases(args, known)
    results = [Result(case, args, known) for case in args.cases]
    if args.show:
        show(results, known)
    try:
        if not args.show:
            measure_all(args, results)
    finally:
        lines = [line for result in results for line in summary(result.case, result.rows)]
        if lines:
            table(lines)
        for one in lines if args.json else ():
            print(json.dumps(one), flush=True)
    if args.show and not lines:
        raise Failure(f"neither {args.results} nor {bench_rows.KEPT} holds results of these cases: run "
                      "scripts/bench compare first")
    if not args.show:
        leave(args.results, lines)
    ops.check_missing(args.missing)
    return any(one["verdict"].startswith("missed") for one in lines)
