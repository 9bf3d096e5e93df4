# SPDX-License-Identifier: BSD-3-Clause
"""Rewrites README's figures, docs/study/compare.md and docs/study/plots/ from docs/study/results.jsonl.

  bench report           takes the rows of bench/results over into docs/study/results.jsonl, and rewrites the pages;
                         docs/study/ray.md has rows of its own, in docs/study/ray.jsonl
  bench report --check   only says what in the pages differs from docs/study/results.jsonl; exit status 1 then

Tables stand between marks; the prose around them is edited in the pages themselves. A figure that somebody has
typed into README or docs/study/compare.md fails the check, which is part of `scripts/test lint`.
Of each system the newest rows of the last release count, and of its tunings the best; a row at whose start other
programs used more than a third of the machine does not count."""

import re
import statistics
import textwrap
from pathlib import Path

from lib import options
from lib.bench import ops, options as bench_options
from lib.bench.tables import figures as bench_figures, ray_page, rows as bench_rows
from lib.bench.tables.cases import CASES, DEFAULT, ENGINES
from lib.bench.tables.figures import NAMES
from lib.bench.tables.rows import CORES_FULL
from lib.bench.tables.table import middle
from lib.bench.transfer import bound_seconds
from lib.shell import ROOT, Failure, say

KIB, MIB = 1 << 10, 1 << 20
PORTS = ("udp", "af_xdp", "tap")  # the first that was measured is the one that is judged
NO_BOUND_BYTES = 64 * KIB  # up to here bursts and second copies make a bound meaningless
IN_MS_BYTES = MIB
ONE_RUN_OFF = 0.005  # how far a single run may be off: what those of 32 MiB and more spread
MANY = 5
LOWER_MOST = 0.1
WRAP = 118
BLOCK = re.compile(r"(<!-- figures: ([^\n]+?), made by scripts/bench report -->\n).*?(<!-- figures: end -->)", re.S)
LIMITS = {case.name: case.limits for case in CASES}
IN_README = {
    "broadcast/32m-on-8": "32 MiB from one node to 7",
    "allreduce/32m-on-8": "sum of 8 arrays of 32 MiB, at all nodes",
    "broadcast/1m-on-8": "1 MiB from one node to 7",
    "allreduce/64k-on-8": "sum of 8 arrays of 64 KiB, at all nodes",
}
HEADLINE = "broadcast/32m-on-8"


def best_of(measured):
    """By case, the rows of each column of the tables: ours by port, of a peer the best tuning."""
    out = {}
    for case, systems in measured.items():
        columns = {("sarissa", port): systems["sarissa"][port] for port in PORTS
                   if port in systems.get("sarissa", {})}
        if columns:
            out[case] = columns | {(name, ""): min(systems[name].values(), key=seconds_of)
                                   for name in NAMES if name != "sarissa" and name in systems}
    return out


def seconds_of(rows):
    return middle(rows, "seconds")


def least_seconds(case):
    """What no system can be faster than, also one that sends before a receiver calls. None where bursts
    that pass the limiters and copies that are there before the start leave no such time."""
    run = run_of(case)
    if run.size <= NO_BOUND_BYTES:
        return None
    alone = bound_seconds(run.size, run.rate)
    whole = alone * ops.BOUND_OBJECTS[run.op](run.nodes)
    arrivals = [at / 1e9 for at in ops.arrivals_ns(run)]
    return {"broadcast": lambda: max(whole, *arrivals),
            "reduce": lambda: max(arrivals[0], max(arrivals[1:]) + alone),
            "allreduce": lambda: max(whole, max(arrivals) + alone)}.get(run.op, lambda: whole)()


def span(rows):
    """From the shortest to the longest, of five or more without these two; one run by itself may be that
    much off."""
    seconds = sorted(row["seconds"] for row in rows)
    if len(seconds) >= MANY:
        seconds = seconds[1:-1]
    off = ONE_RUN_OFF if len(seconds) == 1 else 0
    return seconds[0] * (1 - off), seconds[-1] * (1 + off)


def level(first, second):
    """Whether the median of the slower lies within the spread of the faster, or the other way round."""
    fast, slow = sorted((first, second), key=seconds_of)
    return seconds_of(slow) <= span(fast)[1] or span(slow)[0] <= seconds_of(fast)


def judged(columns):
    """Our port that is compared with the peers."""
    return next(key for key in columns if key[0] == "sarissa")


