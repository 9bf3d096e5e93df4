# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces of real nodes over an emulated network with several ports per node: for `bench hips` without
--simulate. Each scheme has a network of its own, of the same links, one after the other. A turn is that of
`bench allreduce`: it ends when the last node holds the sum, and every byte is checked."""

import types

from lib import shell
from lib.bench import transfer
from lib.bench.ops import STORED, one_turn
from lib.bench.reduce import SarissaReduce
from lib.bench.systems.gloo import Gloo
from lib.bench.systems.openmpi import OpenMpi
from lib.options import MIB
from lib.shell import say

OP = "allreduce"
SCHEMES = {  # system, tuning, options of the cluster
    "hips-mesh": (SarissaReduce, "", ("--planner", "hips-mesh")),
    "hips-ring": (SarissaReduce, "", ("--planner", "hips-ring")),
    "flat-one-nic": (SarissaReduce, "", ("--planner", "ring")),
    "flat-all-nics": (SarissaReduce, "", ("--planner", "chains", "--all-rails")),
    "chosen": (SarissaReduce, "", ()),
    "exchange": (SarissaReduce, "", ("--planner", "exchange")),
    "flat-mesh": (SarissaReduce, "", ("--planner", "mesh")),
    "openmpi": (OpenMpi, "hand", ("--bare",)),
    "gloo": (Gloo, "hand", ("--bare",)),
}
USUAL = ("hips-mesh", "hips-ring", "flat-one-nic", "flat-all-nics", "openmpi", "gloo")


def bound_seconds(nodes, rails, size, rate_mbit):
    """In which the bytes that each node must send can leave it: 2 (N - 1)/N of the size over all ports."""
    return 2 * (nodes - 1) / nodes * transfer.bound_seconds(size, rate_mbit * rails)


def turns(network, scheme, size, args):
    """Rows of one scheme; the first turn after the start only warms up."""
    kind, tuning, options = SCHEMES[scheme]
    store = STORED[OP](0) * size // MIB + 64
    options = ["--topology", network, "--vdev", "udp", "--rate", args.rate, "--store", store, *options]
    with transfer.cluster(None, *options) as config, kind(config, tuning) as system:
        system.prepare(OP, size)
        turn = types.SimpleNamespace(op=OP, nodes=config["nodes"], size=size, rate=args.rate, mtu=config["mtu"],
                                     stagger=0, order="rising", trace=None)
        rails = max(config["rails"])
        bound = bound_seconds(turn.nodes, rails, size, args.rate)
        for number in range(-1, args.repeat):
            took = one_turn(system, turn)
            if number >= 0:
                say(f"  {scheme:14} {took['seconds']:9.4f} s {took['seconds'] / bound:7.2f} x")
                yield {"network": network, "scheme": scheme, "nodes": turn.nodes, "rails": rails, "bytes": size,
                       "rate_mbit": args.rate, "seconds": took["seconds"], "bound_seconds": bound,
                       "ratio": took["seconds"] / bound, "simulated": False,
                       **{name: took.get(name) for name in ("cpu_seconds", "cpu_share", "other_cpu_share",
                                                            "wire_bytes", "resent_share")}}


def rows_of(network, size, args):
    shell.require_root("scripts/bench")
    for scheme in args.scheme:
        yield from turns(network, scheme, size, args)
