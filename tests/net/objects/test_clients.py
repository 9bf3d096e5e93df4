#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that die, and clients that misbehave: what they had comes back, nobody else notices."""

import json
import os
import statistics
import time

import netlib
from netlib import Cluster, Task, own_status
from raw import BECOME_NOBODY, RAW

MIB = 1 << 20
LIMIT_S = 1.0  # of one round at least: others may meet a busy machine
ROUNDS = 5


def seconds_until(condition, what):
    begin = time.monotonic()
    netlib.wait_for(condition, netlib.PATIENCE_S, what)
    return time.monotonic() - begin


def told(times):
    return f"median {1000 * statistics.median(times):.0f} ms, worst {1000 * max(times):.0f} ms " \
           "(with the asking)"


def empty(cluster, node=0):
    """The store is empty, and no client is connected but this one."""
    status = own_status(cluster, node)
    return status["store_used"] == 0 and status["sessions"] == 1 and status["arriving"] == 0


def killed(code, prepare=None, there=lambda cluster: None):
    """Kills a task that has come so far, again and again."""
    netlib.need_daemons()
    times = []
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        for _ in range(ROUNDS):
            if prepare:
                prepare(cluster, directory)
            task = Task(cluster, 0, code)
            task.expect("there")
            there(cluster)
            task.kill()
            times.append(seconds_until(lambda: empty(cluster), "what it had comes back"))
        cluster.check_daemons()
    assert min(times) < LIMIT_S, f"{times} s"
    return told(times)


CREATE = """
writers = [node.create(f"made {i}", 10 << 20) for i in range(5)]
for writer in writers:
  writer.data[:1 << 20] = bytes(1 << 20)
  writer.publish(1 << 20)
step("there")
"""


def who_creates():
    return killed(CREATE)


HOLD = """
node.put("held", bytes(40 << 20))
views = [node.get("held") for i in range(100)]
node.delete("held")
step("there")
"""


def who_holds_what_was_deleted():
    return killed(HOLD)


FETCHED = """
view = node.get("far")
node.delete("far")
step("there")
"""


def who_holds_what_came_from_elsewhere():
    def prepare(cluster, directory):
        netlib.make_file(directory / "far", 20 * MIB)
        cluster.must(1, "sarissa", "put", "far", directory / "far")
    return killed(FETCHED, prepare)


WAIT = """
import threading
for i in range(20):
  threading.Thread(target=lambda i=i: node.get(f"never {i}", timeout=60), daemon=True).start()
step("there")
"""


def who_waits():
    return killed(WAIT, there=lambda cluster: netlib.until_waiting(cluster, 0, 20))


def twenty_at_once():
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        tasks = [Task(cluster, 0, f"writer = node.create('{i}', 2 << 20)\nstep('there')\n")
                 for i in range(20)]
        for task in tasks:
            task.expect("there")
        for task in tasks:
            task.child.kill()
        took = seconds_until(lambda: empty(cluster), "what they had comes back")
        for task in tasks:
            task.child.wait(timeout=netlib.PATIENCE_S)
        cluster.check_daemons()
    return told([took])


def a_reader_of_a_dead_creator():
    """It is told at once, wherever it is."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster:
        task = Task(cluster, 0, CREATE)
        task.expect("there")
        readers = [cluster.start(node, "sarissa", "get", "made 0", "/dev/null", "--timeout", 30,
                                 stderr=netlib.subprocess.PIPE, text=True) for node in (0, 1)]
        for node in (0, 1):
            netlib.until_waiting(cluster, node)
        task.kill()
        begin = time.monotonic()
        for reader in readers:
            _, errors = reader.communicate(timeout=netlib.PATIENCE_S)
            assert reader.returncode == 1, f"exit {reader.returncode}: {errors}"
        took = time.monotonic() - begin
        assert took < 20, f"told after {took:.2f} s of the 30 that it would wait"


CLOSE = """
import threading
ends = []
def wait(call):
  try:
    ends.append(call())
  except sarissa.Closed:
    ends.append("closed")
held = node.get("held")
node.reduce("sum", ["never 0", "never 1"], dtype="u8", timeout=60)
calls = [lambda i=i: node.get(f"never {i}") for i in range(9)]
threads = [threading.Thread(target=wait, args=(call,), daemon=True) for call in calls
           + [lambda: node.reduce_sources("sum")]]
