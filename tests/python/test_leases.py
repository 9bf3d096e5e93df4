# SPDX-License-Identifier: BSD-3-Clause
"""What lives by leases and times goes with them, on all nodes."""

import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
import sarissa

PATIENCE_S = 60


def until(holds):
    late = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < late, "it does not come about"
        time.sleep(0.02)


def names(node, prefix):
    return sorted(info.name for info in node.ls(prefix))


def test_a_lease_holds_what_it_makes(nodes):
    with nodes[0].lease(ttl=10) as lease:
        lease.put("held/bytes", b"x")
        lease.put("held/array", numpy.arange(3))
        nodes[1].put("held/other", b"y")
        lease.hold("held/other")
        with lease.create("held/created", 1) as writer:
            writer.write(b"z")
        assert nodes[1].info("held/array").leases == 1
        assert nodes[2].get("held/array", timeout=20).tolist() == [0, 1, 2]
        lease.drop("held/created")
        assert names(nodes[3], "held/") == ["held/array", "held/bytes", "held/other"]
        with pytest.raises(sarissa.NotFound):
            lease.drop("held/created")
    until(lambda: not names(nodes[3], "held/"))
    with pytest.raises(sarissa.Deleted):
        lease.hold("nobody")


def test_a_block_whose_lease_was_ended_in_it_ends(nodes):
    with nodes[0].lease(ttl=10) as lease:
        lease.put("ended/in the block", b"x")
        lease.end()
    assert names(nodes[0], "ended/") == []
    with pytest.raises(sarissa.Deleted):
        lease.end()


def test_the_last_of_two_leases_decides(nodes):
    first, second = nodes[0].lease(ttl=10), nodes[1].lease("by name", ttl=10)
    first.put("shared", b"x")
    second.hold("shared")
    first.end()
    assert nodes[2].get("shared", timeout=20) == b"x"
    second.end()
    until(lambda: not names(nodes[2], "shared"))


KILLED = """
import sarissa, sys, time
node = sarissa.open()
lease = node.lease(ttl=0.5)
for i in range(100):
    lease.put(f"killed/{i}", b"x" * 1000)
print("put", flush=True)
time.sleep(1000)
"""


def test_what_a_killed_process_leased_goes(local, nodes):
    child = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "SARISSA_SOCKET": local.socket[1]})
    assert child.stdout.readline() == "put\n"
    assert len(names(nodes[0], "killed/")) == 100
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: not names(nodes[0], "killed/"))


def test_a_time_to_live(nodes):
    nodes[0].put("for a moment", numpy.arange(3), ttl=0.2)
    nodes[0].put("for ever", b"x", ttl=1000)
    assert 900 < nodes[1].info("for ever").expires <= 1000
    nodes[1].expire("for ever", None)
    assert nodes[1].info("for ever").expires is None
    until(lambda: not names(nodes[2], "for a moment"))
    nodes[0].delete("for ever")
    for ttl in (0, -1, float("nan"), 1e10):
        with pytest.raises(ValueError, match="ten years"):
            nodes[0].expire("for ever", ttl)
        with pytest.raises(ValueError, match="ten years"):
            nodes[0].lease(ttl=ttl)
    with pytest.raises(sarissa.InvalidArgument):
        nodes[0].lease(ttl=0.001)
    with pytest.raises(sarissa.NameTooLong):
        nodes[0].lease("n" * 64)


@pytest.mark.parametrize("ttl", (-1, 0, float("nan"), "5"))
def test_a_time_to_live_is_looked_at_before_the_put(nodes, ttl):
    with pytest.raises((ValueError, TypeError)):
        nodes[0].put("short", b"x", ttl=ttl)
    assert not nodes[0].ls("short")


def test_the_shortest_time_to_live_is_not_for_ever(nodes):
    nodes[0].put("instant", b"x", ttl=1e-10)
    until = time.monotonic() + PATIENCE_S
    while nodes[0].ls("instant"):
        assert time.monotonic() < until, "it stays"
        time.sleep(0.01)
