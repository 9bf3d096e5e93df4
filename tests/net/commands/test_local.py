#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`sarissa local`: a cluster on loopback addresses that a user without any privilege starts."""

import datetime
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import netlib
from lib import options

USER = 65534
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"  # of a log line that goes to no journal
MIB = 1 << 20
PROGRAMS = {"sarissa": "client/cli/sarissa", "sarissa-dataplane": "dataplane/sarissa-dataplane",
            "sarissa-control": "control/sarissa-control"}


class Home:
    """A runtime directory of the unprivileged user, and a copy of the programs that it may run even
    where the checkout lies in a folder that is closed to others."""

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
        self.run_dir = self.dir / "run"
        self.run_dir.mkdir()
        netlib.copy_build(self.dir / "build", *PROGRAMS.values())
        os.chown(self.run_dir, USER, USER)
        os.chmod(self.run_dir, 0o700)
        os.chmod(self.dir, 0o755)
        return self

    def __exit__(self, *_):
        self.local("down")
        shutil.rmtree(self.dir, ignore_errors=True)

    def command(self, *argv, program="sarissa", **options):
        """Runs a program as the user, without capabilities and without a way to get some."""
        return subprocess.run(self.wrapped(program, *argv), env=self.env(), cwd="/",
                              timeout=netlib.TASK_S, capture_output=True, **options)

    def env(self):
        return {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(self.run_dir)}

    def wrapped(self, program, *argv):
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
                "--inh-caps=-all", "--bounding-set=-all", self.dir / "build" / PROGRAMS[program],
                *map(str, argv)]

    def local(self, *argv, **options):
        return self.command("local", *argv, **options)

    def task(self, node, *argv, **options):
        return self.local("exec", node, "--", "sarissa", *argv, **options)

    def rows(self):
        return [json.loads(line) for line in self.local("status", "--json").stdout.splitlines()]


def doctor_asks_for_nothing_that_sockets_do_not_need():
    """Not for huge pages, although the store is larger than all of them; not for locked memory."""
    now = options.memory()
    store = (now["HugePages_Total"] * now["Hugepagesize"] >> 10) + 64
    with Home() as home:
        done = subprocess.run(["prlimit", "--memlock=65536", *map(str, home.wrapped(
            "sarissa", "local", "up", 1, "--store", store))], env=home.env(), cwd="/", capture_output=True)
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in home.task(0, "doctor", "--json").stdout.splitlines()]
        asked = [row for row in rows if row["level"] != "ok"
                 and row["check"] in ("huge pages", "memlock", "af_xdp", "kernel")]
        assert not asked, asked
        assert any(row["check"] == "huge pages" and "none needed" in row["text"] for row in rows), rows


