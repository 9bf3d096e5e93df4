# SPDX-License-Identifier: BSD-3-Clause
"""Threads, signals, forks and interpreters: what a process may do while it uses the package."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import sarissa


def test_other_threads_run_while_one_waits(nodes):
    got = []
    waiter = threading.Thread(target=lambda: got.append(bytes(nodes[1].get("later", timeout=60))))
    waiter.start()
    begin = time.monotonic()
    time.sleep(0.05)  # until it waits; it could hold the interpreter's lock until its time is over
    assert time.monotonic() - begin < 30 and not got
    nodes[0].put("later", b"now")
    waiter.join(60)
    assert got == [b"now"]
    nodes[0].delete("later")


def test_a_wait_opens_no_descriptor(nodes):
    """Its operation lies in a queue without any, in the main thread and in others."""
    def get():
        before, during = len(os.listdir("/proc/self/fd")), []

        def look():
            if not during:
                during.append(len(os.listdir("/proc/self/fd")))
                nodes[1].put("descriptors", b"x")
        view = nodes[0]._open().get("descriptors", 60 * 10**9, look=look)
        assert bytes(view) == b"x" and during == [before]
        nodes[1].delete("descriptors")
        ended.append(True)
    ended = []
    get()
    other = threading.Thread(target=get)
    other.start()
    other.join(60)
    assert ended == [True, True]


WAITS = """
import sarissa, sys
node = sarissa.open()
try:
    print("waits", flush=True)
    node.get("never")
except KeyboardInterrupt:
    print("interrupted", flush=True)
node.put("after", b"x"); node.delete("after")
"""


def test_ctrl_c_ends_a_wait(local):
    child = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "SARISSA_SOCKET": local.socket[0]})
    assert child.stdout.readline() == "waits\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n" and child.returncode == 0


def test_each_interpreter_has_its_own(local):
    """Subinterpreters, as mod_wsgi and others make them."""
    import _xxsubinterpreters as interpreters
    os.environ["SARISSA_SOCKET"] = local.socket[0]
    program = ("import sarissa\nnode = sarissa.open()\nnode.put('sub', b'x')\nassert node.get('sub') == b'x'\n"
               "try:\n  node.get('nobody', timeout=0)\nexcept sarissa.NotFound as error:\n"
               "  assert isinstance(error, FileNotFoundError)\nnode.delete('sub')\n")
    for _ in range(3):
        made = interpreters.create()
        interpreters.run_string(made, program)
        interpreters.destroy(made)
    del os.environ["SARISSA_SOCKET"]
    with local.open() as node:
        node.put("main", b"x")
        node.delete("main")


def test_forked_children_open_their_own(nodes, local):
    nodes[0].put("forked", b"x" * 1000)
    view = nodes[0].get("forked")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(sarissa.InvalidArgument, match="after fork"):
                nodes[0].get("forked", timeout=0)
            with local.open() as own:
                assert own.get("forked") == view
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    nodes[0].delete("forked")


def test_the_cluster_is_told(nodes):
    told = nodes[1].nodes()
    assert [member.node for member in told if member.is_self] == [1] and len(told) == 4
    assert all(member.state == "up" and member.address.startswith("127.0.0.") for member in told)
