#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `bench compare` measured is kept, replaced and told as it was."""

import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib import bench_cases, bench_compare, bench_expect, bench_kept, bench_ops  # noqa: E402
from lib import bench_plot, bench_table  # noqa: E402
from lib.bench_cases import CASES  # noqa: E402

CASE = next(case for case in CASES if case.name == "broadcast/32m-on-8")


def rows(seconds, system="sarissa", measured="2026-01-02T03:04Z", other=0.0, tuning="", **more):
    """As many as there are times; the bound is a second."""
    return [{"op": "broadcast", "system": system, "tuning": tuning, "nodes": 8, "bytes": 1 << 25,
             "seconds": one, "bound_seconds": 1.0, "ratio": one, "other_cpu_share": other,
             "cpu_seconds": 0.5 + k, "cpu_share": 0.4, "wire_bytes": 10 ** 8 + k, "drops": {"a": k},
             "blocked_seconds": [0, one], "measured": measured, "commit": "abc", "machine": "m"} | more
            for k, one in enumerate(seconds)]


def times(same):
    return [row["seconds"] for row in same]


def rows_come_back_as_they_were(directory):
    path = directory / "results.json"
    given = rows([1.05, 1.050001, 1.2]) + rows([6.0], "gloo", tuning="hand", cpu_seconds=None)
    bench_kept.write(path, {CASE.name: given})
    got = bench_kept.read(path)[CASE.name]
    assert len(got) == 4, got
    for was, now in zip(given, got):
        lost = {key for key in was if was[key] != now.get(key)}
        assert lost == {"op", "drops", "blocked_seconds"}, (was, now)
    lines = path.read_text().splitlines()
    assert len(lines) == 4 and max(map(len, lines)) < 600, "a line for each system"
    bench_kept.write(path, bench_kept.read(path))
    assert path.read_text().splitlines() == lines, "not the same when written again"


def rows_of_another_command_are_not_read(directory):
    path = directory / "results.json"
    other = CASE._replace(command=CASE.command.replace("--rate 200", "--rate 100"))
    path.write_text(json.dumps([bench_kept.line(other, rows([2.1])), bench_kept.line(CASE, rows([1]))]))
    assert times(bench_kept.read(path)[CASE.name]) == [1]


def who_is_measured_again_is_replaced():
    kept = rows([1.1, 1.2]) + rows([1.3], "openmpi", tuning="hand")
    younger, older = "2026-01-03T00:00Z", "2026-01-01T00:00Z"
    for seconds, more in (
            ([1.3, 1.0], rows([1.0], measured=younger)),
            ([1.1, 1.2, 1.3], rows([1.0], measured=older)),
            ([1.1, 1.2, 1.3], rows([1.0], measured=younger, other=0.9)),
            ([1.1, 1.2, 1.3, 1.4], rows([1.4], "openmpi", tuning="default")),
            ([1.1, 1.2, 1.4], rows([1.4], "openmpi", tuning="hand"))):
        assert sorted(times(bench_kept.merged(kept, more))) == sorted(seconds), (more, seconds)
    assert bench_kept.merged([], rows([1], other=0.9)), "disturbed ones are kept where there is nothing"


def rows_of_earlier_formats_are_read(directory):
    path = bench_kept.result_path(directory, CASE.name)
    bare = [{key: value for key, value in row.items() if key not in ("commit", "measured", "machine")}
            for row in rows([1.5])]
    path.write_text(json.dumps({"command": f"scripts/bench {CASE.command}", "rows": bare,
                                "machine": {"cores": 2, "model": "x", "kernel": "6"}}))
    (row,) = bench_kept.together(directory / "none", directory)[CASE.name]
    assert row["commit"] == "?" and row["machine"] == "2 cores, x, Linux 6", row
    assert row["measured"].startswith("20") and row["measured"].endswith("Z"), row
    path.write_text(path.read_text().replace("--rate 200", "--rate 100"))
    assert bench_kept.together(directory / "none", directory) == {}, "of another command"


def who_cannot_be_told_apart_is_level():
    for ours, theirs, level in (
            ([1.047, 1.050, 1.052], [1.050, 1.0501, 1.054], {"sarissa", "openmpi"}),
            ([1.047, 1.048, 1.049], [1.050, 1.052, 1.052], {"sarissa"}),
            ([1.054, 1.055, 1.055], [1.053, 1.084, 1.107], {"sarissa", "openmpi"}),
            ([0.9, 1.0, 1.6], [1.05, 1.1, 1.15], {"sarissa", "openmpi"}),
            ([1.0, 1.1, 1.1, 1.2, 2.0], [1.5] * 5, {"sarissa"}),
            ([1.0, 1.1, 1.1, 1.6, 2.0], [1.5] * 5, {"sarissa", "openmpi"}),
            ([1.1, 1.1, 1.1], [1.0, 1.0, 1.0], {"openmpi"}),
            ([1.048], [1.0479], {"sarissa", "openmpi"}),
            ([1.048], [1.06], {"sarissa"})):
        told = bench_plot.lowest_of({"sarissa": rows(ours), "openmpi": rows(theirs, "openmpi")})
        assert told == level, (ours, theirs, told)


