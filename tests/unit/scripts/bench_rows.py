#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measured rows come back as they were appended, the right ones count, and the pages say only what they say."""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib import shell  # noqa: E402
from lib.bench import compare as bench_compare, ops  # noqa: E402
from lib.bench.tables import cases, expect, figures as bench_figures  # noqa: E402
from lib.bench.tables import report as bench_report, rows as bench_rows, table  # noqa: E402
from lib.bench.tables.cases import CASES  # noqa: E402
from lib.shell import Failure  # noqa: E402

NAMED = {case.name: case for case in CASES}
CASE = NAMED["broadcast/32m-on-8"]


def rows(seconds, system="sarissa", case=CASE, measured="2026-01-02T03:04Z", other=0.0, tuning="", **more):
    """As many as there are times; the bound is a second."""
    port = {"vdev": "udp"} if system == "sarissa" else {}
    return [{"case": case.name, "command": case.command, "system": system, "tuning": tuning, "seconds": one,
             "bound_seconds": 1.0, "ratio": one, "other_cpu_share": other, "cpu_seconds": 0.5 + k,
             "cpu_share": 0.4, "wire_bytes": 10 ** 8 + k, "blocked_mean_seconds": 1.0, "measured": measured,
             "commit": "abc", "machine": "m", "release": "0.1.0", **port, **more}
            for k, one in enumerate(seconds)]


def times(same):
    return [row["seconds"] for row in same]


def counted(given, case=CASE.name, system="sarissa", variant="udp"):
    return bench_rows.sets_of(given).get(case, {}).get(system, {}).get(variant, [])


def a_row_comes_back_as_it_was_measured(directory):
    path = directory / "new" / "rows.jsonl"
    measured = {"op": "broadcast", "case": "", "system": "sarissa", "tuning": "", "vdev": "udp", "nodes": 8,
                "seconds": 1.23456789, "bound_seconds": 1.0, "ratio": 1.23, "cpu_seconds": None,
                "blocked_seconds": [0, 1], "drops": {"a": 1}, "wire_bytes": 10}
    for count in (1, 2):
        bench_rows.append(path, [bench_rows.recorded(CASE, measured)])
        got = bench_rows.read(path)
        assert len(got) == count == path.read_text().count("\n"), "a line for each, those before it stay"
    (one, _), stamp = got, {key: got[0].pop(key) for key in ("commit", "machine", "measured", "release")}
    assert all(stamp.values()) and stamp["measured"].endswith("Z"), stamp
    assert one == {"case": CASE.name, "command": CASE.command, "system": "sarissa", "tuning": "", "vdev": "udp",
                   "seconds": 1.234568, "bound_seconds": 1.0, "wire_bytes": 10}, one
    assert bench_rows.read(directory / "none") == []


def another_file_is_refused_in_one_line(directory):
    path = directory / "rows.jsonl"
    for text in ("<<<<<<< ours\n", "[1]\n", '{"a": 1}\n', '"text"\n', json.dumps(rows([1])[0]) + "\n{}\n"):
        path.write_text(text)
        try:
            bench_rows.read(path)
            assert False, text
        except shell.Failure as failure:
            assert f"{path}, line {text.count(chr(10))}, is no measured row" in str(failure), failure


def the_newest_whole_set_counts():
    """Of one commit on one machine; a younger one when it has enough rows that nobody disturbed."""
    old, new = rows([1.1, 1.2, 1.3]), {"measured": "2026-01-03T00:00Z", "commit": "def"}
    for more, seconds in ((rows([1.0] * 2, **new), [1.1, 1.2, 1.3]), (rows([1.0] * 3, **new), [1.0] * 3),
                          (rows([1.0] * 3, other=0.9, **new), [1.1, 1.2, 1.3]),
                          (rows([61.0], **new), [61.0]),
                          (rows([1.0] * 3, **new | {"vdev": "af_xdp"}), [1.1, 1.2, 1.3]),
                          (rows([1.0] * 3, **new | {"machine": "n", "measured": "2026-01-01T00:00Z"}),
                           [1.1, 1.2, 1.3])):
        assert times(counted(old + more)) == seconds, (more, counted(old + more))
    assert times(counted(rows([1.0]))) == [1.0], "what there is, where nothing is whole"


