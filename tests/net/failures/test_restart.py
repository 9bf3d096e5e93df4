#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons killed and started again: what was sealed survives, what ran goes on or fails by name."""

import os
import subprocess
import time

import netlib
from netlib import Cluster, Task, nodes

MIB = 1 << 20
PORT = 7860


def put(cluster, node, name, path):
    cluster.must(node, "sarissa", "put", name, path)


def get_matches(cluster, node, name, path, expected):
    cluster.must(node, "sarissa", "get", name, path, "--timeout", 30)
    assert netlib.digest_of(path) == expected, f"node {node}: other bytes of {name}"


# [G1.6]
def objects_survive_the_death_of(daemon):
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 9 * MIB + 5)
        put(cluster, 0, "keep", directory / "sent")
        for node in (0, 1):
            cluster.verb("kill", node, daemon)
            assert cluster.pid(node, daemon) is None
            cluster.verb("start", node, daemon)
        get_matches(cluster, 0, "keep", directory / "got", expected)
        get_matches(cluster, 1, "keep", directory / "got", expected)
        put(cluster, 1, "more", directory / "sent")
        get_matches(cluster, 0, "more", directory / "got", expected)


def objects_survive_the_death_of_control():
    objects_survive_the_death_of("control")


def objects_survive_the_death_of_the_dataplane():
    objects_survive_the_death_of("dataplane")


def a_transfer_goes_on_after(node, daemon):
    netlib.need_daemons()
    with Cluster(2, "--store", 128, "--rate", 100) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 32 * MIB)
        put(cluster, 0, "cut", directory / "sent")
        child = cluster.start(1, "sarissa", "get", "cut", directory / "got", "--timeout", 60)
        netlib.until_arrived(cluster, 1, 8 * MIB)
        cluster.verb("kill", node, daemon)
        netlib.time.sleep(0.5)
        cluster.verb("start", node, daemon)
        assert child.wait(timeout=90) == 0, f"get ended with {child.returncode}"
        assert netlib.digest_of(directory / "got") == expected


def a_transfer_outlives_the_senders_dataplane():
    a_transfer_goes_on_after(0, "dataplane")


def a_transfer_outlives_the_receivers_dataplane():
    a_transfer_goes_on_after(1, "dataplane")


def a_transfer_outlives_the_senders_control():
    a_transfer_goes_on_after(0, "control")


def a_transfer_outlives_the_receivers_control():
    a_transfer_goes_on_after(1, "control")


def restart(cluster, node, pause=0.0, daemon="control"):
    cluster.verb("kill", node, daemon)
    netlib.time.sleep(pause)
    cluster.verb("start", node, daemon)


WAIT = """
step("begun")
view = node.get("late", timeout=60, raw=True)
say(bytes(view[:5]).decode())
try:
  node.get("never", timeout=1, raw=True)
except TimeoutError as e:
  say("late")
begin = time.monotonic()
step("away")
try:
  node.get("never", timeout=1, raw=True)
except sarissa.Error as e:
  say(f"{e.errno == errno.ENOTCONN} {e.strerror[:33]} {0.9 < time.monotonic() - begin < 15}")
step("back")
node.put("more", b"more")
say(bytes(node.get("more", raw=True)).decode())
"""


def a_blocked_get_goes_on():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        (directory / "late").write_bytes(b"here!")
        task = Task(cluster, 1, WAIT)
        task.expect("begun")
        task.go_on()
        netlib.until_waiting(cluster, 1)
        restart(cluster, 1, pause=0.3)
        restart(cluster, 1)
        put(cluster, 0, "late", directory / "late")
        task.expect("here!")
        task.expect("late")
        task.expect("away")
        cluster.verb("kill", 1, "control")
        task.go_on()
        task.expect("True 'never': no control on this node: True")
        cluster.verb("start", 1, "control")
        task.expect("back")
        task.go_on()
        task.expect("more")
        task.end()


