# SPDX-License-Identifier: BSD-3-Clause
"""Takes over what `bench compare` has measured, draws it, and writes it as tables.

  bench plot         bench/results -> docs/results.json -> docs/compare.md, docs/plots/*.svg

docs/results.json is part of the source: what was measured of a case, a system and a tuning replaces what it
has of these. Of each system the best of the tunings that were measured is shown, by case; turns during whose
start others used more than a third of the machine do not count."""

import re
import statistics
from pathlib import Path

from . import bench_kept, options, svg
from .bench_cases import CASES, DEFAULT, NODES, OPERATIONS, RATES, SIZES, STAGGERED
from .bench_kept import CORES_FULL, RESULTS
from .bench_ops import BOUND_OBJECTS
from .bench_table import middle
from .shell import ROOT, Failure, say
from .transfer import bound_seconds

NAMES = {"sarissa": "sarissa", "openmpi": "OpenMPI", "gloo": "Gloo", "dask": "Dask"}
COLOURS = {"sarissa": "#0b4fa8", "openmpi": "#c2571a", "gloo": "#2e7d4f", "dask": "#8a5fb0"}
BOUND = "#7a7a7a"
SMALL_S = 0.05  # where the lowest is below, times are told in ms
ALONE_OFF = 0.005  # how far a single run may be off: what those of 32 MiB and more spread
MANY = 5
LOWER_MOST = 0.1
LIMITS = {case.name: case.limits for case in CASES}
TOLD = [case.name for case in CASES if not case.huge and not case.command.startswith("lookup")]
GAPS = (0.1, 0.2, 0.3)
SOME_NODES = 8


def sets_of(rows):
    """What counts of the rows by case, by system and by tuning."""
    out = {}
    for case in CASES:
        for row in filter(bench_kept.quiet, rows.get(case.name, [])):
            if row["system"] in NAMES:
                systems = out.setdefault(case.name, {})
                systems.setdefault(row["system"], {}).setdefault(row["tuning"], []).append(row)
    return out


def best_of(measured):
    """By case and system, the rows of the tuning with the lowest median."""
    return {case: {name: min(tunings.values(), key=lambda rows: middle(rows, "seconds"))
                   for name, tunings in systems.items()} for case, systems in measured.items()}


def lines(results, cases, value, bound):
    """A line for each system over the cases {x: name} that it has, and one for the bound."""
    measured = {x: results[name] for x, name in cases.items() if name in results}
    out = []
    for name in NAMES:
        points = [(x, statistics.median(value(row) for row in best[name]))
                  for x, best in measured.items() if name in best]
        if len(points) > 1:
            out.append(svg.Line(NAMES[name], points, COLOURS[name], 2.6 if name == "sarissa" else 1.6))
    if out and bound:
        out.append(svg.Line("bound", [(x, bound) for x in measured], BOUND, 1.2, dashed=True))
    return out


def ratio(row):
    return row["ratio"]


def by_nodes(results):
    for op in OPERATIONS:
        cases = {nodes: f"{op}/32m-on-{nodes}" for nodes in NODES}
        yield svg.Panel(op, "nodes", "time / bound", lines(results, cases, ratio, 1),
                        [(nodes, str(nodes)) for nodes in NODES], True, True, "{:g}".format,
                        "{:.2f}".format)


def by_size(results):
    labels = {"1k": "1 KiB", "64k": "64 KiB", "1m": "1 MiB", "64m": "64 MiB"}
    for op in OPERATIONS:
        cases = {size: f"{op}/{text}-on-{SOME_NODES}" for text, size in SIZES.items()}
        yield svg.Panel(op, "size of an object", "time / bound", lines(results, cases, ratio, 1),
                        [(SIZES[text], label) for text, label in labels.items()], True, True,
                        "{:g}".format, "{:.2f}".format)


def alone(row):
    """The T of a row: its object over the rate of a link."""
    return bound_seconds(row["bytes"], row["rate_mbit"])


def after_last(row):
    return (row["seconds"] - (row["nodes"] - 1) * row["stagger_ms"] / 1e3) / alone(row)


def blocked(row):
    return row["blocked_mean_seconds"] / alone(row)


def by_arrival(results):
    for op in STAGGERED:
        cases = {0: f"{op}/32m-on-{SOME_NODES}"} | {
            gap: f"{op}/stagger-{gap}-random" for gap in GAPS}
        for title, value, bound in (
                ("from the last arrival to the end", after_last, BOUND_OBJECTS[op](SOME_NODES)),
                ("how long a task stands in its call", blocked, None)):
            yield svg.Panel(f"{op}: {title}", "from one arrival to the next, in T", "time, in T",
                            lines(results, cases, value, bound), [(gap, f"{gap:g}") for gap in cases],
                            False, False, "{:g}".format, "{:.2f}".format)


