#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of another user than the daemons': what they create harms nobody else."""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

import netlib
from netlib import ROOT, Cluster, Task, nodes, own_status, process
from raw import BECOME_NOBODY, RAW

MIB = 1 << 20


OLDER_KERNEL = [ROOT / "tests/net/tasks/older_kernel.py"]


def another_control(cluster, *options, through=()):
    process.end(cluster.pid(0, "control"))
    nodes.start(cluster.config, 0, "control", *options, through=through)
    netlib.wait_for(lambda: nodes.answers(cluster.config, 0), netlib.PATIENCE_S,
                    "another control answers")


def descriptors(cluster):
    return len(os.listdir(f"/proc/{cluster.pid(0, 'control')}/fd"))


def check_nothing_is_left(cluster, before):
    netlib.wait_for(lambda: own_status(cluster, 0)["store_used"] == 0, netlib.PATIENCE_S,
                    "the store is empty again")
    netlib.wait_for(lambda: descriptors(cluster) <= before, netlib.PATIENCE_S,
                    "as many descriptors as before")


def until_counted(cluster, name):
    netlib.wait_for(lambda: name in cluster.must(0, "sarissa", "status", "--counters"),
                    netlib.PATIENCE_S, f"{name} is counted")


@contextlib.contextmanager
def come_to(code, step):
    """A task that has come so far."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = Task(cluster, 0, code)
        task.expect(step)
        yield cluster, task
        task.end()
        cluster.check_daemons()


NOBODY = BECOME_NOBODY + "trusted, node = node, sarissa.open()\n"

PUTS = NOBODY + """
for size in (0, 1, 4096, 65537, 5 << 20):
  data = os.urandom(size)
  node.put(f"put {size}", data)
  assert bytes(node.get(f"put {size}")) == data
  say(hashlib.blake2b(data).hexdigest())
writer = node.create("stream", 5 << 20)
for at in range(0, 5 << 20, 1 << 20):
  writer.data[at:at + (1 << 20)] = bytes([at >> 20]) * (1 << 20)
  writer.publish(at + (1 << 20))
  step("published")
writer.seal()
say("sealed")
"""

READS = """
stream = node.get("stream", timeout=30)
assert all(bytes(stream[at << 20:(at + 1) << 20]) == bytes([at]) * (1 << 20) for at in range(5))
say("the same")
"""


def it_puts_gets_and_streams():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        task = Task(cluster, 0, PUTS)
        for size in (0, 1, 4096, 65537, 5 * MIB):
            digest = task.heard()
            cluster.must(1, "sarissa", "get", f"put {size}", directory / "got", "--timeout", 20)
            assert netlib.digest_of(directory / "got") == digest, f"{size} bytes: other ones"
        task.expect("published")
        reader = Task(cluster, 1, READS)
        arrived = cluster.counters(1)["rx_chunk_bytes"]
        for at in range(1, 5):
            task.go_on()
            task.expect("published")
            # before the rest is written
            netlib.until_arrived(cluster, 1, arrived + at * MIB)
        task.go_on()
        task.expect("sealed")
        reader.expect("the same")
        reader.end()
        task.end()
        cluster.check_daemons()


# A whole object's memory and what may lie beyond it, through each way in, again and again; the store
# around it is somebody else's.
RUBBISH = RAW + NOBODY + """
SIZE = 3 << 20
s = raw_connect()
attached = raw_ask(s, ATTACH)
made = raw_ask(s, CREATE, b"rubbish's object", size=SIZE, pin=0)
assert made.status == 0 and len(made.fds) == 1, made
fd = made.fds[0]
store = os.fstat(attached.fds[0])

def refused(way):
  try:
    way()
    say("it could")
  except (OSError, ValueError):
    pass

def rubbish(byte):
  for at in range(0, SIZE, 1 << 16):
    os.pwrite(fd, bytes([byte]) * (1 << 16), at)
  memory[:] = bytes([byte]) * SIZE
  for way in (lambda: os.pwrite(fd, b"beyond", SIZE), lambda: os.ftruncate(fd, SIZE + 4096),
              lambda: os.ftruncate(fd, 0), lambda: os.pwrite(fd, b"far", made.offset + SIZE)):
    refused(way)

memory = mmap.mmap(fd, SIZE)
rubbish(1)
assert raw_ask(s, PUBLISH, slot=made.slot, generation=made.generation, watermark=1 << 20).status == 0
rubbish(2)
assert raw_ask(s, SEAL, slot=made.slot, generation=made.generation).status == 0
rubbish(3)
say("rubbish")