CREATE = """
writer = node.create("half", 8 << 20)
half = bytes(range(256)) * (4 << 12)
writer.data[:4 << 20] = half
writer.publish(3 << 20)
step("half")
writer.data[4 << 20:] = half
writer.publish(5 << 20)
step("published")
writer.seal()
step(hashlib.sha256(half + half).hexdigest())
"""


def what_is_being_created_outlives_control():
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        task = Task(cluster, 0, CREATE)
        task.expect("half")
        reader = cluster.start(1, "sarissa", "get", "half", directory / "got", "--timeout", netlib.PATIENCE_S)
        netlib.until_waiting(cluster, 1)
        restart(cluster, 0)
        again = cluster.run(1, "sarissa", "put", "half", "/dev/null", timeout=20)
        assert again.returncode == 1, f"the name was free: exit {again.returncode}"
        task.go_on()
        task.expect("published")
        restart(cluster, 0)
        task.go_on()
        expected = task.heard()
        assert reader.wait(timeout=netlib.TASK_S) == 0, "the reader elsewhere has not got it"
        got = netlib.hashlib.sha256((directory / "got").read_bytes()).hexdigest()
        assert got == expected, "other bytes"
        task.go_on()
        task.end()


def what_a_dead_client_was_creating_goes():
    """It dies while there is no control: nobody sees it go."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
        (directory / "late").write_bytes(b"here!")
        task = Task(cluster, 0, CREATE)
        idle = Task(cluster, 0, WAIT)
        task.expect("half")
        idle.expect("begun")
        for order in ("kill, start", "start, kill"):
            cluster.verb("kill", 0, "control")
            if order == "kill, start":
                task.kill()
            cluster.verb("start", 0, "control")
            if order == "start, kill":
                task.kill()
            idle.go_on()  # else its old table keeps what was there in its place
            put(cluster, 0, "late", directory / "late")
            idle.expect("here!")
            idle.kill()
            netlib.wait_for(lambda: netlib.own_status(cluster, 0)["store_used"] < MIB,
                            netlib.PATIENCE_S, "the space comes back")
            assert cluster.run(0, "sarissa", "stat", "half").returncode == 4
            cluster.must(0, "sarissa", "rm", "late")
            task, idle = Task(cluster, 0, CREATE), Task(cluster, 0, WAIT)
            task.expect("half")
            idle.expect("begun")


REDUCE = """
node.reduce("sum", ["a", "b"], dtype="u8", timeout=60)
step("asked")
names = node.reduce_sources("sum", timeout=60)
say(len(names))
view = node.get("sum", timeout=60, raw=True)
say(f"{view[0]} {view[len(view) - 1]} {len(view)}")
"""


def a_wait_for_a_reduce_goes_on():
    netlib.need_daemons()
    with Cluster(3, "--store", 64) as cluster, netlib.scratch() as directory:
        (directory / "a").write_bytes(b"\1" * MIB)
        (directory / "b").write_bytes(b"\2" * MIB)
        put(cluster, 1, "a", directory / "a")
        for node in range(3):  # each of them may own the target
            task = Task(cluster, node, REDUCE)
            task.expect("asked")
            task.go_on()
            netlib.until_waiting(cluster, node)
            restart(cluster, node)
            put(cluster, 2, "b", directory / "b")
            task.expect("2")
            task.expect(f"3 3 {MIB}")
            task.end()
            cluster.must(0, "sarissa", "rm", "sum", "b")


WORK = """
import random
random.seed(SEED)
step("ready")
kept, there, rounds, until = [], [], 0, time.monotonic() + SECONDS
while time.monotonic() < until:
  name = f"{SEED} {rounds}"
  data = random.randbytes(random.choice([10, 5000, 100000, 600000]))
  if rounds % 3:
    node.put(name, data)
  else:
    with node.create(name, len(data)) as writer:
      half = len(data) // 2
      writer.data[:half] = data[:half]
      writer.publish(half)
      time.sleep(0.01)
      writer.data[half:] = data[half:]
  view = node.get(name, timeout=20, raw=True)
  assert view == data, f"other bytes of {name}"
  kept.append((data, view))
  if len(kept) > 5:
    old = kept.pop(0)
    assert old[0] == old[1], "what was held has changed"
    old = None
  there.append(name)
  if rounds % 2:
    node.delete(there.pop())
  elif len(there) > 50: # on a fast machine the store would fill
    node.delete(there.pop(0))
  rounds += 1
