#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The daemons as the service manager runs them: with the rights of their units and no others, and
saying READY=1 and WATCHDOG=1 only while that is true."""

import contextlib
import ctypes
import os
import re
import resource
import signal
import socket
import struct
import time
from pathlib import Path

import netlib
from netlib import ROOT, Cluster, Skip, network, nodes, process, state

NOBODY = 65534
WATCHDOG_S = 0.9  # the daemons speak three times in it
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("ll")
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


def unit_capabilities(kind):
    """As setpriv writes them; the ambient set and the bounding set must be the same."""
    text = (ROOT / f"scripts/systemd/sarissa-{kind}.service.in").read_text()
    told = {key: sorted(values.split()) for key, values in
            re.findall(r"^(AmbientCapabilities|CapabilityBoundingSet)=(.*)$", text, flags=re.M)}
    assert told["CapabilityBoundingSet"] == told.get("AmbientCapabilities", []), told
    assert "NoNewPrivileges=yes" in text and "User=sarissa" in text
    names = [name.removeprefix("CAP_").lower() for name in told["CapabilityBoundingSet"]]
    if "LimitMEMLOCK=infinity" in text and not lift_memlock():
        names.append("ipc_lock")  # the same for a process that may not raise the limit itself
    return names


def lift_memlock():
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
        return True
    except (OSError, ValueError):
        return False


def as_unit(kind):
    """What stands before the command of a daemon."""
    sets = ",".join(["-all", *(f"+{name}" for name in unit_capabilities(kind))])
    return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs",
            f"--inh-caps={sets}", f"--ambient-caps={sets}", f"--bounding-set={sets}"]


class Service(Cluster):
    """A cluster whose daemons run as their units say, in copies of the programs that anybody may
    read."""

    def __init__(self, count, directory):
        super().__init__(count, daemons=False)
        self.programs = directory / "programs"
        netlib.copy_build(self.programs, "dataplane/sarissa-dataplane", "control/sarissa-control",
                          "ebpf/xdp_redirect.bpf.o")
        directory.chmod(0o755)

    def __exit__(self, kind, *_):
        process.end_all([p for node in range(self.count) for daemon in nodes.KINDS
                         if (p := self.pid(node, daemon))])
        super().__exit__(kind, *_)

    def begin(self, node, daemon, env=None):
        folder = state.node_dir(self.config, node)
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, NOBODY, NOBODY)
        make = nodes.dataplane_argv if daemon == "dataplane" else nodes.control_argv
        argv = make(self.config, node)
        argv[0] = self.programs / argv[0].relative_to(netlib.build_dir())
        process.spawn(["ip", "netns", "exec", network.node_netns(self.name, node),
                       *as_unit(daemon), *argv], nodes.log_file(self.config, node, daemon),
                      nodes.pid_file(self.config, node, daemon),
                      env={**os.environ, **(env or {})})

    def answer(self):
        for node in range(self.count):
            netlib.wait_for(lambda: nodes.answers(self.config, node), netlib.PATIENCE_S,
                            f"node {node} does not answer:\n"
                            f"{nodes.log_tail(self.config, node, 'dataplane')}\n"
                            f"{nodes.log_tail(self.config, node, 'control')}\nanswers")


def capabilities_of(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    rows = dict(re.findall(r"^(Cap\w+|NoNewPrivs|Uid):\s+(\S+)", text, flags=re.M))
    return rows


def the_capabilities_of_the_units_suffice():
    netlib.need_daemons()
    netlib.need_command("setpriv")
    with netlib.scratch() as directory, Service(2, directory) as cluster:
        for node in range(2):
            for daemon in nodes.KINDS:
                cluster.begin(node, daemon)
        cluster.answer()
        told = capabilities_of(cluster.pid(0, "control"))
        assert told["Uid"] == str(NOBODY) and told["NoNewPrivs"] == "1", told
        assert int(told["CapEff"], 16) == int(told["CapBnd"], 16) == 0, told
        told = capabilities_of(cluster.pid(0, "dataplane"))
        assert told["Uid"] == str(NOBODY) and told["CapEff"] == told["CapBnd"], told
        netlib.transfer(cluster, directory, 8 << 20)
        expected = netlib.make_file(directory / "kept", 1 << 20)
        cluster.must(0, "sarissa", "put", "kept", directory / "kept")
        for daemon in nodes.KINDS:  # what the manager does after a crash, without its rights
            process.end(cluster.pid(0, daemon))
            cluster.begin(0, daemon)
            cluster.answer()
        cluster.must(1, "sarissa", "get", "kept", directory / "got", "--timeout", 20)
        assert netlib.digest_of(directory / "got") == expected


def as_user(number, group):
    return ["setpriv", "--reuid", number, "--regid", group, "--clear-groups", "--no-new-privs"]


BIND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(({address!r}, 7400))"


def other_users_stay_out_of_a_node():
    """A user of the host who is not in the daemons' group: no client, and nothing that he could
    send as the node with."""
    netlib.need_daemons()
    netlib.need_command("setpriv")
    with netlib.scratch() as directory, Service(2, directory) as cluster:
        netlib.copy_build(cluster.programs, "client/cli/sarissa")
        cluster.config["socket_mode"] = None  # the default of control
        for node in range(2):
            for daemon in nodes.KINDS:
                cluster.begin(node, daemon)
        cluster.answer()
        netlib.transfer(cluster, directory, 1 << 20)
        folder = state.node_dir(cluster.config, 0)
        command = [cluster.programs / "client/cli/sarissa", "--socket", folder / "control.sock",
                   "status"]
        done = cluster.run(0, *as_user(4242, 4242), *command)
        assert done.returncode and "adduser USER nogroup" in done.stderr, done
        cluster.must(0, *as_user(4242, NOBODY), *command, "--counters")
        for name in ("counters", "peers"):
            done = cluster.run(0, *as_user(4242, 4242), "cat", folder / name)
            assert done.returncode and not done.stdout, f"{name}: {done}"
            cluster.must(0, *as_user(4242, NOBODY), "cmp", folder / name, folder / name)
        for address in (network.node_ip(0), "0.0.0.0"):
            done = cluster.run(0, *as_user(4242, 4242), "/usr/bin/python3", "-c",
                               BIND.format(address=address))
            assert "Address already in use" in done.stderr, f"{address}: {done}"


class Manager:
    """The other end of NOTIFY_SOCKET. What counts is when something was said, which the kernel
    notes, and not when there was time to read it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.early = []  # read before its turn
        self.socket.bind(str(path))
        path.chmod(0o777)
        self.env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}

    def read(self, until):
        """The next (moment, text), or None when nothing is said until then."""
        if self.early:
            return self.early.pop()
        self.socket.settimeout(max(until - time.time(), 0.001))
        try:
            text, ((_, _, moment),), _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(TIMESPEC.size))
        except TimeoutError:
            return None
        seconds, ns = TIMESPEC.unpack(moment)
        return seconds + ns / 1e9, text.decode()

    def heard(self, seconds, *wanted):
        """What is said in so many seconds from now; or all that has not been read yet, and on until
        what is wanted has been said."""
        texts, begin = [], time.time()
        while not (wanted and set(wanted) <= set(texts)) and (said := self.read(begin + seconds)):
            moment, text = said
            if moment > begin + seconds:
                self.early.append(said)
                break
            if wanted or moment >= begin:
                texts.append(text)
        return texts

    def wait_for(self, *wanted):
        """What it has said until then."""
        texts = self.heard(netlib.PATIENCE_S, *wanted)
        assert set(wanted) <= set(texts), f"{texts}, and not {wanted}"
        return texts

    def check_alive(self):
        counts = netlib.measured(lambda: self.heard(3 * WATCHDOG_S).count("WATCHDOG=1"),
                                 lambda count: 5 <= count <= 10)
        assert 5 <= counts[-1] <= 10, f"{counts} times WATCHDOG=1 in three periods"

    def check_silent(self, what):
        """After what was on its way."""
        said = netlib.measured(lambda: self.heard(2 * WATCHDOG_S),
                               lambda texts: "WATCHDOG=1" not in texts)
        assert "WATCHDOG=1" not in said[-1], f"{what}, and yet it says {said}"


