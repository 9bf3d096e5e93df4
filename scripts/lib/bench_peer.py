# SPDX-License-Identifier: BSD-3-Clause
"""What the systems that ours is compared with have in common: one rank per node, all of which make
the same call; a program of ours around their library, built when it is asked for."""

import os
import time

from . import network
from .shell import ROOT, Failure, build_dir, run, say, succeeds

START_S = 60.0


def install(packages):
    say(f"bench: installing {' '.join(packages)}, for the comparison only")
    run("apt-get", "-q", "update")
    for package in packages:
        if not succeeds("apt-cache", "show", package):
            raise Failure(f"this system has no package {package}: leave it out (--system)")
    run("apt-get", "-q", "-y", "install", "--no-install-recommends", *packages,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, timeout=600)


def program(source, *compiler, libraries):
    """Of a source in bench/, built when it is missing or old."""
    out = build_dir() / "bench" / source.partition(".")[0]
    sources = [ROOT / "bench" / name for name in (source, "payload.h", "gradient.h")]
    if not out.exists() or out.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        run(*compiler, "-o", out, sources[0], *libraries)
    return out


def offloads_on(config):
    """TCP in segments of up to 64 KiB between the nodes: far less CPU per byte."""
    for node in range(config["nodes"]):
        run("ip", "netns", "exec", network.node_netns(config["name"], node), "ethtool", "-K",
            "eth0", "tx", "on", "tso", "on", "gso", "on", "gro", "on")


class Peer:
    """Who derives has system, prepare(op, size), which sets op, verify() and trouble()."""

    def __init__(self, config, tuning):
        self.config, self.tuning = config, tuning
        self.count = config["nodes"]
        self.tasks, self.directory = [], None

    def ready(self, staggered):
        pass

    def begin(self, start_ns, arrivals_ns):
        for rank, task in enumerate(self.tasks):
            task.send(self.op, start_ns + arrivals_ns[rank])

    def put_seconds(self):
        return {}

    def finish(self, patience_s):
        until = time.monotonic() + patience_s
        return {rank: task.answer(until)["spans"] for rank, task in enumerate(self.tasks)}