say(f"did {rounds}")
"""


def clients_work_while_controls_die():
    """Puts, creations, gets, deletes and held views, on two nodes whose controls are killed again
    and again: all succeed, with the right bytes, and nothing is left over."""
    netlib.need_daemons()
    seconds, restarts = 12, 0
    with Cluster(2, "--store", 128) as cluster:
        tasks = [Task(cluster, i % 2, f"SEED, SECONDS = {i}, {seconds}\n" + WORK) for i in range(4)]
        for task in tasks:
            task.expect("ready")
        for task in tasks:
            task.go_on()
        until = netlib.time.monotonic() + seconds - 2
        while netlib.time.monotonic() < until:
            restart(cluster, restarts % 2, pause=0.2 * (restarts % 3))
            netlib.time.sleep(0.3)
            restarts += 1
        rounds = 0
        for task in tasks:
            line = task.heard()
            assert line.startswith("did "), line
            rounds += int(line.split()[1])
            task.end()
        for line in cluster.must(0, "sarissa", "ls", "--json").splitlines():
            cluster.must(0, "sarissa", "rm", netlib.json.loads(line)["name"])
        for node in (0, 1):
            netlib.wait_for(lambda: netlib.own_status(cluster, node)["store_used"] == 0,
                            netlib.PATIENCE_S,
                            f"the store of node {node} is empty again")
    return f"{rounds} rounds, {restarts} restarts"


TAKE = """
for at in range(TRIALS):
  step("ready")
  took, names, until = [], [f"sealed {at} {i}" for i in range(3)], time.monotonic() + 2
  while time.monotonic() < until and not took:
    for name in names:
      try:
        took.append(node.create(name, 100))
      except OSError as e:
        assert e.errno in (errno.EEXIST, errno.EAGAIN), str(e)
  say(f"took {len(took)}")
"""


def deaths(cluster, observers):
    """How often they have taken a node for dead."""
    logs = [netlib.nodes.log_file(cluster.config, node, "control") for node in observers]
    return sum(log.read_text().count("taken for dead") for log in logs)


def nobody_takes_the_place_of(daemon, trials):
    """Another node creates the same ids all the while that the only holder is killed and started."""
    netlib.need_daemons()
    counted = 0
    with Cluster(3, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 100_000)
        task = Task(cluster, 1, f"TRIALS = {trials}\n" + TAKE)
        for at in range(trials):
            names = [f"sealed {at} {i}" for i in range(3)]
            for name in names:
                put(cluster, 0, name, directory / "sent")
            task.expect("ready")
            died = deaths(cluster, (1, 2))
            task.go_on()
            restart(cluster, 0, daemon=daemon)
            took = task.heard()
            if deaths(cluster, (1, 2)) != died:
                continue  # it took so long that the others could only take it for dead
            counted += 1
            assert took == "took 0", f"a sealed object was replaced: {took}"
            for name in names:
                get_matches(cluster, 2, name, directory / "got", expected)
        task.end()
    if counted == 0:
        raise netlib.Skip("this machine starts a node slower than the others take it for dead")
    return f"{counted} of {trials} restarts within the time"


def nobody_takes_what_a_restarting_dataplane_holds():
    return nobody_takes_the_place_of("dataplane", 6)


def nobody_takes_what_a_restarting_control_holds():
    return nobody_takes_the_place_of("control", 6)


HOLD = """
view = node.get("held", timeout=30, raw=True)
for _ in range(2):
  step(hashlib.sha256(view).hexdigest())
