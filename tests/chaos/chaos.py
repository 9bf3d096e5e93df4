#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Real nodes and tasks on them, while processes are killed, cables pulled, packets lost; all from a
seed. Every result is verified, every call ends in time with right bytes or a named error; when all
is healed everything works, and nothing is left over.

usage: chaos.py [--seed N] [--seconds S] [--nodes N] [--only KIND,...] [--keep]

Seed 0 draws one. What happens when follows from the seed; what meets what is up to the machine.
"""

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "net"))
import netlib  # noqa: E402
from lib.cluster import faults, network, nodes, process  # noqa: E402
import content  # noqa: E402
import journal  # noqa: E402
import leaks  # noqa: E402
import limits  # noqa: E402
import schedule  # noqa: E402

HERE = Path(__file__).resolve().parent
SEED, SECONDS = 1, 30
DRIVERS = 2        # of each node
STORE_MIB = 96     # of each node
SETTLE_S = 15.0    # in which a healed cluster must be whole
MEET_S = 3.0       # in which a driver does what it is to be killed at
END_S = 90.0       # in which drivers must have ended
EMPTY_S = 20.0     # in which what was deleted must be gone
BACK_S = 5.0       # in which a node that was away is a member again, with its store


class Chaos:
    def __init__(self, cluster, options, directory):
        self.cluster, self.options, self.directory = cluster, options, directory
        self.config = cluster.config
        self.wrong = []                    # what must not be, in words
        self.lost = {}                     # node -> when its store was lost last
        self.losses = []                   # (node, begin, end): until it answers again
        self.away = []                     # (nodes, begin, end): others may take them for dead
        self.apart = []                    # (nodes, begin, end): they see each other, and no others
        self.lives = Counter()             # of the drivers of (node, index)
        self.drivers = {}                  # (node, index) -> (who, child)
        self.down = set()                  # (node, kind) that we have killed
        self.begun = time.monotonic()
        self.pids = set()
        self.before = [leaks.own(self.config, node) for node in range(self.config["nodes"])]
        self.busy = defaultdict(threading.Lock)  # what one trouble has for itself

    def say(self, text):
        print(f"{time.monotonic() - self.begun:7.2f}  {text}", flush=True)

    def fail(self, text):
        self.say(f"WRONG: {text}")
        self.wrong.append(text)

    # ---- drivers ---------------------------------------------------------------------------

    def spawn(self, node, who, life):
        env = {**nodes.environment(self.config, node),
               "PYTHONPATH": str(netlib.build_dir() / "client/python")}
        argv = ["ip", "netns", "exec", network.node_netns(self.config["name"], node),
                "/usr/bin/python3", HERE / "driver.py", self.options.seed, who, self.directory,
                life]
        with open(self.directory / f"{who}.err", "ab") as err:
            return subprocess.Popen([str(a) for a in argv], env=env, stdout=err, stderr=err,
                                    stdin=subprocess.DEVNULL)

    def start_driver(self, node, index):
        life = self.lives[node, index]
        self.lives[node, index] += 1
        who = f"{node}.{index}.{life}"
        self.drivers[node, index] = who, self.spawn(node, who, "work")

    def look_at_drivers(self):
        """Calls that should have ended, drivers that have ended."""
        for key, (who, child) in list(self.drivers.items()):
            calls = [line for line in journal.recent(self.directory / f"{who}.log")
                     if line.word in ("call", "done")]
            if calls and calls[-1].word == "call" and child.poll() is None:
                limit, op, name = calls[-1].rest.split(" ")
                if time.monotonic() > calls[-1].at + float(limit) + 5:
                    self.fail(f"driver {who} hangs: {op} {name} for more than {limit} s")
                    self.dump(who, child)
                    self.drivers.pop(key, None)
            elif child.poll() not in (None, 0) and self.drivers.get(key) == (who, child):
                self.fail(self.last_words(who, child))
                self.drivers.pop(key, None)

    def last_words(self, who, child):
        text = (self.directory / f"{who}.err").read_text().strip()
        return f"driver {who} ended with {child.returncode}: {netlib.tail(text)}"

    def dump(self, who, child):
        child.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        process.end(child.pid)
        self.say((self.directory / f"{who}.err").read_text())

    # ---- troubles: each in a thread of its own -----------------------------------------------

    def kill(self, node, kind):
        self.down.add((node, kind))
        pid = nodes.pid(self.config, node, kind)
        if pid is None:
            return self.fail(f"{kind} of node {node} was dead before it was killed")
        process.end(pid)

    def start(self, node, *kinds):
        """What is dead, until the node answers."""
        until = time.monotonic() + nodes.READY_S
        for kind in kinds:  # so that a dead one is not waited for, nor blamed
            nodes.forget(self.config, node, kind)
        for kind in kinds:
            nodes.start(self.config, node, kind)
            self.pids.add(nodes.pid(self.config, node, kind))
            self.down.discard((node, kind))
            if kind == "dataplane":
                nodes.wait_dataplane(self.config, node, until)
        nodes.wait_answers(self.config, node, until)
        for kind in kinds:  # which depends on whether huge pages were free
            self.before[node][kind]["bytes"] = netlib.private_bytes(
                nodes.pid(self.config, node, kind))

    def trouble_control(self, t):
        self.kill(t.node, "control")
        time.sleep(t.lasts)
        self.start(t.node, "control")

    def trouble_dataplane(self, t):
        self.kill(t.node, "dataplane")
        time.sleep(t.lasts)
        self.start(t.node, "dataplane")

    def trouble_turn(self, t):
        self.trouble_control(t)
        self.trouble_dataplane(t)

    def trouble_node(self, t):
        for kind in nodes.KINDS:
            self.kill(t.node, kind)
        begin = self.lost[t.node] = time.monotonic()
        time.sleep(t.lasts)
        self.start(t.node, *nodes.KINDS)
        self.losses.append((t.node, begin, time.monotonic()))

    def trouble_freeze(self, t):
        pid = nodes.pid(self.config, t.node, t.detail)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(t.lasts)
        finally:
            os.kill(pid, signal.SIGCONT)

    def trouble_client(self, t):
        index, word = t.detail
        key = t.node, index
        who, child = self.drivers.get(key, (None, None))
        if child is None:
            return
        self.wait_for_line(who, word)
        if self.drivers.pop(key, None) is None:
            return
        if child.poll() not in (None, 0):
            self.fail(self.last_words(who, child))
        process.end(child.pid)
        child.wait()
        time.sleep(t.lasts)
        self.start_driver(*key)

    def wait_for_line(self, who, word):
        """Until it has just written that word, for a while."""
        until = time.monotonic() + MEET_S
        while word and time.monotonic() < until:
            lines = journal.recent(self.directory / f"{who}.log")
            if lines and lines[-1].word == word:
                return
            time.sleep(0.01)

    def trouble_cut(self, t):
        network.set_link(self.config, t.node, False)
        time.sleep(t.lasts)
        network.set_link(self.config, t.node, True)

    def trouble_flap(self, t):
        for _ in range(t.detail):
            network.set_link(self.config, t.node, False)
            time.sleep(t.lasts / t.detail / 2)
            network.set_link(self.config, t.node, True)
            time.sleep(t.lasts / t.detail / 2)

    def trouble_lossy(self, t):
        faults.apply(self.config, t.node, "to", t.detail)
        time.sleep(t.lasts)
        faults.apply(self.config, t.node, "to", dict.fromkeys(faults.KINDS, 0))

    def trouble_split(self, t):
        network.split(self.config, t.detail)
        time.sleep(t.lasts)
        network.split(self.config, [])

    def run_trouble(self, t):
        lock = self.busy[schedule.busy_with(t.kind, t.node)]
        text = f"{t.kind} of node {t.node} {'' if t.detail is None else t.detail}"
        if not lock.acquire(blocking=False):
            return self.say(f"{text}: left out, the one before takes long")
        self.say(f"{text} for {t.lasts:.2f} s")
        begin = time.monotonic()
        try:
            getattr(self, f"trouble_{t.kind}")(t)
        except BaseException as why:
            self.fail(f"{text}: {why}")
        finally:
            end = time.monotonic()
            self.away.append((schedule.hides(t, self.config["nodes"]), begin, end))
            self.apart += [(side, begin, end) for side in schedule.sides(t, self.config["nodes"])]
            lock.release()

    # ---- the run ---------------------------------------------------------------------------

    def storm(self):
        plan = schedule.make(self.options.seed, self.options.seconds, self.config["nodes"],
                             DRIVERS, self.options.only)
        for node, index in itertools.product(range(self.config["nodes"]), range(DRIVERS)):
            self.start_driver(node, index)
        threads, begin = [], time.monotonic()
        for t in plan + [None]:
            until = begin + (t.at if t else self.options.seconds)
            while time.monotonic() < until and not self.wrong:
                self.look_at_drivers()
                self.look_at_daemons()
                time.sleep(min(0.2, max(0.0, until - time.monotonic())))
            if t and not self.wrong:
                threads.append(threading.Thread(target=self.run_trouble, args=(t,)))
                threads[-1].start()
        for thread in threads:
            thread.join()
        return Counter(t.kind for t in plan)

    def look_at_daemons(self):
        for node, kind in itertools.product(range(self.config["nodes"]), nodes.KINDS):
            if (node, kind) not in self.down and nodes.pid(self.config, node, kind) is None:
                time.sleep(0.2)  # a thread of ours may just have killed it, or started another
                if (node, kind) not in self.down and nodes.pid(self.config, node, kind) is None:
                    self.fail(f"{kind} of node {node} has died by itself:\n"
                              f"{nodes.log_tail(self.config, node, kind)}")
                    self.down.add((node, kind))

    def wait_whole(self):
        """Every node answers, and sees all others."""
        until = time.monotonic() + SETTLE_S
        for node in range(self.config["nodes"]):
            while True:
                rows = nodes.status_lines(self.config, node)
                if rows and all(row["state"] == "up" for row in rows):
                    break
                if time.monotonic() > until:
                    seen = {row["node"]: row["state"] for row in rows}
                    return self.fail(f"node {node}, {SETTLE_S:.0f} s after the last trouble, sees "
                                     f"{seen or 'nothing: it does not answer'}")
                time.sleep(0.1)

    def end_drivers(self):
        (self.directory / "stop").touch()
        until = time.monotonic() + END_S
        while self.drivers and time.monotonic() < until and not self.wrong:
            self.look_at_drivers()
            for key, (_, child) in list(self.drivers.items()):
                if child.poll() == 0:
                    self.drivers.pop(key, None)
            time.sleep(0.05)
        for who, child in self.drivers.values():
            if not self.wrong:
                self.fail(f"driver {who} does not end")
            process.end(child.pid)

    def drive(self, life, which):
        """Drivers of another kind, to their end."""
        children = [(f"{life}{node}", self.spawn(node, f"{life}{node}", life)) for node in which]
        for who, child in children:
            try:
                child.wait(timeout=END_S * 2)
            except subprocess.TimeoutExpired:
                self.fail(f"driver {who} does not end")
                self.dump(who, child)
                continue
            if child.returncode:
                self.fail(self.last_words(who, child))

    def judge_losses(self):
        """What was said to be lost: its only holder was away, or in another part of the cluster."""
        for path in self.directory.glob("*.log"):
            op = name = None
            for line in journal.read(path):
                if line.word == "call":
                    _, op, name = line.rest.split(" ")
                elif line.word == "done" and " ENODATA" in line.rest and op == "get" and \
                        content.kind_of(name) != "r" and \
                        not self.was_away(content.node_of(name), line.at):
                    self.fail(f"driver {path.stem}: get {name}: {line.rest}, and its node was there")

    def was_away(self, node, at):
        return any(node in which and begin < at < end + BACK_S for which, begin, end in self.away)

    def sweep(self):
        """What must be there, is; what must not, is not; then all is deleted."""
        every, put, kept, deleted, back = set(), set(), set(), set(), set()
        for path in self.directory.glob("*.log"):
            lines = journal.read(path)
            every |= {line.rest.split(" ")[0] for line in lines if line.word == "try"}
            put |= {line.rest.split(" ")[0] for line in lines if line.word == "put"}
            deleted |= {line.rest for line in lines if line.word == "deleted"
                        and content.kind_of(line.rest) != "r"}
            if path.stem[0].isdigit():  # while there was trouble
                back |= self.may_return(int(path.stem.split(".")[0]), lines)
            living = set(journal.living(lines))
            for line in lines:
                name, _, begun = line.rest.partition(" ")
                if line.word == "put" and name in living and not self.is_lost(name, float(begun)):
                    kept.add(name)
        begun = {name for name in every - put if content.kind_of(name) != "r"}
        for file, names in (("kept", kept), ("begun", begun), ("deleted", deleted - back),
                            ("all", every)):
            (self.directory / file).write_text("\n".join(sorted(names)))
        self.say(f"{len(kept)} objects must be there; {len(every)} names were used; of {len(deleted)} "
                 f"deleted {len(deleted & back)} may be back")
        self.drive("sweep", [random.Random(self.options.seed).randrange(self.config["nodes"])])

    def may_return(self, node, lines):
        """What a driver on that node deleted in vain: nobody is left who knew of it."""
        asked, names = {}, set()
        for line in lines:
            if line.word == "gone":
                asked[line.rest] = line.at
            elif line.word == "deleted" and limits.may_return(
                    (node, asked[line.rest], line.at), self.apart, self.losses, self.away):
                names.add(line.rest)
        return names

    def is_lost(self, name, begun):
        return self.lost.get(content.node_of(name), -1.0) >= begun

    def check_empty(self):
        until = time.monotonic() + EMPTY_S
        while True:
            words = [w for node in range(self.config["nodes"])
                     for w in leaks.of_node(self.config, node, self.before[node])]
            if not words or time.monotonic() > until:
                break
            time.sleep(0.5)
        for word in words:
            self.fail(f"left over: {word}")

    def run(self):
        self.pids |= set(self.cluster.pids())
        kinds = self.storm()
        if not self.wrong:
            self.say("healed")
            self.wait_whole()
        self.end_drivers()
        self.judge_losses()
        if not self.wrong:
            self.drive("calm", range(self.config["nodes"]))
        if not self.wrong:
            self.sweep()
        if not self.wrong:
            self.check_empty()
        self.look_at_daemons()
        self.report(kinds)

    def report(self, kinds):
        ends, took = Counter(), {}
        for path in self.directory.glob("*.log"):
            op = None
            for line in journal.read(path):
                if line.word == "call":
                    op = line.rest.split(" ")[1]
                elif line.word == "done":
                    seconds, _, result = line.rest.partition(" ")
                    ends[op, result.split(":")[0]] += 1
                    took[op] = max(took.get(op, 0.0), float(seconds))
        self.say("troubles: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
        for op in sorted(took):
            words = ", ".join(f"{n} {end}" for (o, end), n in sorted(ends.items()) if o == op)
            self.say(f"{op:<8} {words}; longest {took[op]:.1f} s")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ
    parser.add_argument("--seed", type=int, default=int(env.get("CHAOS_SEED", SEED)),
                        help=f"default: $CHAOS_SEED, or {SEED}")
    parser.add_argument("--seconds", type=float, default=float(env.get("CHAOS_SECONDS", SECONDS)),
                        help=f"of trouble (default: $CHAOS_SECONDS, or {SECONDS})")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="KIND,...",
                        help=f"of {' '.join(schedule.KINDS)}")
    parser.add_argument("--keep", action="store_true", help="leave journals and logs in /tmp")
    options = parser.parse_args()
    options.seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    unknown = set(options.only or ()) - set(schedule.KINDS)
    if unknown:
        parser.error(f"no kind '{unknown.pop()}'")
    return options


def keep(cluster, directory, seed):
    to = Path(f"/tmp/sarissa-chaos-{seed}-{os.getpid()}")
    shutil.copytree(directory, to)
    for node, kind in itertools.product(range(cluster.count), nodes.KINDS):
        shutil.copy(nodes.log_file(cluster.config, node, kind), to / f"node{node}.{kind}.log")
    print(f"journals and logs: {to}")


def again(options):
    """The command that repeats the run."""
    only = f" --only {','.join(options.only)}" if options.only else ""
    return (f"tests/chaos/chaos.py --seed {options.seed} --seconds {options.seconds:g} "
            f"--nodes {options.nodes}{only}")


def chaos():
    netlib.need_daemons()
    options = parse()
    print(f"again: {again(options)}", flush=True)
    with netlib.scratch() as directory:
        with netlib.Cluster(options.nodes, "--store", STORE_MIB) as cluster:
            run = Chaos(cluster, options, directory)
            try:
                run.run()
            finally:
                for _, child in run.drivers.values():
                    process.end(child.pid)
                if options.keep or run.wrong:
                    keep(cluster, directory, options.seed)
        for word in leaks.of_cluster(cluster.name, run.pids):
            run.fail(f"left over: {word}")
    assert not run.wrong, "\n".join([*run.wrong, f"again: {again(options)}"])
    return f"seed {options.seed}"


netlib.run(chaos)