for thread in threads:
  thread.start()
step("there")
node.close()
for thread in threads:
  thread.join(30)
say(f"ended {ends.count('closed')}")
assert held == bytes(1000)
step("held")
del held
step("gone")
"""


def who_closes_while_others_wait():
    """Their waits end, here and in control, and the last view ends the session."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
        (directory / "held").write_bytes(bytes(1000))
        cluster.must(0, "sarissa", "put", "held", directory / "held")
        task = Task(cluster, 0, CLOSE)
        task.expect("there")
        netlib.until_waiting(cluster, 0, 10)
        task.go_on()
        task.expect("ended 10")
        task.expect("held")
        assert own_status(cluster, 0)["sessions"] == 2, "its view is not pinned any more"
        task.go_on()
        task.expect("gone")
        netlib.wait_for(lambda: own_status(cluster, 0)["sessions"] == 1, netlib.PATIENCE_S,
                        "the session ends")
        task.go_on()
        task.end()
        cluster.check_daemons()


DROP = """
import warnings
warnings.simplefilter("ignore")
def dropped(): # the space of the one before returns a little later
  until = time.monotonic() + 60
  while True:
    try:
      return node.create("dropped", 40 << 20)
    except OSError as error:
      if error.errno != errno.ENOSPC or time.monotonic() > until:
        raise
      time.sleep(0.01)
for i in range(20):
  dropped().data[:1000] = bytes(1000)
say("dropped 20")
step("there")
"""