"""


def what_a_reader_holds_outlives_control():
    """The new control knows no pins of the old one's clients: it frees nothing under them."""
    netlib.need_daemons()
    with Cluster(1, "--store", 64) as cluster, netlib.scratch() as directory:
        netlib.make_file(directory / "sent", 20 * MIB)
        put(cluster, 0, "held", directory / "sent")
        reader = Task(cluster, 0, HOLD).child
        before = reader.stdout.readline()
        cluster.verb("kill", 0, "control")
        cluster.verb("start", 0, "control")
        cluster.must(0, "sarissa", "rm", "held")
        netlib.make_file(directory / "other", 20 * MIB)
        put(cluster, 0, "b", directory / "other")
        put(cluster, 0, "c", directory / "other")  # three do fit: the held one keeps its place
        full = cluster.run(0, "sarissa", "put", "d", directory / "other")
        assert full.returncode == 1, "a fourth has room: the held one was freed"
        reader.stdin.write("\n")
        reader.stdin.flush()
        after = reader.stdout.readline()
        assert before and before == after, f"held {before.strip()}, now {after.strip()}"
        reader.stdin.write("\n")
        reader.stdin.close()
        reader.wait(timeout=netlib.PATIENCE_S)
        netlib.wait_for(lambda: cluster.run(0, "sarissa", "put", "d", directory / "other")
                        .returncode == 0, netlib.PATIENCE_S, "the space comes back")


UNREAD = """
step("ready")
for name in ("array", "streamed"):
  a = node.get(name, timeout=0)
  say(f"{a.dtype} {a.shape} {a.sum()}")
"""


def arrays_are_read_without_control():
    """Their bytes and what says that they are arrays are in the store: also of those that this client has not seen."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster:
        Task(cluster, 0, """
import numpy
node.put("array", numpy.arange(6, dtype="i4").reshape(2, 3))
""").end()
        Task(cluster, 1, """