FIGURES = {
    "nodes": ("Objects of 32 MiB: time over what the links allow", by_nodes),
    "sizes": (f"{SOME_NODES} nodes, links of {RATES[SOME_NODES]} Mbit/s: time over what the links "
              "allow", by_size),
    "arrivals": (f"{SOME_NODES} nodes, 32 MiB, one comes after the other in random order; "
                 "T: size over the rate of a link", by_arrival),
}


def draw(rows, folder):
    """The figures of which something is measured, as FOLDER/NAME.svg; their names and titles."""
    results, drawn = best_of(sets_of(rows)), []
    for name, (title, panels) in FIGURES.items():
        some = [panel for panel in panels(results) if panel.lines]
        if some:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.svg").write_text(svg.chart(title, some))
            drawn.append((name, title))
    return drawn


def span(rows):
    """From the shortest to the longest, of five or more without these two; one run by itself may be that
    much off."""
    seconds = sorted(row["seconds"] for row in rows)
    if len(seconds) >= MANY:
        seconds = seconds[1:-1]
    off = ALONE_OFF if len(seconds) == 1 else 0
    return seconds[0] * (1 - off), seconds[-1] * (1 + off)


def lowest_of(best):
    """Whose median is the lowest that is not below the bound, and who cannot be told from it: the
    median of one of the two lies within the spread of the other."""
    medians = {name: middle(rows, "seconds") for name, rows in best.items()}
    medians = {name: median for name, median in medians.items()
               if median >= best[name][0]["bound_seconds"]}
    first = min(medians, key=medians.get, default=None)
    return {name for name, median in medians.items()
            if median <= span(best[first])[1] or span(best[name])[0] <= medians[first]}


def cell(rows, small, bold, marks):
    """Median and spread: in ms where the ratio to the bound says little."""
    values = [row["seconds"] * 1e3 if small else row["ratio"] for row in rows]
    digits = ".2f" if small else ".3f"
    text = format(statistics.median(values), digits) + (" ms" if small else "")
    spread = f" ({min(values):{digits}} to {max(values):{digits}})" if len(values) > 1 else ""
    return (f"**{text}**" if bold else text) + spread + marks


def commits(rows):
    return ", ".join(dict.fromkeys(row["commit"] for row in rows))


def machines_of(rows):
    return {row["machine"] for row in rows}


def marks(rows, ours):
    """What the reader should know of a figure, in one character each."""
    return ("\\*" if (middle(rows, "cpu_share") or 0) > CORES_FULL else "") + \
        ("~" if (middle(rows, "lower_cpu_share") or 0) > LOWER_MOST else "") + \
        ("†" if (commits(rows), machines_of(rows)) != (commits(ours), machines_of(ours)) else "")


def times(case, best):
    lowest = lowest_of(best)
    small = min(middle(rows, "seconds") for rows in best.values()) < SMALL_S
    first = next(iter(best.values()))
    bound, ours = first[0]["bound_seconds"], best.get("sarissa", first)
    seconds = f"{bound:.3g} s" if bound >= 1 else f"{bound * 1e3:.3g} ms"
    cells = [cell(best[name], small, name in lowest, marks(best[name], ours))
             if name in best else "-" for name in NAMES]
    return [case, seconds, *cells, commits(ours)]


def killed(case, best):
    """The time alone says nothing of how much of it the death has cost."""
    rows = best["sarissa"]
    later = [row["later_share"] for row in rows]
    return [case, f"{middle(rows, 'undisturbed_seconds'):.3f} s", f"{middle(rows, 'seconds'):.3f} s",
            f"{statistics.median(later):.3f} ({min(later):.3f} to {max(later):.3f})",
            f"{LIMITS[case]['later_share']:g}", commits(rows)]


def costs(case, best):
    """CPU seconds of the whole machine; megabytes, whole frames, from the nodes into the switch."""
    return [case, *(f"{middle(best[name], 'cpu_seconds'):.2f}, "
                    f"{middle(best[name], 'wire_bytes') / 1e6:.0f}"
                    if name in best and has_cost(best[name]) else "-" for name in NAMES)]


def has_cost(rows):
    """In all of its runs; short ones are over before the kernel has counted."""
    return all(row.get("cpu_seconds") is not None for row in rows)


