# SPDX-License-Identifier: BSD-3-Clause
"""The two daemons of each node: start, watch, stop. A cluster that is `bare` has none."""

import json
import os
import subprocess
import time
from pathlib import Path

from lib.cluster import network, process
from lib.cluster.state import cluster_dir, node_dir, topology_file
from lib.options import vdev_of
from lib.shell import Failure, build_dir, daemons_dir, run

KINDS = ("dataplane", "control")
READY_S = 60.0  # a whole cluster answers within
LOG_LINES = 20
LISTENS = "00010000"  # flags of a socket that others connect to (__SO_ACCEPTCON)


def binary(kind):
    path = {"dataplane": "dataplane/sarissa-dataplane", "control": "control/sarissa-control",
            "cli": "client/cli/sarissa"}[kind]
    full = (daemons_dir() if kind in KINDS else build_dir()) / path
    if not full.exists():
        raise Failure(f"{full} is not there: run scripts/setup")
    return full


def address(config, node):
    """IP address that the dataplane speaks from."""
    if config.get("rails"):
        return network.node_ip(node) if config["all_rails"] else network.home_ip(node)
    return network.node_ip6(node) if config["ipv6"] else network.node_ip(node)


def endpoint(config, node):
    ip = address(config, node)
    return f"[{ip}]:{config['udp_port']}" if config["ipv6"] else f"{ip}:{config['udp_port']}"


def objects(config):
    return ["--objects", config.get("objects", 65536)]


def dataplane_argv(config, node):
    if config.get("rails") and config["all_rails"]:
        return railed_argv(config, node)
    ports = {"af_xdp": "af_xdp:eth0", "udp": "udp:lo" if config.get("rails") else "udp:eth0", "tap": "tap:dtap0"}
    prefix = 64 if config["ipv6"] else 16
    argv = [binary("dataplane"), "--rundir", node_dir(config, node), "--port", ports[config["vdev"]],
            "--addr", f"{address(config, node)}/{prefix}", "--udp-port", config["udp_port"],
            "--mtu", config["mtu"], "--store", config["store"], *objects(config),
            "--workers", config["workers"]]
    if config["busy_poll"]:
        argv.append("--busy-poll")
    return argv


def railed_argv(config, node):
    """With a port on each rail. Options behind a port are of that one."""
    argv = [binary("dataplane"), "--rundir", node_dir(config, node), "--store", config["store"], *objects(config),
            "--workers", config["workers"], *(["--busy-poll"] if config["busy_poll"] else [])]
    for rail in range(network.rails(config, node)):
        ip = network.node_ip(node, rail)
        port = [f"udp:{ip}"] if vdev_of(config, rail) == "udp" else [f"af_xdp:eth{rail}", "--addr", ip]
        argv += ["--port", *port, "--udp-port", config["udp_port"], "--mtu", config["mtu"]]
    return argv


def control_argv(config, node):
    seeds = config.get("seeds", 0)
    peers = ",".join(endpoint(config, i) for i in range(seeds or config["nodes"]))
    who = ["--node", "auto", "--seeds", peers] if seeds else ["--node", node, "--nodes", peers]
    shards = ["--shards", config["shards"]] if config.get("shards") else []
    plans = ["--planner", config["planner"]] if config.get("planner") else []
    plans += ["--topology", topology_file(config)] if config.get("rails") else []
    # every user of this machine may try an emulated cluster, unless a test asks for the default
    mode = config.get("socket_mode", "0666")
    rights = ["--socket-mode", mode] if mode else []
    return [binary("control"), "--rundir", node_dir(config, node), *who, *shards, *plans, *rights]


def pid_file(config, node, kind):
    return node_dir(config, node) / f"{kind}.pid"


def switch_argv(config):
    """Of the switch that aggregates, in the place of the bridge."""
    kind = {"dpdk": "af_xdp", "xdp": "xdp"}[config["switch"]]
    ports = [f"{kind}:{network.inner_names(node)[1]}" for node in range(config["nodes"])]
    return [binary("dataplane"), "--role", "switch", *(["--addr", network.aggregator_ip()] if kind == "af_xdp" else []),
            *(word for port in ports for word in ("--port", port))]


def switch_file(config, kind):
    return cluster_dir(config["name"]) / f"switch.{kind}"


def start_switch(config, until):
    """The log has its counters, too, when it has ended."""
    log = switch_file(config, "log")
    before = len(log.read_text()) if log.exists() else 0
    process.spawn(["ip", "netns", "exec", network.switch_netns(config["name"]), *switch_argv(config)], log,
                  switch_file(config, "pid"))
    while ": switches " not in log.read_text()[before:]:
        if process.alive(switch_file(config, "pid")) is None or time.monotonic() > until:
            raise Failure(f"the switch does not come up: {log.read_text()[before:][-500:]}")
        time.sleep(0.02)