def who_drops_what_it_creates():
    """Its space returns while the task goes on: there is room for one such object only."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = Task(cluster, 0, DROP)
        task.expect("dropped 20")
        task.expect("there")
        netlib.wait_for(lambda: own_status(cluster, 0)["store_used"] == 0, netlib.PATIENCE_S,
                        "what it dropped comes back")
        task.go_on()
        task.end()
        cluster.check_daemons()


# ---- those who misbehave ------------------------------------------------------------------------

# Requests of every kind, with fields that are nearly right or not at all, over connections that
# come and go, of which some never read; descriptors that nobody asked for; pins full of rubbish, and
# own buffers too.
ROGUE = RAW + """
import random
random.seed(SEED)
REDUCE, PUT, BROADCAST = 12, 15, 17
words = [0, 1, 2, 1023, 1024, 65535, 65536, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
seen = [(0, 0)]

def word(bits):
  value = random.choice(words) if random.random() < 0.7 else random.getrandbits(64)
  return value & (2**bits - 1)

def request(op):
  slot, generation = random.choice(seen)
  if random.random() < 0.3:
    slot, generation = word(32), word(64)
  name = bytes([97 + random.randrange(4)]) if random.random() < 0.9 else os.urandom(256)
  size = random.choice([0, 1, 100, 65536, 200000, 2**63, 2**64 - 1])
  head = struct.pack("=IHHII", MAGIC, op, VERSION, word(32), slot)
  body = b"rogue" + name[:1] * 11 + struct.pack("=QQQqII", generation, size, word(64),
    random.choice([-1, 0, 1, 10**6]), random.choice([0, 5, 1023, 2**32 - 1, word(32)]),
    random.choice([0, 1, 2, 4, 8, word(32)]))
  tail, follows = bytes(REDUCTION.size), b""
  if op == REDUCE:
    count, least, deadline = random.choice([0, 0, 1, 3, 1024]), 0, 0
    if random.random() < 0.5:
      least, deadline = word(2), random.choice([-1, 0, 1, 10**5, 2**63 - 1])
    reserved = word(32) if random.random() < 0.1 else 0
    tail = REDUCTION.pack(word(3), word(4), word(2), count, least, reserved, deadline)
    follows = os.urandom(16 * count)
  elif op in (PUT, BROADCAST) and random.random() < 0.9:
    follows = os.urandom(min(size, 16384)) if op == PUT else bytes(min(size, 4096))
  meta = bytes(META_BYTES) if random.random() < 0.8 else os.urandom(META_BYTES)
  packet = head + body + name.ljust(NAME_BYTES, b"\\0") + tail + meta + follows
  if random.random() < 0.1:
    packet = bytearray(packet)
    for _ in range(random.randrange(1, 8)):
      packet[random.randrange(len(packet))] = random.getrandbits(8)
  if random.random() < 0.05:
    packet = packet[:random.randrange(len(packet))]
  if packet[4:6] == struct.pack("=H", LEAVE) and os.getuid() == 0:
    return request(random.randrange(LEAVE)) # the daemons' user may say so
  return bytes(packet)

def rubbish(fds):
  # pins: the third that ATTACH brings; the first two must not be had writable
  for i, fd in enumerate(fds):
    try:
      m = mmap.mmap(fd, 8192)
      if i < 2 and len(fds) == 3:
        say(f"descriptor {i} of ATTACH is writable")
      for _ in range(64 if len(fds) == 3 else 0):
        struct.pack_into("=Q", m, 8 * random.randrange(1024), random.choice(
          [word(64), (random.choice(seen)[1] & 0xffffffff) << 32 | random.choice(seen)[0] + 1]))
      m.close()
    except (OSError, ValueError):
      pass
    os.close(fd)

def life():
  s = raw_connect()
  s.settimeout(0.05)
  deaf = random.random() < 0.2
  if random.random() < 0.9:
    s.send(raw_request(ATTACH))
  for _ in range(random.randrange(1, 3000 if deaf else 200)):
    s.settimeout(0.05)
    packet = (request(random.randrange(LEAVE + 2)) if random.random() < 0.95
              else os.urandom(random.randrange(1, 20000)))
    try:
      socket.send_fds(s, [packet], [0, 1, 2] if random.random() < 0.1 else [])
    except PermissionError: # descriptors, which control's socket does not take
      s.send(packet)
    if deaf:
      continue
    s.setblocking(False)
    try:
      while True:
        answer, fds, _, _ = socket.recv_fds(s, 20000, 8)
        if not answer:
          break
        if len(answer) >= 40:
          slot, generation = struct.unpack_from("=I4xQ", answer, 16)
          seen.append((slot, generation))
          del seen[:-32]
        rubbish(fds)
    except (BlockingIOError, TimeoutError):
      pass
  s.close()

until, lives = time.monotonic() + SECONDS, 0
while time.monotonic() < until:
  try:
    life()
  except (BrokenPipeError, ConnectionError, TimeoutError, BlockingIOError):
    pass
  lives += 1
say(f"lived {lives} times")
"""

HONEST = """
import random
writer = node.create("honest half", 1 << 20)
half = bytes(range(256)) * (2 << 10)
writer.data[:1 << 19] = half
writer.publish(1 << 19)
node.put("honest kept", half)
kept = node.get("honest kept")
rounds, until = 0, time.monotonic() + SECONDS
while time.monotonic() < until:
  data = random.randbytes(random.choice([1, 1000, 70000, 300000]))
  node.put(f"honest {rounds}", data)
  assert bytes(node.get(f"honest {rounds}", timeout=60)) == data
  node.delete(f"honest {rounds}")
  assert kept == half
  rounds += 1
writer.data[1 << 19:] = half
writer.seal()
assert bytes(node.get("honest half", timeout=60)) == half + half
say(f"rounds {rounds > 2}")
"""


def descriptors(cluster):
    return len(os.listdir(f"/proc/{cluster.pid(0, 'control')}/fd"))


# [G1.10]
def rubbish_at_the_socket(seconds=8):
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        before = descriptors(cluster)
        seed = int.from_bytes(os.urandom(4), "little")
        rogues = [Task(cluster, 0, f"SEED, SECONDS = {seed + i}, {seconds}\n" + user + ROGUE)
                  for i, user in enumerate(("", BECOME_NOBODY))]
        honest = Task(cluster, 0, f"SECONDS = {seconds}\n" + HONEST)
        honest.expect("rounds True")
        lives = 0
        for rogue in rogues:
            line = rogue.heard()
            assert line.startswith("lived "), f"seed {seed}: {line}"
            lives += int(line.split()[1])
            rogue.end()
        honest.end()
        cluster.check_daemons()
        cluster.must(0, "sarissa", "rm", "honest half", "honest kept")
        # not by splitlines: names may have other ends of lines
        for line in filter(None, cluster.must(0, "sarissa", "ls", "--json").split("\n")):
            # what they sealed stays, as anybody's would, under whatever id their packets had
            cluster.run(0, "sarissa", "rm", f"id:{json.loads(line)['id']}")
        netlib.wait_for(lambda: own_status(cluster, 0)["store_used"] < MIB, netlib.PATIENCE_S,
                        f"seed {seed}: the store is empty again")
        netlib.wait_for(lambda: descriptors(cluster) <= before, netlib.PATIENCE_S,
                        f"seed {seed}: as many descriptors as before")
    return f"{lives} connections, seed {seed}"


PEEK = RAW + "s = raw_connect()" + BECOME_NOBODY + """
attached = raw_ask(s, ATTACH)
assert len(attached.fds) == 3 and attached.status == 0
for fd in attached.fds[:2]:
  mmap.mmap(fd, 4096, prot=mmap.PROT_READ).close()
  for way in (lambda: mmap.mmap(fd, 4096), lambda: os.write(fd, b"x"),
              lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR), lambda: os.ftruncate(fd, 0)):
    try:
      way()
      say("it can write")
    except OSError:
      pass