def a_line_tells_what_its_figures_are():
    best = {"sarissa": rows([1.05, 1.06, 1.07], lower_cpu_share=0.5),
            "openmpi": rows([1.2], "openmpi", commit="def"),
            "dask": rows([3.0], "dask", cpu_share=0.95)}
    assert bench_plot.times("c", best) == [
        "c", "1 s", "**1.060** (1.050 to 1.070)~", "1.200†", "-", "3.000\\*", "abc"]
    best["gloo"] = rows([0.02, 0.01, 0.03], "gloo", cpu_share=None, bound_seconds=0.01)
    assert bench_plot.times("c", best)[4] == "**20.00 ms** (10.00 to 30.00)"
    best["gloo"][0]["cpu_seconds"] = None
    assert bench_plot.costs("c", best) == ["c", "1.50, 100", "0.50, 100", "-", "0.50, 100"]


def what_a_death_costs_is_told_by_itself():
    """As so much later, beside its limit; not among the times, where it would be the lowest of one."""
    case = "reduce/kill-3"
    rows_of_it = {case: {"sarissa": {"": [
        row | {"undisturbed_seconds": 1.05, "later_share": share}
        for row, share in zip(rows([1.6, 1.62, 1.7]), (0.55, 0.57, 0.65))]}}}
    told = ["| `reduce/kill-3` | 1.050 s | 1.620 s | 0.570 (0.550 to 0.650) | 0.6 | abc |"]
    page = "\n".join(bench_plot.page(bench_plot.best_of(rows_of_it), []))
    assert [text for text in page.split("\n") if "1.05" in text] == told, page
    assert "## Time" not in page and "later, S/B" in page, page


def defaults_are_told_by_themselves():
    """Beside ours of the same run; no figure and no other table has them."""
    rows_of_them = {CASE.name + bench_cases.DEFAULT: {
        "sarissa": {"": rows([1.06])}, "openmpi": {"default": rows([7.3], "openmpi", tuning="default")}},
        CASE.name: {"sarissa": {"": rows([1.05])}}}
    page = "\n".join(bench_plot.page(bench_plot.best_of(rows_of_them), []))
    own = page.partition("## As they come")[2].partition("\n## ")[0]
    assert "| `broadcast/32m-on-8-default` | 1 s | **1.060** | 7.300 | - | - | abc |" in own, page
    assert page.count("32m-on-8-default`") == 1 and "1.050" not in own, page


def figures_are_made_of_what_is_kept(directory):
    """Then the next time gives the same bytes, though what is kept is rounded."""
    long = rows([1.05549999996] * 5, rate_mbit=200, stagger_ms=0,
                blocked_mean_seconds=1)  # 1.0555 there: 1.056, not 1.055
    for case in ("broadcast/32m-on-8", "broadcast/32m-on-4"):
        bench_kept.result_path(directory, case).write_text(json.dumps({"rows": long}))
    told = []
    for where in (directory, directory / "none", directory / "none"):
        bench_plot.main(["--results", str(where), "--out", str(directory / "docs")])
        told.append({path.name: path.read_bytes() for path in sorted(directory.glob("docs/**/*.*"))})
    assert told[0] == told[1] == told[2] and {"compare.md", "results.json", "nodes.svg"} <= told[0].keys()
    assert b"1.056" in told[0]["compare.md"], told[0]["compare.md"]


def cases_of_defaults_measure_these():
    """Whatever else is asked for; of who has one way, that."""
    for op, systems in (("broadcast", ["openmpi default", "gloo default", "dask default"]),
                        ("allreduce", ["openmpi default", "gloo default", "dask default"])):
        for tuning in ([], ["--tuning", "hand", "default"]):
            (result,), args = results([f"{op}/1k-on-8-default"], *tuning)
            run = bench_compare.run_of(result.case, args)
            assert [bench_table.name_of(name, tuning) for name, _, tuning in bench_ops.kinds(run)] == [
                "sarissa", *systems], run
    (result,), args = results(["broadcast/1k-on-8"])
    run = bench_compare.run_of(result.case, args)
    assert run.tunings == {"openmpi": ["hand"], "gloo": ["default"], "dask": ["hand"]}, run.tunings


def what_is_missing_is_told_in_short():
    told = bench_plot.in_short(["broadcast/1k-on-4", "broadcast/64k-on-4", "gather/1k-on-4",
                                "gather/64k-on-4", "gather/64m-on-8", "reduce/stagger-0.1-rising",
                                "reduce/stagger-0.1-falling", "reduce/kill-3",
                                "broadcast/32m-on-8-mtu-3498"])
    assert told == ["{broadcast,gather}/{1k,64k}-on-4", "gather/64m-on-8",
                    "reduce/stagger-0.1-{rising,falling}", "reduce/kill-3",
                    "broadcast/32m-on-8-mtu-3498"], told


