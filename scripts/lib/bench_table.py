# SPDX-License-Identifier: BSD-3-Clause
"""Rows of collectives, one line per system of medians."""

import json
import statistics

from .shell import say


def taken(args, results):
    """All rows, printed as they come when JSON is asked for."""
    rows = []
    for row in results:
        rows.append(row)
        if args.json:
            print(json.dumps(row), flush=True)
    return rows


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


def table(args, rows):
    say(f"{args.op}, {args.nodes} nodes, {args.size} bytes, {args.rate:g} Mbit/s, MTU {args.mtu}, "
        f"stagger {args.stagger:g} ms, {args.repeat} runs; bound {rows[0]['bound_seconds']:.4f} s")
    say(f"{'system':<24}{'median s':>10}{'min':>10}{'max':>10}{'ratio':>8}{'min':>8}{'max':>8}"
        f"{'late S/B':>9}{'blocked s':>11}{'CPU':>6}{'CPU s':>7}{'other':>6}{'copies':>8}{'re-sent':>9}"
        f"{'wire MB':>9}")
    groups = by_system(rows)
    for name, same in groups.items():
        line(name, same)
    if args.stagger:
        stagger_table(args, groups)


def by_system(rows):
    groups = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return groups


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


def line(name, same):
    seconds = [row["seconds"] for row in same]
    ratios = [row["ratio"] for row in same]
    say(f"{name:<24}{statistics.median(seconds):>10.5f}{min(seconds):>10.5f}{max(seconds):>10.5f}"
        f"{statistics.median(ratios):>8.3f}{min(ratios):>8.3f}{max(ratios):>8.3f}"
        f"{number(middle(same, 'late_share'), '.3f'):>9}"
        f"{middle(same, 'blocked_mean_seconds'):>11.5f}{percent(middle(same, 'cpu_share')):>6}"
        f"{number(middle(same, 'cpu_seconds'), '.2f'):>7}"
        f"{percent(middle(same, 'other_cpu_share')):>6}"
        f"{number(middle(same, 'source_copies'), '.2f'):>8}"
        f"{percent(middle(same, 'resent_share'), 2):>9}{middle(same, 'wire_bytes') / 1e6:>9.1f}")
