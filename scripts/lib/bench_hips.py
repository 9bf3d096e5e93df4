# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces over networks with several ports per node, after HiPS (NetAI 2018): hierarchical plans beside flat ones.

  bench hips --simulate                                the tables of docs/topology.md: BCube, tori, VGG-19 and AlexNet
  bench hips --simulate --network bcube:3,1 --size 67108864 --rate 100

--simulate asks `sarissa plan --simulate`, which runs the planners of the control process and moves every piece over
every port in virtual time. Schemes: hips-mesh, hips-ring; flat-one-nic, a ring along the links; flat-mesh, all to each
root; ps, two parameter servers; flat-all-nics, the least that a ring over all ports can take (a formula: such rings
that share no link are not built here)."""

import json
import subprocess
import sys

from . import nodes, options
from .shell import Failure

SCHEMES = {"hips-mesh": "hips-mesh", "hips-ring": "hips-ring", "flat-one-nic": "ring", "flat-mesh": "mesh",
           "ps": "server"}
MODELS = {"vgg-19": 548 << 20, "alexnet": 233_000_000}
NETWORKS = [f"bcube:{n},{k}" for n in (3, 4, 6, 8) for k in (1, 2)] + \
    ["torus:3x3", "torus:4x4", "torus:8x8", "torus:3x3x3", "torus:4x4x4", "torus:8x8x8"]
LATENCY_US = 20


def parse(argv):
    parser = options.Parser(prog="bench hips", description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="in virtual time, no cluster, no root")
    parser.add_argument("--network", nargs="+", metavar="SHAPE", help="bcube:N,K or torus:AxB; all of the tables")
    parser.add_argument("--size", type=options.SIZE, metavar="BYTES", help="of one array; VGG-19 and AlexNet")
    parser.add_argument("--rate", type=options.COUNT, default=10000, metavar="MBIT", help="of each port (10000)")
    parser.add_argument("--json", action="store_true", help="one JSON object per row on standard output")
    return parser.parse_args(argv)


def plan(network, planner, size, rate):
    """What `sarissa plan` simulates; None: the planner does not fit."""
    run = subprocess.run([str(nodes.binary("cli")), "plan", "--topology", network, "--planner", planner, "--size",
                          str(size), "--rate", f"{rate}M", "--latency", f"{LATENCY_US}us", "--simulate", "--json"],
                         capture_output=True, text=True)
    if run.returncode == 0:
        return json.loads(run.stdout)
    if run.stderr.startswith("sarissa: plan: ") and "no planner fits" in run.stderr:
        return None
    raise Failure(run.stderr.strip() or f"sarissa plan ended with status {run.returncode}", run.returncode)


def shape(network):
    """Nodes and rails of a network."""
    kind, _, numbers = network.partition(":")
    if kind == "bcube":
        members, last = map(int, numbers.split(","))
        return members ** (last + 1), last + 1
    axes = list(map(int, numbers.split("x")))
    count = 1
    for members in axes:
        count *= members
    return count, 2 * len(axes)


def row(network, scheme, size, seconds, bound, starts):
    count, rails = shape(network)
    return {"network": network, "scheme": scheme, "nodes": count, "rails": rails, "bytes": size, "seconds": seconds,
            "bound_seconds": bound, "ratio": seconds / bound, "starts": starts, "simulated": scheme != "flat-all-nics"}


def rows_of(network, size, rate):
    count, rails = shape(network)
    out = []
    for scheme, planner in SCHEMES.items():
        if found := plan(network, planner, size, rate):
            out.append(row(network, scheme, size, found["simulated_ns"] / 1e9, found["bound_ns"] / 1e9,
                           found["starts"]))
    bound = out[0]["bound_seconds"]
    hop = size / rails / count / (rate * 125e3) + LATENCY_US / 1e6
    out.append(row(network, "flat-all-nics", size, 2 * (count - 1) * hop, bound, 2 * (count - 1)))
    return out


def show(rows, name):
    flat = next(r["seconds"] for r in rows if r["scheme"] == "flat-one-nic")
    first = rows[0]
    print(f"{first['network']}, {first['nodes']} nodes with {first['rails']} ports, {name}: bound "
          f"{first['bound_seconds']:.4f} s", file=sys.stderr)
    for r in rows:
        print(f"  {r['scheme']:14} {r['seconds']:9.4f} s {r['ratio']:7.2f} x {r['starts']:6} starts "
              f"{100 * (r['seconds'] / flat - 1):+7.1f} % against flat-one-nic"
              f"{'' if r['simulated'] else ' (formula)'}", file=sys.stderr)


def main(argv):
    args = parse(argv)
    if not args.simulate:
        raise Failure("bench hips: only --simulate is there: a node has one port yet", 2)
    sizes = {f"{args.size} bytes": args.size} if args.size else MODELS
    for network in args.network or NETWORKS:
        if network.split(":")[0] not in ("bcube", "torus"):
            raise Failure(f"bench hips: --network takes bcube:N,K or torus:AxB, not '{network}'", 2)
        for name, size in sizes.items():
            rows = rows_of(network, size, args.rate)
            show(rows, name)
            if args.json:
                for r in rows:
                    print(json.dumps(r), flush=True)
    return 0
