#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The applications of `bench apps` at a tiny scale: every system does the same, and what is wrong
is noticed."""

import json
import socket
import subprocess

import netlib
from lib.bench import apps as bench_apps
from lib.bench.task import built

ROUNDS, NODES = 3, 4


def every_application_runs_over_every_system():
    netlib.need_daemons()
    cases = ["sgd-resnet50", "policy", "a3c", "serving"]
    done = subprocess.run([netlib.ROOT / "scripts/bench", "apps", "--only", *cases, "--nodes",
                           str(NODES), "--scale", "400", "--rounds", str(ROUNDS), "--work-ms", "5",
                           "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, netlib.tail(done.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["case"], row["system"]) for row in rows] == [
        (case, system) for case in cases for system in bench_apps.SYSTEMS], rows
    for row in rows:
        assert len(row["round_seconds"]) == ROUNDS, row
        # a model leaves the server once, or once for each of those that are given it
        assert row["seconds"] > row["bytes"] * 8 / (row["rate_mbit"] * 1e6), row
    assert "x TCP" in done.stderr
    return f"{len(rows)} runs"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def app(rank, size, port, **options):
    argv = [built("app"), "--app", "sgd", "--transport", "tcp", "--ranks", 3, "--rank", rank,
            "--bytes", size, "--rounds", 2, "--port", port]
    return subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, text=True, **options)


def other_bytes_end_the_run():
    """A worker takes part of the model for all of it: its digest is another one."""
    port = free_port()  # others on the machine may use any
    ranks = [app(0, 40000, port), app(1, 40000, port), app(2, 20000, port)]
    errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    assert "model 0 is not what was sent" in errors[2], errors
    assert "a worker has gone" in errors[0] and all(rank.returncode == 1 for rank in ranks[::2])


def wrong_arguments_are_refused():
    for argv in (("--only", "chess"), ("--nodes", "1"), ("--rounds", "0"), ("--scale", "0")):
        done = subprocess.run([netlib.ROOT / "scripts/bench", "apps", *argv], capture_output=True,
                              text=True)
        assert done.returncode == 2 and done.stderr.startswith("bench: "), f"{argv}: {done}"
    done = subprocess.run([built("app"), "--app", "serving", "--transport", "tcp", "--ranks", "2",
                           "--rank", "0", "--bytes", "100", "--rounds", "1"], capture_output=True,
                          text=True)
    assert done.returncode == 1 and "--bytes is too small" in done.stderr, done


netlib.run(every_application_runs_over_every_system, other_bytes_end_the_run,
           wrong_arguments_are_refused)
