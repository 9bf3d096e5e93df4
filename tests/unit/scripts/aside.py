#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test runs suites that compute beside others: at an idle priority until it waits for them, and
nothing of them stays."""

import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.cluster import process  # noqa: E402
from lib.test import aside  # noqa: E402

STAND_IN = """if True:
    import json, subprocess, sys, time
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)  # as meson starts tests
    at = open("/proc/self/cgroup").read()
    if sys.argv[1] == "ends":
        open(sys.argv[-1], "w").write(json.dumps([["sim", "s", "OK", 1.5, at]]))
    elif sys.argv[1] == "stays":
        print(child.pid, file=open(sys.argv[-1], "w"))
        time.sleep(600)"""
PATIENCE_S = 120


def stand_in(what):
    return aside.Aside([sys.executable, "-c", STAND_IN, what])


def results_come_from_an_idle_group():
    with stand_in("ends") as others:
        if not others.runs():
            return "no group can be made"
        group = others.group
        if group:
            assert (group / "cpu.idle").read_text() == "1\n"
        ((suite, name, result, seconds, text),) = others.results()
        assert (suite, name, result, seconds) == ("sim", "s", "OK", 1.5)
        if group:
            assert group.name in text, text
            assert (group / "cpu.idle").read_text() == "0\n", "who is waited for is idle still"
    assert not group or not group.exists()


def who_says_nothing_has_failed():
    with stand_in("breaks") as others:
        if not others.runs():
            return "no group can be made"
        ((_, _, result, _, text),) = others.results()
        assert result == "FAIL" and "no results" in text, text


def an_interrupt_ends_it():
    try:
        with stand_in("stays") as others:
            if not others.runs():
                return "no group can be made"
            group, child, until = others.group, others.child, time.monotonic() + PATIENCE_S
            if group:
                (group / "cpu.idle").write_text("0")  # on a busy machine it would not begin for long
            while not (told := Path(others.file.name).read_text()).endswith("\n"):
                assert time.monotonic() < until, "it does not begin"
                time.sleep(0.01)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert process.stat_fields(child.pid) is None, "it still runs"
    if group:
        assert not group.exists() and (process.stat_fields(int(told)) or "Z")[0] == "Z", "what it has started runs"


def who_is_not_let_in_runs_in_turn():
    others = stand_in("ends")
    others.become_idle = lambda: Path("/proc/self/comm/none").read_text()
    with others:
        assert not others.runs()
    assert not others.group or not others.group.exists()


for case in (results_come_from_an_idle_group, who_says_nothing_has_failed, an_interrupt_ends_it,
             who_is_not_let_in_runs_in_turn):
    why = case()
    print(f"skip {case.__name__}: {why}" if why else f"ok   {case.__name__}")
