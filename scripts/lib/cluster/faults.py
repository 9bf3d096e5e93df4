# SPDX-License-Identifier: BSD-3-Clause
"""Faults on the path, made by ebpf/fault.bpf.c on the switch's ports. Layouts: ebpf/fault.h."""

from lib.cluster import bpf
from lib.cluster.network import FAULT_PREF, port_name, switch_netns

KINDS = ("loss", "dup", "reorder", "corrupt", "ecn")
COUNTERS = ("seen", "lost", "duplicated", "reordered", "corrupted", "congested", "released",
            "failed")
HOOKS = {"to": ("egress", "tc/to_host"), "from": ("ingress", "tc/from_host")}
PORTS = (7400, 7499)
DISTANCE_PKTS = 8  # a reordered packet comes up to so many packets late


def threshold(percent):
    return 0xFFFFFFFF if percent >= 100 else int(percent / 100 * 2**32)


def apply(config, node, direction, percents, rail=0):
    """Sets one direction of one node's link; all zero takes the program away."""
    netns, device = switch_netns(config["name"]), port_name(node, rail)
    hook, section = HOOKS[direction]
    program = bpf.program_id(netns, device, hook, FAULT_PREF)
    if not any(percents.values()):
        if program is not None:
            bpf.detach(netns, device, hook, FAULT_PREF)
        return
    if program is None:
        program = bpf.attach(netns, device, hook, FAULT_PREF, "fault.bpf.o", section)
    bpf.write(program, "fault_config",
              [*PORTS, *(threshold(percents[kind]) for kind in KINDS), DISTANCE_PKTS])


def counters(config, node, direction, rail=0):
    """What has been done since the program was attached, or None when there is none."""
    hook, _ = HOOKS[direction]
    program = bpf.program_id(switch_netns(config["name"]), port_name(node, rail), hook, FAULT_PREF)
    if program is None:
        return None
    return dict(zip(COUNTERS, bpf.read(program, "fault_counters", f"={len(COUNTERS)}Q")))
