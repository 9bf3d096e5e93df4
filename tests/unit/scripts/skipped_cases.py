#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test finds each skipped case with its reason, and fails when the case is not in the list."""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.test import skips  # noqa: E402
from lib.test import test as runner  # noqa: E402

C_TEST = """[==========] Running 2 test(s).
[ RUN      ] local_get_makes_no_system_call
skip local_get_makes_no_system_call: no seccomp here
[  SKIPPED ] local_get_makes_no_system_call
[ RUN      ] it_works
[       OK ] it_works
[==========] 2 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] local_get_makes_no_system_call
"""
NET_TEST = """ok   it works (0.1 s): median 1 ms
skip it needs more: no FUSE: none at all
"""


def ended(*results, patterns=()):
    """Exit status and last lines of a run with these results."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        score = runner.Score()
        for result in results:
            score.add(*result)
        score_lines = len(told.getvalue().splitlines())
        status = score.end(patterns)
    return status, told.getvalue().splitlines()[score_lines:]


def skipped_cases_of_tests_that_passed_are_counted():
    c_test, net_test = ("unit", "objects", "OK", 0.1, C_TEST), ("net", "closing", "OK", 0.1, NET_TEST)
    skipped = ["skipped unit/objects/local_get_makes_no_system_call: no seccomp here",
               "skipped net/closing/it needs more: no FUSE: none at all"]
    counts = "2 passed, 0 failed, 2 skipped"
    listed = ["net/closing/it needs more", "unit/objects/local_get*"]
    assert ended(c_test, net_test, patterns=listed) == (0, [*skipped, counts])
    status, lines = ended(c_test, net_test, patterns=listed[:1])
    assert status == 1 and lines[:2] == skipped and lines[3:] == [counts], lines
    assert lines[2].startswith("FAIL unit/objects/local_get_makes_no_system_call "), lines


def a_case_that_ran_in_another_build_is_not_skipped():
    ran = "[ RUN      ] local_get_makes_no_system_call\n[       OK ] local_get_makes_no_system_call\n"
    skipped = ("unit", "objects", "OK", 0.1, C_TEST)
    assert ended(skipped, ("plain", "objects", "OK", 0.1, ran)) == (0, ["2 passed, 0 failed, 0 skipped"])
    status, lines = ended(skipped, ("plain", "others", "OK", 0.1, ran))
    assert status == 1 and lines[-1] == "2 passed, 0 failed, 1 skipped", lines


def a_test_that_is_skipped_whole_counts_once():
    whole = ("count", "counts", "SKIP", 0.1, "skip: no valgrind here\n")
    assert ended(whole, patterns=["count/counts"]) == \
        (0, ["skipped count/counts: no valgrind here", "0 passed, 0 failed, 1 skipped"])
    assert ended(("lint", "units", "SKIP", 0, ""))[1][0] == "skipped lint/units: it does not say why"
    status, lines = ended(("net", "closing", "SKIP", 0.1, "skip a: no root\nskip b: no root\n"))
    assert status == 1 and lines[-1] == "0 passed, 0 failed, 2 skipped", lines


def a_failure_is_one_without_skips():
    with contextlib.redirect_stdout(io.StringIO()):
        score = runner.Score()
        score.add("unit", "x", "FAIL", 0.1, "why")
        assert score.end([]) == 1


def the_list_gives_reasons():
    assert skips.allowed(), "tests/skips has no line"
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("# a comment\n\nnet/x/y: why\nnet/x/z\n")
        file.flush()
        try:
            skips.allowed(Path(file.name))
        except runner.Failure as failure:
            assert ":4: " in str(failure), failure
        else:
            raise AssertionError("a pattern without a reason is taken")


for case in (skipped_cases_of_tests_that_passed_are_counted,
             a_case_that_ran_in_another_build_is_not_skipped, a_test_that_is_skipped_whole_counts_once,
             a_failure_is_one_without_skips, the_list_gives_reasons):
    case()
    print(f"ok   {case.__name__}")
