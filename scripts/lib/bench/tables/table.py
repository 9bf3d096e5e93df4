# SPDX-License-Identifier: BSD-3-Clause
"""Rows of measurements: how they are taken, grouped and shown. One line per system of medians."""

import json
import re
import statistics

from lib.shell import Failure, say


def taken(args, results, hidden=()):
    """All rows, printed as they come when JSON is asked for, but for what is hidden."""
    rows = []
    for row in results:
        rows.append(row)
        if args.json:
            print(json.dumps({key: value for key, value in row.items() if key not in hidden}), flush=True)
    return rows


def tell_lost(rows):
    """Fails if some rows have, in the place of figures, why there are none."""
    lost = [row for row in rows if "lost" in row]
    for row in lost:
        say(f"LOST {row['case']} {row['system']}: {row['lost']}")
    if lost:
        raise Failure(f"{len(lost)} of {len(rows)} rows are lost")


def grouped(rows, key):
    """Lists of rows by key(row), in the order of the first ones."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


class Columns:
    """Lines of a table. A column is its title, its width, and how numbers in it look: 'seconds>10.5f'.
    None is shown as '-', a text as it is."""

    def __init__(self, *columns):
        self.columns = [re.fullmatch(r"(.*)([<>]\d+)(.*)", column).groups() for column in columns]

    def head(self, rest=""):
        say("".join(format(title, width) for title, width, _ in self.columns) + rest)

    def line(self, *values, rest=""):
        say("".join(format(value if isinstance(value, str) else number(value, look), width)
                    for (_, width, look), value in zip(self.columns, values, strict=True)) + rest)


def tell(row):
    say(f"  {label(row):<24}{row['seconds']:>10.5f} s{row['ratio']:>8.3f} x   CPU "
        f"{percent(row['cpu_share'])}")


def number(value, text):
    return "-" if value is None else format(value, text)


def percent(value, digits=0):
    return "-" if value is None else f"{100 * value:.{digits}f}%"


def middle(rows, key):
    """The median of a figure over the rows that have it, or None."""
    values = [row[key] for row in rows if row.get(key) is not None]
    return statistics.median(values) if values else None


def label(row):
    return name_of(row["system"], row["tuning"])


def name_of(system, tuning):
    return f"{system} {tuning}".strip()


SYSTEMS = Columns("system<24", "median s>10.5f", "min>10.5f", "max>10.5f", "ratio>8.3f", "min>8.3f", "max>8.3f",
                  "late S/B>9.3f", "blocked s>11.5f", "CPU>6.0%", "CPU s>7.2f", "other>6.0%", "copies>8.2f",
                  "re-sent>9.2%", "wire MB>9.1f")


def table(args, rows):
    say(f"{args.op}, {args.nodes} nodes, {args.size} bytes, {args.rate:g} Mbit/s, MTU {args.mtu}, "
        f"stagger {args.stagger:g} ms, {args.repeat} runs; bound {rows[0]['bound_seconds']:.4f} s")
    SYSTEMS.head()
    groups = grouped(rows, label)
    for name, same in groups.items():
        seconds, ratios = ([row[key] for row in same] for key in ("seconds", "ratio"))
        some = (middle(same, key) for key in (
            "late_share", "blocked_mean_seconds", "cpu_share", "cpu_seconds", "other_cpu_share",
            "source_copies", "resent_share"))
        SYSTEMS.line(name, statistics.median(seconds), min(seconds), max(seconds), statistics.median(ratios),
                     min(ratios), max(ratios), *some, middle(same, "wire_bytes") / 1e6)
    if args.stagger:
        stagger_table(args, groups)


def stagger_table(args, groups):
    """Medians by task: when it came, how long it stood in its call, how late it was."""
    def medians(same, key):
        return [statistics.median(values) for values in zip(*(row[key] for row in same))]

    arrivals = next(iter(groups.values()))[0]["node_arrival_seconds"]
    say("arrival, s" + " " * 25 + "".join(f"{at:>9.3f}" for at in arrivals))
    for name, same in groups.items():
        say(f"blocked, s   {name:<22}" +
            "".join(f"{value:>9.4f}" for value in medians(same, "blocked_seconds")))
    for name, same in groups.items() if args.op == "broadcast" else ():
        late = medians(same, "late_shares") if args.rate else []
        say(f"late, S/B    {name:<22}{'-':>9}" + "".join(f"{value:>9.3f}" for value in late))