@contextlib.contextmanager
def frozen_thread(tid):
    """Holds one thread of a process, as a loop without end would."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, tid, None, None) or libc.ptrace(PTRACE_INTERRUPT, tid, None, None):
        raise Skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    os.waitpid(tid, 0x40000000)  # __WALL
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, tid, None, None)


def worker_thread(pid):
    tasks = {(Path(f"/proc/{pid}/task") / tid / "comm").read_text().strip(): int(tid)
             for tid in os.listdir(f"/proc/{pid}/task")}
    found = [tid for name, tid in tasks.items() if re.search(r"worker|lcore", name)]
    assert found, f"no worker among {list(tasks)}"
    return found[0]


def hangs_told(cluster):
    log = nodes.log_file(cluster.config, 0, "dataplane").read_text()
    return log.count("worker 0 does not turn")


@contextlib.contextmanager
def managed(daemon):
    """A node, and the manager that one of its daemons speaks to; the other does not run yet."""
    netlib.need_daemons()
    netlib.need_command("setpriv")
    with netlib.scratch() as directory, Service(1, directory) as cluster:
        manager = Manager(directory / "notify")
        cluster.begin(0, daemon, manager.env)
        yield cluster, manager


# [G1.12]
def the_watchdog_of_the_dataplane_hears_of_a_worker_that_hangs():
    with managed("dataplane") as (cluster, manager):
        manager.wait_for("READY=1")
        manager.check_alive()
        pid = cluster.pid(0, "dataplane")
        before = hangs_told(cluster)  # of a machine that had no time for the worker
        with frozen_thread(worker_thread(pid)):
            manager.check_silent("its worker hangs")
        manager.check_alive()
        told = hangs_told(cluster) - before
        assert told == 1, f"this hang is told {told} times"
        os.kill(pid, signal.SIGSTOP)
        manager.check_silent("it is stopped")
        os.kill(pid, signal.SIGCONT)
        manager.check_alive()
        os.kill(pid, signal.SIGTERM)
        manager.wait_for("STOPPING=1")


def control_is_ready_when_clients_are_let_in():
    with managed("control") as (cluster, manager):
        texts = manager.wait_for("STATUS=waiting for the dataplane")
        assert "READY=1" not in texts, f"without a dataplane it says {texts}"
        cluster.begin(0, "dataplane")
        manager.wait_for("READY=1")
        assert nodes.answers(cluster.config, 0), "it says ready, and does not answer"
        manager.check_alive()
        pid = cluster.pid(0, "control")
        os.kill(pid, signal.SIGSTOP)
        manager.check_silent("it is stopped")
        os.kill(pid, signal.SIGCONT)
        process.end(cluster.pid(0, "dataplane"))
        manager.wait_for("WATCHDOG=1", "STATUS=waiting for the dataplane")


def control_does_not_hold_up_a_boot():
    with managed("control") as (_, manager):
        manager.wait_for("READY=1")


netlib.run(the_capabilities_of_the_units_suffice,
           other_users_stay_out_of_a_node,
           the_watchdog_of_the_dataplane_hears_of_a_worker_that_hangs,
           control_is_ready_when_clients_are_let_in,
           control_does_not_hold_up_a_boot)
