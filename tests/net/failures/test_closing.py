#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sockets that clients leave behind, and descriptors in them, are closed; a slow close delays nobody who is there."""

import json
import threading
import time

import netlib
from held import Held
from netlib import Cluster, Task, nodes, process
from raw import BECOME_NOBODY, RAW

BEHIND = 64  # control/clients/closer.c
LINGER_S = 60
QUIET_S = 0.5
TICKS_S = 0.01  # many of control/clients/closer.c


def until_answers(cluster):
    netlib.wait_for(lambda: nodes.answers(cluster.config, 0), netlib.PATIENCE_S,
                    "another control answers")


def another_control(cluster, *options, through=()):
    process.end(cluster.pid(0, "control"))
    nodes.start(cluster.config, 0, "control", *options, through=through)
    until_answers(cluster)


def counted(cluster, name):
    lines = cluster.must(0, "sarissa", "status", "--counters", "--json").splitlines()
    return next(v["control"] for v in map(json.loads, lines) if "control" in v)[name]


def spent_in(seconds, pid):
    before = process.cpu_seconds(pid)
    time.sleep(seconds)
    return process.cpu_seconds(pid) - before


def until_counted(cluster, name):
    netlib.wait_for(lambda: counted(cluster, name) > 0, netlib.PATIENCE_S, f"{name} is counted")


# So many sockets at once that nobody new is let in while they wait to be closed.
CROWD = RAW + """
crowd = [raw_connect() for _ in range(COUNT)]
for s in crowd:
  raw_ask(s, ATTACH)
step("all there")
for s in crowd:
  s.close()
say("all gone")
"""


# ---- calls that are held ------------------------------------------------------------------------

# Control looks for who comes in each turn of its loop, and answers no more than 32 requests of one client in
# a turn (control/clients/requests.c). So who has no answer after so many to another one has not been let in.
COMES_LATE = RAW + """
import select
inside = raw_connect()
raw_ask(inside, ATTACH)
def answered(s):
  for _ in range(4 * 32):
    raw_ask(inside, PUBLISH)
  return bool(select.select([s], [], [], 0)[0])

step("inside")
until = time.monotonic() + PATIENCE_S
while time.monotonic() < until:
  late = raw_connect()
  late.send(raw_request(ATTACH))
  if not answered(late):
    break
  late.close()
else:
  sys.exit("everybody is let in")
step("shut")
step("let in" if answered(late) else "still shut")
late.settimeout(PATIENCE_S)
say(f"let in: {struct.unpack_from('=i', late.recv(20000), 12)[0]}")
""".replace("PATIENCE_S", str(netlib.PATIENCE_S))


def who_comes_waits_while_much_is_closed():
    """He is not refused, nor does control spin."""
    netlib.need_daemons()
    go = threading.Event()
    go.set()

    def decide(name):
        if name == "timer_settime":
            time.sleep(TICKS_S)  # so that a tick that came to it would end it
            go.wait()

    with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
        held = Held(directory, decide)
        try:
            another_control(cluster, through=held.through)
            late = Task(cluster, 0, COMES_LATE)
            late.expect("inside")
            crowd = Task(cluster, 0, f"COUNT = {BEHIND + 10}\n" + CROWD)
            crowd.expect("all there")
            go.clear()
            crowd.go_on()
            crowd.expect("all gone")
            late.go_on()
            late.expect("shut")
            spent = netlib.measured(lambda: spent_in(1.5, cluster.pid(0, "control")), lambda spent: spent < 0.3)
            assert spent[-1] < 0.3, f"it spent {spent} s of 1.5"
            late.go_on()
            late.expect("still shut")
            go.set()
            late.go_on()
            late.expect("let in: 0")
            late.end()
            crowd.end()
            until_counted(cluster, "closes_slow")
            assert counted(cluster, "clients_strange") == 0, "somebody was disconnected"
            cluster.check_daemons()
        finally:
            go.set()
            held.end()


# A packet comes between control's look and its read.
RACES = RAW + BECOME_NOBODY + """
STATUS = 11
def lingering():
  listener = socket.create_server(("127.0.0.1", 0))
  s = socket.create_connection(listener.getsockname())
  kept.append(listener.accept()[0])
  s.setblocking(False)
  try:
    while True:
      s.send(bytes(1 << 16))
  except BlockingIOError:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, LINGER_S))
  return s

kept, s = [], raw_connect()
raw_ask(s, ATTACH)
one = lingering()
step("attached")
s.send(raw_request(STATUS))
sys.stdin.readline()
socket.send_fds(s, [raw_request(STATUS)], [one.fileno()])
one.close()
step("sent")
"""


def what_comes_behind_the_look_is_not_read():
    """Neither behind a packet that was looked at, nor where there was none."""
    netlib.need_daemons()
    told = []
    for at in (1, 2):
        with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
            reads, racing = [], threading.Event()

            def decide(name):
                if name != "recvfrom" or not racing.is_set():
                    return
                if len(reads) + 1 == at:
                    task.go_on()
                    task.expect("sent")
                reads.append(name)

            held = Held(directory, decide)
            try:
                another_control(cluster, through=held.through)
                task = Task(cluster, 0, f"LINGER_S = {LINGER_S}\n" + RACES)
                task.expect("attached")
                racing.set()
                task.go_on()
                netlib.wait_for(lambda: reads, netlib.PATIENCE_S, "it is read")
                time.sleep(QUIET_S)  # for a second read, which must not come
                racing.clear()
                begin = time.monotonic()
                cluster.must(0, "sarissa", "ls", timeout=40)
                took = time.monotonic() - begin
                assert took < LINGER_S / 4, f"control answered after {took:.1f} s"
                told.append(len(reads))
                if at == 1:
                    until_counted(cluster, "clients_strange")
                else:
                    task.go_on()
                    task.expect("sent")
                task.go_on()
                task.end()
            finally:
                held.end()
    assert told == [1, 1], f"reads for one packet: {told}"


netlib.run(who_comes_waits_while_much_is_closed, what_comes_behind_the_look_is_not_read)