def forget(config, node, kind):
    """From now on the daemon counts as never started."""
    pid_file(config, node, kind).unlink(missing_ok=True)


def log_file(config, node, kind):
    return node_dir(config, node) / f"{kind}.log"


def pid(config, node, kind):
    """The pid of a running daemon, or None."""
    return process.alive(pid_file(config, node, kind))


def pids(config, which=None):
    """Of the daemons that run, on all nodes or on some."""
    which = range(config["nodes"]) if which is None else which
    return [p for node in which for kind in KINDS if (p := pid(config, node, kind)) is not None]


def start(config, node, kind, *options, through=()):
    """Starts one daemon, perhaps with options of its own, or through a command that becomes it; does
    not wait until it answers."""
    node_dir(config, node).mkdir(parents=True, exist_ok=True)
    argv = dataplane_argv(config, node) if kind == "dataplane" else control_argv(config, node)
    netns = network.node_netns(config["name"], node)
    return process.spawn(["ip", "netns", "exec", netns, *through, *argv, *options],
                         log_file(config, node, kind),
                         pid_file(config, node, kind))


def environment(config, node):
    """For a command inside the node."""
    env = dict(os.environ)
    env["SARISSA_SOCKET"] = str(node_dir(config, node) / "control.sock")
    env["SARISSA_NODE"] = str(node)
    env["PATH"] = f"{build_dir()}/client/cli:{env.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}"
    return env


def log_tail(config, node, kind):
    try:
        lines = log_file(config, node, kind).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "    (no log)"
    return "\n".join("    " + line for line in lines[-LOG_LINES:]) or "    (the log is empty)"


def culprit(config, node, text):
    """A failure with the end of the logs of what is to blame."""
    dead = [kind for kind in KINDS
            if started(config, node, kind) and pid(config, node, kind) is None]
    logs = "\n".join(f"  {kind} of node {node}:\n{log_tail(config, node, kind)}"
                     for kind in dead or KINDS)
    why = f"its {' and '.join(dead)} has ended" if dead else text
    return Failure(f"node {node}: {why}; the end of the log:\n{logs}")


def answers(config, node):
    """One `sarissa status` against the node's socket."""
    try:
        return subprocess.run([binary("cli"), "status", "--json"], timeout=5,
                              env=environment(config, node), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def status_lines(config, node):
    """What `sarissa status --json` of a node says, one dict per line; empty when it is silent."""
    try:
        done = subprocess.run([binary("cli"), "status", "--json"], timeout=10, text=True,
                              env=environment(config, node), capture_output=True)
    except subprocess.TimeoutExpired:
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def wait_until(config, node, condition, text, until):
    while not condition():
        if any(pid(config, node, kind) is None for kind in KINDS if started(config, node, kind)):
            raise culprit(config, node, text)
        if time.monotonic() > until:
            raise culprit(config, node, text)
        time.sleep(0.02)


def started(config, node, kind):
    return pid_file(config, node, kind).exists()


def wait_dataplane(config, node, until):
    socket = node_dir(config, node) / "dataplane.sock"
    wait_until(config, node, lambda: is_listening(socket, pid(config, node, "dataplane")),
               "the dataplane does not come up", until)
    if config["vdev"] == "tap":
        network.connect_tap(config, node, "dtap0")


def socket_flags(path, pid):
    """As /proc/net/unix has them, of the sockets of that path in the network namespace of the process."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()]
    return [row[3] for row in rows if row[-1] == str(path)]


def is_listening(path, pid):
    """A socket file may be left of an earlier life: look whether somebody in the network
    namespace of the process listens on it."""
    if pid is None or not path.exists():
        return False
    try:
        return LISTENS in socket_flags(path, pid)
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_answers(config, node, until):
    wait_until(config, node, lambda: answers(config, node), "it does not answer", until)


def start_all(config, which):
    """Both daemons of the nodes, side by side, until every node answers."""
    until = time.monotonic() + READY_S
    for node in which:
        start(config, node, "dataplane")
    for node in which:
        wait_dataplane(config, node, until)
        start(config, node, "control")
    for node in which:
        wait_answers(config, node, until)


def stop_all(config):
    """Ends every daemon, and whatever else still runs in the cluster's namespaces."""
    process.end_all(pids(config))
    if config.get("switch") and (pid := process.alive(switch_file(config, "pid"))):
        process.end_all([pid])
    for netns in network.namespaces(config["name"]):
        rest = [int(p) for p in run("ip", "netns", "pids", netns, check=False).split()]
        process.end_all([p for p in rest if p != os.getpid()], grace_s=1.0)
