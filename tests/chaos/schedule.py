# SPDX-License-Identifier: BSD-3-Clause
"""What happens when, from a seed: a list of troubles, each with its end. Pure: nothing is done here.

A node has one trouble with its processes at a time, and one with its cable. So it is known here which
nodes lose their store: those of which both processes die.
"""

import random
from collections import namedtuple

# kind, weight
KINDS = {
    "control": 5,     # kill -9, start again after a while
    "dataplane": 5,
    "node": 3,        # both: the store is gone
    "turn": 2,        # control, and the dataplane as soon as the new control answers
    "freeze": 2,      # SIGSTOP, SIGCONT
    "client": 4,      # a driver, kill -9; half of them while they write an object
    "cut": 4,         # cable out, in again
    "flap": 2,        # several times
    "split": 2,       # some nodes on one side, the others on the other
    "lossy": 4,       # faults on the path to a node
}
PROCESS_KINDS = ("control", "dataplane", "node", "turn", "freeze")
CABLE_KINDS = ("cut", "flap")
GAP_S = 1.2          # between troubles, on average
FIRST_S = 2.0        # undisturbed
REST_S = 4.0         # a node's, after a process came back

Trouble = namedtuple("Trouble", "at kind node lasts detail")


def lasting(draw, kind):
    """Seconds from begin to end."""
    if kind == "freeze":
        return draw.uniform(0.05, 1.5)
    if kind in ("cut", "flap", "split"):
        return draw.choice((0.1, 0.5, 2.0, 5.0)) * draw.uniform(0.7, 1.3)
    if kind == "lossy":
        return draw.uniform(1.0, 6.0)
    return draw.choice((0.0, 0.3, 1.0, 4.0)) * draw.uniform(0.7, 1.3)


def details(draw, kind, nodes, drivers):
    if kind == "freeze":
        return draw.choice(("control", "dataplane"))
    if kind == "client":
        return draw.randrange(drivers), draw.choice((None, "slow"))
    if kind == "flap":
        return draw.randint(2, 6)
    if kind == "split":
        return sorted(draw.sample(range(nodes), nodes // 2))
    if kind == "lossy":
        percents = {"loss": draw.choice((0, 1, 5, 10)), "dup": draw.choice((0, 1, 5)),
                    "reorder": draw.choice((0, 1, 10)), "corrupt": draw.choice((0, 0.5, 2)),
                    "ecn": 0}
        return {"loss": 5, **percents} if not any(percents.values()) else percents
    return None


def busy_with(kind, node):
    """What a trouble needs for itself alone."""
    if kind in PROCESS_KINDS:
        return ("process", node)
    if kind in CABLE_KINDS:
        return ("cable", node)
    return (kind,) if kind in ("lossy", "split") else ("client", node)


def hides(t, nodes):
    """The nodes that others may not reach meanwhile, and whose objects they may take for lost."""
    if t.kind == "split":
        return set(range(nodes))
    return {t.node} if t.kind in PROCESS_KINDS + CABLE_KINDS else set()


def sides(t, nodes):
    """The parts that the cluster falls into meanwhile, as far as a cable is out."""
    if t.kind in CABLE_KINDS:
        return [{t.node}]
    return [set(t.detail), set(range(nodes)) - set(t.detail)] if t.kind == "split" else []


def make(seed, seconds, nodes, drivers, kinds=None):
    """Troubles in order, all over by `seconds`."""
    draw = random.Random(f"{seed}/schedule")
    chosen = {kind: KINDS[kind] for kind in (kinds or KINDS)}
    free, troubles, at = {}, [], FIRST_S
    while True:
        at += draw.expovariate(1 / GAP_S)
        kind = draw.choices(list(chosen), list(chosen.values()))[0]
        node = draw.randrange(nodes)
        lasts, detail = lasting(draw, kind), details(draw, kind, nodes, drivers)
        takes = lasts * 2 if kind == "turn" else lasts
        if at + takes > seconds:
            return troubles
        what = busy_with(kind, node)
        if at < free.get(what, 0):
            continue
        free[what] = at + takes + (REST_S if kind in PROCESS_KINDS else 0.5)
        troubles.append(Trouble(at, kind, node, lasts, detail))
