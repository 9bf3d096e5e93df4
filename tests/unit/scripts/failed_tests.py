#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test tells, of a failed test, the lines that say why, wherever they are in its output."""

import contextlib
import io
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.cluster import failure  # noqa: E402
from lib.test import test as runner  # noqa: E402

PASSES = [f"[       OK ] errors_of_{i}_are_FAILED_quietly" for i in range(200)]
WHY = ["[ RUN      ] breaks", "[  ERROR   ] --- 0x1 != 0x2", "[   LINE   ] --- a.c:5: error: Failure!",
       "[  FAILED  ] breaks"]


def told_of(text):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        score = runner.Score()
        score.add("plain", "cli_commands", "FAIL", 1.0, text)
        at_once = told.getvalue()
        assert score.end(()) == 1
    return at_once, told.getvalue()[len(at_once):]


def lines_that_say_why_are_told_twice():
    """In the middle of much else, at the end, and where standard error follows standard output."""
    for text in (PASSES + WHY + PASSES, PASSES + PASSES + WHY, WHY + PASSES):
        at_once, end = told_of("\n".join(text))
        assert all(line in at_once for line in WHY), at_once
        assert all(line in end for line in WHY[1:]), end
        assert "FAIL plain/cli_commands\n" in end and "errors_of" not in end, end
        assert len(at_once.splitlines()) < 100, at_once
        assert text[-1] in at_once, at_once


def tests_of_python_and_of_the_network():
    for why in ("E   AssertionError: [1, 0]", "FAIL a node comes back: node 1: exit 3",
                "==7==ERROR: AddressSanitizer: heap-use-after-free", "a.c:5: runtime error: overflow",
                "sarissa.Error: [Errno 111] no control"):
        at_once, end = told_of("\n".join([*PASSES, why, *PASSES]))
        assert why in at_once and why in end, (why, at_once, end)


def much_of_it_is_cut():
    at_once, end = told_of("\n".join(f"error: number {i} " + "x" * 10000 for i in range(5000)))
    assert len(at_once) < 100_000 and len(end) < 10_000, (len(at_once), len(end))
    assert "number 4999" in at_once and "number 0 " in at_once and "number 0 " in end, end


def nothing_said():
    for text in ("", "quiet"):
        at_once, end = told_of(text)
        assert at_once.startswith("FAIL plain/cli_commands") and text in at_once, at_once
        assert text in end and "1 failed" in end, end


for check in (lines_that_say_why_are_told_twice, tests_of_python_and_of_the_network, much_of_it_is_cut, nothing_said):
    check()
    print(f"ok   {check.__name__}")
assert failure.summary("[ RUN      ] x\n") == ["[ RUN      ] x"]