def results(patterns, *more, kept=None):
    args = bench_compare.parse(["--resume", "--results", "/nowhere", "--kept", "/nowhere", "--only",
                                *patterns, *more])
    return [bench_compare.Result(case, args, kept or {}) for case in args.cases], args


def rows_of_another_machine_are_measured_again(directory):
    """They stand until there are as many of this one; --show tells them as well."""
    here = bench_kept.machine()
    path = bench_kept.result_path(directory, CASE.name)
    path.write_text(json.dumps({"command": f"scripts/bench {CASE.command}", "rows": [
        *rows([1.1, 1.2], machine=here), *rows([1.3] * 5, "gloo", tuning="hand")]}))
    kept = directory / "kept.json"
    bench_kept.write(kept, {CASE.name: rows([1.4] * 5, "openmpi", tuning="hand", machine=here) +
                            rows([1.5] * 5, "dask", tuning="hand")})
    where = ["--results", str(directory)]

    def one(*more):
        (result,), _ = results([CASE.name], *where, *more, kept=bench_kept.read(kept))
        return result

    wanted = {"sarissa": 3, "gloo hand": 5, "openmpi hand": 0, "dask hand": 5}
    assert {name: one().wanted(name) for name in wanted} == wanted
    assert len(one("--show").rows) == 17
    assert one("--since", "2026-02").wanted("openmpi hand") == 5
    for count in range(1, 6):
        one().add(rows([1.0], "gloo", tuning="hand"), "def")
        stand = [row["machine"] for row in json.loads(path.read_text())["rows"]
                 if row["system"] == "gloo"]
        assert stand == ([here] if count == 5 else ["m"]) * 5, (count, stand)
        assert one().wanted("gloo hand") == 5 - count


def a_slice_takes_what_fits():
    """And no more, what is worth most first; of a system that has its rows nothing is started."""
    some, args = results(["broadcast/1k-on-4", "reduce/*-on-16", "broadcast/*-on-8"])
    first, *_, last = bench_compare.groups(some, args)
    assert [result.case.name for result, _ in first] == [
        f"broadcast/{size}-on-8" for size in ("1k", "64k", "1m", "32m")], first
    assert last[0][0].case.name == "broadcast/1k-on-4", last
    long = [bench_expect.start(bench_compare.names_of([run]), 8) +
            bench_expect.case([], run, result.wanted) for result, run in first]
    assert sorted(long) == long and long[0] < long[3] / 1.5, long
    for left, count in ((long[0] - 1, 1), (long[0] + 1, 1), (sum(long), 4), (5, 0)):
        told = bench_compare.chosen(first, left)
        assert len(told) == count, (left, told)
    result, run = first[3]
    result.rows = rows([1.4] * 5) + rows([bench_ops.LONG_S + 1], "gloo", tuning="default")
    assert bench_compare.pruned(result, run)
    assert bench_compare.names_of([run]) == ["openmpi", "dask"], run
    result.rows = [row for name, tuning in (("openmpi", "hand"), ("dask", "hand"))
                   for row in rows([1.0] * 5, name, tuning=tuning)]
    assert not bench_compare.pruned(result, run), "five rows are enough"
    result.rows = rows([1.0] * 3) + rows([1.0, 17.0], other=0.9)
    assert result.wanted("sarissa") == 2, "what was disturbed is measured again"


def what_is_known_tells_how_long():
    (result,), args = results(["broadcast/32m-on-8"])
    run = bench_compare.run_of(result.case, args)

    def turn(known):
        return bench_expect.turn(known, run, "sarissa", "")

    assert 1.4 < turn([]) < 6, turn([])
    assert turn(rows([3.0])) > 3 and turn(rows([3.0], took_seconds=4.5)) == 4.5
    slow = bench_expect.case(rows([7.0]), run, lambda name: 5 * (name == "sarissa"))
    long = bench_ops.LONG_S + 1
    once = bench_expect.case(rows([long]), run, lambda name: 5 * (name == "sarissa"))
    assert slow > 6 * 7 and long < once < 1.5 * long, (slow, once)


def a_reduce_with_kills_is_ours_alone():
    (result,), args = results(["reduce/kill-3"])
    assert bench_compare.names_of([bench_compare.run_of(result.case, args)]) == ["sarissa"]


with tempfile.TemporaryDirectory(prefix="sarissa-test-") as folder:
    for number, test in enumerate((rows_come_back_as_they_were, rows_of_another_command_are_not_read,
                                   rows_of_earlier_formats_are_read,
                                   rows_of_another_machine_are_measured_again,
                                   figures_are_made_of_what_is_kept)):
        own = Path(folder, str(number))
        own.mkdir()
        test(own)
for test in (who_is_measured_again_is_replaced, who_cannot_be_told_apart_is_level,
             a_line_tells_what_its_figures_are, what_a_death_costs_is_told_by_itself,
             defaults_are_told_by_themselves, cases_of_defaults_measure_these,
             what_is_missing_is_told_in_short,
             a_slice_takes_what_fits, what_is_known_tells_how_long,
             a_reduce_with_kills_is_ours_alone):
    test()