# nothing that was given opens the store for writing, and no other memory than its own
for given in (*attached.fds, fd):
  of = os.fstat(given)
  for flags in (os.O_RDWR, os.O_WRONLY):
    try:
      again = os.open(f"/proc/self/fd/{given}", flags)
    except OSError:
      continue
    assert (os.fstat(again).st_dev, os.fstat(again).st_ino) != (store.st_dev, store.st_ino), given
    assert given in (fd, attached.fds[2]), given
    os.close(again)
refused(lambda: mmap.mmap(attached.fds[0], 4096))
refused(lambda: os.pwrite(attached.fds[0], b"x", 0))
refused(lambda: os.listdir(f"/proc/{CONTROL}/fd"))
say("nothing opens the store")
"""


def rubbish_in_what_it_was_given():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        def check(name, expected):
            for node in (0, 1):
                cluster.must(node, "sarissa", "get", name, directory / "got", "--timeout", 20)
                assert netlib.digest_of(directory / "got") == expected, f"{name}: other bytes"

        expected = netlib.make_file(directory / "neighbour", 3 * MIB + 100)
        for name in ("before", "hole"):
            cluster.must(0, "sarissa", "put", name, directory / "neighbour")
        cluster.must(0, "sarissa", "put", "after", directory / "neighbour")
        cluster.must(0, "sarissa", "rm", "hole")
        task = Task(cluster, 0, f"CONTROL = {cluster.pid(0, 'control')}\n" + RUBBISH)
        task.expect("rubbish")
        task.expect("nothing opens the store")
        for name in ("before", "after"):
            check(name, expected)
        with open(directory / "own", "wb") as out:
            out.write(b"\1" * MIB + b"\2" * (2 * MIB))
        check("id:" + b"rubbish's object".hex(), netlib.digest_of(directory / "own"))
        task.end()
        cluster.check_daemons()


HALF = NOBODY + """
writer = node.create("half", 10 << 20)
writer.data[:6 << 20] = b"h" * (6 << 20)
writer.publish(5 << 20)
step("half")
writer.data[6 << 20:] = b"H" * (4 << 20)
writer.seal()
assert bytes(node.get("half")) == b"h" * (6 << 20) + b"H" * (4 << 20)
say("whole")
"""


def another_control_goes_on_with_it():
    with come_to(HALF, "half") as (cluster, task):
        for options in ([], ["--creators", "shared"], ["--creators", "private"]):
            another_control(cluster, *options)
        task.go_on()
        task.expect("whole")


# Of two one is deleted, and it does not know that yet when it brings the memory of both.
TWO = NOBODY + """
kept, deleted = [node.create(name, 1 << 20) for name in ("kept", "deleted")]
kept.data[:] = b"k" * (1 << 20)
kept.publish(1 << 19)
step("made")
kept.seal()
assert bytes(node.get("kept")) == b"k" * (1 << 20)
say("whole")
"""


def one_of_two_is_deleted_before():
    with come_to(TWO, "made") as (cluster, task):
        cluster.must(0, "sarissa", "rm", "deleted")
        another_control(cluster)
        task.go_on()
        task.expect("whole")
        told = cluster.must(0, "sarissa", "status", "--counters")
        assert "clients_strange" not in told, "it was disconnected"


# Instead of the memory that it had; the old table stays open, or control would not wait for us.
OTHERS = RAW + NOBODY + """
def memory(size, seals):
  fd = os.memfd_create("other", os.MFD_ALLOW_SEALING)
  os.ftruncate(fd, size)
  fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
  return fd

def attach():
  s = raw_connect()
  pins = mmap.mmap(raw_ask(s, ATTACH).fds[2], 8192)
  pins[:] = mmap.mmap(attached.fds[2], 8192)[:]
  return s

import fcntl
sealed = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
before = raw_connect()
attached = raw_ask(before, ATTACH)
others = [memory(4096, sealed), memory(2 << 20, 0), memory(2 << 20, fcntl.F_SEAL_GROW)]
for i in range(len(others)):
  made = raw_ask(before, CREATE, b"brought  object" + bytes([i]), size=2 << 20, pin=i)
  assert made.status == 0, made
step("made")
after = attach()
for i, fd in enumerate(others):
  there = raw_ask(after, RESUME, pin=i, along=[fd])
  assert there.status == 0, there
  for op in (PUBLISH, SEAL):
    told = raw_ask(after, op, slot=there.slot, generation=there.generation, watermark=1)
    assert told.status == -errno.ESTALE, told
for fd in attached.fds:
  os.close(fd)