say("read only")
"""


def a_reader_cannot_write():
    """Not even by opening once more what it was given."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster:
        task = Task(cluster, 0, PEEK)
        task.expect("read only")
        task.end()


# To a client of the daemons' own user the descriptor of a CREATE opens the whole store; what is at
# its end tells the daemons what has arrived and what was sent.
SCRIBBLE = RAW + """
import random
random.seed(SEED)
s = raw_connect()
raw_ask(s, ATTACH)
made = raw_ask(s, CREATE, b"scribbler here!!", size=4096, pin=0)
size = os.fstat(made.fds[0]).st_size
m = mmap.mmap(made.fds[0], size)
step("there")
until, scratch = time.monotonic() + SECONDS, size // 128
while time.monotonic() < until:
  base, room = (size - scratch, scratch) if random.random() < 0.9 else (0, size)
  at = base + random.randrange(room // 4096) * 4096
  m[at:at + 4096] = random.choice([bytes(4096), bytes([255]) * 4096, os.urandom(4096)])
say("done")
"""


def rubbish_over_the_whole_store(seconds=8):
    """What others read is lost then; the daemons live, and the other nodes have what they had."""
    netlib.need_daemons()
    with Cluster(3, "--store", 64, "--rate", 200) as cluster, netlib.scratch() as directory:
        seed = int.from_bytes(os.urandom(4), "little")
        expected = netlib.make_file(directory / "big", 8 * MIB)
        scribbler = Task(cluster, 1, f"SEED, SECONDS = {seed}, {seconds}\n" + SCRIBBLE)
        scribbler.expect("there")
        scribbler.go_on()
        until, rounds = time.monotonic() + seconds - 1, 0
        for node in range(3):
            cluster.must(node, "sarissa", "put", f"part {node}", directory / "big")
        while time.monotonic() < until:
            cluster.run(0, "sarissa", "put", "moved", directory / "big")
            children = [cluster.start(node, "sarissa", "get", "moved", "/dev/null", "--timeout", 4,
                                      stderr=netlib.subprocess.DEVNULL) for node in (1, 2)]
            cluster.run(1, "sarissa", "reduce", "sum", "part 0", "part 1", "part 2", "--dtype",
                        "u8", "--timeout", 4, "--wait")
            for child in children:
                child.wait(timeout=60)
            cluster.run(0, "sarissa", "rm", "moved", "sum")
            rounds += 1
        scribbler.expect("done")
        scribbler.end()
        cluster.check_daemons()
        cluster.must(2, "sarissa", "get", "part 0", directory / "got", "--timeout", 20)
        assert netlib.digest_of(directory / "got") == expected, f"seed {seed}: other bytes"
        cluster.must(1, "sarissa", "put", "after", directory / "big")
        cluster.must(2, "sarissa", "get", "after", directory / "got", "--timeout", 20)
        assert netlib.digest_of(directory / "got") == expected, f"seed {seed}: other bytes after"
    return f"{rounds} rounds, seed {seed}"


netlib.run(who_creates, who_holds_what_was_deleted, who_holds_what_came_from_elsewhere, who_waits,
           who_closes_while_others_wait, who_drops_what_it_creates, twenty_at_once, a_reader_of_a_dead_creator, rubbish_at_the_socket,
           rubbish_over_the_whole_store, a_reader_cannot_write)
