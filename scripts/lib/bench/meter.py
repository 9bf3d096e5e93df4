# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement costs: CPU of the machine, bytes on the wire."""

import os
import re
import time

from lib.bench.transfer import machine_cpu_seconds, system_cost
from lib.cluster import counters, network, nodes, process, state
from lib.shell import Failure, run

SHARE_LEAST_S = 0.2  # the kernel counts CPU time in ticks of 10 ms
QUIET_LOOK_S, QUIET_LIMIT_S = 0.2, 120.0
QUIET_BYTES_S = 500e3  # of a node: less is what idle engines say to one another


def sent_bytes(config):
    """By node, or by port of a topology, what has come into the switch from it: whole frames, acknowledgements too. The
    limiter counts the headers of each frame of a segment, a device only those of the first."""
    switch = ["ip", "netns", "exec", network.switch_netns(config["name"]), "sh", "-c"]
    nodes = range(config["nodes"])
    if config.get("rails"):
        script = "".join(f"cat /sys/class/net/{network.port_name(node, rail)}/statistics/rx_bytes;"
                         for node in nodes for rail in range(network.rails(config, node)))
        return [int(n) for n in run(*switch, script).split()]
    if config["rate"]:
        limiter = (lambda node: network.inner_names(node)[0]) if config.get("switch") else network.limiter_name
        script = "".join(f"tc -s class show dev {limiter(node)};" for node in nodes)
        return [int(n) for n in re.findall(r"^ Sent (\d+) bytes", run(*switch, script), re.M)]
    script = "".join(f"cat /sys/class/net/p{node}/statistics/rx_bytes;" for node in nodes)
    return [int(n) for n in run(*switch, script).split()]


def until_quiet(config):
    """When no node sends any more: an engine may still move what a measurement before has asked for."""
    before, until = sent_bytes(config), time.monotonic() + QUIET_LIMIT_S
    while time.monotonic() < until:
        time.sleep(QUIET_LOOK_S)
        after = sent_bytes(config)
        if all(b - a < QUIET_BYTES_S * QUIET_LOOK_S for a, b in zip(before, after)):
            return
        before = after
    raise Failure(f"the nodes have sent for {QUIET_LIMIT_S:.0f} s, and nothing is measured")


class Meter:
    """Everything but the CPU is read before the start: reading it takes a while. From then to the
    start nothing of ours has work: what the machine does meanwhile, others make it do."""

    def __init__(self, config):
        self.config = config
        self.sent = sent_bytes(config)
        self.counters = self.all_counters()
        self.busy, self.lower = machine_cpu_seconds()
        self.pids = [] if config["bare"] else nodes.pids(config)
        self.at = time.monotonic()

    def daemons(self):
        return sum(map(process.run_seconds, self.pids))

    def all_counters(self):
        if self.config["bare"]:
            return None
        return [counters.read(state.node_dir(self.config, node) / "counters")
                for node in range(self.config["nodes"])]

    def spent(self):
        """Since the last call: CPU seconds of all cores, their share of what there was, the share of
        lower priority, seconds."""
        (busy, lower), at = machine_cpu_seconds(), time.monotonic()
        spent, seconds = busy - self.busy, at - self.at
        shares = [min(1.0, round(part / (seconds * os.cpu_count()), 3))
                  for part in (spent, lower - self.lower)]
        self.busy, self.lower, self.at = busy, lower, at
        return spent, *shares, seconds

    def start(self):
        self.system, self.own = system_cost(), self.daemons()
        _, self.other_cpu_share, self.lower_cpu_share, _ = self.spent()

    def stop(self):
        spent, share, lower, seconds = self.spent()
        self.system = [after - before for before, after in zip(self.system, system_cost())]
        self.own = round(self.daemons() - self.own, 3)
        self.cpu_seconds = self.cpu_share = None
        if seconds >= SHARE_LEAST_S:
            self.cpu_seconds, self.cpu_share, self.lower_cpu_share = round(spent, 2), share, lower

    def row(self, size):
        """The fields of a result, `size` being the bytes of one object."""
        sent = [b - a for a, b in zip(self.sent, sent_bytes(self.config))]
        out = {"cpu_seconds": self.cpu_seconds, "cpu_share": self.cpu_share,
               "other_cpu_share": self.other_cpu_share, "lower_cpu_share": self.lower_cpu_share,
               "cores_busy": self.cpu_share, "wire_bytes": sum(sent)}
        wire_mb = max(out["wire_bytes"], 1) / 1e6
        out |= {"system_ms_per_mb": round(1000 * self.system[0] / wire_mb, 3),
                "context_switches_per_mb": round(self.system[1] / wire_mb, 2)}
        if not self.config["bare"]:
            out |= {"vdev": self.config["vdev"], "daemons_cpu_seconds": self.own}
        if self.counters is not None:
            out |= self.counted(size)
        return out

    def counted(self, size):
        moved = [{name: after[name] - before[name] for name in after}
                 for before, after in zip(self.counters, self.all_counters())]
        total = {name: sum(one[name] for one in moved) for name in moved[0]}
        bursts = {way: round(total[f"{way}_pkts"] / total[f"io_{way}_bursts"], 2)
                  for way in ("tx", "rx") if total.get(f"io_{way}_bursts")}
        return {**{f"packets_per_{way}_burst": each for way, each in bursts.items()},
                "worker_sleeps": total["io_sleeps"],
                "source_copies": round(moved[0]["tx_chunk_bytes"] / size, 4) if size else 0,
                "copies": [round(one["tx_chunk_bytes"] / size, 3) if size else 0 for one in moved],
                "resent_share": round(total["tx_chunk_resends"] / max(1, total["tx_chunks"]), 5),
                "duplicate_share": round(total["rx_chunk_duplicates"] /
                                         max(1, total["rx_chunks"]), 5),
                "lost_pkts": total["lost_pkts"], "lost_spurious": total["lost_spurious"],
                "drops": {name: value for name, value in total.items()
                          if name.startswith("drop_") and value}}
