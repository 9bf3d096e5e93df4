# SPDX-License-Identifier: BSD-3-Clause
"""The cases of `bench compare`: a name, the command that measures it, and the most that medians of
our rows may be. Rates are those that leave the cores of a two-core machine some air."""

import re
from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"1k": KIB, "64k": 64 * KIB, "1m": MIB, "32m": 32 * MIB, "64m": 64 * MIB}
NODES = (4, 8, 16)
RATES = {2: 200, 4: 200, 6: 200, 8: 200, 16: 75}  # Mbit/s, by nodes, at MTU 1500
RATES_BUSY = {("broadcast", 16): 40, ("reduce", 16): 40, ("allreduce", 16): 40,
              ("allreduce", 8): 100}  # from 32 MiB on, where those above fill the cores
RATES_3498 = {4: 200, 8: 200, 16: 75}
OPERATIONS = ("broadcast", "gather", "reduce", "allreduce")
DEFAULT = "-default"  # ends the names of cases in which the others run as they come
ENGINES = "-engines"  # ends those in which they are of the engines' environment

SMALL = {  # limits of sizes at which a ratio to the bound says nothing: only the time does
    "broadcast/1k-on-16": {"seconds": 0.002},
    "broadcast/1m-on-16": {"ratio": 1.3},
    "allreduce/1k-on-8": {"seconds": 0.003},
}
LARGE = {
    "broadcast": {"ratio": 1.07, "source_copies": 1.1},
    "gather": {"ratio": 1.06, "resent_share": 0.01},
    "reduce": {"ratio": 1.08},
    "allreduce": {"ratio": 1.08},
}
STAGGERED = {
    "broadcast": {"late_share": 0.15},
    "reduce": {"ratio": 1.04, "blocked_others_seconds": 0.1},
    "allreduce": {},
}


WORTH = (r"[a-z]+/(1k|64k|1m|32m)-on-(8|16)", r".*/stagger-[0-9.]+-random", r".*/64m-on-(8|16)",
         r".*/stagger-.*", r".*/kill-.*", r".*/(1k|64k|1m|16m)-on-\d-engines")  # what is to be measured first; then the rest


class Case(NamedTuple):
    name: str
    command: str
    limits: dict = {}
    huge: bool = False
    engines: bool = False


def rank(case):
    """The less, the sooner it is measured."""
    return next((at for at, names in enumerate(WORTH) if re.fullmatch(names, case.name)), len(WORTH))


def command(op, nodes, size, mtu=1500):
    rate = (RATES if mtu == 1500 else RATES_3498)[nodes]
    if mtu == 1500 and size >= 32 * MIB:
        rate = RATES_BUSY.get((op, nodes), rate)
    if op == "gather":  # only one link is busy
        rate = RATES[8]
    return f"{op} --nodes {nodes} --size {size} --rate {rate} --mtu {mtu}"


def by_size(op, nodes):
    for text, size in SIZES.items():
        name = f"{op}/{text}-on-{nodes}"
        yield Case(name, command(op, nodes, size),
                   LARGE[op] if size >= 32 * MIB else SMALL.get(name, {}))


def round_trips():
    for text in ("1k", "1m", "32m"):
        name = f"p2p/{text}-on-2"
        yield Case(name, command("p2p", 2, SIZES[text]), {"ratio": 1.06} if text == "32m" else {})


def longer_frames():
    for nodes in NODES:
        for text in ("32m", "64m"):
            yield Case(f"broadcast/{text}-on-{nodes}-mtu-3498",
                       command("broadcast", nodes, SIZES[text], 3498),
                       LARGE["broadcast"] | {"ratio": 1.04})


def staggered(op):
    """Ratio: to the last arrival + the bound without."""
    for tenths in (1, 2, 3):
        for order in ("rising", "falling", "random"):
            yield Case(f"{op}/stagger-0.{tenths}-{order}", command(op, 8, 32 * MIB) +
                       f" --stagger 0.{tenths}T --order {order}", STAGGERED[op])


def killed_reduces():
    for node in (1, 3):
        yield Case(f"reduce/kill-{node}", command("reduce", 6, 64 * MIB) +
                   f" --kill {node} --at 0.5", {"later_share": 0.6})


def defaults():
    """Rows of their own, ours as well: all are of one run."""
    for op in OPERATIONS:
        for nodes in NODES if op == "allreduce" else (8,):
            for text in ("1k", "64k", "1m", "32m"):
                yield Case(f"{op}/{text}-on-{nodes}{DEFAULT}",
                           command(op, nodes, SIZES[text]) + " --tuning default")


def engines():
    """Beside what a user of the engines has today. What is long comes last."""
    sizes = {"1k": KIB, "64k": 64 * KIB, "1m": MIB, "16m": 16 * MIB, "64m": 64 * MIB}
    for text, size in sizes.items():
        for nodes, op in [*((nodes, op) for nodes in (8, 4) for op in OPERATIONS), (2, "p2p")]:
            yield Case(f"{op}/{text}-on-{nodes}{ENGINES}",
                       f"{op} --nodes {nodes} --size {size} --rate {RATES[nodes]} --mtu 1500", engines=True)


CASES = [
    *(case for nodes in NODES for op in OPERATIONS for case in by_size(op, nodes)),
    *round_trips(),
    *longer_frames(),
    *(case for op in STAGGERED for case in staggered(op)),
    *killed_reduces(),
    *defaults(),
    *engines(),
    *(Case(f"{op}/1g-on-4", command(op, 4, 1024 * MIB), LARGE[op], huge=True)
      for op in OPERATIONS),
]
