#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reduces over four nodes, as a user asks for them, against results that are computed here.

usage: test_reduce.py [CLUSTER-UP-OPTION...]
"""

import array
import functools
import json
import operator
import random
import struct
import sys

import netlib
from netlib import Cluster

NODES = 4
OPTIONS = sys.argv[1:]
INTEGERS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
            "u64": "Q"}
FLOATS = {"f16": "e", "f32": "f", "f64": "d"}


# ---- arrays and what is expected of them -----------------------------------------------------

def pack(dtype, values):
    if dtype == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{INTEGERS.get(dtype) or FLOATS[dtype]}", *values)


def wrap(dtype, value):
    bits = int(dtype[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


def values_of(dtype, count, seed):
    """Such that every order of the operations has the same result, floats included."""
    rng = random.Random(seed)
    if dtype in INTEGERS:
        bits = int(dtype[1:])
        return [wrap(dtype, rng.getrandbits(bits)) for _ in range(count)]
    return [float(rng.choice((-4, -2, -1, 1, 2, 4))) for _ in range(count)]


def average(dtype, total, count):
    if dtype not in INTEGERS:
        return total / count
    return abs(total) // count * (1 if total >= 0 else -1)


def expected(op, dtype, sources):
    fold = {"sum": operator.add, "avg": operator.add, "prod": operator.mul, "min": min,
            "max": max}[op]
    result = []
    for column in zip(*sources):
        value = functools.reduce(fold, column)
        if dtype in INTEGERS:
            value = wrap(dtype, value)
        result.append(average(dtype, value, len(column)) if op == "avg" else value)
    return pack(dtype, result)


# ---- a cluster that reduces ------------------------------------------------------------------

def put(cluster, directory, node, name, data):
    (directory / "source").write_bytes(data)
    cluster.must(node, "sarissa", "put", name, directory / "source")


def put_floats(cluster, directory, draw):
    """A source on every node, of what draw(rng) gives: the arrays."""
    sources = [array.array("f", draw(random.Random(node))) for node in range(NODES)]
    for node, name in enumerate(names(NODES)):
        put(cluster, directory, node, name, sources[node].tobytes())
    return sources


def reduce(cluster, node, *argv):
    return json.loads(cluster.must(node, "sarissa", "reduce", *argv, "--wait", "--json"))


def check(cluster, directory, node, name, data):
    got = directory / f"got-{node}"
    cluster.must(node, "sarissa", "get", name, got, "--timeout", 60)
    same = got.read_bytes() == data
    assert same, f"{name} on node {node} is not what it should be"


def remove(cluster, *names):
    cluster.must(0, "sarissa", "rm", *names)


def fails(cluster, node, status, words, *argv):
    done = cluster.run(node, "sarissa", "reduce", *argv)
    assert done.returncode == status, f"{argv}: exit {done.returncode}: {done.stderr}"
    assert words in done.stderr, f"{argv}: {done.stderr}"
    assert done.stderr.count("\n") == 1, done.stderr


def names(count, stem="s"):
    return [f"{stem}{i}" for i in range(count)]


# ---- cases -----------------------------------------------------------------------------------

def five_megabytes_of_floats_meet_on_every_node():
    netlib.need_daemons()
    with Cluster(NODES, "--store", 128, *OPTIONS) as cluster, netlib.scratch() as directory:
        count = 1310720
        sources = put_floats(cluster, directory,
                             lambda rng: rng.choices(range(-1000, 1000), k=count))
        total = array.array("f", map(operator.add, map(operator.add, sources[0], sources[1]),
                                     map(operator.add, sources[2], sources[3]))).tobytes()
        done = reduce(cluster, 1, "total", *names(NODES))
        assert done["used"] == names(NODES) and done["size"] == 4 * count, done
        for node in range(NODES):
            check(cluster, directory, node, "total", total)
        done = reduce(cluster, 3, "spread", *names(NODES), "--spread")
        assert done["used"] == names(NODES), done
        for node in range(NODES):
            check(cluster, directory, node, "spread", total)
        cluster.check_daemons()


def random_floats_are_right_to_their_last_bits():
    netlib.need_daemons()
    with Cluster(NODES, "--store", 128, *OPTIONS) as cluster, netlib.scratch() as directory:
        count = 100003
        sources = put_floats(cluster, directory,
                             lambda rng: [rng.gauss(0, 1) for _ in range(count)])
        cluster.must(2, "sarissa", "reduce", "total", *names(NODES), "--spread")
        copies = set()
        for node in range(NODES):
            cluster.must(node, "sarissa", "get", "total", directory / "got", "--timeout", 60)
            copies.add((directory / "got").read_bytes())
        assert len(copies) == 1, "the nodes have different results"
        got = array.array("f", copies.pop())
        for column, value in zip(zip(*sources), got):
            bound = 3 * 2**-24 * sum(map(abs, column))
            assert abs(sum(column) - value) <= bound, (column, value)


def every_operation_and_type():
    """Below and above the size up to which the directory adds values up itself."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 128, *OPTIONS) as cluster, netlib.scratch() as directory:
        pairs = [("sum", dtype) for dtype in (*INTEGERS, *FLOATS, "bf16")]
        pairs += [(op, dtype) for op in ("prod", "min", "max", "avg")
                  for dtype in ("f32", "i16", "u64", "bf16")]
        for count in (37, 40009):
            for op, dtype in pairs:
                sources = [values_of(dtype, count, node) for node in range(NODES)]
                for node, name in enumerate(names(NODES)):
                    put(cluster, directory, node, name, pack(dtype, sources[node]))
                caller = (count + len(op)) % NODES
                reduce(cluster, caller, "result", *names(NODES), "--op", op, "--dtype", dtype)
                check(cluster, directory, (caller + 1) % NODES, "result",
                      expected(op, dtype, sources))
                remove(cluster, "result", *names(NODES))
        cluster.check_daemons()