def gone(pid):
    """Also one that nobody has waited for yet. All of its threads have ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 0)[0])
    finally:
        os.close(fd)


def good(done):
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode()}"
    return done.stdout


def wrong(done, status, *words):
    text = done.stderr.decode()
    assert done.returncode == status, f"exit {done.returncode}, not {status}: {text}"
    assert text.count("\n") == 1 and re.match(rf"({TIME} )?sarissa", text), text
    for word in words:
        assert word in text, f"'{word}' is not in: {text}"


def a_user_without_privileges_broadcasts_and_reduces():
    with Home() as home:
        good(home.local("up", 4))
        blob = os.urandom(8 * MIB)
        good(home.task(0, "put", "blob", "-", input=blob))
        for node in (1, 2, 3):
            assert good(home.task(node, "get", "blob", "-")) == blob, f"other bytes on node {node}"
        for node in range(4):
            ones = (node + 1).to_bytes(4, "little") * (MIB // 4)
            good(home.task(node, "put", f"part-{node}", "-", input=ones))
        good(home.task(2, "reduce", "sum", *[f"part-{i}" for i in range(4)], "--dtype", "i32",
                       "--wait"))
        assert good(home.task(3, "get", "sum", "-")) == (10).to_bytes(4, "little") * (MIB // 4)
        assert all(row["answers"] for row in home.rows())


def a_node_that_is_killed_is_shown_and_comes_back():
    with Home() as home:
        good(home.local("up", 3))
        good(home.task(1, "put", "kept", "-", input=b"x" * MIB))
        good(home.task(2, "get", "kept", "-"))
        good(home.local("kill", 1))
        assert [row["answers"] for row in home.rows()] == [True, False, True]
        assert home.local("status").returncode == 1
        assert good(home.task(2, "get", "kept", "-")) == b"x" * MIB
        good(home.local("start", 1))
        assert good(home.task(1, "get", "kept", "-", "--timeout", 60)) == b"x" * MIB


def nothing_is_left_after_down():
    with Home() as home:
        good(home.local("up", 2))
        pids = [row[key] for row in home.rows() for key in ("control_pid", "dataplane_pid")]
        assert all(pid > 0 for pid in pids)
        good(home.local("down"))
        assert all(gone(pid) for pid in pids), "a process is left"
        assert list((home.run_dir / "sarissa").iterdir()) == [], "a file is left"
        wrong(home.local("status"), 6, "no local cluster 'main'", "sarissa local up")


def two_clusters_stand_side_by_side():
    with Home() as home:
        good(home.local("up", 2))
        good(home.local("up", 1, "--name", "other"))
        good(home.task(0, "put", "mine", "-", input=b"1"))
        other = ("--name", "other", "exec", 0, "--", "sarissa")
        behind = ("exec", 0, "--name", "other", "--", "sarissa")
        for words in (other, behind):
            assert home.local(*words, "get", "mine", "-", "--timeout", 0).returncode == 4
        good(home.local("down", "--name", "other"))
        assert good(home.task(1, "get", "mine", "-")) == b"1"


def two_at_a_time_do_not_spoil_each_other():
    with Home() as home:
        good(home.local("up", 1))
        held = os.open(home.run_dir / "sarissa", os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            with ThreadPoolExecutor() as pool:  # each waits for its turn, and gives up
                for done in pool.map(lambda verb: home.local(*verb), (("up", 2), ("down",), ("kill", 0), ("start", 0))):
                    wrong(done, 1, "another sarissa local", "try again")
                waiting = pool.submit(home.local, "kill", 0)
                fcntl.flock(held, fcntl.LOCK_UN)
                assert waiting.result().returncode == 0
                good(home.local("start", 0))
            assert [row["answers"] for row in home.rows()] == [True]
        finally:
            os.close(held)


def wrong_use_is_named():
    with Home() as home:
        for argv in ([], ["jump"], ["up"], ["up", 0], ["up", 65], ["up", "two"],
                     ["up", 2, "--store", 1], ["up", 2, "--workers", 17], ["up", 2, "--name", "a/b"],
                     ["up", 2, "--name"], ["up", 2, "--what"]):
            wrong(home.local(*argv), 2)
        wrong(home.local("exec", 0, "--", "true"), 6, "no local cluster")
        good(home.local("up", 1))
        wrong(home.local("up", 1), 1, "is up already")
        wrong(home.local("exec", 1, "--", "true"), 2, "has nodes 0 to 0")
        wrong(home.local("exec", 0), 2)
        wrong(home.local("exec", 0, "--", "no-such-command"), 127, "no-such-command")
        assert home.local("exec", 0, "--", "sh", "-c", "exit 7").returncode == 7
        os.chmod(home.run_dir / "sarissa", 0o777)
        wrong(home.local("status"), 1, "not a directory of yours alone")
        os.chmod(home.run_dir / "sarissa", 0o700)


def a_port_is_chosen_and_the_reason_told():
    with Home() as home:
        rundir = home.run_dir / "chosen"
        argv = ("--rundir", rundir, "--store", 16, "--addr")
        wrong(home.command(*argv, "10.255.255.1", program="sarissa-dataplane"), 2,
              "no interface has the address")
        with subprocess.Popen(home.wrapped("sarissa-dataplane", *argv, "127.0.0.77"), env=home.env(),
                              stderr=subprocess.PIPE, text=True) as daemon:
            try:
                lines = []
                for line in daemon.stderr:
                    lines.append(line)
                    if "ready on udp 127.0.0.77" in line:
                        break
                assert lines and "ready on" in lines[-1], lines
                timed = [re.match(rf"({TIME}) sarissa-dataplane: ", line) for line in lines]
                assert timed and all(timed), lines
                said = datetime.datetime.fromisoformat(timed[0].group(1).replace("Z", "+00:00"))
                assert abs(said.timestamp() - time.time()) < 60, lines
                spec, why = (rundir / "port").read_text().splitlines()
                assert spec == "udp:127.0.0.77", spec
                assert "loopback" in why, why
            finally:
                daemon.terminate()


def what_a_power_cut_left_is_cleared_away():
    with Home() as home:
        good(home.local("up", 1))
        for row in home.rows():
            for key in ("control_pid", "dataplane_pid"):
                os.kill(row[key], signal.SIGKILL)
                netlib.wait_for(lambda pid=row[key]: gone(pid), netlib.PATIENCE_S, "it has ended")
        good(home.local("up", 2))
        assert len(home.rows()) == 2


def nodes_have_several_ports():
    with Home() as home:
        good(home.local("up", 2, "--rails", 3))
        status = home.task(0, "status", text=True).stdout
        assert "\nrail 2      udp:127.0.2.1 " in status, status

        def rails():
            rows = map(json.loads, home.task(0, "peers", "--json").stdout.splitlines())
            return sorted((row["node"], row["ip"], row["rail"]) for row in rows if row["up"])
        want = [(1, f"127.0.{rail}.2", rail) for rail in range(3)]
        netlib.wait_for(lambda: rails() == want, netlib.PATIENCE_S, "a path on each rail")


class Waiting:
    """A command on a node, which waits until the test ends it, and what it has said."""

    def __init__(self, home, node, *argv):
        self.said = home.dir / f"said-{node}-{argv[0]}"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(home.wrapped("sarissa", "local", "exec", node, "--", "sarissa", *argv),
                                            env=home.env(), cwd="/", stdout=subprocess.PIPE, stderr=said)

    def until_said(self, *words):
        netlib.wait_for(lambda: all(word in self.said.read_text() for word in words), netlib.PATIENCE_S,
                        f"{words} in {self.said.read_text()!r}")

    def end(self):
        self.process.kill()
        self.process.wait()


def a_command_says_what_it_waits_for():
    """Its own node has gone; the node that had it has; a source of the reduce is missing. It goes on when
    that has come."""
    with Home() as home:
        good(home.local("up", 3))
        for i in range(8):  # some of which another node keeps in its part of the directory
            good(home.task(2, "put", f"lost-{i}", "-", input=b"x" * MIB))
        good(home.task(1, "put", "a", "-", input=b"aaaa"))
        good(home.local("kill", 2))

        def lost():
            rows = map(json.loads, home.task(0, "ls", "lost", "--json").stdout.splitlines())
            return [row["name"] for row in rows if row.get("lost")]
        netlib.wait_for(lost, netlib.PATIENCE_S, "an object is lost with its node")
        waiting = [Waiting(home, 1, "get", "late", "-"), Waiting(home, 1, "reduce", "sum", "a", "b", "--wait"),
                   Waiting(home, 1, "watch", "none"), Waiting(home, 0, "get", lost()[0], "-")]
        try:
            waiting[0].until_said("late: waiting for", "nobody has put it", "--timeout")
            waiting[1].until_said("sum: waiting for", "1 of 2 sources of the reduce is missing", "nobody has put")
            waiting[3].until_said(": waiting for", "lost with node 2 (down for", "put it again")
            assert waiting[2].said.read_text() == ""
            good(home.local("kill", 1))
            waiting[2].until_said("waiting for", "the node at", "has gone: start it again")
            good(home.local("start", 1))
            good(home.task(1, "put", "late", "-", input=b"late"))
            assert waiting[0].process.communicate(timeout=netlib.TASK_S)[0] == b"late"
        finally:
            for one in waiting:
                one.end()


def a_shell_becomes_a_task_of_a_node():
    """`eval "$(sarissa local env I)"`: the command is found and speaks to the node, and so does Python of a
    build directory. Errors of who has not done that say so."""
    def shell(line, sarissa=None):
        env = {**home.env(), **({"XDG_RUNTIME_DIR": str(own)} if sarissa else {}), "SAR": str(sarissa or home.dir / "build" / PROGRAMS["sarissa"])}
        return subprocess.run(["setpriv", f"--reuid={0 if sarissa else USER}", "--clear-groups", "sh", "-c", line],
                              env=env, cwd="/", capture_output=True, timeout=netlib.TASK_S)

    with Home() as home:
        good(home.local("up", 2, "--name", "other"))
        if not Path("/run/sarissa/control.sock").exists():
            wrong(home.command("ls"), 6, "no node answers at /run/sarissa/control.sock: a local cluster is running: "
                  'eval "$(sarissa local env 0 --name other)"')
        assert good(shell('eval "$("$SAR" local env 1 --name other)"; echo body | sarissa put x -; '
                          'sarissa get x -; echo $SARISSA_NODE')) == b"body\n1\n"
        good(home.local("kill", 1, "--name", "other"))
        wrong(home.local("env", 1, "--name", "other"), 6, "node 1 is down: sarissa local start 1 --name other")
        wrong(home.local("exec", "--name", "other", 1, "--", "sarissa", "ls"), 6,
              "node 1 of the local cluster 'other' is down: sarissa local start 1 --name other")
        good(home.local("down", "--name", "other"))
        build = netlib.build_dir()
        own = home.dir / "own"
        own.mkdir(0o700)
        try:
            good(shell('"$SAR" local up 1', build / PROGRAMS["sarissa"]))
            assert good(shell('eval "$("$SAR" local env 0)"; echo body | sarissa put x -; /usr/bin/python3 -c "import '
                              'sarissa; print(bytes(sarissa.open().get(\'x\', timeout=10)))"',
                              build / PROGRAMS["sarissa"])) == b"b'body\\n'\n"
        finally:
            shell('"$SAR" local down', build / PROGRAMS["sarissa"])


def daemons_keep_nothing_of_the_caller():
    """No descriptor, so that a pipe ends and a lock is free; not the folder."""
    with Home() as home, tempfile.TemporaryDirectory(prefix="sl", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        reader, writer = os.pipe()
        done = subprocess.run(home.wrapped("sarissa", "local", "up", 1), env=home.env(), cwd=folder,
                              pass_fds=[writer], capture_output=True, timeout=netlib.TASK_S)
        assert done.returncode == 0, done.stderr
        os.close(writer)
        assert select.select([reader], [], [], netlib.PATIENCE_S)[0], "a daemon has the caller's pipe"
        assert os.read(reader, 1) == b""
        os.close(reader)
        for row in home.rows():
            for key in ("control_pid", "dataplane_pid"):
                assert os.readlink(f"/proc/{row[key]}/cwd") == "/", "a daemon stands in the caller's folder"
        good(home.local("kill", 0))  # also what is started again, and without any stream
        done = subprocess.run(["sh", "-c", 'exec "$@" 0<&- >&- 2>&-', "sh", *map(str, home.wrapped(
            "sarissa", "local", "start", 0))], env=home.env(), cwd=folder, timeout=netlib.TASK_S)
        assert done.returncode == 0
        for row in home.rows():
            for key in ("control_pid", "dataplane_pid"):
                names = [os.readlink(f"/proc/{row[key]}/fd/{fd}") for fd in range(3)]
                assert names[0] == "/dev/null" and all(name.endswith(".log") for name in names[1:]), names


def sockets_take_no_place_of_a_closed_stream():
    with Home() as home:
        rundir = home.run_dir / "alone"
        rundir.mkdir()
        os.chown(rundir, USER, USER)
        argv = home.wrapped("sarissa-dataplane", "--rundir", rundir, "--store", 64, "--port", "udp:127.0.0.78")
        with subprocess.Popen(["sh", "-c", 'exec "$@" 0<&- >&- 2>&-', "sh", *map(str, argv)],
                              env=home.env()) as daemon:
            try:
                netlib.wait_for((rundir / "dataplane.sock").exists, netlib.PATIENCE_S, "it serves")
                names = [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in range(3)]
                assert names == ["/"] * 3, names
            finally:
                daemon.terminate()


def core_files_leave_out_the_store():
    """Of the daemons and of clients, in memory that may hold what others have put."""
    def dumped(pid):
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                name = line.split(maxsplit=5)[5:]
            elif line.startswith("VmFlags:") and "dd" not in line.split() and name and "sarissa-" in name[0] \
                    and "memfd" in name[0] and "sarissa-pins" not in name[0]:
                yield name[0]

    with Home() as home:
        good(home.local("up", 1, "--store", 64))
        good(home.task(0, "put", "x", "-", input=b"x" * MIB))
        row, = home.rows()
        with subprocess.Popen(home.wrapped("sarissa", "local", "exec", 0, "--", "sarissa", "get", "nothing", "-"),
                              env=home.env(), stdout=subprocess.DEVNULL) as client:
            try:
                netlib.wait_for(lambda: "memfd:sarissa-store" in Path(f"/proc/{client.pid}/smaps").read_text(),
                                netlib.PATIENCE_S, "the client maps the store")
                for who, pid in (("a client", client.pid), ("control", row["control_pid"]),
                                 ("the dataplane", row["dataplane_pid"])):
                    netlib.until(lambda pid=pid: list(dumped(pid)), lambda names: not names, f"core files of {who}")
            finally:
                client.terminate()


def a_node_holds_as_many_objects_as_it_is_told():
    """All of them, in a store that has room for more; the error names the table."""
    puts = "for i in $(seq $0 $1); do sarissa put key-$i - </dev/null || exit; done"
    with Home() as home:
        wrong(home.local("up", 1, "--objects", 1000), 2, "--objects", "1000")
        good(home.local("up", 1, "--store", 64, "--objects", 1024))
        for first in range(1, 1025, 128):
            good(home.local("exec", 0, "--", "sh", "-c", puts, first, first + 127))
        wrong(home.task(0, "put", "one-more", "-", input=b""), 1, "table full (1024 of 1024 objects)", "--objects")
        good(home.task(0, "rm", "key-77"))
        good(home.task(0, "put", "one-more", "-", input=b""))


netlib.run(doctor_asks_for_nothing_that_sockets_do_not_need, a_user_without_privileges_broadcasts_and_reduces,
           a_node_that_is_killed_is_shown_and_comes_back, nothing_is_left_after_down,
           two_clusters_stand_side_by_side, two_at_a_time_do_not_spoil_each_other,
           wrong_use_is_named,
           a_port_is_chosen_and_the_reason_told,
           what_a_power_cut_left_is_cleared_away, nodes_have_several_ports,
           a_command_says_what_it_waits_for, a_shell_becomes_a_task_of_a_node, daemons_keep_nothing_of_the_caller, sockets_take_no_place_of_a_closed_stream,
           core_files_leave_out_the_store, a_node_holds_as_many_objects_as_it_is_told)
