#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Objects that the store has no room for go to a folder of files, and come back."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import netlib
from lib.cluster import nodes, process
from netlib import Cluster

MIB = 1 << 20
STORE_MIB, OBJECT_MIB = 64, 4
COUNT = 2 * STORE_MIB // OBJECT_MIB  # twice the store


def another_control(cluster, *options):
    process.end(cluster.pid(0, "control"))
    nodes.start(cluster.config, 0, "control", *options)
    netlib.wait_for(lambda: nodes.answers(cluster.config, 0), netlib.PATIENCE_S, "another control answers")


def values(cluster):
    lines = cluster.must(0, "sarissa", "status", "--counters", "--json").splitlines()
    return next(json.loads(line) for line in lines if '"control": {' in line)["control"]


def until(cluster, condition, what):
    """The values are written about once a second."""
    netlib.wait_for(lambda: condition(values(cluster)), netlib.PATIENCE_S, what)
    return values(cluster)


@contextlib.contextmanager
def small_disk(directory, mib):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def put(cluster, file, i):
    return cluster.run(0, "sarissa", "put", f"o{i}", file(i))


def files_in(directory):
    """The same byte order of magnitude for all, other bytes in each."""
    def one(i):
        path = directory / f"in{i % 2}"
        path.write_bytes(os.urandom(64).hex().encode()[:64] * (OBJECT_MIB * MIB // 64 - 1) + b"%064d" % i)
        return path
    return one


def right(path, i):
    data = path.read_bytes()
    assert len(data) == OBJECT_MIB * MIB and int(data[-64:]) == i, f"o{i} has other bytes"


def twice_the_store():
    with Cluster(2, "--store", STORE_MIB) as cluster, netlib.scratch() as directory, \
            tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
        folder = Path(disk)
        another_control(cluster, "--spill", folder)
        file, out = files_in(directory), directory / "out"
        begin = time.monotonic()
        for i in range(COUNT):
            done = put(cluster, file, i)
            assert done.returncode == 0, done.stderr
        put_s = time.monotonic() - begin
        def is_told():
            told = cluster.must(0, "sarissa", "status")
            return f" {len(list(folder.glob('*.spill')))} objects in files" in told

        netlib.wait_for(is_told, netlib.PATIENCE_S, "the files are counted")
        counted = values(cluster)
        assert counted["spill_objects"] >= COUNT // 2 and counted["spill_errors"] == 0, counted
        begin = time.monotonic()
        for i in range(COUNT):
            cluster.must(i % 2, "sarissa", "get", f"o{i}", out, "--timeout", 30)
            right(out, i)
        get_s = time.monotonic() - begin
        # what another control finds, it gives as well
        files = {path.name for path in folder.glob("*.spill")}
        (folder / f"{'0' * 32}-{'0' * 16}.spill").write_bytes(b"nobody's")
        another_control(cluster, "--spill", folder)
        assert {path.name for path in folder.glob("*.spill")} == files != set()
        for i in (0, COUNT - 1):
            cluster.must(0, "sarissa", "get", f"o{i}", out, "--timeout", 30)
            right(out, i)
        cluster.must(0, "sarissa", "rm", "--prefix", "o")
        netlib.wait_for(lambda: not list(folder.glob("*.spill")), netlib.PATIENCE_S, "the files are gone")
        cluster.check_daemons()
    return f"{COUNT * OBJECT_MIB} MiB through a store of {STORE_MIB} MiB: put {COUNT * OBJECT_MIB / put_s:.0f} " \
           f"MiB/s, got {COUNT * OBJECT_MIB / get_s:.0f} MiB/s"


def a_disk_that_fails_is_named():
    with Cluster(1, "--store", STORE_MIB) as cluster, netlib.scratch() as directory:
        folder = directory / "disk"
        folder.mkdir()
        file, out = files_in(directory), directory / "out"
        with small_disk(folder, 16):
            another_control(cluster, "--spill", folder)
            kept = 0
            while (done := put(cluster, file, kept)).returncode == 0:
                kept += 1
            assert "store full" in done.stderr, done.stderr
            assert STORE_MIB // OBJECT_MIB < kept < COUNT, kept
            until(cluster, lambda v: v["spill_errors"] > 0, "the error is counted")
            log = nodes.log_tail(cluster.config, 0, "control")
            assert "cannot be spilled" in log, log
            # both are full: one object less, and the others can change places
            kept -= 1
            cluster.must(0, "sarissa", "rm", f"o{kept}")
            for i in range(kept):  # for a second after the error nothing is written
                netlib.wait_for(lambda i=i: cluster.run(0, "sarissa", "get", f"o{i}", out).returncode == 0,
                                netlib.PATIENCE_S, f"o{i} comes back")
                right(out, i)
            # one file is damaged: that object is lost, by name, and no other
            spilled = sorted(folder.glob("*.spill"))
            with open(spilled[0], "r+b") as f:
                f.seek(MIB)
                f.write(b"x" * 4096)
            failed = [done.stderr for i in range(kept) if
                      (done := cluster.run(0, "sarissa", "get", f"o{i}", out, "--timeout", 20)).returncode]
            assert len(failed) == 1 and "damaged" in failed[0], failed
        refused = cluster.run(0, nodes.binary("control"), "--nodes", "10.0.0.1", "--rundir", directory,
                              "--spill", directory / "none")
        assert refused.returncode and "cannot be opened" in refused.stderr, refused.stderr
        cluster.check_daemons()


def a_user_has_his_share():
    with Cluster(1, "--store", STORE_MIB) as cluster, netlib.scratch() as directory:
        another_control(cluster, "--quota", 2 * OBJECT_MIB * MIB, "--quota", f"{os.getuid()}={OBJECT_MIB * MIB}")
        file = files_in(directory)
        assert put(cluster, file, 0).returncode == 0
        refused = put(cluster, file, 1)
        assert refused.returncode == 1 and f"user {os.getuid()} has" in refused.stderr, refused.stderr
        cluster.must(0, "sarissa", "rm", "o0")
        assert put(cluster, file, 1).returncode == 0
        wrong = cluster.run(0, nodes.binary("control"), "--nodes", "10.0.0.1", "--quota", "me=1")
        assert wrong.returncode and "not BYTES" in wrong.stderr, wrong.stderr


netlib.run(twice_the_store, a_disk_that_fails_is_named, a_user_has_his_share)
