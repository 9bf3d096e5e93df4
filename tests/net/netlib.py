# SPDX-License-Identifier: BSD-3-Clause
"""What the network tests share: clusters of their own name, transfers with digests, cases.

A test file calls run(case, ...): each case is a function whose name says what must hold; it raises
AssertionError when it does not, Skip when this machine cannot tell.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
from lib.cluster import counters, network, nodes, process, state  # noqa: E402
from lib.shell import build_dir, end_cleanly  # noqa: E402
from lib.test import scenarios  # noqa: E402
import sanitizer  # noqa: E402

CLUSTER = ROOT / "scripts/cluster"
TASK_S = 300  # a task is not waited for any longer
PATIENCE_S = 60  # for what happens soon: to see that it happens at all, on the busiest machine
SENDERS_IP = "10.77.200.1"  # in the switch, of those that stand beside a dataplane without control


class Skip(Exception):
    pass


def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


class Cluster:
    """A cluster for the time of a with block."""

    made = 0

    def __init__(self, count, *options, daemons=True):
        Cluster.made += 1
        self.name = f"t{os.getpid()}-{Cluster.made}"
        self.count = count
        self.options = [str(o) for o in options] + ([] if daemons else ["--bare"])

    def __enter__(self):
        try:
            done = self.cluster("up", self.count, "--owner", os.getpid(), *self.options)
            if done.returncode:
                raise AssertionError(f"cluster up failed: {tail(done.stderr, 40)}")
            self.config = state.load(self.name)
        except BaseException:
            self.cluster("down")
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind and issubclass(kind, Exception) and kind is not Skip:
                self.show_logs()
        finally:  # who would read them may have ended first
            self.cluster("down")

    def cluster(self, verb, *argv):
        """In a session of its own: an interrupt is ours, and what it cuts off is taken down."""
        return subprocess.run([str(a) for a in (CLUSTER, verb, "--name", self.name, *argv)],
                              capture_output=True, text=True, start_new_session=True)

    def show_logs(self):
        if self.config["bare"]:
            return
        for node in range(min(self.count, 4)):
            for daemon in nodes.KINDS:
                print(f"  -- {daemon} of node {node}:\n{nodes.log_tail(self.config, node, daemon)}")

    def verb(self, *argv):
        """scripts/cluster VERB ..., which must work."""
        done = self.cluster(*argv)
        assert done.returncode == 0, f"cluster {' '.join(map(str, argv))}: {tail(done.stderr)}"
        return done.stdout

    def inside(self, node, command, env=None):
        """As `cluster exec` does it, without a Python more; env: what is added."""
        argv = ["ip", "netns", "exec", network.node_netns(self.name, node), *command]
        return {"args": [str(a) for a in argv],
                "env": {**nodes.environment(self.config, node), **(env or {})}}

    def run(self, node, *command, env=None, timeout=120):
        return subprocess.run(**self.inside(node, command, env), capture_output=True, text=True,
                              timeout=timeout)

    def must(self, node, *command, **options):
        done = self.run(node, *command, **options)
        assert done.returncode == 0, \
            f"node {node}: {' '.join(map(str, command))}: exit {done.returncode}: " \
            f"{tail(done.stderr or done.stdout)}"
        return done.stdout

    def start(self, node, *command, env=None, **options):
        """Runs in the background; the caller waits for it."""
        return subprocess.Popen(**self.inside(node, command, env), **options)

    def pid(self, node, daemon):
        return nodes.pid(self.config, node, daemon)

    def pids(self):
        return [p for node in range(self.count) for daemon in nodes.KINDS
                if (p := self.pid(node, daemon)) is not None]

    def switch_netns(self):
        return network.switch_netns(self.name)

    def counters(self, node):
        return counters.read(state.node_dir(self.config, node) / "counters")

    def worker_counters(self, node):
        return counters.of_workers(state.node_dir(self.config, node) / "counters")

    def check_daemons(self):
        """Every daemon still lives, the same as at the start."""
        for node in range(self.count):
            for daemon in nodes.KINDS:
                assert self.pid(node, daemon), f"{daemon} of node {node} has died"


@contextlib.contextmanager
def dataplane_alone(cluster, node, *options):
    """A dataplane without control; neighbours find the senders in the switch."""
    config = cluster.config
    network.ip_batch(cluster.switch_netns(), [f"addr add {SENDERS_IP}/16 dev br0"])
    rundir = state.node_dir(config, node)
    rundir.mkdir(parents=True, exist_ok=True)
    nodes.start(config, node, "dataplane", *options)
    nodes.wait_dataplane(config, node, time.monotonic() + 20)
    yield rundir


def start_receiver(cluster, node, rundir, shape):
    """What stands in the place of control, and what it asks for."""
    receiver = cluster.start(node, scenarios.program("receiver"), "--rundir", rundir, "--from",
                             SENDERS_IP, "--peers", shape["peers"], "--chunks", shape["chunks"],
                             "--seconds", shape.get("seconds", 20),
                             *(["--tell"] if shape.get("tell") else []), stdout=subprocess.PIPE,
                             text=True)
    return receiver, json.loads(receiver.stdout.readline())


class Task:
    """Python code in a node, in steps: it says a line when it has come so far, and goes on when it
    is told one."""

    def __init__(self, cluster, node, code):
        begin = ("import errno, hashlib, sys, time\nsys.dont_write_bytecode = True\n"
                 f"sys.path.insert(0, '{build_dir()}/client/python')\n"
                 "import sarissa\nnode = sarissa.open()\n"
                 "def say(what):\n  print(what, flush=True)\n"
                 "def step(what):\n  say(what)\n  sys.stdin.readline()\n")
        self.child = cluster.start(node, "/usr/bin/python3", "-c", begin + code, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)

    def heard(self):
        late = threading.Timer(TASK_S, self.child.kill)
        late.start()
        line = self.child.stdout.readline().strip()
        late.cancel()
        assert line, f"the task has died, or was silent for {TASK_S} s"
        return line

    def expect(self, what):
        line = self.heard()
        assert line == what, f"the task says {line!r}, not {what!r}"

    def go_on(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self):
        self.child.stdin.close()
        assert self.child.wait(timeout=PATIENCE_S) == 0, f"exit {self.child.returncode}"

    def kill(self):
        self.child.kill()
        self.child.wait(timeout=PATIENCE_S)


def own_status(cluster, node):
    """What a node says of itself."""
    lines = cluster.must(node, "sarissa", "status", "--json").splitlines()
    return next(n for n in map(json.loads, lines) if n["self"])


def until_waiting(cluster, node, count=1):
    """So many requests of the node's clients wait."""
    def waits():
        lines = cluster.must(node, "sarissa", "status", "--counters", "--json").splitlines()
        return next(v["control"]["waits"] for v in map(json.loads, lines) if "control" in v)
    wait_for(lambda: waits() >= count, PATIENCE_S, f"{count} requests wait at node {node}")


