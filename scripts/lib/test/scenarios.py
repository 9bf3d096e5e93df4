# SPDX-License-Identifier: BSD-3-Clause
"""The traffic scenarios of pktgen_scenarios/: what each sends, and what the node's counters must
say afterwards.

An expectation file NAME.json holds
  topology      who sends to whom
  traffic       one or several runs of the generator, by the names of its options
  during        "get", "transfers": what goes on at the same time and must end with the right bytes
  receiver      senders and chunks of valid DATA, instead of a whole node
  counters      counter -> {"min", "max", "max_per_s"}: bounds of its change over all runs
  together      a list of {"counters", "min"}: the least change of their sum
  growth_bytes  the most that the private memory of a process may grow
"""

import json

from lib.shell import ROOT, Failure, build_dir

FOLDER = ROOT / "pktgen_scenarios"
LIVE_MODES = ("truncated", "resealed", "replay", "mixed")  # see packets.c


def names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name):
    if name not in names():
        raise Failure(f"no scenario '{name}': choose of {' '.join(names())}", 2)
    return json.loads((FOLDER / f"{name}.json").read_text())


def modes(expected):
    """What its traffic consists of, in order."""
    return list(dict.fromkeys(one["mode"] for one in expected["traffic"]))


def program(name):
    path = build_dir() / "pktgen_scenarios" / name
    if not path.exists():
        raise Failure(f"{path} is not there: run scripts/setup")
    return path


def generator(traffic, **more):
    """The command of one run of the generator."""
    argv = [program("packets")]
    for key, value in {**traffic, **more}.items():
        argv += [f"--{key.replace('_', '-')}", value]
    return [str(a) for a in argv]


def violations(expected, moved, seconds):
    """What does not hold of the changes of the counters over so many seconds, in words."""
    for name, bounds in expected["counters"].items():
        if name not in moved:
            raise Failure(f"no counter {name}: the node is of another version than the scenario")
        value = moved[name]
        if value < bounds.get("min", 0):
            yield f"{name} moved by {value}, at least {bounds['min']} expected"
        most = bounds.get("max", bounds.get("max_per_s", float("inf")) * seconds)
        if value > most:
            yield f"{name} moved by {value}, at most {most:.0f} expected"
    yield from sums(expected, moved)


def sums(expected, moved):
    """The same of what several counters share: which of them counts a packet is chance."""
    for one in expected.get("together", ()):
        if missing := [name for name in one["counters"] if name not in moved]:
            raise Failure(f"no counter {missing[0]}: the node is of another version than the scenario")
        value = sum(moved[name] for name in one["counters"])
        if value < one["min"]:
            yield f"{' + '.join(one['counters'])} moved by {value}, at least {one['min']} expected"


def recording_fault(expected, told):
    """What is wrong with packets that were recorded for a scenario, or None: none passed, they are the
    small ones after a transfer, or they come from too few senders."""
    if told["full"] * 2 < told["seen"]:
        return (f"{told['full']} of {told['seen']} packets carry payload: record while a transfer runs"
                " towards the node")
    least = min(expected.get("receiver", {}).get("peers", 1), 2)
    if told["senders"] < least:
        return f"{told['senders']} sender: record while at least {least} nodes send to this one"
    return None


def pktgen_command(name, path, frame_bytes):
    """The command that plays a file; pktgen ends by itself, and never hangs. Not fewer than three cores
    and 2 GiB; frames above 1,514 bytes need -j."""
    jumbo = "-j " if frame_bytes > 1514 else ""
    return (f"timeout -k 5 $((${{SECONDS:-10}} + 60)) pktgen -l 0-2 -n 4 -m 2048 -- -P -T {jumbo}-m '[1:2].0'"
            f" -s 0:{path} -f {FOLDER / name}.lua")


def counters(lines):
    """The sum over the workers of what `sarissa status --counters --json` prints."""
    total = {}
    for line in lines:
        for name, value in (json.loads(line) if line.startswith("{") else {}).get(
                "counters", {}).items():
            total[name] = total.get(name, 0) + value
    if not total:
        raise Failure("no counters in it: save what sarissa status --counters --json prints")
    return total
