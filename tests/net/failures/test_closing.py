#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors that clients send or leave behind are closed; a slow close delays its own client only."""

import contextlib
import json
import os
import signal
import threading
import time

import netlib
from held import Held
from netlib import Cluster, Task, nodes, process
from raw import BECOME_NOBODY, RAW

MIB = 1 << 20
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


# ---- a file whose close never ends --------------------------------------------------------------

# A file system that answers everything but FLUSH, which each close waits for, whatever signals come.
FUSE = """
import ctypes, os, select, struct, tempfile
libc = ctypes.CDLL(None, use_errno=True)
mounted = tempfile.mkdtemp()
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"x", mounted.encode(), b"fuse", 0, options.encode()):
  say("no FUSE here")
  sys.exit(0)
LOOKUP, GETATTR, OPEN, FLUSH, INIT = 1, 3, 14, 25, 26

def attributes(node):
  mode = 0o40755 if node == 1 else 0o100644
  return struct.pack("=QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

def answer(op, node):
  if op == INIT:
    return struct.pack("=IIIIHHIIHHI", 7, 31, 4096, 0, 0, 0, 4096, 1, 0, 0, 0) + bytes(28)
  if op == LOOKUP:
    return struct.pack("=QQQQII", 2, 0, 1, 1, 0, 0) + attributes(2)
  if op == GETATTR:
    return struct.pack("=QII", 1, 0, 0) + attributes(node)
  return struct.pack("=QII", 1, 0, 0) if op == OPEN else None

def serve():
  while not select.select([device, gate[0]], [], [])[0].count(gate[0]):
    request = os.read(device, 1 << 17)
    _, op, unique, node = struct.unpack_from("=IIQQ", request)
    out = answer(op, node)
    if op != FLUSH:
      os.write(device, struct.pack("=IiQ", 16 + len(out or b""), 0 if out else -38, unique) + (out or b""))

gate = os.pipe()
if os.fork() == 0:
  os.close(gate[1])
  serve()
  os._exit(0)
os.close(device)
never = os.open(f"{mounted}/never", os.O_RDONLY)
libc.umount2(mounted.encode(), 2)
os.rmdir(mounted)
"""

# It made something at an earlier control, so that descriptors are taken from it.
BRINGS = RAW + BECOME_NOBODY + """
import fcntl
def memory(size):
  fd = os.memfd_create("brought", os.MFD_ALLOW_SEALING)
  os.ftruncate(fd, size)
  fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
  return fd

before = raw_connect()
attached = raw_ask(before, ATTACH)
pins = mmap.mmap(attached.fds[2], 8192)

def make(pin):
  made = raw_ask(before, CREATE, b"made by" + struct.pack("=QB", os.getpid(), pin), size=MIB, pin=pin)
  assert made.status == 0, made

def attach():
  s = raw_connect()
  there = raw_ask(s, ATTACH)
  mmap.mmap(there.fds[2], 8192)[:] = pins[:]
  return s, there.flags
""".replace("MIB", str(MIB))

HUNG_UP = FUSE + BRINGS + """
make(0)
make(1)
step("made")
s, flags = attach()
assert flags == 32, f"ATTACH says {flags}"
socket.send_fds(s, [raw_request(RESUME, pin=0)], [never])
assert raw_ended(s), "it was answered"
s, flags = attach()
assert flags == 0, f"after that ATTACH says {flags}"
step("hung up")
"""

LET_GO = """
os.close(gate[1])
say("let go")
"""

HOLDS_UP = HUNG_UP + """
for pin in (0, 1):
  status = raw_ask(s, RESUME, pin=pin).status
  assert status == -errno.ESTALE, f"it was given {pin}: {status}"
step("lost both")
""" + LET_GO

HONEST = BECOME_NOBODY + """
trusted, node = node, sarissa.open()
writer = node.create("honest", 1 << 20)
writer.data[:1 << 19] = b"h" * (1 << 19)
writer.publish(1 << 19)
step("half")
writer.data[1 << 19:] = b"h" * (1 << 19)
writer.seal()
assert bytes(node.get("honest")) == b"h" * (1 << 20)
say("whole")
"""


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


def mounted(cluster, program):
    """The task that runs it, whose file system is there."""
    task = Task(cluster, 0, program)
    first = task.heard()
    if first == "no FUSE here":
        raise netlib.Skip("no file system in user space can be mounted here")
    assert first == "made", first
    return task


