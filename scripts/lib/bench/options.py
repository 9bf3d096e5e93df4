# SPDX-License-Identifier: BSD-3-Clause
"""Collectives against the bound of the links, and against other systems in the same run.

  bench broadcast --nodes 8 --size 33554432 --rate 100 --system all

Times as Hoplite took them: broadcast from the moment that all ask to the end of the last receiver;
reduce from the call of reduce until node 0 holds the sum of all nodes' f32 arrays; allreduce from
there until the last node holds it; gather the time of all gets at node 0, one object from each
other node; p2p the round trip of an object. What is checked (every byte) and made ready is outside
the time. The systems take turns.

With --stagger node I calls I * MS after the start (--order has other orders); in a reduce it gives its
array then. Then 'late' tells how long after the bound the last receiver ended, in units of S/B:
the bound of a receiver is its arrival + S/B, and not before those of the earlier ones; that of a
reduce is the last arrival + S/B. 'blocked' is how long each task stood in its calls, the giver too.

With --kill both daemons of the nodes named are killed (SIGKILL) in the middle of a reduce that has as
many sources in reserve: 'later' tells how much later than undisturbed its end comes, in units of S/B.
"""

import math

from lib import options
from lib.bench import transfer
from lib.bench.sum import ELEMENT_BYTES, REDUCES
from lib.bench.systems.dask import Dask, DaskToday
from lib.bench.systems.gloo import ALGORITHMS as GLOO_ALGORITHMS
from lib.bench.systems.gloo import Gloo
from lib.bench.systems.mooncake import Mooncake
from lib.bench.systems.nixl import Nixl
from lib.bench.systems.openmpi import OpenMpi
from lib.bench.systems.ray import Ray
from lib.bench.systems.torch_gloo import TorchGloo
from lib.shell import Failure

MIB = 1 << 20
STAGGERED = ("broadcast", *REDUCES)
STAGGER_MOST_MS = 3_600_000
ORDERS = ("rising", "falling", "random")
DEBIAN = {"openmpi": OpenMpi, "gloo": Gloo, "dask": Dask}
ENGINES = {"ray": Ray, "torch-gloo": TorchGloo, "mooncake": Mooncake, "nixl": Nixl, "dask-today": DaskToday}
PEERS = DEBIAN | ENGINES
SYSTEMS = {"sarissa": ["sarissa"], **{name: [name] for name in PEERS},
           "both": ["sarissa", "openmpi"], "all": ["sarissa", *DEBIAN], "engines": ["sarissa", *ENGINES]}


def parse(op, argv):
    parser = options.Parser(prog=f"bench {op}", description=__doc__)
    parser.add_argument("--nodes", type=options.NODES, default=2 if op == "p2p" else 4, metavar="N")
    parser.add_argument("--size", type=options.SIZE, default=32 * MIB, metavar="BYTES", help="of one object")
    parser.add_argument("--rate", type=options.RATE_OR_NONE, default=100, metavar="MBIT",
                        help="of each node's link; 0: no limit, no bound")
    parser.add_argument("--mtu", type=options.MTU, default=1500, metavar="BYTES")
    parser.add_argument("--system", choices=SYSTEMS, default="sarissa",
                        help="both: with OpenMPI; all: with Gloo (but not in p2p) and Dask, too; engines: with those of "
                        "scripts/setup --engines, and Mooncake and NIXL, which come from PyPI when they are asked for")
    parser.add_argument("--tuning", nargs="+", default=["default", "hand"], metavar="T",
                        help="of the others: their defaults, what was the best of what we tried by "
                        "hand; of Gloo's allreduce: " + ", ".join(GLOO_ALGORITHMS) + "; of OpenMPI: "
                        "parameters, such as bcast_algorithm=7,btl_tcp_eager_limit=1000000")
    parser.add_argument("--stagger", default="0", metavar="MS|xT",
                        help="node I calls I * MS after the start; 0.2T: in units of the time that "
                        "the object alone needs on a link; not of gather and p2p")
    parser.add_argument("--order", choices=ORDERS, default="rising",
                        help="in which the nodes come with --stagger; the giver of a broadcast is "
                        "always the first")
    parser.set_defaults(kill=[])
    if op == "reduce":
        add_kill_options(parser)
    parser.add_argument("--repeat", type=options.COUNT, default=5, metavar="R")
    parser.add_argument("--workers", type=options.WORKERS, default=1, metavar="W", help="of our dataplanes")
    parser.add_argument("--busy-poll", action="store_true", help="our dataplanes never sleep")
    parser.add_argument("--wakeups", action="store_true", help="what ran meanwhile, how often it was "
                        "woken and for how long: from the kernel's trace, which costs time itself")
    parser.add_argument("--json", action="store_true", help="one JSON object per repetition")
    parser.set_defaults(trace=None)
    args = parser.parse_args(argv)
    args.stagger = stagger_ms(args)
    args.op, args.systems = op, SYSTEMS[args.system]
    args.tunings = {name: PEERS[name].tunings(op, args.tuning) for name in args.systems
                    if name in PEERS and op in PEERS[name].operations}
    check(args)
    return args


def add_kill_options(parser):
    parser.add_argument("--kill", type=int, nargs="+", metavar="I",
                        help="kill these nodes in the middle; only for sarissa")
    parser.add_argument("--at", type=float, default=0.5, metavar="SHARE",
                        help="when, in parts of the undisturbed time (0.5)")


def check(args):
    if "sarissa" in args.systems:
        options.check_mtu(args.mtu, options.vdev(), "--vdev udp or tap, or without sarissa (--system)")
    if args.stagger and args.op not in STAGGERED:
        raise Failure(f"--stagger is for {', '.join(STAGGERED)}", 2)
    unknown = [tuning for tuning in args.tuning if not
               any(peer.tunings(args.op, [tuning]) for peer in PEERS.values())]
    if unknown:
        raise Failure(f"--tuning: nobody knows '{unknown[0]}' in {args.op}: default, hand, an "
                      "algorithm of Gloo's, or parameters of OpenMPI's", 2)
    if "sarissa" not in args.systems and not any(args.tunings.values()):
        raise Failure(f"--system {args.system} with --tuning {' '.join(args.tuning)} has no "
                      f"{args.op}", 2)
    if args.op in REDUCES and (args.size % ELEMENT_BYTES or args.size < args.nodes * ELEMENT_BYTES):
        raise Failure("--size holds f32 elements, at least one for each node", 2)
    if args.kill:
        check_kill(args)


def check_kill(args):
    spare = len(set(args.kill))
    if not all(0 < node < args.nodes - spare for node in args.kill) or args.stagger:
        raise Failure("--kill names nodes, but not node 0, which asks, nor the last "
                      f"{spare}, which have what is in reserve; there is no --stagger with it", 2)
    if not 0 < args.at < 1 or args.size == 0 or args.rate == 0:
        raise Failure("--at is between 0 and 1, and --kill wants a --size and a --rate", 2)
    args.systems, args.tunings = ["sarissa"], {}


def stagger_ms(args):
    text, unit = args.stagger, 1
    if text.endswith("T"):
        text, unit = text[:-1], 1e3 * transfer.bound_seconds(args.size, args.rate)
    try:
        stagger = float(text) * unit
    except ValueError:
        stagger = math.nan
    if not 0 <= stagger <= STAGGER_MOST_MS:
        raise Failure(f"--stagger {args.stagger}: name a number of ms, or a multiple like 0.2T, of at "
                      "most an hour", 2)
    return stagger
