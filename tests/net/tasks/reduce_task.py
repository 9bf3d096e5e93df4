#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A task of test_reduce_many.py on one node: a line of JSON [function, argument...] in, its result
out."""

import array
import json
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import sarissa  # noqa: E402

NODE = sarissa.open()
KIB_LANES = 256


def lanes(k):
    """Of the k-th small reduce: 1 to 4 KiB of u32."""
    return KIB_LANES * (1 + k % 4)


def small(k, who):
    return array.array("I", range(1000 * k + 7 * who, 1000 * k + 7 * who + lanes(k)))


def put_small(who, count):
    for k in range(count):
        NODE.put(f"s{k}-{who}", small(k, who))


def begin_small(first, step, count, sources):
    for k in range(first, count, step):
        NODE.reduce(f"t{k}", [f"s{k}-{who}" for who in range(sources)], dtype="u32", timeout=120)


def in_flight(first, step, count):
    """How many have begun and not ended."""
    waiting = 0
    for k in range(first, count, step):
        try:
            NODE.reduce_sources(f"t{k}", timeout=0)
        except TimeoutError:
            waiting += 1
    return waiting


def check_small(first, step, count, sources):
    """Gets and compares; the moment of the last one."""
    got = {k: NODE.get(f"t{k}", timeout=120) for k in range(first, count, step)}
    ended = time.monotonic()
    for k, view in got.items():
        base = sources * 1000 * k + 7 * sum(range(sources))
        right = array.array("I", (base + sources * lane for lane in range(lanes(k))))
        assert view == right.tobytes(), f"t{k} is not the sum of its sources"
        ids = [sarissa.id_of(f"s{k}-{who}") for who in range(sources)]
        assert NODE.reduce_sources(f"t{k}", timeout=30) == ids, f"t{k} names other sources"
    return ended


def put_large(name, size, value):
    NODE.put(name, array.array("I", [value]) * (size // 4))


def get_all(wanted, reduces):
    """Begins the reduces {target: sources}, then gets all of {name: value} at once; the seconds
    that each took."""
    for target, sources in reduces.items():
        NODE.reduce(target, sources, dtype="u32", timeout=120)
    took, begin = {}, time.monotonic()

    def get(name, value):
        view = NODE.get(name, timeout=120)
        took[name] = time.monotonic() - begin
        assert view == (array.array("I", [value]) * (len(view) // 4)).tobytes(), name
        took[name + " right"] = True

    threads = [threading.Thread(target=get, args=item) for item in wanted.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(name + " right" in took for name in wanted), f"{took} of {wanted}"
    return [took[name] for name in wanted]


def delete(names):
    for name in names:
        NODE.delete(name)


for line in sys.stdin:
    function, *arguments = json.loads(line)
    print(json.dumps(globals()[function](*arguments)), flush=True)