def the_first_ones_suffice():
    netlib.need_daemons()
    with Cluster(NODES, "--store", 128, *OPTIONS) as cluster, netlib.scratch() as directory:
        sources = {name: values_of("u32", 50000, node) for node, name in enumerate(names(NODES))}
        for node, name in ((3, "s3"), (1, "s1")):
            put(cluster, directory, node, name, pack("u32", sources[name]))
        done = reduce(cluster, 0, "two", *names(NODES), "--num", "2", "--dtype", "u32")
        assert done["used"] == ["s1", "s3"], done
        check(cluster, directory, 2, "two",
              expected("sum", "u32", [sources["s1"], sources["s3"]]))
        for node, name in ((0, "s0"), (2, "s2")):
            put(cluster, directory, node, name, pack("u32", sources[name]))
        done = reduce(cluster, 3, "three", *names(NODES), "--num", "3", "--dtype", "u32")
        assert len(done["used"]) == 3, done
        check(cluster, directory, 0, "three",
              expected("sum", "u32", [sources[name] for name in done["used"]]))


def what_is_there_at_the_deadline_suffices():
    """Of two sources there, below and above the size that is streamed; a third one comes too late."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64, *OPTIONS) as cluster, netlib.scratch() as directory:
        for count in (37, 50000):
            sources = [values_of("f32", count, node) for node in range(NODES)]
            for node in (1, 3):
                put(cluster, directory, node, f"s{node}", pack("f32", sources[node]))
            done = reduce(cluster, 0, "mean", *names(NODES), "--op", "avg", "--deadline", "0.4",
                          "--min", "2", "--timeout", "30")
            assert done["used"] == ["s1", "s3"] and 4e8 <= done["duration_ns"] < 15e9, done  # half of the timeout
            put(cluster, directory, 0, "s0", pack("f32", sources[0]))
            check(cluster, directory, 2, "mean", expected("avg", "f32", [sources[1], sources[3]]))
            done = reduce(cluster, 2, "three", *names(NODES), "--deadline", "0")
            assert done["used"] == ["s0", "s1", "s3"], done
            fails(cluster, 1, 3, " never came within 1 s, and 4 of 4 must be there",
                  "four", *names(NODES), "--deadline", "0.2", "--min", "4", "--timeout", "1", "--wait")
            remove(cluster, "mean", "three", "s0", "s1", "s3")
        cluster.check_daemons()


def sources_come_one_by_one():
    """Readers wait already, on all nodes; several sources are on one node."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 256, *OPTIONS) as cluster, netlib.scratch() as directory:
        count = 6
        sources = [values_of("i32", 500000, i) for i in range(count)]
        put(cluster, directory, 0, "s0", pack("i32", sources[0]))
        cluster.must(2, "sarissa", "reduce", "late", *names(count), "--dtype", "i32")
        readers = [cluster.start(node, "sarissa", "get", "late", directory / f"out-{node}",
                                 "--timeout", 60) for node in range(NODES)]
        for i in range(1, count):
            netlib.time.sleep(0.3)
            put(cluster, directory, i % 3, f"s{i}", pack("i32", sources[i]))
        right = expected("sum", "i32", sources)
        for node, reader in enumerate(readers):
            assert reader.wait(timeout=90) == 0, f"get on node {node}"
            assert (directory / f"out-{node}").read_bytes() == right, f"bytes on node {node}"
        cluster.check_daemons()


