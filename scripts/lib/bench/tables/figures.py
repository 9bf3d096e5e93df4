# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the pages, drawn by matplotlib from the rows that the report has chosen. Each SVG holds a
digest of what it draws, so that an old one is found without drawing."""

import hashlib
import importlib
import json
import statistics
from typing import NamedTuple

from lib import shell
from lib.bench import ops
from lib.bench.tables.cases import NODES, OPERATIONS, RATES, SIZES, STAGGERED
from lib.bench.transfer import bound_seconds

NAMES = {"sarissa": "Sarissa", "openmpi": "OpenMPI", "gloo": "Gloo", "dask": "Dask", "ray": "Ray",
         "torch-gloo": "torch, gloo", "mooncake": "Mooncake", "nixl": "NIXL", "dask-today": "Dask of today"}
COLOURS = {"Sarissa": "#0b4fa8", "OpenMPI": "#c2571a", "Gloo": "#2e7d4f", "Dask": "#8a5fb0"}
LABELS = {"1k": "1 KiB", "64k": "64 KiB", "1m": "1 MiB", "32m": "32 MiB", "64m": "64 MiB"}
GAPS = (0.1, 0.2, 0.3)
SOME_NODES = 8
PANEL_INCHES = (4.6, 3.0)
DECADE = 10  # within one the small steps of a logarithmic axis are labelled, too


class Panel(NamedTuple):
    title: str
    x_title: str
    y_title: str
    ticks: list   # what stands below the places on the x axis
    lines: dict   # name -> the values at the places, None where nothing is measured
    kind: str     # "bars", "log" or "linear"


def value_of(columns, name, value):
    """The median of a system's rows; of ours over the first port that was measured."""
    rows = next((rows for (system, _), rows in columns.items() if system == name), None)
    return rows and round(statistics.median(map(value, rows)), 4)


def lines(best, cases, value):
    found = {NAMES[name]: [value_of(best.get(case, {}), name, value) for case in cases] for name in NAMES}
    return {name: values for name, values in found.items() if any(values)}


def ratio(row):
    return row["ratio"]


def collectives(best):
    yield Panel("", "", "time / least possible time", list(OPERATIONS),
                lines(best, [f"{op}/32m-on-{SOME_NODES}" for op in OPERATIONS], ratio), "bars")


def by_nodes(best):
    for op in OPERATIONS:
        yield Panel(op, "nodes", "time / bound", list(map(str, NODES)),
                    lines(best, [f"{op}/32m-on-{nodes}" for nodes in NODES], ratio), "log")


def by_size(best):
    for op in OPERATIONS:
        yield Panel(op, "size of an object", "time / (bytes / rate)", [LABELS[size] for size in SIZES],
                    lines(best, [f"{op}/{size}-on-{SOME_NODES}" for size in SIZES], ratio), "log")


def by_arrival(best):
    for op in STAGGERED:
        alone = bound_seconds(SIZES["32m"], RATES[SOME_NODES])
        if op == "allreduce":
            alone *= 2  # at half of the rate
        cases = [f"{op}/32m-on-{SOME_NODES}", *(f"{op}/stagger-{gap}-random" for gap in GAPS)]

        def after_last(row, alone=alone, extra=ops.BOUND_OBJECTS[op](SOME_NODES)):
            return (row["seconds"] - row["bound_seconds"]) / alone + extra

        def blocked(row, alone=alone):
            return row["blocked_mean_seconds"] / alone

        for title, value in (("from the last arrival to the end", after_last),
                             ("a task's time in its call", blocked)):
            yield Panel(f"{op}: {title}", "from one arrival to the next, in T", "time, in T",
                        ["0", *map(str, GAPS)], lines(best, cases, value), "linear")


FIGURES = {
    "nodes": ("Objects of 32 MiB: time over the bound", by_nodes),
    "sizes": (f"{SOME_NODES} nodes: time over size divided by rate", by_size),
    "arrivals": (f"{SOME_NODES} nodes, 32 MiB, one after the other in random order; T: size over rate",
                 by_arrival),
}
README_FIGURE = ("collectives", f"Objects of 32 MiB on {SOME_NODES} nodes (lower is better)", collectives)


def figures(best, all_of_them=False):
    """Name, title and panels of those of which something is measured."""
    some = [(name, *rest) for name, rest in FIGURES.items()] + [README_FIGURE] * all_of_them
    for name, title, panels in some:
        drawn = [panel for panel in panels(best) if panel.lines]
        if drawn:
            yield name, title, drawn


def digest(panels):
    return hashlib.sha256(json.dumps(panels).encode()).hexdigest()


def current(path, panels):
    return path.exists() and digest(panels) in path.read_text()


def ready():
    """matplotlib, which scripts/setup brings where figures are drawn."""
    try:
        import matplotlib
    except ImportError:
        shell.run(shell.ROOT / "scripts/setup", "--figures", "--no-build")
        importlib.invalidate_caches()
        import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"svg.hashsalt": "sarissa", "svg.fonttype": "none", "font.size": 9,
                            "axes.spines.top": False, "axes.spines.right": False})
    return pyplot


def bars(axes, panel):
    width = 0.8 / len(panel.lines)
    for at, (name, values) in enumerate(panel.lines.items()):
        places = [place + (at - (len(panel.lines) - 1) / 2) * width for place in range(len(values))]
        drawn = axes.bar(places, [value or 0 for value in values], width, label=name, color=COLOURS[name])
        axes.bar_label(drawn, [f"{value:.2f}" if value else "-" for value in values], fontsize=8)
    axes.axhline(1, color="#7a7a7a", linestyle="--", linewidth=1, label="least possible")
    axes.set_xticks(range(len(panel.ticks)), panel.ticks)


def curves(axes, panel):
    for name, values in panel.lines.items():
        axes.plot(panel.ticks, values, marker="o", markersize=3, label=name, color=COLOURS[name],
                  linewidth=2.2 if name == "Sarissa" else 1.3)
    if panel.kind == "log":
        axes.axhline(1, color="#7a7a7a", linestyle="--", linewidth=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        known = [value for values in panel.lines.values() for value in values if value]
        axes.yaxis.set_minor_formatter("{x:g}" if max(known) < DECADE * min(known) else "")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#dddddd")


def draw_one(pyplot, path, title, panels):
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    size = (8.5, 3.2) if panels[0].kind == "bars" else (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows)
    figure, grid = pyplot.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained")
    figure.suptitle(title)
    for axes, panel in zip(grid.flat, panels):
        (bars if panel.kind == "bars" else curves)(axes, panel)
        axes.set(title=panel.title, xlabel=panel.x_title, ylabel=panel.y_title)
        axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None, "Description": digest(panels)})
    pyplot.close(figure)


def draw(best, folder):
    """The figures as FOLDER/NAME.svg."""
    pyplot = ready()
    folder.mkdir(parents=True, exist_ok=True)
    for name, title, panels in figures(best, all_of_them=True):
        draw_one(pyplot, folder / f"{name}.svg", title, panels)