def result(columns):
    """first, level or lost, and against whom."""
    ours = columns[judged(columns)]
    peers = {NAMES[name]: rows for (name, _), rows in columns.items() if name != "sarissa"}
    if not peers:
        return "alone", ""
    best = min(peers, key=lambda name: seconds_of(peers[name]))
    if level(ours, peers[best]):
        return "level", f"with {best}"
    share = 100 * (seconds_of(ours) / seconds_of(peers[best]) - 1)
    return ("lost", f"to {best}, +{share:.{share < 10:d}f} %") if share > 0 else ("first", "")


def result_text(columns):
    word, whom = result(columns)
    return f"**LOST** {whom}" if word == "lost" else f"{word} {whom}".strip()


def cpu(rows):
    """CPU seconds of the machine; runs below 0.2 s are over before the kernel has counted."""
    known = [row["cpu_seconds"] for row in rows if row.get("cpu_seconds") is not None]
    return f"{statistics.median(known):.2f}" if len(known) == len(rows) else "-"


def marks(rows):
    return ("\\*" if (middle(rows, "cpu_share") or 0) > CORES_FULL else "") + \
        ("~" if (middle(rows, "lower_cpu_share") or 0) > LOWER_MOST else "")


def cell(rows, least, small):
    """Median, spread, CPU seconds: of ms for small objects, else over the bound."""
    values = [row["seconds"] * 1e3 if small else row["seconds"] / least for row in rows]
    digits = ".2f" if small else ".3f"
    text = f"{statistics.median(values):{digits}}{marks(rows)}"
    spread = f" ({min(values):{digits}}–{max(values):{digits}})" if len(values) > 1 else ""
    return f"{text}{spread}; {cpu(rows)}"


def duration(seconds):
    """With three digits, or two behind the point."""
    if seconds is None:
        return "-"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:#.3g} ms".replace(". ", " ")


def provenance(columns):
    """Commit and day; of those columns that are not of the first one's, with their names."""
    groups = {}
    for (name, _), rows in columns.items():
        key = ", ".join(dict.fromkeys(row["commit"] for row in rows)) + \
            f" {max(row['measured'] for row in rows)[:10]}"
        groups.setdefault(key, []).append(NAMES[name])
    first, *rest = groups.items()
    return "; ".join([first[0], *(f"{', '.join(names)} {key}" for key, names in rest)])


def counts(columns, keys):
    numbers = [str(len(columns[key])) if key in columns else "-" for key in keys]
    return numbers[0] if len(set(numbers)) == 1 else " ".join(numbers)


def columns_of(best):
    """The columns that any of the cases has."""
    keys = [("sarissa", port) for port in PORTS] + [(name, "") for name in NAMES if name != "sarissa"]
    return [key for key in keys if any(key in columns for columns in best.values())]


def heading(key):
    return f"{NAMES[key[0]]}, {key[1]}" if key[1] else NAMES[key[0]]


