# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends every call, also when the node's control does not answer at all; what is closed, or goes,
holds up no other thread; a put that is interrupted leaves nothing."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import sarissa
from conftest import Local

MIB = 1 << 20
LIMIT_S = 10  # half a second, and what a busy machine takes; who waits for the node takes 30

CALLS = """
import sys, time, numpy, sarissa
node = sarissa.open()
node.create_group("group", "f4", 3)
member = node.group("group").join()
lease = node.lease(ttl=1000)
node.put("there", b"x")
writers = [node.create(f"written/{i}", 1 << 20) for i in range(3)]
array = numpy.zeros(1 << 20)
def strided():
    node.put("strided", array[::2])
calls = {
    "put": lambda: node.put("small", b"x"), "put array": lambda: node.put("array", array[:3]),
    "put ttl": lambda: node.put("ttl", b"x", ttl=10),
    "create": lambda: node.create("created", 1 << 20), "publish": lambda: writers[0].publish(100),
    "seal": lambda: writers[1].seal(), "abort": lambda: writers[2].abort(),
    "delete": lambda: node.delete("there"), "reduce": lambda: node.reduce("r", ["a", "b"], dtype="f4"),
    "reduce_sources": lambda: node.reduce_sources("r"), "reduce_progress": lambda: node.reduce_progress("r"),
    "info": lambda: node.info("there"), "ls": lambda: node.ls(), "nodes": lambda: node.nodes(),
    "lease": lambda: node.lease(ttl=10), "hold": lambda: lease.hold("there"), "drop": lambda: lease.drop("there"),
    "lease put": lambda: lease.put("leased", b"x"), "expire": lambda: node.expire("there", 10),
    "end": lambda: lease.end(), "create_group": lambda: node.create_group("other", "f4", 3),
    "group": lambda: node.group("group"), "join": lambda: member.group.join(),
    "policy": lambda: member.group.policy("ssp 2"), "push": lambda: member.push(array[:3].astype("f4")),
    "pull": lambda: member.pull(), "leave": lambda: member.leave(), "get": lambda: node.get("never"),
    "get now": lambda: node.get("never", timeout=0), "gather": lambda: node.gather(["never", "either"]),
    "broadcast": lambda: node.broadcast("there"), "reader": lambda: node.reader("never"),
    "allreduce": lambda: node.allreduce("ar", ["x", "y"], array=array[:3], rank=0),
    "open": lambda: sarissa.open(), "watch": lambda: next(node.watch("none/")),
}
print("ready", flush=True)
sys.stdin.readline()
for name, call in calls.items():
    try:
        print("calls", name, flush=True)
        call()
        print("returned", name, flush=True)
    except KeyboardInterrupt:
        print("interrupted", name, flush=True)
print("end", flush=True)
sys.stdin.readline()
node.put("after", b"x")
node.close()
print("closed", flush=True)
"""


@pytest.fixture
def alone():
    """A cluster of one node of its own, whose control may be stopped: (cluster, pid of control)."""
    made = Local(nodes=1, name=f"python-alone-{os.getpid()}")
    try:
        yield made, json.loads(made.run("status", "--json"))["control_pid"]
    finally:
        made.run("down")


def interrupted(child):
    """Interrupts each call that the child tells; those that took long to end."""
    slow = []
    child.stdin.write("go\n")
    child.stdin.flush()
    while (line := child.stdout.readline()) != "end\n":
        assert line.startswith("calls "), line
        name = line[6:].strip()
        time.sleep(0.15)  # it has got into C by then; if not, it is interrupted a little earlier
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == f"interrupted {name}\n"
        if (took := time.monotonic() - begin) > LIMIT_S:
            slow.append(f"{name}: {took:.1f} s")
    return slow


def test_ctrl_c_ends_every_call(alone):
    cluster, control = alone
    child = subprocess.Popen([sys.executable, "-c", CALLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "SARISSA_SOCKET": cluster.socket[0]})
    assert child.stdout.readline() == "ready\n"
    os.kill(control, signal.SIGSTOP)
    try:
        slow = interrupted(child)
    finally:
        os.kill(control, signal.SIGCONT)
    assert not slow, slow
    assert child.communicate("go\n", timeout=60)[0] == "closed\n" and child.returncode == 0


BLOCKS = """
import sys, sarissa
node = sarissa.open()
node.create_group("group", "f4", 3)
member, lease = node.group("group").join(), node.lease(ttl=1)
lease.put("held", b"x")
written, left = [node.create(f"written/{i}", 1 << 20) for i in range(2)]
print("ready", flush=True)
sys.stdin.readline()
for name, block, call in (("writer", written, lambda: written.publish(5)),
                          ("lease", lease, lambda: lease.put("leased", b"x")),
                          ("member", member, lambda: member.pull())):
    try:
        print("calls", name, flush=True)
        with block:
            call()
    except KeyboardInterrupt:
        print("interrupted", name, flush=True)
print("end", flush=True)
"""


def test_ctrl_c_ends_a_with_block_and_the_interpreter(alone):
    """Whose end asks the node as well. Nothing is left when it answers again."""
    cluster, control = alone
    child = subprocess.Popen([sys.executable, "-c", BLOCKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "SARISSA_SOCKET": cluster.socket[0]})
    assert child.stdout.readline() == "ready\n"
    os.kill(control, signal.SIGSTOP)
    try:
        slow = interrupted(child)
        begin = time.monotonic()
        child.wait(60)  # it leaves a writer open
        if (took := time.monotonic() - begin) > LIMIT_S:
            slow.append(f"exit: {took:.1f} s")
    finally:
        os.kill(control, signal.SIGCONT)
        child.communicate()
    assert not slow, slow
    with cluster.open() as node:
        late = time.monotonic() + 30
        while (left := [info.name for info in node.ls() if info.name[0] != "."]) or node.group("group").info()["live"]:
            assert time.monotonic() < late, left
            time.sleep(0.02)


def stood_still(cluster):
    """How long another thread did, while this one closed."""
    node = cluster.open()
    queue = node._open().queue(1)
    queue.get(0, "never", 2**63 - 1)
    turns, stop = [0], threading.Event()

    def turn():
        before = time.monotonic()
        while not stop.is_set():
            time.sleep(0.001)
            now = time.monotonic()
            turns[0] = max(turns[0], now - before)
            before = now
    cluster.run("kill", "0")
    queue.wait(10**8)  # it notices, and a thread begins to connect again
    other = threading.Thread(target=turn)
    other.start()
    node.close()
    del queue, node  # sar_queue_close, sar_close
    stop.set()
    other.join()
    cluster.run("start", "0")
    return turns[0]


def test_close_holds_up_no_other_thread(alone):
    """The last reference goes while the thread that connects again is at work on a silent control."""
    seen = []
    while len(seen) < 5 and (not seen or seen[-1] >= 0.6):  # the machine may be busy
        seen.append(stood_still(alone[0]))
    assert seen[-1] < 0.6, f"another thread stood still for {seen} s"


@pytest.mark.parametrize("strided", [False, True])
def test_an_interrupted_put_leaves_nothing(node, strided):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop
    array = numpy.ones(24 * MIB)[::2] if strided else numpy.ones(12 * MIB)  # 96 MiB
    before, interrupted = signal.signal(signal.SIGALRM, stop), 0
    try:
        for turn in range(40):
            done = False
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + turn * 0.001)
                node.put("halfway", array)
                done = True
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            left = [info.name for info in node.ls("halfway")]
            if left == ["halfway"]:
                assert (node.get("halfway", timeout=0) == 1).all()
                node.delete("halfway")
            else:
                assert not done and not left, left
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 5
