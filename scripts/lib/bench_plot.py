# SPDX-License-Identifier: BSD-3-Clause
"""Draws what `bench compare` has measured, and writes it as tables.

  bench plot > tables.md                   docs/plots/*.svg from bench/results

Of each system the best of the tunings that were measured is shown, by case. Tables are Markdown, with
the lowest time of each case in bold."""

import argparse
import json
import statistics
from pathlib import Path

from . import svg
from .bench_cases import NODES, OPERATIONS, RATES, SIZES, STAGGERED
from .bench_compare import RESULTS
from .bench_ops import BOUND_OBJECTS
from .bench_table import by_system, middle
from .shell import ROOT, Failure, say
from .transfer import bound_seconds

NAMES = {"sarissa": "sarissa", "openmpi": "OpenMPI", "gloo": "Gloo", "dask": "Dask"}
COLOURS = {"sarissa": "#0b4fa8", "openmpi": "#c2571a", "gloo": "#2e7d4f", "dask": "#8a5fb0"}
BOUND = "#7a7a7a"
SMALL_S = 0.05  # below, times are told in ms
GAPS = (0.1, 0.2, 0.3)
SOME_NODES = 8


def read(directory):
    """By case, the rows of the best tuning of each system, by system."""
    out = {}
    for path in sorted(directory.glob("*.json")):
        told = json.loads(path.read_text())
        best = {}
        for same in by_system(told["rows"]).values():
            name = same[0]["system"]
            if name in NAMES and (name not in best or
                                  middle(same, "seconds") < middle(best[name], "seconds")):
                best[name] = same
        if best:
            out[told["case"]] = best
    return out


def lines(results, cases, value, bound):
    """A line for each system over the cases {x: name} that it has, and one for the bound."""
    measured = {x: results[name] for x, name in cases.items() if name in results}
    out = []
    for name in NAMES:
        points = [(x, statistics.median(value(row) for row in best[name]))
                  for x, best in measured.items() if name in best]
        if points:
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


def cell(rows, lowest):
    """Median and spread: in ms where the ratio to the bound says nothing."""
    seconds = [row["seconds"] for row in rows]
    small = max(seconds) < SMALL_S
    values = [value * 1e3 for value in seconds] if small else [row["ratio"] for row in rows]
    digits = ".2f" if small else ".3f"
    text = format(statistics.median(values), digits) + (" ms" if small else "")
    spread = f" ({min(values):{digits}} to {max(values):{digits}})" if len(values) > 1 else ""
    return (f"**{text}**" if statistics.median(seconds) == lowest else text) + spread


def seconds_text(value):
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def times(case, best):
    lowest = min(middle(rows, "seconds") for rows in best.values())
    bound = next(iter(best.values()))[0]["bound_seconds"]
    cells = [cell(best[name], lowest) if name in best else "-" for name in NAMES]
    return f"| `{case}` | {seconds_text(bound)} | {' | '.join(cells)} |"


def costs(case, best):
    """CPU seconds of the whole machine; megabytes, whole frames, from the nodes into the switch."""
    cells = []
    for name in NAMES:
        cpu = middle(best[name], "cpu_seconds") if name in best else None
        cells.append("-" if cpu is None else
                     f"{cpu:.2f}, {middle(best[name], 'wire_bytes') / 1e6:.0f}")
    return f"| `{case}` | {' | '.join(cells)} |"


def tables(results):
    heads = " | ".join(NAMES.values())
    rule = "|---" * len(NAMES)
    print(f"| case | bound | {heads} |\n|---|---{rule}|")
    for case, best in results.items():
        print(times(case, best))
    print(f"\n| case: CPU seconds, MB on the wire | {heads} |\n|---{rule}|")
    for case, best in results.items():
        if all(middle(rows, "cpu_seconds") is not None for rows in best.values()):
            print(costs(case, best))


def main(argv):
    parser = argparse.ArgumentParser(prog="bench plot", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/plots", metavar="DIR")
    args = parser.parse_args(argv)
    results = read(args.results)
    if not results:
        raise Failure(f"{args.results} holds no results: run scripts/bench compare first")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, (title, panels) in FIGURES.items():
        drawn = [panel for panel in panels(results) if panel.lines]
        if not drawn:
            say(f"bench: nothing is measured for {name}.svg")
            continue
        (args.out / f"{name}.svg").write_text(svg.chart(title, drawn))
        say(f"bench: {args.out / name}.svg")
    tables(results)
