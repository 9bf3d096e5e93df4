#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranges of an object that is three times as large as the reader's store, from Python, on real nodes."""

import json
import random

import netlib
from lib.cluster import nodes, process
from netlib import Cluster, Task

MIB = 1 << 20
STORE_MIB, SMALL_MIB = 256, 32
SIZE = 3 * SMALL_MIB * MIB + 12345
CHUNK = 8896  # the largest
READER, OTHER, HOLDER = 2, 1, 0

BEGIN = f"""
import asyncio, random, sarissa.aio
SIZE = {SIZE}
truth = open("FILE", "rb").read()
def right(ranges, views):
  assert len(ranges) == len(views)
  for (offset, count), view in zip(ranges, views):
    assert view.nbytes == count and view == truth[offset:offset + count], (offset, count)
def all_of_it():
  memory = bytearray(SIZE)
  views = node.get_ranges("x", [(0, SIZE)], timeout=60, into=memory)
  assert memory == truth and views[0].nbytes == SIZE
def refused(kind, call):
  try:
    call()
  except kind as error:
    return str(error)
  raise AssertionError("not refused")
"""

SMALL = """
step("ready")
right([(70 << 20, 1024)], node.get_ranges("x", [(70 << 20, 1024)], timeout=20))
step("small")
"""

MORE = """
draw = random.Random(7)
for count in 1, 7, 500:
  ranges = [(draw.randrange(SIZE - 30000), draw.choice([0, 1, 1000, 30000])) for _ in range(count)]
  ranges += [(SIZE, 0), (SIZE - 1, 1), (0, 1), ranges[0]]
  right(ranges, node.get_ranges("x", ranges, timeout=20))
all_of_it()
async def more():
  async with sarissa.aio.open() as other:
    parts = [[(draw.randrange(SIZE - 100000), 100000) for _ in range(3)] for _ in range(20)]
    for ranges, views in zip(parts, await asyncio.gather(*[other.get_ranges("x", one, timeout=20) for one in parts])):
      right(ranges, views)
    memory = bytearray(10)
    assert await other.get_into("little", memory, timeout=20) == 6 and memory[:6] == b"little"
asyncio.run(more())
assert node.get_ranges("none", []) == []
assert f"it has {SIZE} bytes" in refused(sarissa.OutOfRange, lambda: node.get_ranges("x", [(SIZE - 1, 2)], timeout=20))
assert f"it has {SIZE} bytes" in refused(sarissa.OutOfRange, lambda: node.get_ranges("x", [(0, 1), (SIZE + 5, 0)], timeout=20))
refused(sarissa.TimedOut, lambda: node.get_ranges("none", [(0, 1)], timeout=0.2))
refused(sarissa.NotFound, lambda: node.get_ranges("none", [(0, 1)], timeout=0))
refused(sarissa.OutOfRange, lambda: node.get_into("little", bytearray(5), timeout=20))
refused(sarissa.TooLarge, lambda: node.get_into("x", bytearray(SIZE), timeout=20))
refused(ValueError, lambda: node.get_ranges("x", [(0, 5)], into=bytearray(4)))
step("more")
"""

LOSS = """
say("reading")
for _ in range(4):
  all_of_it()
step("lost")
all_of_it()
say("right")
"""


def own_store(cluster, node, mib):
    """Its daemons begin again, with another store."""
    for kind in ("control", "dataplane"):
        process.end(cluster.pid(node, kind))
    for kind in ("dataplane", "control"):
        nodes.start({**cluster.config, "store": mib}, node, kind)
    netlib.wait_for(lambda: nodes.answers(cluster.config, node), netlib.PATIENCE_S, "the node answers")


def copies(cluster):
    return json.loads(cluster.must(READER, "sarissa", "stat", "x", "--json").splitlines()[0])["copies"]


def ranges_of_what_no_store_here_could_hold():
    netlib.need_daemons()
    with Cluster(3, "--store", STORE_MIB) as cluster, netlib.scratch() as directory:
        (directory / "file").write_bytes(random.Random(1).randbytes(SIZE))
        own_store(cluster, READER, SMALL_MIB)
        cluster.must(HOLDER, "sarissa", "put", "x", directory / "file")
        (directory / "little").write_bytes(b"little")
        cluster.must(HOLDER, "sarissa", "put", "little", directory / "little")
        task = Task(cluster, READER, BEGIN.replace("FILE", str(directory / "file")) + SMALL + MORE + LOSS)
        task.expect("ready")
        before = cluster.counters(READER)["rx_chunk_bytes"]
        task.go_on()
        task.expect("small")
        netlib.until_arrived(cluster, READER, before + 1024)
        came = cluster.counters(READER)["rx_chunk_bytes"] - before
        assert came <= 2 * CHUNK, f"{came} bytes came for a range of 1,024"
        assert copies(cluster) == 1, "a range has left a copy"
        task.go_on()
        task.expect("more")
        assert copies(cluster) == 1, "ranges have left a copy"
        used = netlib.own_status(cluster, READER)["store_used"]
        assert used < MIB, f"ranges have left {used} bytes in the store"
        cluster.must(OTHER, "sarissa", "get", "x", directory / "copy", "--timeout", 60)
        task.go_on()
        task.expect("reading")
        cluster.verb("kill", HOLDER, "dataplane")
        cluster.verb("kill", HOLDER, "control")
        task.expect("lost")
        task.go_on()
        task.expect("right")
        task.end()


netlib.run(ranges_of_what_no_store_here_could_hold)