after.close()
before.close()
say("not taken")
"""


# What is not one piece of memory ends the connection, and costs what it was creating.
STRANGE = OTHERS[:OTHERS.index("sealed")] + """
pipe, maps = os.pipe()[0], os.open("/proc/self/maps", os.O_RDONLY)
two = [os.memfd_create("one"), os.memfd_create("two")]
along = [[pipe], [maps], [socket.socket().detach()], two][KIND]
before = raw_connect()
attached = raw_ask(before, ATTACH)
made = raw_ask(before, CREATE, b"strange  object" + bytes([KIND]), size=2 << 20, pin=0)
assert made.status == 0, made
step("made")
s = attach()
socket.send_fds(s, [raw_request(RESUME, pin=0)], along)
assert raw_ended(s), "it was answered"
assert raw_ask(attach(), RESUME, pin=0).status == -errno.ESTALE, "it was still there"
say("not taken")
"""


def it_brings_another_control_something_else(through=()):
    with come_to(OTHERS, "made") as (cluster, task):
        tasks = [task, *(Task(cluster, 0, f"KIND = {kind}\n" + STRANGE) for kind in range(4))]
        for strange in tasks[1:]:
            strange.expect("made")
        another_control(cluster, through=through)
        before = descriptors(cluster)
        for one in tasks:
            one.go_on()
            one.expect("not taken")
        for strange in tasks[1:]:
            strange.end()
        check_nothing_is_left(cluster, before)


def the_same_before_linux_6_16():
    it_brings_another_control_something_else(OLDER_KERNEL)


# It leaves a process behind that keeps the table, so that control waits for the creator.
LEAVES = RAW + """
s = raw_connect()
raw_ask(s, ATTACH)
made = raw_ask(s, CREATE, b"left by the dead", size=100, pin=0)
kept = os.fork()
if kept == 0:
  time.sleep(60)
  os._exit(0)
say(f"{kept} {(made.generation & 0xffffffff) << 32 | made.slot + 1}")
sys.stdin.readline()
"""

RESUMES = RAW + """
s = raw_connect()
mmap.mmap(raw_ask(s, ATTACH).fds[2], 8192)[:8] = struct.pack("=Q", {})
say(str(raw_ask(s, RESUME, pin=0).status))
"""


def with_number(cluster, wanted, code):
    """A task whose process has this number."""
    last = Path("/proc/sys/kernel/ns_last_pid")
    if not last.exists():
        raise netlib.Skip("this kernel does not let the next process number be chosen")
    for _ in range(100):
        last.write_text(str(wanted - 1))
        task = Task(cluster, 0, code)
        if task.child.pid == wanted:
            return task
        task.kill()
    raise netlib.Skip(f"process number {wanted} is taken")


def its_number_is_anothers():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        creator = Task(cluster, 0, LEAVES)
        kept, word = map(int, creator.heard().split())
        another_control(cluster)
        creator.kill()
        namesake = with_number(cluster, creator.child.pid, RESUMES.format(word))
        assert int(namesake.heard()) == -errno.ESTALE, "it was given what another created"
        namesake.end()
        process.end(kept)
        check_nothing_is_left(cluster, descriptors(cluster))


SEALS = NOBODY + """
import threading
writers = [node.create(f"killed {i}", 10 << 20) for i in range(4)]
for writer in writers:
  writer.data[:] = b"k" * (10 << 20)
step("written")
for writer in writers:
  threading.Thread(target=writer.seal, daemon=True).start()
say("sealing")
time.sleep(60)
"""


def it_is_killed_while_control_copies():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        before = descriptors(cluster)
        for _ in range(5):
            task = Task(cluster, 0, SEALS)
            task.expect("written")
            task.go_on()
            task.expect("sealing")
            task.kill()
            netlib.wait_for(lambda: own_status(cluster, 0)["sessions"] == 1, netlib.PATIENCE_S,
                            "its session is closed")
            for i in range(4): # what was sealed by then stays
                cluster.run(0, "sarissa", "rm", f"killed {i}")
            check_nothing_is_left(cluster, before)
        cluster.check_daemons()


MANY = NOBODY + """
made = []
try:
  while True:
    made.append(node.create(f"many {len(made)}", 10))
except sarissa.Error as error:
  say(f"{len(made)} {error}")
for writer in made:
  writer.abort()
node.put("after", b"all of that")
say("after")
"""


def too_many_at_a_time():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = Task(cluster, 0, MANY)
        line = task.heard()
        count, why = line.split(maxsplit=1)
        assert int(count) == 256 and "too many objects are being created" in why, line
        task.expect("after")
        task.end()
        told = cluster.run(0, "sarissa", "put", "x", "/dev/null")
        assert told.returncode == 0, told.stderr
        until_counted(cluster, "creations_refused")


TAKES_ALL = RAW + BECOME_NOBODY + """
kept = []
while True:
  s = raw_connect()
  status = raw_ask(s, ATTACH).status
  if status:
    break
  kept.append(s)