def bad_input_is_refused_with_its_reason():
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64, *OPTIONS) as cluster, netlib.scratch() as directory:
        for node, (name, size) in enumerate((("a", 400000), ("b", 400000), ("short", 200000),
                                             ("odd", 100001))):
            put(cluster, directory, node, name, bytes(size))
        put(cluster, directory, 0, "tiny", bytes(8))
        for node in (0, 2):
            fails(cluster, node, 1, "exists already", "a", "b")
            fails(cluster, node, 1, "target is among the sources", "x", "a", "x")
            fails(cluster, node, 1, "listed twice", "x", "a", "b", "a")
            fails(cluster, node, 1, "num is not between", "x", "a", "b", "--num", "3")
            fails(cluster, node, 1, "min is 3 of 2", "x", "a", "b", "--deadline", "1", "--min", "3")
            fails(cluster, node, 1, "all must have one size", "x", "a", "short")
            fails(cluster, node, 1, "all must have one size", "x", "a", "tiny")
            fails(cluster, node, 1, "no multiple of the 4 of f32", "x", "odd")
            fails(cluster, node, 2, "--op takes sum", "x", "a", "b", "--op", "mean")
            fails(cluster, node, 2, "--dtype takes f16", "x", "a", "b", "--dtype", "f8")
        # nothing of that has left anything behind
        listed = {json.loads(line)["name"]
                  for line in cluster.must(1, "sarissa", "ls", "--json").splitlines()}
        assert listed == {"a", "b", "short", "odd", "tiny"}, listed
        # what comes later and does not fit is told to who waits
        child = cluster.start(1, "sarissa", "reduce", "y", "a", "later", "--wait",
                              stderr=netlib.subprocess.PIPE, text=True)
        netlib.until_waiting(cluster, 1)
        put(cluster, directory, 3, "later", bytes(100))
        _, words = child.communicate(timeout=60)
        assert child.returncode == 1 and "all must have one size" in words, words
        fails(cluster, 0, 3, "never came within 1 s", "z", "a", "never", "--wait", "--timeout", "1")
        put(cluster, directory, 0, "z", b"its id is free again")
        done = reduce(cluster, 3, "x", "a", "b")
        assert done["size"] == 400000, done
        check(cluster, directory, 2, "x", bytes(400000))
        cluster.check_daemons()


PROGRESS = """
present, missing = node.reduce_progress("total")
say([id == sarissa.id_of(name) for id, name in zip(present + missing, ["a", "b", "never"])])
say(f"{len(present)} {len(missing)}")
"""


def a_reduce_that_waits_is_shown_and_cancelled():
    """One source is missing: every node shows the target and takes an rm of it."""
    netlib.need_daemons()
    with Cluster(NODES, "--store", 64, *OPTIONS) as cluster, netlib.scratch() as directory:
        for node, name in enumerate("ab"):
            put(cluster, directory, node, name, bytes(400000))
        child = cluster.start(3, "sarissa", "reduce", "total", "a", "b", "never", "--wait",
                              stderr=netlib.subprocess.PIPE, text=True)
        reader = cluster.start(0, "sarissa", "get", "total", "-", stdout=netlib.subprocess.DEVNULL,
                               stderr=netlib.subprocess.PIPE, text=True)
        for node in range(NODES):
            netlib.wait_for(lambda: "2 of 3 sources are there" in cluster.run(
                node, "sarissa", "stat", "total").stdout, netlib.PATIENCE_S, "stat shows the reduce")
            shown = json.loads(cluster.must(node, "sarissa", "stat", "total", "--json"))
            assert shown["making"] and "coordinates it, for " in shown["reduce"], shown
            assert [s["name"] for s in shown["sources"]["present"]] == ["a", "b"], shown
            missing = [s["id"] for s in shown["sources"]["missing"]]
            assert len(missing) == 1, shown
            words = cluster.must(node, "sarissa", "stat", "total")
            assert "present     a, b\n" in words and f"missing     id:{missing[0]}\n" in words, words
            marked = [line for line in cluster.must(node, "sarissa", "ls").splitlines()
                      if "total" in line]
            assert len(marked) == 1 and "a reduce makes it" in marked[0], marked
        task = netlib.Task(cluster, 2, PROGRESS)
        task.expect("[True, True, True]")
        task.expect("2 1")
        task.end()
        refused = cluster.run(1, "sarissa", "put", "total", "/etc/hostname")
        assert refused.returncode == 1 and "a reduce makes" in refused.stderr, refused.stderr
        netlib.until_waiting(cluster, 0)
        cluster.must(1, "sarissa", "rm", "total")
        for waiting in child, reader:
            _, words = waiting.communicate(timeout=60)
            assert waiting.returncode == 1 and "cancelled by rm" in words, words
        for node in range(NODES):
            assert cluster.run(node, "sarissa", "stat", "total").returncode == 4
        put(cluster, directory, 0, "total", b"its id is free again")
        put(cluster, directory, 0, "never", b"it comes after all")
        assert json.loads(cluster.must(0, "sarissa", "stat", "never", "--json"))["id"] == missing[0]
        cluster.check_daemons()


netlib.run(five_megabytes_of_floats_meet_on_every_node,
           random_floats_are_right_to_their_last_bits, every_operation_and_type,
           the_first_ones_suffice, what_is_there_at_the_deadline_suffices, sources_come_one_by_one,
           a_reduce_that_waits_is_shown_and_cancelled, bad_input_is_refused_with_its_reason)