import numpy
node.put("streamed", numpy.ones((3, 1 << 20), "f4"))
node.get("array")
""").end()
        Task(cluster, 0, "node.get('streamed', timeout=30)").end()
        for node in (0, 1):
            client = Task(cluster, node, UNREAD)
            client.expect("ready")
            cluster.verb("kill", node, "control")
            client.go_on()
            client.expect("int32 (2, 3) 15")
            client.expect("float32 (3, 1048576) 3145728.0")
            client.end()
            cluster.verb("start", node, "control")


def a_restarted_node_is_a_new_one():
    """All of node 0 dies, its objects with it; it is not mistaken for its earlier life."""
    netlib.need_daemons()
    with Cluster(2, "--store", 64) as cluster, netlib.scratch() as directory:
        expected = netlib.make_file(directory / "sent", 5 * MIB)
        put(cluster, 1, "here", directory / "sent")
        put(cluster, 0, "gone", directory / "sent")
        cluster.verb("kill", 0, "node")
        cluster.verb("start", 0)
        put(cluster, 0, "again", directory / "sent")
        get_matches(cluster, 1, "again", directory / "got", expected)
        get_matches(cluster, 0, "here", directory / "got", expected)
        done = cluster.run(1, "sarissa", "get", "gone", directory / "got", "--timeout", 2)
        assert done.returncode in (3, 4), f"exit {done.returncode}: {done.stderr}"


def control_ended_by_a_signal_frees_no_name():
    """As systemctl restart ends it. Others may not put its names meanwhile, and find all objects afterwards; one that
    leaves by command is missed by nobody."""
    netlib.need_daemons()
    with Cluster(3, "--store", 64) as cluster, netlib.scratch() as directory:
        names = [f"kept{i}" for i in range(6)]
        expected = netlib.make_file(directory / "sent", 200000)
        netlib.make_file(directory / "other", 200000)
        for name in names:
            put(cluster, 0, name, directory / "sent")
        cluster.verb("kill", 0, "control", "TERM")
        others = [cluster.start(1, "sarissa", "put", name, directory / "other", stderr=subprocess.PIPE, text=True)
                  for name in names]
        time.sleep(4.5)  # longer than the silence after which a control is taken for dead
        cluster.verb("start", 0, "control")
        for name, other in zip(names, others):
            said = other.communicate(timeout=netlib.TASK_S)[1]
            assert other.returncode == 1 and "exists already" in said, f"{name}: exit {other.returncode}: {said}"
            get_matches(cluster, 2, name, directory / "got", expected)
        cluster.must(2, "sarissa", "leave")
        cluster.must(0, "sarissa", "rm", *names)
        cluster.verb("start", 2, "control")
        netlib.wait_for(lambda: cluster.run(2, "sarissa", "ls").returncode == 0, netlib.PATIENCE_S, "it is a member again")


class Contained:
    """A node on loopback whose daemons see no process but their own (a pid namespace for each)."""

    def __init__(self, rundir):
        self.rundir, self.children = rundir, {}

    def __enter__(self):
        self.begin("dataplane", "--port", "udp:127.0.0.1", "--udp-port", PORT, "--store", 64)
        self.begin("control", "--node", 0, "--nodes", f"127.0.0.1:{PORT}")
        return self

    def __exit__(self, *_):
        for kind in self.children:
            self.kill(kind)

    def begin(self, kind, *options):
        argv = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", nodes.binary(kind), "--rundir",
                self.rundir, *options)
        self.children[kind] = child = subprocess.Popen([str(a) for a in argv], stderr=subprocess.PIPE, text=True)
        word = "this is node 0" if kind == "control" else "ready on"
        assert any(word in line for line in child.stderr), f"{kind} has ended"
        if kind == "control":
            netlib.wait_for(lambda: self.start(0, nodes.binary("cli"), "status", stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL).wait() == 0,
                            netlib.PATIENCE_S, "control answers")

    def kill(self, kind):
        """With --kill-child the daemon gets the same."""
        self.children[kind].kill()
        self.children[kind].communicate()

    def start(self, _, *argv, **options):
        env = {**os.environ, "SARISSA_SOCKET": f"{self.rundir}/control.sock"}
        return subprocess.Popen([str(a) for a in argv], env=env, **options)


CONTAINED = """
lease = node.lease(ttl=1)
lease.put("leased", b"x" * 100)
writer = node.create("half", 200)
writer.write(b"y" * 100)
writer.flush()
step("ready")
writer.write(b"y" * 100)
writer.seal()
step("sealed")
"""


def a_control_that_sees_no_process_keeps_what_is_theirs():
    """Clients that have no reason to call lose no lease and no object under creation; those that are dead do."""
    netlib.need_daemons()
    with netlib.scratch() as directory, Contained(directory) as node:
        client = Task(node, 0, CONTAINED)
        client.expect("ready")
        for _ in range(2):
            node.kill("control")
            node.begin("control", "--node", 0, "--nodes", f"127.0.0.1:{PORT}")
            time.sleep(3)  # the lease has one second
            looker = Task(node, 0, "say(len(node.get('leased', timeout=0)))")
            looker.expect("100")
            looker.end()
        client.go_on()
        client.expect("sealed")
        node.kill("control")
        client.kill()
        node.begin("control", "--node", 0, "--nodes", f"127.0.0.1:{PORT}")
        looker = Task(node, 0, "while 'leased' in [o.name for o in node.ls()]: time.sleep(0.1)\n"
                               "say(len(node.get('half', timeout=0)))")
        looker.expect("200")
        looker.end()


netlib.run(objects_survive_the_death_of_control, control_ended_by_a_signal_frees_no_name, objects_survive_the_death_of_the_dataplane,
           a_transfer_outlives_the_senders_dataplane, a_transfer_outlives_the_receivers_dataplane,
           a_transfer_outlives_the_senders_control, a_transfer_outlives_the_receivers_control,
           nobody_takes_what_a_restarting_dataplane_holds,
           nobody_takes_what_a_restarting_control_holds, a_blocked_get_goes_on, what_is_being_created_outlives_control,
           what_a_dead_client_was_creating_goes, clients_work_while_controls_die, a_wait_for_a_reduce_goes_on,
           what_a_reader_holds_outlives_control, a_restarted_node_is_a_new_one,
           arrays_are_read_without_control, a_control_that_sees_no_process_keeps_what_is_theirs)