def until_arrived(cluster, node, chunk_bytes):
    """So much has come to the node since its dataplane began."""
    wait_for(lambda: cluster.counters(node)["rx_chunk_bytes"] >= chunk_bytes, PATIENCE_S,
             f"{chunk_bytes} bytes have come to node {node}")


def private_bytes(pid):
    """RssAnon: what a process holds for itself, the shared store left out."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB", text, flags=re.M).group(1)) * 1024


@contextlib.contextmanager
def scratch():
    """A directory in memory, so that no disk is measured."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="sarissa-test-", dir=base)
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def copy_build(to, *parts):
    """Copies those parts of the build, which any user may run even where the checkout lies in a folder that is
    closed to others. They lie below `to` as in the build, with the library."""
    library = next((build_dir() / "client").glob("libsarissa.so.*.*.*"))
    for part, name in [(build_dir() / part, part) for part in parts] + [
            (library, f"client/{name}") for name in ("libsarissa.so.0", "libsarissa.so")]:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(part, to / name)
    to.chmod(0o755)


def make_file(path, size):
    """Random bytes; returns their digest."""
    digest = hashlib.blake2b()
    with open(path, "wb") as out:
        while size > 0:
            part = os.urandom(min(size, 1 << 22))
            digest.update(part)
            out.write(part)
            size -= len(part)
    return digest.hexdigest()


def digest_of(path):
    digest = hashlib.blake2b()
    with open(path, "rb") as data:
        while part := data.read(1 << 22):
            digest.update(part)
    return digest.hexdigest()