def rows_of_other_commands_and_releases_do_not_count():
    slower = CASE._replace(command=CASE.command.replace("--rate 200", "--rate 100"))
    assert times(counted(rows([2.1], case=slower) + rows([1.0]))) == [1.0]
    later = rows([1.2], case=NAMED["reduce/32m-on-8"], release="0.10.0")
    assert counted(rows([1.0] * 5, release="0.9.0") + later) == [], "of an older release"


def best(*sets):
    return bench_report.best_of(bench_rows.sets_of([row for same in sets for row in same]))


def a_row_that_is_lost_says_so():
    """Whether the peer is below the bound or not; level is what the spreads cannot tell apart."""
    for ours, theirs, word in (
            ([1.047, 1.050, 1.052], [1.050, 1.0501, 1.054], "level with OpenMPI"),
            ([1.047, 1.048, 1.049], [1.050, 1.052, 1.052], "first"),
            ([1.054, 1.055, 1.055], [1.053, 1.084, 1.107], "level with OpenMPI"),
            ([1.0, 1.1, 1.1, 1.2, 2.0], [1.5] * 5, "first"),
            ([1.0, 1.1, 1.1, 1.6, 2.0], [1.5] * 5, "level with OpenMPI"),
            ([1.1, 1.1, 1.1], [1.0, 1.0, 1.0], "**LOST** to OpenMPI, +10 %"),
            ([1.034] * 3, [0.993] * 3, "**LOST** to OpenMPI, +4.1 %"),
            ([1.048], [1.0479], "level with OpenMPI"),
            ([1.048], [1.06], "first")):
        columns = best(rows(ours), rows(theirs, "openmpi", tuning="hand"))[CASE.name]
        assert bench_report.result_text(columns) == word, (ours, theirs, bench_report.result_text(columns))


def a_line_tells_what_its_figures_are():
    """CPU seconds beside each time, how many runs, of which commit and day; sockets before AF_XDP."""
    given = best(rows([1.05, 1.06, 1.07], bound_seconds=1.342), rows([2.0], vdev="af_xdp"),
                 rows([1.2], "openmpi", tuning="hand", commit="def", lower_cpu_share=0.5),
                 rows([7.0], "openmpi", tuning="default"), rows([3.0], "dask", tuning="hand", cpu_share=0.95))
    head, _, line = bench_report.times(given).split("\n")
    assert head == "| case | result | bound | Sarissa, udp | Sarissa, af_xdp | OpenMPI | Dask | n | commit, day |"
    assert line == (
        "| `broadcast/32m-on-8` | first | 1.34 s | 0.790 (0.782–0.797); 1.50 | 1.490; 0.50 | 0.894~; 0.50 | "
        "2.235\\*; 0.50 | 3 1 1 1 | abc 2026-01-02; OpenMPI def 2026-01-02 |"), line
    small = best(rows([0.02, 0.01, 0.03], case=NAMED["broadcast/1k-on-8"], cpu_seconds=None))
    assert "| alone | - | 20.00 (10.00–30.00); - | 3 |" in bench_report.times(small), bench_report.times(small)


def what_a_death_costs_has_a_table_of_its_own():
    case = NAMED["reduce/kill-3"]
    given = [row | {"undisturbed_seconds": 1.05, "later_share": share}
             for row, share in zip(rows([1.6, 1.62, 1.7], case=case), (0.55, 0.57, 0.65))]
    text = bench_report.page_blocks(best(given))["A node is killed half way"]
    assert ("| `reduce/kill-3` | 1.050 s | 1.620 s; 1.50 | 0.570 (0.550–0.650) | 0.6 | 3 | abc 2026-01-02 |"
            in text), text
    assert "later, S/B" in text, text


def defaults_have_a_table_of_their_own():
    case = NAMED[CASE.name + cases.DEFAULT]
    blocks = bench_report.page_blocks(best(rows([1.05]), rows([1.06], case=case),
                                           rows([7.3], "openmpi", case=case, tuning="default")))
    own, rest = blocks.pop("As they come"), "".join(blocks.values())
    assert f"`{case.name}`" in own and "| first |" in own and f"`{CASE.name}`" not in own, own
    assert f"`{CASE.name}`" in rest and f"`{case.name}`" not in rest, rest