def markdown(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def page(results, figures):
    defaults = {case: best for case, best in results.items() if case.endswith(DEFAULT)}
    rest = {case: best for case, best in results.items() if case not in defaults}
    costly = {case: best for case, best in rest.items() if any(map(has_cost, best.values()))}
    kills = {case: best for case, best in rest.items() if "later_share" in LIMITS[case]}
    whole = {case: best for case, best in rest.items() if case not in kills}
    yield HEAD + "\n\n" + machines(results)
    yield from (f"![{title}](plots/{name}.svg)" for name, title in figures)
    for title, text, heads, line, cases in (
            ("Time", TIME, ("case", "bound", *NAMES.values(), "commit"), times, whole),
            ("As they come", AS_THEY_COME, ("case", "bound", *NAMES.values(), "commit"), times, defaults),
            ("A node is killed half way", KILLED, ("case", "undisturbed", "with a death", "later, S/B",
                                                   "limit", "commit"), killed, kills),
            ("What it costs", COST, ("case", *NAMES.values()), costs, costly)):
        if cases:
            yield f"## {title}\n\n{text}"
            yield markdown(heads, [[f"`{name}`", *cells] for name, *cells in
                                   (line(case, best) for case, best in cases.items())])
    left = [name for name in TOLD if name not in results]
    if left:
        yield "## Not measured\n\nOf the {} cases of `scripts/bench compare` {} have no figure above: {}.".format(
            len(TOLD), len(left), ", ".join(f"`{text}`" for text in in_short(left)))


def machines(results):
    """Where and when."""
    rows = [row for best in results.values() for same in best.values() for row in same]
    names = "; ".join(sorted({row["machine"] for row in rows}))
    days = sorted({row["measured"][:10] for row in rows})
    return f"Measured {' to '.join(dict.fromkeys((days[0], days[-1])))} on one machine for all nodes: " \
        f"{names}."


def parts(name):
    """Operation, size or arrivals, and what it is on or in which order."""
    return re.fullmatch(r"(\w+)/(.+?)(?:-(on-.*|rising|falling|random))?", name).groups("")


def in_short(names):
    """Cases whose names differ in one part as one text, as the shell would write them out."""
    texts = [parts(name) for name in names]
    for part in (1, 0, 2):
        alike = {}
        for text in texts:
            alike.setdefault((text[:part], text[part + 1:]), []).append(text[part])
        texts = [(*before, brace(same), *after) for (before, after), same in alike.items()]
    return [f"{op}/{middle}{'-' * bool(last)}{last}" for op, middle, last in texts]


def brace(same):
    return same[0] if len(same) == 1 else "{" + ",".join(same) + "}"


HEAD = """<!-- SPDX-License-Identifier: BSD-3-Clause -->
# Side by side

Made by `scripts/bench plot` from [results.json](results.json), which holds every run that `sudo scripts/bench compare` measured.
[performance.md](performance.md) says how, what is fair to whom, and why another system is lower where it is. Of each system the best of the
tunings that were measured.

A case is `OPERATION/SIZE-on-NODES`, at MTU 1500 unless it says another; `stagger-G-ORDER`: 32 MiB on 8 nodes, which come one after the
other every G times size over rate; `kill-I`: 64 MiB on 6 nodes, of which node I is killed half way; `-default`: the others as they come.
`sudo scripts/bench compare --only CASE` repeats it."""
TIME = f"""Median (and spread): over the bound of the links, or in ms where the lowest is below {1e3 * SMALL_S:g} ms.

- **Bold**: the lowest of the case, and who cannot be told from it: the median of one lies within the spread of the other (of {MANY} or more
  without the shortest and the longest; {100 * ALONE_OFF:g} % about a single run). Never what is below the bound: small values pass the limiters in one
  burst, and of those up to 64 KiB that are gathered lies at node 0 before the start what it keeps of the directory.
- A dash: not measured, or not on a machine that did nothing else.
- \\*: the cores were full (runs below 0.2 s do not tell). ~: programs of lower priority, which give way, had more than {100 * LOWER_MOST:g} % of
  the cores. †: another commit or another machine, so another run than ours.
- Commit: of ours, the last that changed the code; a + where the build differed from it."""
AS_THEY_COME = """The others with their defaults, and ours once more, in the same run. Figures and marks as above. Gloo's broadcasts, gathers and
reduces and Dask's gathers have one way only."""
KILLED = """Ours alone: both daemons of a node that gives get SIGKILL at half of the undisturbed time, and a node in reserve takes its place."""
COST = """CPU seconds of the whole machine, the emulated network included (not of runs below 0.2 s), and MB of whole frames that came
into the switch."""


def main(argv):
    parser = options.Parser(prog="bench plot", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", metavar="DIR",
                        help="of results.json, compare.md and plots/")
    parser.add_argument("--commit", help="what was measured, of rows that do not say so themselves")
    args = parser.parse_args(argv)
    options.check_folder("--out", args.out)
    rows = bench_kept.together(args.out / "results.json", args.results)
    for row in (row for same in rows.values() for row in same if args.commit):
        row["commit"] = args.commit if row["commit"] == "?" else row["commit"]
    if not best_of(sets_of(rows)):
        raise Failure(f"{args.results} holds no results: run scripts/bench compare first")
    args.out.mkdir(parents=True, exist_ok=True)
    bench_kept.write(args.out / "results.json", rows)
    rows = bench_kept.read(args.out / "results.json")  # as rounded there: the next time it is all there is
    results = best_of(sets_of(rows))
    figures = draw(rows, args.out / "plots")
    for name in FIGURES.keys() - dict(figures):
        say(f"bench: nothing is measured for {name}.svg")
    (args.out / "compare.md").write_text("\n\n".join(page(results, figures)) + "\n")
    say(f"bench: {args.out / 'compare.md'}: {len(results)} cases, {len(figures)} figures")
