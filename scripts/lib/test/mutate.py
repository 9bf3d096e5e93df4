# SPDX-License-Identifier: BSD-3-Clause
"""Changes to a copy of the cores, each of which some test should notice (scripts/mutate)."""

import contextlib
import fnmatch
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lib import options, shell
from lib.shell import ROOT, Failure, say

sys.path.insert(0, str(ROOT / "tests/lint"))
from rules import without_comments  # noqa: E402
from tree import tracked_files  # noqa: E402

CORES = {"control/core/": ("base_", "cluster_", "directory_", "group_", "lease_", "planner_", "reduce_", "rpc_",
                           "session_", "store_", "transfer_"),
         "dataplane/core/": ("dataplane_core_", "dataplane_kernel_")}  # and how its unit tests begin
SIMULATED = re.compile(r"sim-(loss|life|plan|forged|hostile|broadcast|repair|swarm(?!-wide)|reduce)")
RUNS_MOST = 5   # of a swarm
LIMIT_S = 60    # of CPU time for a test, and WALL_S of any: a change may make it go on for ever
WALL_S = 300
LIMIT_BYTES = 8 << 30
SKIPPED = 77
END_S = 10      # until what was killed is gone
CHANGES = [(re.compile(what), [*becomes]) for what, *becomes in (
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
    (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "),
    (r" \+= ", " -= "), (r" -= ", " += "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<=[( ])!(?=\w)", ""), (r"\bcontinue;", "break;"),
    # a statement that fills its line: a call, an assignment, the end of a function without a value
    (r"(?<=\t)(?:[a-z]\w*\(.*\)|\*?[a-z][\w.>\[\]-]* [-+|&^]?= .*|[a-z][\w.>\[\]-]*(?:\+\+|--)|return);$",
     ";"))]
NUMBER = re.compile(r"(?<=[ (\[])\d+(?=[;,)\] ])")
PASSED_OVER = re.compile(r"^\s*#|assert|^\S|^$")  # and what is no statement
MARK = "MUTANT-OK: "  # in a comment of the line: why it makes no odds that no test sees


def places(text):
    """(number of the line, from, to, instead) of all that can be changed."""
    whole = text.split("\n")
    for number, line in enumerate(without_comments(whole)):
        line = line.rstrip()
        if PASSED_OVER.search(line) or MARK in whole[number]:
            continue
        for what, becomes in CHANGES:
            for found in what.finditer(line):
                yield from ((number, *found.span(), other) for other in becomes)
        for found in NUMBER.finditer(line):
            yield number, *found.span(), str(int(found[0]) + 1)


def changed(text, number, begin, end, instead):
    """The text with the change, and the line, beside what it was where nothing else is left."""
    lines = text.split("\n")
    was = lines[number]
    lines[number] = was[:begin] + instead + was[end:]
    line = lines[number].strip()
    return "\n".join(lines), f"without {was.strip()}" if line == ";" else line


def copy(source, names, folder):
    """Only what differs is written: its time is the present, so that it is built again, as when the last
    run was ended in the middle of a change."""
    for name in names:
        target, content = folder / name, (source / name).read_bytes()
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod((source / name).stat().st_mode)
    for gone in (path for core in CORES for path in (folder / core).rglob("*.[ch]")):
        if str(gone.relative_to(folder)) not in names:
            gone.unlink()


def fewer(command):
    if "--runs" in command:
        at = command.index("--runs") + 1
        command = [*command[:at], str(min(RUNS_MOST, int(command[at]))), *command[at + 1:]]
    return command


def tests_of(build, pattern):
    """By core: (name, command, what must be built) of the tests so named, the unit tests first."""
    def told(what):
        return json.loads(shell.run("meson", "introspect", what, build))

    files = {one["id"]: [os.path.relpath(name, build) for name in one["filename"]]
             for one in told("--targets")}
    every, out = told("--tests"), {}
    for core, prefixes in CORES.items():
        chosen = [one for one in every if one["name"].startswith(prefixes) and
                  "sarissa:unit" in one["suite"]]
        chosen += [one for one in every if SIMULATED.match(one["name"])]
        out[core] = [(one["name"], fewer(one["cmd"]),
                      [name for part in one["depends"] for name in files[part]])
                     for one in chosen if fnmatch.fnmatch(one["name"], pattern)]
    return out


def end_group(child):
    until = time.monotonic() + END_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(child.pid, signal.SIGKILL)
            child.poll()
            time.sleep(0.01)


def done(command, seconds=None, **how):
    """Its status and output, or None when it took too long. Whatever ends it, or us, nothing is left of what
    it has started: that would write into the folder while it is being removed."""
    child = subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                         "stderr": subprocess.STDOUT, "start_new_session": True} | how)
    try:
        said = child.communicate(timeout=seconds)[0]
        return child.returncode, (said or b"").decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_group(child)


