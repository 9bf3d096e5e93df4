# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces over networks with several ports per node, after HiPS (NetAI 2018): hierarchical plans beside flat ones.

  bench hips --simulate                                the tables of docs/user/topology.md: BCube, tori, VGG-19, AlexNet
  bench hips --simulate --network bcube:3,1 --size 67108864 --rate 100
  bench hips --network bcube:3,1 --size 67108864 --rate 100 --repeat 5      real nodes: scripts/cluster up --topology

On real nodes: hips-mesh, hips-ring; flat-one-nic, our ring along the links, where each node sends on one port;
flat-all-nics, our flat plan, whose copies are striped over all ports; openmpi and gloo over rail 0, with the algorithm
that is the best by hand. Also chosen, the planner that control chooses for the topology; exchange, values in messages;
flat-mesh, all to each root. ratio is to the bound, in which 2 (N - 1)/N of the size can leave a node by all its ports.

--simulate asks `sarissa plan --simulate`, which runs the planners of the control process and moves every piece over
every port in virtual time. Schemes: hips-mesh, hips-ring; flat-one-nic, a ring along the links; flat-mesh, all to each
root; ps, two parameter servers; flat-all-nics, the least that a ring over all ports can take (a formula: such rings
that share no link are not built here)."""

import json
import statistics
import subprocess
import sys

from lib import options
from lib.bench import hips_nodes
from lib.cluster import nodes
from lib.shell import Failure

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
    parser.add_argument("--rate", type=options.COUNT, metavar="MBIT", help="of each port (10000; real nodes: 100)")
    parser.add_argument("--scheme", nargs="+", metavar="NAME", help=f"of real nodes ({', '.join(hips_nodes.USUAL)})")
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R", help="of real nodes (5)")
    parser.add_argument("--json", action="store_true", help="one JSON object per row on standard output")
    args = parser.parse_args(argv)
    args.rate = args.rate or (10000 if args.simulate else 100)
    args.scheme = options.chosen("--scheme", args.scheme or hips_nodes.USUAL, hips_nodes.SCHEMES,
                                 ", ".join(hips_nodes.SCHEMES))
    args.network = args.network or (NETWORKS if args.simulate else ["bcube:3,1"])
    args.sizes = {f"{args.size} bytes": args.size} if args.size else MODELS if args.simulate else \
        {f"{mib} MiB": mib << 20 for mib in (32, 64)}
    return args


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
    flat = next((r["seconds"] for r in rows if r["scheme"] == "flat-one-nic"), None)
    first = rows[0]
    print(f"{first['network']}, {first['nodes']} nodes with {first['rails']} ports, {name}: bound "
          f"{first['bound_seconds']:.4f} s", file=sys.stderr)
    for r in rows:
        gain = f" {100 * (r['seconds'] / flat - 1):+7.1f} % against flat-one-nic" if flat else ""
        starts = f" {r['starts']:6} starts" if "starts" in r else ""
        formula = " (formula)" if starts and not r["simulated"] else ""
        print(f"  {r['scheme']:14} {r['seconds']:9.4f} s {r['ratio']:7.2f} x{starts}{gain}{formula}", file=sys.stderr)


def medians(rows):
    """One row per scheme."""
    out = []
    for scheme in dict.fromkeys(r["scheme"] for r in rows):
        of = [r for r in rows if r["scheme"] == scheme]
        out.append({**of[0], **{key: statistics.median(r[key] for r in of) for key in ("seconds", "ratio")}})
    return out


def tell(args, row):
    if args.json:
        print(json.dumps(row), flush=True)
    return row


def main(argv):
    args = parse(argv)
    for network in args.network:
        if network.split(":")[0] not in ("bcube", "torus"):
            raise Failure(f"bench hips: --network takes bcube:N,K or torus:AxB, not '{network}'", 2)
    for network in args.network:
        for name, size in args.sizes.items():
            found = rows_of(network, size, args.rate) if args.simulate else \
                hips_nodes.rows_of(network, size, args)
            show(medians([tell(args, row) for row in found]), name)
    return 0
