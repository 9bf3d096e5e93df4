# SPDX-License-Identifier: BSD-3-Clause
"""The cases of `bench compare`: a name, the command that measures it, and the most that medians of
our rows may be. Rates are those that leave the cores of a two-core machine some air."""

from typing import NamedTuple

KIB, MIB = 1 << 10, 1 << 20
RATES = {4: 200, 8: 200, 16: 75}  # Mbit/s, by nodes, at MTU 1500
RATES_3498 = {4: 200, 8: 200, 16: 150}
COPIES_MOST, RESENT_MOST, LATE_MOST = 1.1, 0.01, 0.15
REDUCE_MOST, STAGGERED_MOST, LATER_MOST = 1.08, 1.04, 0.6


class Case(NamedTuple):
    name: str
    command: str
    limits: dict = {}


def command(op, nodes, size, rate, mtu=1500, stagger=None, order=None):
    text = f"{op} --nodes {nodes} --size {size} --rate {rate} --mtu {mtu}"
    return text + (f" --stagger {stagger}" if stagger else "") + (
        f" --order {order}" if order else "")


def large_broadcasts():
    for mtu, rates, most in ((1500, RATES, 1.07), (3498, RATES_3498, 1.04)):
        for size in (32, 64):
            for nodes, rate in rates.items():
                yield Case(f"broadcast/{size}m-to-{nodes - 1}-mtu-{mtu}",
                           command("broadcast", nodes, size * MIB, rate, mtu),
                           {"ratio": most, "source_copies": COPIES_MOST})


def small_broadcasts():
    """Under a millisecond a ratio to the bound says nothing: only the time does."""
    for text, size, limits in (("1m", MIB, {"ratio": 1.3}), ("64k", 64 * KIB, {}),
                               ("1k", KIB, {"seconds": 0.002})):
        yield Case(f"broadcast/{text}-to-15", command("broadcast", 16, size, RATES[16]), limits)


def staggered_broadcasts():
    for tenths in (1, 2, 3):
        yield Case(f"broadcast/stagger-0.{tenths}",
                   command("broadcast", 8, 32 * MIB, RATES[8], stagger=f"0.{tenths}T"),
                   {"late_share": LATE_MOST})


def reduces(op):
    for size in (32, 64):
        for nodes, rate in RATES.items():
            yield Case(f"{op}/{size}m-on-{nodes}", command(op, nodes, size * MIB, rate),
                       {"ratio": REDUCE_MOST})
    for text, size, limits in (("1m", MIB, {}), ("64k", 64 * KIB, {}),
                               ("1k", KIB, {"seconds": 0.003} if op == "allreduce" else {})):
        for nodes, rate in RATES.items():
            yield Case(f"{op}/{text}-on-{nodes}", command(op, nodes, size, rate),
                       limits if nodes == 8 else {})


def staggered_reduces():
    """Ratio: to the last arrival + S/B."""
    for tenths in (1, 2, 3):
        for order in ("rising", "falling", "random"):
            yield Case(f"reduce/stagger-0.{tenths}-{order}",
                       command("reduce", 8, 32 * MIB, RATES[8], stagger=f"0.{tenths}T", order=order),
                       {"ratio": STAGGERED_MOST, "blocked_others_seconds": 0.1})


def killed_reduces():
    for node in (1, 3):
        yield Case(f"reduce/kill-{node}", command("reduce", 6, 64 * MIB, RATES[8]) +
                   f" --kill {node} --at 0.5", {"later_share": LATER_MOST})


CASES = [
    *large_broadcasts(),
    *small_broadcasts(),
    *staggered_broadcasts(),
    Case("gather/16m-from-15", command("gather", 16, 16 * MIB, 200),
         {"ratio": 1.06, "resent_share": RESENT_MOST}),
    *reduces("reduce"),
    *reduces("allreduce"),
    *staggered_reduces(),
    *killed_reduces(),
    Case("lookup/busy-poll", "lookup --busy-poll"),
    Case("lookup/adaptive", "lookup"),
]