def no_measured_time_is_below_its_bound():
    """A system that sends before a receiver calls included: of all rows that the pages are made of."""
    for case, seconds in (("broadcast/32m-on-8", 1.342), ("gather/32m-on-8", 7 * 1.342),
                          ("broadcast/stagger-0.1-rising", 1.342), ("broadcast/stagger-0.3-rising", 2.1 * 1.342),
                          ("reduce/stagger-0.1-rising", 1.7 * 1.342), ("reduce/stagger-0.1-falling", 1.6 * 1.342),
                          ("allreduce/stagger-0.3-rising", 3.1 * 2.684), ("p2p/32m-on-2", 2 * 1.342)):
        assert abs(bench_report.least_seconds(case) - seconds) < 0.003, (case, bench_report.least_seconds(case))
    assert bench_report.least_seconds("gather/64k-on-8") is None
    kept = bench_rows.sets_of(bench_rows.read(bench_rows.KEPT))
    assert len(kept) > 50, "docs/study/results.jsonl is empty"
    for case, systems in kept.items():
        least = bench_report.least_seconds(case)
        for system, variants in systems.items():
            for same in variants.values():
                assert not least or min(times(same)) >= least, (case, system, least, times(same))


def pages_in(directory):
    """A small source tree whose pages are as they should be."""
    (directory / "docs/study").mkdir(parents=True)
    bench_rows.append(directory / "docs/study/results.jsonl", [
        row for nodes in (4, 8) for name, seconds in (("sarissa", 1.4), ("openmpi", 1.5))
        for row in rows([seconds] * 3, name, case=NAMED[f"broadcast/32m-on-{nodes}"])])
    marks = "".join(f"<!-- figures: {name}, made by scripts/bench report -->\n<!-- figures: end -->\n"
                    for name in ("summary", *bench_report.SECTIONS, "not measured", "headline", "README")).splitlines(True)
    (directory / "docs/study/compare.md").write_text("".join(marks[:-4]))
    (directory / "README.md").write_text("# A name\n\n64 KiB at 127.0.0.1, DPDK 22.11\n" + "".join(marks[-4:]) +
                                         "\nEnd, in 2026.\n")
    bench_report.main(["--root", str(directory), "--results", str(directory / "none")])


def checked(directory):
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        failed = bench_report.main(["--check", "--root", str(directory)])
    assert bool(failed) == bool(told.getvalue()), told.getvalue()
    return told.getvalue().splitlines()


def a_typed_figure_fails(directory):
    """In the made block or outside of it; the pages that the report has written pass."""
    pages_in(directory)
    assert checked(directory) == [], checked(directory)
    lines = (directory / "README.md").read_text().splitlines()
    last = f"README.md:{1 + next(k for k, line in enumerate(lines) if line.startswith('End,'))}"
    for page, was, now, words in (
            ("README.md", "1.40 s", "1.30 s", "README.md: figures differ"),
            ("README.md", "**1.04 times** the least time", "**1.01 times** the least time", "README.md: figures differ"),
            ("README.md", "End,", "It takes 1.05 of the bound,", f"{last}: 1.05 is typed"),
            ("README.md", "End,", "It takes 3 s,", f"{last}: 3 is typed"),
            ("README.md", "End,", "3,500 packets/s,", f"{last}: 3,500 is typed"),
            ("README.md", "64 KiB", "64 KiB in 12 µs", "README.md:3: 12 is typed"),
            ("docs/study/compare.md", "1.043", "1.023", "docs/study/compare.md: figures differ"),
            ("docs/study/results.jsonl", '"seconds": 1.4', '"seconds": 1.41',
             "docs/study/plots/collectives.svg: does not draw")):
        text = (directory / page).read_text()
        assert was in text, (page, was, text)
        (directory / page).write_text(text.replace(was, now))
        assert any(words in line for line in checked(directory)), (words, checked(directory))
        (directory / page).write_text(text)
    assert checked(directory) == []


