# SPDX-License-Identifier: BSD-3-Clause
"""An object from node to node and back over two ports, for `bench rails`: each kind of port, rails of one rate and
one at half of it. Every byte is checked."""

import argparse
import json
import statistics
import sys
import tempfile
import types
from pathlib import Path

from lib import options, shell
from lib.bench import transfer
from lib.bench.ops import one_turn
from lib.bench.systems.sarissa import Sarissa
from lib.options import MIB
from lib.shell import say

OP = "p2p"
KINDS = ("udp", "af_xdp", "af_xdp,udp")


def parse(argv):
    parser = options.Parser(prog="bench rails", description=__doc__)
    parser.add_argument("--kinds", nargs="+", type=options.vdevs, default=KINDS, metavar="KIND[,KIND]",
                        help=f"what carries packets, on all rails or on each (default: {' '.join(KINDS)})")
    parser.add_argument("--size", type=options.SIZE, default=64 * MIB, metavar="BYTES")
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT", help="of the faster rail (200)")
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R")
    parser.add_argument("--json", action=argparse.BooleanOptionalAction, default=False,
                        help="one JSON object per repetition on standard output")
    return parser.parse_args(argv)


def topology(directory, rates_mbit):
    """The file of two nodes with a rail to each switch."""
    rails = ", ".join(f"{{to: s{k}, rate: {round(rate * 1e6)}}}" for k, rate in enumerate(rates_mbit))
    path = Path(directory) / "rails.yaml"
    path.write_text(f"switches: [{', '.join(f's{k}' for k in range(len(rates_mbit)))}]\nnodes:\n" +
                    "".join(f"  - {{node: {node}, rails: [{rails}]}}\n" for node in (0, 1)))
    return path


def turns(kind, rates_mbit, args):
    """Rows of one kind; the first turn only warms up."""
    bound = 2 * transfer.bound_seconds(args.size, sum(rates_mbit))
    with tempfile.TemporaryDirectory() as directory:
        up = ["--topology", topology(directory, rates_mbit), "--all-rails", "--vdev", kind, "--store",
              4 * args.size // MIB + 64]
        with transfer.cluster(None, *up) as config, Sarissa(config, "") as system:
            system.prepare(OP, args.size)
            turn = types.SimpleNamespace(op=OP, nodes=2, size=args.size, rate=sum(rates_mbit), mtu=config["mtu"],
                                         stagger=0, order="rising", trace=None)
            for number in range(-1, args.repeat):
                took = one_turn(system, turn)
                if number >= 0:
                    yield {"kind": kind, "rates_mbit": rates_mbit, "bytes": args.size, "seconds": took["seconds"],
                           "bound_seconds": bound, "ratio": took["seconds"] / bound,
                           "cpu_seconds": took.get("cpu_seconds")}


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    options.check_memory(8 * args.size, "name smaller objects")
    print(f"{args.size / MIB:g} MiB there and back, over the bound: the bytes over the rates of both rails",
          file=sys.stderr)
    for kind in args.kinds:
        for rates in ((args.rate, args.rate), (args.rate, args.rate / 2)):
            rows = list(turns(kind, rates, args))
            for row in rows if args.json else ():
                print(json.dumps(row), flush=True)
            ratios = sorted(row["ratio"] for row in rows)
            say(f"  {kind:12} {rates[0]:g} + {rates[1]:g} Mbit/s {statistics.median(ratios):7.3f} x"
                f"  ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    return 0