def markdown(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def times(best):
    """The table of a section."""
    keys = columns_of(best)
    rows = []
    for case, columns in best.items():
        least, size = least_seconds(case), next(iter(columns.values()))[0]["command"]
        small = int(re.search(r"--size (\d+)", size)[1]) <= IN_MS_BYTES
        cells = [cell(columns[key], least, small) if key in columns else "-" for key in keys]
        rows.append([f"`{case}`", result_text(columns), duration(least), *cells, counts(columns, keys),
                     provenance(columns)])
    return markdown(["case", "result", "bound", *map(heading, keys), "n", "commit, day"], rows)


def kills(best):
    """The time alone says nothing of how much of it the death has cost."""
    rows = []
    for case, columns in best.items():
        same = columns[judged(columns)]
        later = [row["later_share"] for row in same]
        rows.append([f"`{case}`", f"{middle(same, 'undisturbed_seconds'):.3f} s",
                     f"{seconds_of(same):.3f} s; {cpu(same)}",
                     f"{statistics.median(later):.3f} ({min(later):.3f}–{max(later):.3f})",
                     f"{LIMITS[case]['later_share']:g}", str(len(same)), provenance(columns)])
    return markdown(["case", "undisturbed", "with a death", "later, S/B", "limit", "n", "commit, day"], rows)


def section(case):
    """The title under which a case stands."""
    if case.endswith(DEFAULT):
        return "As they come"
    if case.endswith(ENGINES):
        return "Engines of today"
    for part, title in (("/kill-", "A node is killed half way"), ("/stagger-", "One node after the other"),
                        ("-mtu-", "Frames of 3,498 bytes")):
        if part in case:
            return title
    return "Objects up to 1 MiB" if re.search(r"/(1k|64k|1m)-", case) else "Objects of 32 MiB and more"


SECTIONS = ("Objects of 32 MiB and more", "Objects up to 1 MiB", "Frames of 3,498 bytes",
            "One node after the other", "As they come", "Engines of today", "A node is killed half way")


def summary(best):
    """How many cases are first, level and lost."""
    rows = []
    for title in SECTIONS:
        words = [result(columns)[0] for case, columns in best.items() if section(case) == title]
        if set(words) - {"alone"}:
            rows.append([title, *(str(words.count(word)) for word in ("first", "level", "lost"))])
    total = [sum(int(row[k]) for row in rows) for k in (1, 2, 3)]
    return markdown(["cases", "first", "level", "LOST"], [*rows, ["all", *map(str, total)]])


def where(best):
    rows = [row for columns in best.values() for same in columns.values() for row in same]
    days = sorted({row["measured"][:10] for row in rows})
    machines = "; ".join(sorted({row["machine"] for row in rows}))
    text = f"Version {rows[0]['release']}, measured {' to '.join(dict.fromkeys((days[0], days[-1])))}, all " \
        f"nodes and the network between them on one machine: {machines}."
    return textwrap.fill(text, WRAP, break_on_hyphens=False)


def page_blocks(best):
    """What docs/study/compare.md says of the rows, by the names of its blocks."""
    left = [case.name for case in CASES if not case.huge and case.name not in best]
    sections = {title: {case: columns for case, columns in best.items() if section(case) == title}
                for title in SECTIONS}
    return {"summary": f"{where(best)}\n\n{summary(best)}",
            **{title: (kills if "killed" in title else times)(cases) if cases else "Not measured."
               for title, cases in sections.items()},
            "not measured": textwrap.fill(", ".join(f"`{name}`" for name in left), WRAP, break_on_hyphens=False) or
            "All cases are measured."}


def readme_blocks(best):
    """What README says of the rows."""
    cases = {case: best[case] for case in IN_README if case in best}
    keys = columns_of(cases)

    def entry(rows):
        used = f", {float(cpu(rows)):.1f} CPU s" if cpu(rows) != "-" and seconds_of(rows) >= 1 else ""
        return f"{duration(seconds_of(rows))}{used}"

    rows = [[IN_README[case], duration(least_seconds(case)),
             *(entry(columns[key]) if key in columns else "-" for key in keys), result_text(columns)]
            for case, columns in cases.items()]
    commits = dict.fromkeys(row["commit"] for columns in cases.values() for row in columns[judged(columns)])
    text = f"Median time, and CPU seconds of the whole machine. {score(best)} {where(cases)} Commits " \
        f"{', '.join(commits)}."
    table = markdown(["8 nodes", "bound", *map(heading, keys), "result"], rows)
    return {"headline": headline(best), "README": f"{table}\n\n{textwrap.fill(text, WRAP, break_on_hyphens=False)}"}


def run_of(case):
    op, *argv = next(one.command for one in CASES if one.name == case).split()
    return bench_options.parse(op, argv)


def headline(best):
    """One case in two sentences: how near each system comes to its bound."""
    if HEADLINE not in best:
        return "Not measured."
    columns, run = best[HEADLINE], run_of(HEADLINE)
    over = {key: f"{seconds_of(rows) / least_seconds(HEADLINE):.2f}" for key, rows in columns.items()}
    peers = [f"{NAMES[name]} {times}" for (name, _), times in over.items() if name != "sarissa"]
    text = f"An object of {run.size // MIB} MiB reaches {run.nodes - 1} hosts from one in **{over[judged(columns)]} " \
        f"times** the least time in which a link of {run.rate:.0f} Mbit/s can carry it " \
        f"({', '.join(peers)}). All hosts and links are emulated on one machine."
    return textwrap.fill(text, WRAP, break_on_hyphens=False)


def score(best):
    """How many cases are first, level and lost, in a sentence."""
    by = {word: [case for case, columns in best.items() if result(columns)[0] == word]
          for word in ("first", "level", "lost")}
    small = sum(bool(re.search(r"/(1k|64k|1m)-", case)) for case in by["lost"])
    return f"Of {sum(map(len, by.values()))} cases Sarissa is first in {len(by['first'])}, level in " \
        f"{len(by['level'])} (the spreads overlap), and loses {len(by['lost'])}, {small} of them with objects of " \
        "up to 1 MiB."


PAGES = {"README.md": readme_blocks, "docs/study/compare.md": page_blocks}


def filled(path, text, blocks):
    """A page with its blocks as they must be."""
    if missing := blocks.keys() ^ {found[2] for found in BLOCK.finditer(text)}:
        raise Failure(f"{path}: the marks of the block '{missing.pop()}' are gone, or too many: put them right")
    return BLOCK.sub(lambda found: f"{found[1]}\n{blocks[found[2]]}\n\n{found[3]}", text)


# a decimal, or a number with a unit of what can be measured
TYPED = re.compile(r"(?<![\w.:/-])(?:\d[\d,]*\.\d+(?![\d.])|\d[\d,]*(?= ?(?:x|×|%|[mµun]?s|seconds?|ms|minutes?|times|cycles|"
                   r"[KMGT]?bit/s|[KMG]i?B/s|[KM]?packets/s)(?!\w)))")
CONSTANTS = re.compile(r"DPDK 22\.11|--rate \d+|below 0\.2 s|0\.5 % about|(?:80|10) % of the cores")


def typed(text):
    """Figures outside the blocks: line, figure. What the sources fix is no figure: CONSTANTS."""
    text = BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [(number, figure) for number, line in enumerate(text.split("\n"), 1)
            for figure in TYPED.findall(CONSTANTS.sub("", line))]


def offences(root):
    """What in the pages below root is not what docs/study/results.jsonl says."""
    best = best_of(bench_rows.sets_of(bench_rows.read(root / "docs/study/results.jsonl")))
    for page, blocks in PAGES.items():
        text = (root / page).read_text()
        if text != filled(page, text, blocks(best)):
            yield f"{page}: figures differ from docs/study/results.jsonl: run scripts/bench report"
        for number, figure in typed(text):
            yield f"{page}:{number}: {figure} is typed: measured figures come from docs/study/results.jsonl alone"
    yield from ray_offences(root)
    for name, _, panels in bench_figures.figures(best, all_of_them=True):
        if not bench_figures.current(root / f"docs/study/plots/{name}.svg", panels):
            yield f"docs/study/plots/{name}.svg: does not draw docs/study/results.jsonl: run scripts/bench report"


def ray_offences(root):
    """The same of the page of `bench ray`, which has rows of its own."""
    page = root / ray_page.PAGE
    if not page.exists():
        return
    text = page.read_text()
    if text != filled(ray_page.PAGE, text, ray_page.blocks(ray_page.read(root / ray_page.KEPT))):
        yield f"{ray_page.PAGE}: figures differ from {ray_page.KEPT}: run scripts/bench report"
    for number, figure in typed(text):
        yield f"{ray_page.PAGE}:{number}: {figure} is typed: measured figures come from {ray_page.KEPT} alone"


def rewrite_ray(root, results):
    """How many rows are new."""
    page, kept = root / ray_page.PAGE, ray_page.read(root / ray_page.KEPT)
    new = [row for row in ray_page.read(results / ray_page.NEW) if row not in kept]
    if page.exists():
        bench_rows.append(root / ray_page.KEPT, new)
        page.write_text(filled(ray_page.PAGE, page.read_text(), ray_page.blocks([*kept, *new])))
    return len(new)


def rewrite(root, results):
    ray_new = rewrite_ray(root, results)
    kept = bench_rows.read(root / "docs/study/results.jsonl")
    new = [row for row in bench_rows.read(results / bench_rows.ROWS) if row not in kept]
    bench_rows.append(root / "docs/study/results.jsonl", new)
    best = best_of(bench_rows.sets_of([*kept, *new]))
    if not best and not ray_new:
        raise Failure(f"{results} holds no rows: run scripts/bench compare first")
    for page, blocks in PAGES.items():
        text = (root / page).read_text()
        (root / page).write_text(filled(page, text, blocks(best)))
    bench_figures.draw(best, root / "docs/study/plots")
    say(f"bench: {ray_new} rows added to {ray_page.KEPT}, {len(new)} to docs/study/results.jsonl; README.md, docs/study/compare.md and "
        f"docs/study/plots tell of {len(best)} cases")


def main(argv):
    parser = options.Parser(prog="bench report", description=__doc__)
    parser.add_argument("--results", type=Path, default=bench_rows.RESULTS, metavar="DIR",
                        help="where bench compare has written (bench/results)")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the sources whose pages are meant")
    parser.add_argument("--check", action="store_true", help="change nothing, say what differs")
    args = parser.parse_args(argv)
    if args.check:
        found = list(offences(args.root))
        for text in found:
            say(f"bench: {text}")
        return 1 if found else 0
    options.check_folder("--root", args.root)
    rewrite(args.root, args.results)