def new_rows_are_taken_over_once(directory):
    """Appended to those that are kept; the pages then say the new ones, and stay the same the next time."""
    pages_in(directory)
    before = (directory / "docs/study/results.jsonl").read_text()
    bench_rows.append(directory / "rows.jsonl", rows([1.37] * 3, commit="def", measured="2026-01-03T00:00Z"))
    pages = []
    for _ in range(2):
        bench_report.main(["--root", str(directory), "--results", str(directory)])
        pages.append({path.name: path.read_bytes() for path in sorted(directory.glob("**/*.*"))})
    after = (directory / "docs/study/results.jsonl").read_text()
    assert after.startswith(before) and after.count("\n") == before.count("\n") + 3, after
    assert pages[0] == pages[1] and "def 2026-01-03" in (directory / "docs/study/compare.md").read_text()
    assert b"1.37 s" in pages[1]["README.md"] and checked(directory) == []
    assert {"collectives.svg", "nodes.svg"} <= pages[0].keys() and b">Sarissa<" in pages[0]["nodes.svg"]


def results(patterns, *more, known=None):
    args = bench_compare.parse(["--results", "/nowhere", "--only", *patterns, *more])
    return [bench_compare.Result(case, args, known or {}) for case in args.cases], args


def only_what_is_missing_is_measured_again():
    """Rows count of this machine, and ours of this commit and port, that nobody has disturbed."""
    here = {"machine": bench_rows.machine(), "commit": bench_rows.commit(), "vdev": "af_xdp"}
    known = {CASE.name: [*rows([1.1, 1.2], **here), *rows([1.0], **here | {"commit": "old"}),
                         *rows([1.0], **here | {"vdev": "udp"}), *rows([17.0], other=0.9, **here),
                         *rows([1.3] * 5, "gloo", tuning="default"),
                         *rows([1.4] * 5, "openmpi", tuning="hand", machine=here["machine"]),
                         *rows([61.0], "dask", tuning="hand", machine=here["machine"])]}
    for more, missing in (
            (["--resume"], {"sarissa": 3, "gloo default": 5, "openmpi hand": 0, "dask hand": 0}),
            (["--resume", "--since", "2026-02"], {"sarissa": 5, "openmpi hand": 5}), ([], {"sarissa": 5})):
        (result,), _ = results([CASE.name], *more, known=known)
        assert {name: result.wanted(name) for name in missing} == missing, more


def cases_of_defaults_measure_these():
    """Whatever else is asked for; of who has one way, that."""
    for op, systems in (("broadcast", ["openmpi default", "gloo default", "dask default"]),
                        ("allreduce", ["openmpi default", "gloo default", "dask default"])):
        for tuning in ([], ["--tuning", "hand", "default"]):
            (result,), args = results([f"{op}/1k-on-8-default"], *tuning)
            run = bench_compare.run_of(result.case, args)
            assert [table.name_of(name, tuning) for name, _, tuning in ops.kinds(run)] == [
                "sarissa", *systems], run
    (result,), args = results(["broadcast/1k-on-8"])
    run = bench_compare.run_of(result.case, args)
    assert run.tunings == {"openmpi": ["hand"], "gloo": ["default"], "dask": ["hand"]}, run.tunings


def cases_of_engines_measure_those():
    """Unless others are asked for; where no engine is installed these cases are left out, and a line says so."""
    with tempfile.TemporaryDirectory() as folder, engines_in(folder):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            some = bench_compare.without_engines([result.case for result in results(["reduce/1m-on-8*"])[0]])
        assert [case.name for case in some] == ["reduce/1m-on-8", "reduce/1m-on-8-default"], some
        assert "without 1 cases *-engines" in told.getvalue(), told.getvalue()
        try:
            bench_compare.without_engines([result.case for result in results(["*-engines"])[0]])
        except Failure as failure:
            assert "scripts/setup --engines" in str(failure), failure
        else:
            raise AssertionError("cases are taken that nobody can measure")
        Path(folder, "bin").mkdir()
        Path(folder, "bin/python").touch()
        (result,), args = results(["reduce/1m-on-8-engines"])
        run = bench_compare.run_of(result.case, args)
        assert [table.name_of(name, tuning) for name, _, tuning in ops.kinds(run)] == [
            "sarissa", "ray hand", "torch-gloo default", "mooncake hand", "nixl hand", "dask-today hand"], run
        (result,), args = results(["reduce/1m-on-8-engines"], "--system", "nixl")
        assert bench_compare.names_of([bench_compare.run_of(result.case, args)]) == ["nixl"]