def builds(build, tests):
    names = sorted({name for _, _, needed in tests for name in needed})
    return done(["ninja", "-C", build, *names])[0] == 0


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def passes(command):
    """A test that sleeps for ever has noticed, too. What it prints is not kept: it may do so for ever."""
    ended = done(command, WALL_S, preexec_fn=limit, stdout=subprocess.DEVNULL)
    return ended is not None and ended[0] in (0, SKIPPED)


def first_failure(tests):
    """The first test that notices, or None."""
    return next((name for name, command, _ in tests if not passes(command)), None)


def try_one(folder, name, place, tests):
    """The verdict on a change, with the line and the tests that noticed it. Restores the copy."""
    build, was = folder / "build", (folder / name).read_text()
    text, line = changed(was, *place)
    (folder / name).write_text(text)
    try:
        if not builds(build, tests):
            return "not built", line, None
        by = first_failure(tests)
        return "noticed" if by else "NOT NOTICED", line, by
    finally:
        (folder / name).write_text(was)


def core_of(name):
    return next((core for core in CORES if name.startswith(core) and name.endswith(".c")), None)


def prepare(cores, folder, pattern):
    """The tests of those cores, built."""
    build = folder / "build"
    if not (build / "build.ninja").exists():
        say("mutate: configuring")
        status, said = done(["meson", "setup", build, folder, "-Dwerror=false", "-Doptimization=1"])
        if status:
            raise Failure(f"the copy is not configured: {said.strip()}")
    say("mutate: building")
    done(["ninja", "-C", build, "build.ninja"])  # of a copy that was kept: there may be other tests by now
    tests = {core: of for core, of in tests_of(build, pattern).items() if core in cores}
    if not all(tests.values()):
        raise Failure(f"--tests {pattern} names no test of that core: it is like 'planner_*'", 2)
    if not builds(build, sum(tests.values(), [])):
        raise Failure(f"the copy does not build: see ninja -C {build}")
    for name in filter(None, map(first_failure, tests.values())):
        raise Failure(f"{name} fails without any change here: run scripts/test unit sim")
    return tests


def places_of(pattern):
    """(file, place) of all that can be changed in the files of that pattern."""
    every = [(name, place) for name in tracked_files()
             if core_of(name) and fnmatch.fnmatch(name, pattern)
             for place in places((ROOT / name).read_text())]
    if not every:
        raise Failure(f"--only {pattern} names no source of a core: it is like "
                      "'control/core/transfer/*'", 2)
    return every


def run(args, folder):
    copy(ROOT, tracked_files(), folder)
    drawn = random.Random(args.seed).sample(args.every, min(args.count, len(args.every)))
    tests = prepare({core_of(name) for name, _ in drawn}, folder, args.tests)
    count = {"noticed": 0, "not built": 0, "NOT NOTICED": 0}
    until = time.monotonic() + args.seconds
    for name, place in drawn:
        began = time.monotonic()
        if began >= until:
            break
        verdict, line, by = try_one(folder, name, place, tests[core_of(name)])
        count[verdict] += 1
        print(f"{verdict:<12}{name}:{place[0] + 1}: {line}" + (f"   [{by}]" if by else "") +
              f" ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(args.every)} places; " + ", ".join(f"{n} {what}" for what, n in count.items()))
    return count["NOT NOTICED"] > 0


def end_once(*_):
    """Told to end again, the copy is still removed."""
    for number in shell.ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(text):
    parser = options.Parser(prog="mutate", description=text)
    parser.add_argument("--seed", type=options.whole(0), default=1, metavar="N")
    parser.add_argument("--count", type=options.COUNT, default=20, metavar="N", help="changes to try (default: 20)")
    parser.add_argument("--seconds", type=options.SECONDS, default=float("inf"), metavar="S",
                        help="after the first build: begin no change later")
    parser.add_argument("--only", default="*", metavar="PATTERN",
                        help="of the files' names, such as 'control/core/transfer/*'")
    parser.add_argument("--tests", default="*", metavar="PATTERN", help="of the tests' names, such as 'planner_*'")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="for the copy and its build")
    args = parser.parse_args()
    args.every = places_of(args.only)
    for number in shell.ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_once)
    if args.keep:
        if (args.keep / ".git").exists() or args.keep.resolve() in (ROOT, *ROOT.parents):
            raise Failure(f"--keep {args.keep} is no place for a copy: name a folder of its own", 2)
        options.check_folder("--keep", args.keep)
        args.keep.mkdir(parents=True, exist_ok=True)
        return run(args, args.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="sarissa-mutate-") as folder:
        return run(args, Path(folder))