def transfer(cluster, directory, size, source=0, targets=(1,), timeout=120, name=None):
    """Put on one node, get on others, compare, remove. Returns the seconds of the gets."""
    name = name or f"object-{size}-{time.monotonic_ns()}"
    sent = directory / "sent"
    expected = make_file(sent, size)
    cluster.must(source, "sarissa", "put", name, sent, timeout=timeout)
    begin = time.monotonic()
    gets = [(node, directory / f"got-{node}") for node in targets]
    running = [(node, path, cluster.start(node, "sarissa", "get", name, path, "--timeout",
                                          timeout, stderr=subprocess.PIPE, text=True))
               for node, path in gets]
    for node, path, child in running:
        _, errors = child.communicate(timeout=timeout + 30)
        assert child.returncode == 0, \
            f"{size} bytes: get on node {node}: exit {child.returncode}: {tail(errors)}"
    took = time.monotonic() - begin
    for node, path in gets:
        assert path.stat().st_size == size, f"node {node} got {path.stat().st_size} of {size}"
        assert digest_of(path) == expected, f"{size} bytes: node {node} got other bytes"
        path.unlink()
    sent.unlink()
    cluster.must(source, "sarissa", "rm", name)
    return took


AF_XDP = 44
# what the emulated network is made of; each is a kernel option of its own
KERNEL_PARTS = (
    ("link add name pa type veth peer name pb", "veth"),
    ("link add name br type bridge", "bridge"),
    ("link add name fb type ifb", "ifb"),
)
KERNEL_QDISCS = (
    ("qdisc add dev pa clsact", "clsact"),
    ("qdisc add dev pb root handle 1: htb", "htb"),
)


@functools.cache
def missing_kernel_part():
    """The first thing that this kernel cannot do, or None."""
    netns = f"sar-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", netns], capture_output=True).returncode:
        return "network namespaces"
    try:
        for tool, parts in (("ip", KERNEL_PARTS), ("tc", KERNEL_QDISCS)):
            for command, name in parts:
                if subprocess.run([tool, "-n", netns, *command.split()],
                                  capture_output=True).returncode:
                    return name
    finally:
        subprocess.run(["ip", "netns", "del", netns], capture_output=True)
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError:
        return "AF_XDP sockets"
    return None if os.path.exists("/dev/net/tun") else "/dev/net/tun"


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root for namespaces and eBPF")
    missing = missing_kernel_part()
    if missing:
        raise Skip(f"this kernel has no {missing}")


def need_daemons():
    need_root()
    for kind in ("dataplane", "control", "cli"):
        try:
            nodes.binary(kind)
        except Exception as missing:
            raise Skip(str(missing)) from None


def need_command(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")


def wait_for(condition, seconds, text):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"{text} within {seconds} s"
        time.sleep(0.05)


def until(read, enough, text):
    """What read() gives as soon as it is enough. What a process publishes from time to time, and what it
    tells others, is old right after the act."""
    end = time.monotonic() + PATIENCE_S
    while not enough(value := read()):
        assert time.monotonic() < end, f"{text}: {value} after {PATIENCE_S} s"
        time.sleep(0.05)
    return value


def measured(measure, enough, tries=5):
    """What measure() gives, until one is enough: a machine may be busy with other things."""
    values = []
    while len(values) < tries and not (values and enough(values[-1])):
        values.append(measure())
    return values


def chosen(cases):
    """Those that $SARISSA_CASES names, or all."""
    wanted = os.environ.get("SARISSA_CASES", "").split()
    by_name = {case.__name__: case for case in cases}
    if unknown := set(wanted) - set(by_name):
        sys.exit(f"SARISSA_CASES: there is no case {unknown.pop()}: choose of {' '.join(by_name)}")
    return [by_name[name] for name in wanted] or cases


def run(*cases):
    """Runs the cases in order and exits: 1 when one failed, 77 when all were skipped. What a sanitizer
    of a daemon reports fails the case."""
    end_cleanly()
    cases = chosen(cases)
    failed = skipped = 0
    with sanitizer.reports():
        for case in cases:
            result = run_case(case)
            failed += result == "FAIL"
            skipped += result == "skip"
    sys.exit(1 if failed else 77 if skipped == len(cases) else 0)


def run_case(case):
    """ok, skip or FAIL."""
    name = case.__name__.replace("_", " ")
    begin = time.monotonic()
    result, note = "ok", None
    try:
        note = case()
    except Skip as why:
        result, note = "skip", f"{why}"
    except KeyboardInterrupt:
        print(f"FAIL {name}: interrupted", flush=True)
        sys.exit(130)
    except Exception as why:
        result, note = "FAIL", f"{why}"
        if not isinstance(why, AssertionError):
            traceback.print_exc(file=sys.stdout)
    if words := sanitizer.heard():
        result, note = "FAIL", f"a sanitizer reports:\n{words}" + (f"\n{note}" if note else "")
    if result == "ok":
        print(f"ok   {name} ({time.monotonic() - begin:.1f} s){': ' + note if note else ''}",
              flush=True)
    else:
        print(f"{result} {name}: {note}", flush=True)
    return result
