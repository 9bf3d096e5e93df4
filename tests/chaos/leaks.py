# SPDX-License-Identifier: BSD-3-Clause
"""What is left when all is over: of a node that ran, and of a cluster that was taken down."""

import contextlib
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import netlib
from lib.cluster import network, nodes, process, state

GROWTH_BYTES = 24 << 20  # of a process's own memory: tables that are touched for the first time


def descriptors(pid):
    """How many of each kind. DPDK's own memory is left out: in huge pages each page has its own."""
    kinds = Counter()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            kinds[re.sub(r"[0-9]+", "", os.readlink(fd))] += 1
    return Counter({kind: n for kind, n in kinds.items()
                    if not re.search("memfd:(seg_|nohuge)", kind)})


def own(config, node):
    """Memory, descriptors and threads of a node's processes."""
    found = {}
    for kind in nodes.KINDS:
        pid = nodes.pid(config, node, kind)
        found[kind] = {"bytes": netlib.private_bytes(pid), "fds": descriptors(pid),
                       "threads": len(os.listdir(f"/proc/{pid}/task"))}
    return found


def grown(before, after):
    """What a process has more than one that has just begun, as text."""
    words = []
    for kind in nodes.KINDS:
        was, has = before[kind], after[kind]
        words += [f"{kind}: {n} more of {what}" for what, n in (has["fds"] - was["fds"]).items()]
        for what, slack in (("bytes", GROWTH_BYTES), ("threads", 0)):
            if has[what] - was[what] > slack:
                words.append(f"{kind}: {has[what]} {what}, {was[what]} in the beginning")
    return words


def status_left(config, node):
    """What a node still has, and whom it does not see."""
    rows = nodes.status_lines(config, node)
    if len(rows) != config["nodes"]:
        return [f"status names {len(rows)} of {config['nodes']} nodes"]
    words = [f"sees node {row['node']} {row['state']}" for row in rows if row["state"] != "up"]
    words += [f"{row[what]} {what} (node {row['node']})" for row in rows
              for what in ("arriving", "sending") if row[what]]
    me = next(row for row in rows if row["self"])
    words += [f"{me[what]} {what}" for what, room in
              (("store_used", 0), ("objects", 0), ("sessions", 1)) if me[what] > room]
    return words


def listed(config, node):
    done = subprocess.run([nodes.binary("cli"), "ls", "--json"], env=nodes.environment(config, node),
                          capture_output=True, text=True, timeout=30)
    if done.returncode:
        return [f"ls: {done.stderr.strip()}"]
    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    return [f"ls has {len(names)} objects: {' '.join(names[:5])}"] if names else []


def doctor(config, node):
    done = subprocess.run([nodes.binary("cli"), "doctor", "--json"], capture_output=True, text=True,
                          env=nodes.environment(config, node), timeout=30)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    words = [f"doctor: {row['check']}: {row['text']}" for row in rows if row["level"] == "fail"]
    if done.returncode and not words:
        words = [f"doctor: exit {done.returncode}: {done.stderr.strip()}"]
    return words


def of_node(config, node, before):
    """All of it, as a list of words; empty when the node is as at the beginning."""
    words = grown(before, own(config, node))  # first: the commands below open sessions
    words += status_left(config, node) + listed(config, node) + doctor(config, node)
    return [f"node {node}: {word}" for word in words]


def of_cluster(name, pids):
    """What stays of a cluster that is down."""
    words = [f"namespace {n}" for n in network.namespaces(name)]
    if state.cluster_dir(name).exists():
        words.append(f"folder {state.cluster_dir(name)}")
    words += [f"process {pid}" for pid in pids
              if (fields := process.stat_fields(pid)) and fields[0] not in "ZX"]
    words += [f"{path}" for folder in ("/sys/fs/bpf", "/dev/shm", "/dev/hugepages")
              for path in Path(folder).glob(f"*{name}*")]
    return words
