# SPDX-License-Identifier: BSD-3-Clause
"""The figures of docs/study/ray.md, from the rows of `bench ray`.

`bench ray` appends its rows to bench/results/ray.jsonl; `bench report` takes them into docs/study/ray.jsonl and
rewrites the page. Of each case the rows of the newest commit and machine count. It shows where Sarissa is slower."""

import json
import time

from lib.bench.tables import rows as bench_rows
from lib.bench.tables.table import grouped, middle

PAGE, KEPT, NEW = "docs/study/ray.md", "docs/study/ray.jsonl", "ray.jsonl"
NAMES = {"sarissa": "Sarissa", "ray": "Ray", "ray-gloo": "Ray, gloo"}
PAPER = {"sgd": "7.8", "policy": "1.9", "a3c": "3.9", "serving": "3.3"}  # times as fast as Ray, Hoplite's figures
NEEDED = {"case", "system", "seconds", "killed", "nodes", "commit", "machine", "measured"}
LEVEL = 0.02  # of a median: no difference
TITLE = ["case", "result", "nodes, MB", "bound", *NAMES.values(), "n", "commit, day"]
KILLED = ["case", "system", "rounds/s before", "rounds/s after", "longest round", "workers after"]


def recorded(row):
    """A row as it is appended."""
    numbers = {key: bench_rows.rounded(value) for key, value in row.items()
               if value is not None and not isinstance(value, (list, dict)) and key not in ("op", "ratio")}
    return {**numbers, "commit": bench_rows.commit(), "machine": bench_rows.machine(),
            "measured": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}


def record(rows):
    bench_rows.append(bench_rows.RESULTS / NEW, [recorded(row) for row in rows])


def read(path):
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if NEEDED <= row.keys()]


def newest(rows):
    """By case: the rows of one commit, machine and number of nodes, measured while no others used the machine."""
    out = {}
    for case, same in grouped(filter(bench_rows.quiet, rows), lambda row: row["case"]).items():
        last = max(same, key=lambda row: row["measured"])
        out[case] = [row for row in same
                     if all(row[key] == last[key] for key in ("commit", "machine", "nodes", "bytes", "work_ms"))]
    return out


def duration(seconds):
    return "-" if seconds is None else f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def entry(rows):
    """Median, over the bound; CPU seconds of a round, cores busy."""
    if not rows:
        return "-"
    seconds, bound = middle(rows, "seconds"), rows[0].get("bound_seconds")
    over = f" ({seconds / bound:.2f})" if bound else ""
    ways = f" [{rows[0]['ways']}]" if rows[0].get("ways") else ""
    return f"{duration(seconds)}{over}; {middle(rows, 'cpu_seconds'):.2f}, {100 * middle(rows, 'cores_busy'):.0f} %{ways}"


def result(case, by):
    """Beside Ray, and the paper; LOST where a peer is faster."""
    if "sarissa" not in by:
        return "-"
    ours, peers = middle(by["sarissa"], "seconds"), {name: middle(rows, "seconds") for name, rows in by.items()
                                                     if name != "sarissa"}
    text = f"{peers['ray'] / ours:.2f} x Ray" if "ray" in peers else "-"
    text += f" (paper: {PAPER[case]})" if case in PAPER else ""
    best = min(peers, key=peers.get, default=None)
    if best and ours > peers[best] * (1 + LEVEL):
        text = f"**LOST** to {NAMES[best]}, +{100 * (ours / peers[best] - 1):.0f} %; {text}"
    return text


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def case_rows(case, rows):
    by = grouped([row for row in rows if not row["killed"]], lambda row: row["system"])
    if not by:
        return []
    one = next(iter(by.values()))[0]
    counts = " ".join(str(len(by.get(name, []))) for name in NAMES)
    what = f"{one['nodes']}, {one['bytes'] / 1e6:.4g}" + (f", {one['model']}" if one.get("model") else "")
    return [[f"`{case}`", result(case, by), what, duration(one.get("bound_seconds")),
             *(entry(by.get(name)) for name in NAMES), counts, f"{one['commit']} {one['measured'][:10]}"]]


def killed_rows(case, rows):
    by = grouped([row for row in rows if row["killed"]], lambda row: row["system"])
    return [[f"`{case}`", NAMES[name], f"{middle(by[name], 'before_rounds_per_second'):.3g}",
             f"{middle(by[name], 'rounds_per_second'):.3g}", duration(middle(by[name], "longest_seconds")),
             str(by[name][-1]["workers"])] for name in NAMES if name in by]


def blocks(rows):
    cases = newest(rows)
    whole = [line for case, same in cases.items() for line in case_rows(case, same)]
    killed = [line for case, same in cases.items() for line in killed_rows(case, same)]
    machines = "; ".join(dict.fromkeys(row["machine"] for same in cases.values() for row in same))
    idle = middle([row for same in cases.values() for row in same], "idle_cores")
    costs = f"Ray alone, without a task: {idle:.2f} cores. {machines}." if idle is not None else "Not measured."
    return {"ray costs": costs, "ray": markdown(TITLE, whole) if whole else "Not measured.",
            "ray, a node is killed": markdown(KILLED, killed) if killed else "Not measured."}
