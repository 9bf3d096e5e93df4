#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wrong use of each of scripts/ is told in one line, which says what to do, with exit 2, and before
anything has begun: no process, no folder. Without root, which comes after that."""

import contextlib
import io
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from lib import options, shell  # noqa: E402
from lib.bench import ops  # noqa: E402
from lib.cluster import state  # noqa: E402

OPS = ("broadcast", "gather", "p2p", "reduce", "allreduce")
WHOLE = ("0", "-1", "1.5", "nan", "inf", "1e3", "", "x", "9" * 30)
REAL = ("-1", "nan", "inf", "-inf", "", "x", "1e30", "1_0x")
ABOVE_0 = (*REAL, "0")
BEGINS = {"os.execv": AssertionError("executed"), "os.execvpe": AssertionError("executed"),
          "pathlib.Path.mkdir": AssertionError("a folder is made")}


def only_git(argv, *_, **__):
    """The lists of files may be asked for."""
    if argv[0] != "git":
        raise AssertionError(f"{argv} is started")


def called(*argv, root=False):
    """Exit status, and what is said on stderr; as a user who may not do much."""
    path = ROOT / "scripts" / argv[0]
    if path.read_bytes().startswith(b"#!/bin/sh"):
        path = next((ROOT / "scripts/lib").rglob(f"{argv[0]}.py"))
    told, begin = [], subprocess.Popen.__init__
    handlers = [signal.getsignal(number) for number in shell.ENDS]

    def start(self, args, *rest, **how):
        only_git(args)
        begin(self, args, *rest, **how)

    with contextlib.ExitStack() as stack:
        for name, fails in BEGINS.items():
            stack.enter_context(mock.patch(name, side_effect=fails))
        for patch in (mock.patch.object(subprocess.Popen, "__init__", start),
                      mock.patch.object(shell, "tell", told.append),
                      mock.patch.object(shell, "end_children", lambda: None),
                      mock.patch.object(os, "geteuid", lambda: 0 if root else 1000),
                      mock.patch.object(sys, "argv", [str(path), *map(str, argv[1:])]),
                      contextlib.redirect_stdout(io.StringIO()),
                      contextlib.redirect_stderr(io.StringIO())):
            stack.enter_context(patch)
        try:
            runpy.run_path(str(path), run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            for number, handler in zip(shell.ENDS, handlers):
                signal.signal(number, handler)
        return code, "".join(f"{one}\n" for one in told) + sys.stderr.getvalue()


def refused(*argv, words=(), root=False):
    code, said = called(*argv, root=root)
    assert code == 2, f"{argv}: exit {code}: {said}"
    assert said.count("\n") == 1 and said.startswith(f"{argv[0]}: "), f"{argv}: {said}"
    assert said.count(": ") > 1, f"{argv}: nothing says what to do: {said}"
    for word in words:
        assert word in said, f"{argv}: {said}"


def each(values, *argv):
    for value in values:
        refused(*argv[:-1], f"{argv[-1]}={value}", words=(argv[-1], value[:20]))


def flags_that_are_not_there():
    commands = [("demo",), ("test",), ("mutate",), ("cluster", "up", "2"),
                ("cluster", "status"), ("cluster", "down"), ("cluster", "exec", "0"),
                *(("bench", verb) for verb in ("transfer", "dataplane", "lookup", "put", "recovery",
                                               "apps", "compare", "report", *OPS))]
    for command in commands:
        refused(*command, "--no-such-flag", words=("--no-such-flag", "--help"))
        code, said = called(*command, "--help")
        assert code == 0 and not said, (command, said)
    for command in (("demo",), ("mutate",), ("bench", "put"), ("bench", "transfer")):
        refused(*command, "word", words=("word",))
    for command in (("demo", "--rate"), ("test", "--seed"), ("mutate", "--keep"),
                    ("bench", "compare", "--only"), ("bench", "recovery", "--rows"),
                    ("cluster", "up", "2", "--mtu")):
        refused(*command, words=("expected",))


def numbers():
    each(ABOVE_0, "demo", "--rate")
    each(("0.001", "10000000"), "demo", "--rate")
    for name in ("--nodes", "--mib"):
        each((*WHOLE, "1000000000"), "demo", name)
    refused("demo", "--nodes", "1")
    each(WHOLE[:-1], "test", "--fuzz-seconds")
    each(ABOVE_0[:6], "test", "--seconds")
    each(WHOLE[1:], "test", "--seed")
    each(ABOVE_0[:6], "test", "--soak-seconds")
    each(WHOLE, "mutate", "--count")
    each(ABOVE_0[:6], "mutate", "--seconds")
    for verb in OPS:
        for name in ("--size", "--repeat", "--mtu", "--workers", "--nodes"):
            each(WHOLE, "bench", verb, name)
        each(REAL, "bench", verb, "--rate")
        each((*REAL, "nanT", "infT"), "bench", verb, "--stagger")
        refused("bench", verb, "--mtu", "3499")
    for verb, counts, reals in (
            ("transfer", ("--size", "--unshaped-size", "--repeat", "--mtu"), ("--rate",)),
            ("recovery", ("--mib", "--repeat"), ("--rate",)),
            ("lookup", ("--count", "--repeat", "--busy-us"), ()), ("put", ("--repeat",), ()),
            ("apps", ("--nodes", "--mtu", "--rounds", "--repeat"), ("--scale",)),
            ("dataplane", ("--mtu", "--mib", "--workers"), ()), ("compare", ("--repeat",), ())):
        for name in counts:
            each(WHOLE, "bench", verb, name)
        for name in reals:
            each((*ABOVE_0[:6], "0"), "bench", verb, name)
    each(REAL, "bench", "apps", "--rate")
    each(REAL, "bench", "apps", "--work-ms")
    for verb, name in (("dataplane", "--seconds"), ("dataplane", "--patience"),
                       ("compare", "--seconds")):
        each(ABOVE_0[:6], "bench", verb, name)


def clusters():
    for count in (*WHOLE, "201"):
        refused("cluster", "up", count)
    for name in ("--mtu", "--store", "--workers"):
        each(WHOLE, "cluster", "up", "2", name)
    each(WHOLE[:-1], "cluster", "up", "2", "--owner")
    for name in ("--seeds", "--spare"):
        each(WHOLE[1:8], "cluster", "up", "2", name)
    each((*REAL, "0.001"), "cluster", "up", "2", "--rate")
    for argv in (("--mtu", "9000"), ("--seeds", "3"), ("--spare", "199"), ("--shards", "2"),
                 ("--shards", "0,x"), ("--name", "No Name"), ("--name", "../x"), ("--name", ""),
                 ("--vdev", "pci")):
        refused("cluster", "up", "2", *argv, root=True)
    with mock.patch.object(state, "load", lambda name: {"name": name, "nodes": 2, "bare": True}):
        for argv in (("fault", "²"), ("fault", "2"), ("fault", "x"), ("fault", "all", "--loss", "101"),
                     ("fault", "all", "--loss", "nan"), ("fault", "all", "--loss", "-1"),
                     ("link", "0", "off"), ("link", "5", "up"), ("kill", "0", "dataplane", "²"),
                     ("kill", "0", "dataplane", "_DFL"), ("kill", "0", "all"), ("kill", "7", "node"),
                     ("start", "2"), ("exec", "2", "--", "true"), ("exec", "0"), ("down", "--", "x"),
                     (), ("nothing",)):
            refused("cluster", *argv, root=True)


def names():
    for argv in (("test", "nothing"), ("test", "unit", "--seeds", "1-2"), ("test", "--scenario", "x"),
                 ("test", "sim", "--seeds", "2-1"), ("test", "sim", "--seeds", "1"),
                 ("test", "sim", "--seeds", "1-99999999999"), ("test", "sim", "--seeds", "x-y"),
                 ("test", "sim", "--seeds", "1-2", "--scenario", "nothing"),
                 ("mutate", "--only", "nothing*"), ("bench",), ("bench", "nothing"),
                 ("bench", "compare", "--only", "nothing/*"), ("bench", "apps", "--only", "nothing"),
                 ("bench", "compare", "--only", "broadcast/1k-on-4", "nothing"),
                 ("bench", "apps", "--only", "policy", "nothing"),
                 ("bench", "compare", "--since", "yesterday"), ("bench", "compare", "--since", "2026-1-1"),
                 ("bench", "compare", "--system", "horovod"),
                 ("bench", "recovery", "--op", "nothing"), ("bench", "recovery", "--fault", "none?"),
                 ("bench", "recovery", "--table"), ("bench", "dataplane", "--device", "nothing")):
        refused(*argv)


def places(folder):
    """That are not there, or are something else; what cannot be written into is found out by writing."""
    file, none = folder / "file", folder / "none"
    file.write_text("no rows\n")
    for argv, words in (
            (("bench", "recovery", "--rows", none / "rows"), ("No such file",)),
            (("bench", "recovery", "--rows", file), ("something else than rows",)),
            (("bench", "recovery", "--rows", folder), ("something else than rows",)),
            (("bench", "recovery", "--rows", "/proc/rows"), ("cannot be written",)),
            (("bench", "recovery", "--table", "--rows", none), ("--rows",)),
            (("bench", "compare", "--results", file), ("Not a directory",)),
            (("bench", "compare", "--results", file / "deeper"), ("Not a directory",)),
            (("bench", "compare", "--results", "/proc/results"), ("cannot be written",)),
            (("bench", "report", "--root", file), ("Not a directory",)),
            (("bench", "report", "--root", "/proc/docs"), ("cannot be written",)),
            (("mutate", "--keep", file), ("Not a directory",)),
            (("mutate", "--keep", "/proc/copy"), ("cannot be written",)),
            (("mutate", "--keep", ROOT), ("folder of its own",))):
        refused(*argv, words=words, root=True)


def more_than_there_is():
    with mock.patch.object(options, "memory_free", lambda: 8 << 30), \
            mock.patch.object(options, "huge_free", lambda: 0), \
            mock.patch.object(ops, "memory_free", lambda: 8 << 30):
        for argv in (("demo", "--mib", "1000"), ("bench", "transfer", "--size", 3 << 30),
                     ("bench", "broadcast", "--size", 3 << 30), ("bench", "recovery", "--mib", "300"),
                     ("bench", "apps", "--scale", "0.01")):
            refused(*argv, words=("memory",), root=True)


def no_root():
    for argv in (("demo",), ("cluster", "up", "2"), ("cluster", "status"), ("bench", "transfer"),
                 ("bench", "lookup"), ("bench", "put"), ("bench", "recovery"), ("bench", "apps"),
                 ("bench", "compare"), ("bench", "dataplane"), *(("bench", op) for op in OPS)):
        code, said = called(*argv)
        assert code == 1 and said.count("\n") == 1 and "needs root" in said and "sudo" in said, \
            (argv, code, said)


def setup():
    """A shell script: what it is given is looked at before the packages."""
    for argv, env in ((["--no-such-flag"], {}), (["word"], {}), ([""], {}),
                      ([], {"SARISSA_HUGE_PAGES": "-1"}), ([], {"SARISSA_HUGE_PAGES": "many"}),
                      ([], {"SARISSA_HUGE_PAGES": "9" * 30})):
        done = subprocess.run([ROOT / "scripts/setup", *argv], capture_output=True, text=True,
                              env={**os.environ, **env})
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (argv, env, done)
        assert done.stderr.startswith("setup: ") and not done.stdout, done


def main():
    flags_that_are_not_there()
    numbers()
    clusters()
    names()
    with tempfile.TemporaryDirectory(prefix="sarissa-test-") as folder:
        places(Path(folder))
    more_than_there_is()
    no_root()
    setup()


main()