@contextlib.contextmanager
def engines_in(folder):
    """The engines' environment is in the folder."""
    before = os.environ.get("SARISSA_ENGINES")
    os.environ["SARISSA_ENGINES"] = folder
    try:
        yield
    finally:
        os.environ.pop("SARISSA_ENGINES")
        if before is not None:
            os.environ["SARISSA_ENGINES"] = before


def a_slice_takes_what_fits():
    """And no more, what is worth most first; of a system that has its rows nothing is started."""
    some, args = results(["broadcast/1k-on-4", "reduce/*-on-16", "broadcast/*-on-8"])
    first, *_, last = bench_compare.groups(some, args)
    assert [result.case.name for result, _ in first] == [
        f"broadcast/{size}-on-8" for size in ("1k", "64k", "1m", "32m")], first
    assert last[0][0].case.name == "broadcast/1k-on-4", last
    long = [expect.start(bench_compare.names_of([run]), 8) +
            expect.case([], run, result.wanted) for result, run in first]
    assert sorted(long) == long and long[0] < long[3] / 1.5, long
    for left, count in ((long[0] - 1, 1), (long[0] + 1, 1), (sum(long), 4), (5, 0)):
        told = bench_compare.chosen(first, left)
        assert len(told) == count, (left, told)
    result, run = first[3]
    result.rows = rows([1.4] * 5) + rows([bench_rows.LONG_S + 1], "gloo", tuning="default")
    assert bench_compare.pruned(result, run)
    assert bench_compare.names_of([run]) == ["openmpi", "dask"], run
    result.rows = [row for name, tuning in (("openmpi", "hand"), ("dask", "hand"))
                   for row in rows([1.0] * 5, name, tuning=tuning)]
    assert not bench_compare.pruned(result, run), "five rows are enough"


def what_is_known_tells_how_long():
    (result,), args = results(["broadcast/32m-on-8"])
    run = bench_compare.run_of(result.case, args)

    def turn(known):
        return expect.turn(known, run, "sarissa", "")

    assert 1.4 < turn([]) < 6, turn([])
    assert turn(rows([3.0])) > 3 and turn(rows([3.0], took_seconds=4.5)) == 4.5
    slow = expect.case(rows([7.0]), run, lambda name: 5 * (name == "sarissa"))
    long = bench_rows.LONG_S + 1
    once = expect.case(rows([long]), run, lambda name: 5 * (name == "sarissa"))
    assert slow > 6 * 7 and long < once < 1.5 * long, (slow, once)


def a_reduce_with_kills_is_ours_alone():
    (result,), args = results(["reduce/kill-3"])
    assert bench_compare.names_of([bench_compare.run_of(result.case, args)]) == ["sarissa"]


with tempfile.TemporaryDirectory(prefix="sarissa-test-") as folder:
    for number, test in enumerate((a_row_comes_back_as_it_was_measured, another_file_is_refused_in_one_line,
                                   a_typed_figure_fails, new_rows_are_taken_over_once)):
        own = Path(folder, str(number))
        own.mkdir()
        test(own)
for test in (the_newest_whole_set_counts, rows_of_other_commands_and_releases_do_not_count,
             a_row_that_is_lost_says_so, a_line_tells_what_its_figures_are,
             what_a_death_costs_has_a_table_of_its_own, defaults_have_a_table_of_their_own,
             no_measured_time_is_below_its_bound, only_what_is_missing_is_measured_again,
             cases_of_defaults_measure_these, cases_of_engines_measure_those, a_slice_takes_what_fits, what_is_known_tells_how_long,
             a_reduce_with_kills_is_ours_alone):
    test()