@contextlib.contextmanager
def hung_up(*options):
    """A cluster whose control, of these options, cannot close what the task has sent."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = mounted(cluster, HUNG_UP + LET_GO)
        another_control(cluster, *options)
        task.go_on()
        task.expect("hung up")
        yield cluster, task


def let_go(task, old):
    task.go_on()
    task.expect("let go")
    task.end()
    assert process.end(old, signal.SIGKILL, 20), "it is still there"


def a_file_that_is_never_closed():
    """Others are served meanwhile; it is counted and said; and control can be replaced."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = mounted(cluster, HOLDS_UP)
        honest = Task(cluster, 0, HONEST)
        honest.expect("half")
        another_control(cluster)
        task.go_on()
        task.expect("hung up")
        until_counted(cluster, "closes_slow")
        honest.go_on()
        honest.expect("whole")
        honest.end()
        crowd = Task(cluster, 0, f"COUNT = {BEHIND + 10}\n" + CROWD)
        crowd.expect("all there")
        crowd.go_on()
        crowd.expect("all gone")
        crowd.end()
        time.sleep(QUIET_S)
        cluster.must(0, "sarissa", "ls", timeout=40)
        told = cluster.run(0, "sarissa", "doctor").stdout
        assert "took more than a second to close" in told, told
        log = nodes.log_file(cluster.config, 0, "control").read_text()
        assert log.count("takes more than a second to close") == 1, log
        task.go_on()
        task.expect("lost both")
        old = cluster.pid(0, "control")
        assert not process.end(old, signal.SIGTERM, 2), "nothing has held it"
        nodes.start(cluster.config, 0, "control")
        until_answers(cluster)
        let_go(task, old)


# They ask nothing: sessions, those that are refused one, and those that are not let in yet.
CROWDS = RAW + """
crowd = [raw_connect() for _ in range(30)]
step("there")
crowd += [raw_connect() for _ in range(30)]
step("waiting")
for s in crowd:
  s.settimeout(20)
  assert raw_ended(s), "it was answered"
say("hung up")
"""


def it_ends_while_a_close_does_not():
    """All who are connected, or wait for that, hear of it."""
    with hung_up("--sessions", 8) as (cluster, task):
        crowd = Task(cluster, 0, CROWDS)
        crowd.expect("there")
        old = cluster.pid(0, "control")
        os.kill(old, signal.SIGSTOP)
        crowd.go_on()
        crowd.expect("waiting")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):  # the second ends it at once
            os.kill(old, number)
        crowd.go_on()
        crowd.expect("hung up")
        crowd.end()
        assert not process.end(old, signal.SIGTERM, 1), "nothing has held it"
        let_go(task, old)


def a_control_that_is_killed_and_cannot_end():
    """The next one says which it is and what to do; then it starts."""
    with hung_up() as (cluster, task):
        old = cluster.pid(0, "control")
        assert not process.end(old, signal.SIGKILL, 1), "nothing has held it"
        status = nodes.start(cluster.config, 0, "control").wait(timeout=netlib.PATIENCE_S)
        told = nodes.log_file(cluster.config, 0, "control").read_text().splitlines()[-1]
        assert status == 1, f"exit {status}"
        assert f"process {old} was killed and has not ended" in told, told
        let_go(task, old)
        nodes.start(cluster.config, 0, "control")
        until_answers(cluster)


# ---- calls that are held ------------------------------------------------------------------------

RESUMES = BRINGS + """
import select
make(0)
step("made")
s, flags = attach()
step("attached")
socket.send_fds(s, [raw_request(RESUME, pin=0)], [memory(MIB)])
step("asked")
step("answered" if select.select([s], [], [], 0)[0] else "waits")
there = raw_answer(s)
assert there.status == 0, there
step("resumed")
told = raw_ask(s, PUBLISH, slot=there.slot, generation=there.generation, watermark=100)
assert told.status == 0, told
say("published")
""".replace("MIB", str(MIB))

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
    """And who resumes a creation; neither is refused, nor does control spin."""
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
            task = Task(cluster, 0, RESUMES)
            task.expect("made")
            another_control(cluster, through=held.through)
            task.go_on()
            task.expect("attached")
            late = Task(cluster, 0, COMES_LATE)
            late.expect("inside")
            crowd = Task(cluster, 0, f"COUNT = {BEHIND + 10}\n" + CROWD)
            crowd.expect("all there")
            go.clear()
            crowd.go_on()
            crowd.expect("all gone")
            late.go_on()
            late.expect("shut")
            task.go_on()
            task.expect("asked")
            spent = netlib.measured(lambda: spent_in(1.5, cluster.pid(0, "control")), lambda spent: spent < 0.3)
            assert spent[-1] < 0.3, f"it spent {spent} s of 1.5"
            late.go_on()
            late.expect("still shut")
            task.go_on()
            task.expect("waits")
            go.set()
            late.go_on()
            late.expect("let in: 0")
            late.end()
            task.go_on()
            task.expect("resumed")
            task.go_on()
            task.expect("published")
            task.end()
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


netlib.run(a_file_that_is_never_closed, it_ends_while_a_close_does_not,
           a_control_that_is_killed_and_cannot_end, who_comes_waits_while_much_is_closed, what_comes_behind_the_look_is_not_read)
