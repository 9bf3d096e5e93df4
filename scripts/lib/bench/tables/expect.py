# SPDX-License-Identifier: BSD-3-Clause
"""How long a case will take, so that a slice of `bench compare` begins nothing that would end later: by
its own rows where there are some, else by what such cases took, rather too long than too short."""

from lib.bench import ops
from lib.bench.tables import rows as bench_rows
from lib.bench.tables.table import label, name_of

OVER_BOUND = {"sarissa": 1.4, "openmpi": 1.4, "gloo": 7.0, "dask": 4.0, "ray": 4.0, "torch-gloo": 7.0,
              "mooncake": 4.0, "nixl": 4.0, "dask-today": 4.0}           # where nothing is measured
DEFAULT_OVER = 7.5  # of a peer as it comes
ONE_WAY_OVER = 1.5  # of what each has in one way only
ONE_WAY = ("gather", "p2p")
LEAST_S = {"sarissa": 0.2, "openmpi": 0.2, "gloo": 0.2, "dask": 0.3, "ray": 0.4, "torch-gloo": 0.2,
           "mooncake": 0.2, "nixl": 0.2, "dask-today": 0.3}              # of a turn
START_S = {"sarissa": 2.0, "openmpi": 1.5, "gloo": 2.0, "dask": 3.0, "ray": 8.0, "torch-gloo": 3.0,
           "mooncake": 3.0, "nixl": 2.0, "dask-today": 4.0}              # and its end
START_NODE_S = {"sarissa": 0.15, "openmpi": 0.15, "gloo": 0.25, "dask": 0.5, "ray": 2.0, "torch-gloo": 1.5,
                "mooncake": 0.4, "nixl": 0.4, "dask-today": 0.7}
CHECKED_BYTES_S = 1e9    # filled, put and compared, all nodes together
REVIVE_S = 5.0           # of nodes that were killed


def start(names, nodes):
    """Until these systems are up, and down again at the end."""
    return sum(START_S[name] + START_NODE_S[name] * nodes for name in names)


def seconds(known, run, system, tuning):
    """Of the operation alone."""
    over = ONE_WAY_OVER if run.op in ONE_WAY else DEFAULT_OVER if tuning == "default" else OVER_BOUND[system]
    return max((row["seconds"] for row in known if label(row) == name_of(system, tuning)),
               default=over * ops.bound_seconds(run))


def turn(known, run, system, tuning):
    """One turn of a system, with all that is outside its time; known: rows of the case."""
    took = [row["took_seconds"] for row in known
            if label(row) == name_of(system, tuning) and row.get("took_seconds")]
    return max(took, default=seconds(known, run, system, tuning) + LEAST_S[system] +
               run.nodes * run.size / CHECKED_BYTES_S)


def turns(known, run, system, tuning, wanted):
    """How many it takes for as many rows: one more warms up, but what is long is measured once."""
    return 1 if seconds(known, run, system, tuning) > bench_rows.LONG_S else wanted + 1


def case(known, run, wanted):
    """Seconds of all that is wanted of a case; wanted(name) says how many rows of a system."""
    total = 0.0
    for system, _, tuning in ops.kinds(run):
        count = wanted(name_of(system, tuning))
        one = turn(known, run, system, tuning)
        if run.kill and count:  # undisturbed first
            total += (2 * count + 1) * one + count * REVIVE_S
        elif count:
            total += run.nodes * run.size / CHECKED_BYTES_S + turns(known, run, system, tuning, count) * one
    return total


def first_turns(known, run, wanted):
    """Seconds until each system has given a row, where a case may be cut into slices."""
    if run.kill:
        return case(known, run, wanted)
    return case(known, run, lambda name: min(1, wanted(name)))