step(f"{len(kept)} {status}")
"""


def one_user_takes_all_sessions():
    """Three quarters of them are his; others are let in."""
    netlib.need_daemons()
    with Cluster(1, "--store", 32) as cluster:
        another_control(cluster, "--sessions", 8)
        task = Task(cluster, 0, TAKES_ALL)
        task.expect(f"6 {-errno.EMFILE}")
        for _ in range(3):
            cluster.must(0, "sarissa", "ls")
        until_counted(cluster, "clients_greedy")
        task.go_on()
        task.end()


# Whether what it writes to is the store: for whom that is decided by --creators.
WHERE = RAW + """
s = raw_connect()
store = os.fstat(raw_ask(s, ATTACH).fds[0])
made = raw_ask(s, CREATE, b"where it is made", size=5, pin=0)
say("store" if os.fstat(made.fds[0]).st_ino == store.st_ino else "apart")
"""


# A descriptor without a reason: the process that reads the packet must close it, which could take for ever.
UNCLAIMED = RAW + BECOME_NOBODY + """
import errno
PASSRIGHTS = 83 # Linux 6.16
s = raw_connect()
raw_ask(s, ATTACH)
try:
  s.getsockopt(socket.SOL_SOCKET, PASSRIGHTS)
  say("can be refused")
except OSError as e:
  say("an older kernel" if e.errno == errno.ENOPROTOOPT else str(e))
try:
  raw_ask(s, RESUME, pin=0, along=[0])
  say("sent")
except PermissionError:
  say("not sent")
say(str(raw_ask(s, RESUME, pin=0).status))
"""


def it_sends_what_nobody_asked_for():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = Task(cluster, 0, UNCLAIMED)
        told = task.heard(), task.heard()
        assert told in (("can be refused", "not sent"), ("an older kernel", "sent")), told
        assert int(task.heard()) < 0, "nothing to resume, and it was"
        task.end()
        cluster.check_daemons()


# Sockets whose last close takes a minute, for the other end does not read: in requests, behind them, and
# from somebody whom control does not know yet.
LINGERS = RAW + BECOME_NOBODY + """
STATUS = 11
kept = []

def lingering():
  listener = socket.create_server(("127.0.0.1", 0))
  s = socket.create_connection(listener.getsockname())
  kept.append(listener.accept()[0])
  s.setblocking(False)
  try:
    while True:
      s.send(bytes(1 << 16))
  except BlockingIOError:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 60))
  return s

attached = [raw_connect() for _ in range(4)]
for s in attached:
  raw_ask(s, ATTACH)
step("attached")
for s in attached + [raw_connect()]:
  for count in (1, 3):
    fds = [lingering() for _ in range(count)]
    socket.send_fds(s, [raw_request(STATUS)], [fd.fileno() for fd in fds])
    for fd in fds:
      fd.close()
step("sent")
for s in attached:
  assert raw_ended(s), "it was answered"
step("hung up")
"""


def what_lingers_holds_nobody_up():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        another_control(cluster, through=OLDER_KERNEL)
        pid = cluster.pid(0, "control")
        task = Task(cluster, 0, LINGERS)
        task.expect("attached")
        os.kill(pid, signal.SIGSTOP)  # until the last close is its own
        task.go_on()
        task.expect("sent")
        os.kill(pid, signal.SIGCONT)
        begin = time.monotonic()
        cluster.must(0, "sarissa", "ls", timeout=40)
        answered = time.monotonic()
        task.go_on()
        task.expect("hung up")
        until_counted(cluster, "clients_strange")
        again = time.monotonic()
        assert process.end(pid, signal.SIGTERM, 20), "control has not ended"
        ended = time.monotonic()
        task.go_on()
        task.end()
        return f"answers after {answered - begin:.2f} s, ends in {ended - again:.2f} s"


def the_operator_decides():
    netlib.need_daemons()
    told = {}
    with Cluster(1, "--store", 64) as cluster:
        for how in ("auto", "shared", "private"):
            another_control(cluster, "--creators", how)
            for user in ("", BECOME_NOBODY):
                task = Task(cluster, 0, user + WHERE)
                told[how, user != ""] = task.heard()
                task.end()
        done = cluster.run(0, nodes.binary("control"), "--nodes", "10.0.0.1", "--creators", "some")
        assert done.returncode == 2 and "takes shared, auto or private" in done.stderr, done.stderr
    assert told == {("auto", False): "store", ("auto", True): "apart",
                    ("shared", False): "store", ("shared", True): "store",
                    ("private", False): "apart", ("private", True): "apart"}, told


netlib.run(it_puts_gets_and_streams, rubbish_in_what_it_was_given, another_control_goes_on_with_it,
           one_of_two_is_deleted_before, it_brings_another_control_something_else, the_same_before_linux_6_16,
           its_number_is_anothers, what_lingers_holds_nobody_up, it_is_killed_while_control_copies,
           too_many_at_a_time, one_user_takes_all_sessions, it_sends_what_nobody_asked_for,
           the_operator_decides)
