# SPDX-License-Identifier: BSD-3-Clause
"""Hoplite's applications on Ray: over Ray's object store, over gloo, over sarissa.ray; the same models in each.

  bench ray                                   everything, 8 nodes: twenty minutes
  bench ray --only broadcast reduce           the transfers alone
  bench ray --only sgd --no-kill --nodes 4

  empty      tasks without data, one per worker: what Ray itself costs
  broadcast  64 MiB of node 0 to an actor on each other node, through a reference
  reduce     16 MiB of each node, added up at node 0; Ray: the better of getting all and of a tree of tasks
  sgd        asynchronous SGD: the parameter server adds the gradients of the first half of the workers to its
             model (AlexNet) and gives it to these; gloo takes all workers
  policy     IMPALA: the policy goes to all actors, what they play (1/16 of its size) comes back
  a3c        the gradients of all workers but one are added up, the model goes to these; gloo takes all
  serving    an ensemble: 64 images go to all models, their votes come back

Each node is a namespace with a node of Ray and a link of its own; sarissa.ray.init() starts our nodes beside them.
The server is node 0, with a worker on each other node. Workers wait for --work-ms, half to one and a half, as if a
device of their own computed. Models are --scale times smaller than the paper's. The systems take turns.
bound: the time that the busiest link needs for the bytes of a round. CPU: of the whole machine, per round.
Then, for each application and system, a node is killed in the middle of a round: rounds per second before and after
it, and how long the round of the kill took."""

import contextlib
import itertools
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from lib import engines, options, shell
from lib.bench import meter, transfer
from lib.bench.ray_nodes import RayNodes
from lib.bench.systems.peer import set_offloads
from lib.bench.tables import ray_page
from lib.bench.tables.table import Columns, grouped, middle, percent, taken, tell_lost
from lib.bench.task import end_programs
from lib.shell import ROOT, Failure, build_dir, say

MIB = 1 << 20
MB = 1e6
SYSTEMS = ("sarissa", "ray", "ray-gloo")
# what may be done in several ways: the best counts
HOW = {("reduce", "ray"): ("get", "tree"), ("broadcast", "ray-gloo"): ("broadcast", "all_reduce")}
IMAGE_BYTES = 4 * 3 * 32 * 32
IDLE_S = 5.0
PATIENCE_S = 300.0
KILL_AT = 0.5  # of a round
PULL_MARGIN = 1.5  # on the time in which one node sends an array to all


class Case:
    """bytes: of the array, for a scale; num(workers): gradients of a round; load: bytes over the busiest link."""

    def __init__(self, model, size, load=None, num=None):
        self.model, self.size, self.load, self.num = model, size, load, num or (lambda workers: workers)
        self.is_application = bool(model)


def whole(size, unit=4):
    return max(1, round(size / unit)) * unit


def there_and_back(size, workers, num):
    """The sum comes and the model goes: at once where the workers of one round wait for those of the next."""
    return size if 2 * num <= workers else 2 * size


CASES = {
    "empty": Case("", lambda scale: 0),
    "broadcast": Case("", lambda scale: 64 * MIB, lambda size, workers, num: size),
    "reduce": Case("", lambda scale: 16 * MIB, lambda size, workers, num: size),
    "sgd": Case("AlexNet", lambda scale: whole(233 * MB / scale), there_and_back, lambda workers: max(1, workers // 2)),
    "policy": Case("policy", lambda scale: whole(64 * MB / scale), lambda size, workers, num: size * (1 + workers / 16)),
    "a3c": Case("actor-critic", lambda scale: whole(64 * MB / scale), there_and_back,
                lambda workers: max(1, workers - 1)),
    "serving": Case("ResNet ensemble", lambda scale: whole(12.6 * MB / scale, IMAGE_BYTES),
                    lambda size, workers, num: size),
}
ROUNDS = Columns("case<11", "system<16", "MB>7.2f", "s/round>9.3f", "min>8.3f", "max>8.3f", "bound>8.3f", "ratio>7.2f",
                 "CPU s>7.2f", "cores>6.2f", "x Ray>7.2f", "paper>7", "runs>6")
KILLED = Columns("case<11", "system<11", "rounds/s before>17.2f", "after>8.2f", "longest s>11.2f", "workers>9")


def parse(argv):
    parser = options.Parser(prog="bench ray", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE",
                        help=f"of {' '.join(CASES)}")
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM",
                        help=f"of {' '.join(SYSTEMS)}")
    parser.add_argument("--nodes", type=options.whole(2, 16), default=8, metavar="N", help="one is the server")
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT", help="of each link")
    parser.add_argument("--scale", type=options.SECONDS, default=16, metavar="F",
                        help="models are so many times smaller than the paper's (16)")
    parser.add_argument("--rounds", type=options.COUNT, default=5, metavar="R", help="of a run; one before them warms up")
    parser.add_argument("--work-ms", type=options.real(0, 60000), default=50, metavar="T")
    parser.add_argument("--num", type=options.COUNT, metavar="K", help="gradients of a round, instead of the case's own")
    parser.add_argument("--repeat", type=options.COUNT, default=3, metavar="R", help="turns of each system")
    parser.add_argument("--size", type=options.SIZE, metavar="BYTES", help="of the array or model, to try the bench")
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="nobody is killed")
    parser.add_argument("--json", action="store_true", help="one JSON object per run")
    return parser.parse_args(argv)


class Bed:
    """The nodes, Ray on them, and the driver on node 0."""

    def __init__(self, args, config, largest):
        self.args, self.config = args, config
        self.store = int(4 * largest + 100 * MIB)
        pull_s = PULL_MARGIN * args.nodes * transfer.bound_seconds(largest, args.rate)
        self.ray = RayNodes(config, store_bytes=self.store, environment=environment, pull_s=pull_s)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sarissa-ray-")))
            stack.enter_context(self.ray)
            self.log = stack.enter_context(open(self.directory / "log", "wb"))
            self.start_driver()
            stack.callback(self.end_driver)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *failure):
        self.stack.__exit__(*failure)

    def start_driver(self):
        self.program = self.ray.driver(0, "the driver of Ray", ROOT / "bench/ray_work.py",
                                       self.store // MIB if "sarissa" in self.args.system else 0, log=self.log)
        self.program.task.answer(time.monotonic() + PATIENCE_S)

    def end_driver(self):
        end_programs([self.program])

    def send(self, **fields):
        self.program.task.send(json.dumps(fields))

    def answer(self):
        try:
            return self.program.task.answer(time.monotonic() + PATIENCE_S)
        except Failure as failure:
            raise Failure(f"{failure}; it says:\n{(self.directory / 'log').read_text(errors='replace')[-4000:]}") from None

    def ask(self, **fields):
        self.send(**fields)
        return self.answer()

    @contextlib.contextmanager
    def opened(self, case, size):
        """The workers of an application, on all nodes but node 0."""
        workers = self.config["nodes"] - 1
        spec = {"bytes": size, "num": self.args.num or CASES[case].num(workers), "work_ms": self.args.work_ms}
        self.ask(do="open", case=case, spec=spec, nodes=list(range(1, workers + 1)))
        yield spec
        self.ask(do="close")

    def rounds(self, system, how, count):
        """One turn of a system, when the one before it sends nothing more; the first round of an application only
        warms up."""
        meter.until_quiet(self.config)
        self.ask(do="join", system=system, how=how)
        told = self.ask(do="rounds", count=count)
        self.ask(do="leave")
        return told

    def revive(self, node):
        """When Ray has found that the node has died, so that it begins nothing there any more."""
        self.ask(do="alive", count=self.config["nodes"] - 1)
        self.ray.start(node)
        self.ray.wait([node])
        self.ask(do="alive", count=self.config["nodes"])


def environment(node):
    """Of Ray's workers: as many as there are nodes share the cores."""
    return {"PYTHONPATH": f"{ROOT / 'bench'}:{build_dir() / 'client/python'}", "SARISSA_BUILD": str(build_dir()),
            "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}


def size_of(args, case):
    if not CASES[case].load:
        return 0
    return whole(args.size) if args.size else CASES[case].size(args.scale)


def row_of(args, case, system, spec, seconds, more):
    load, workers = CASES[case].load, args.nodes - 1
    middle_s = statistics.median(seconds)
    num = workers if system == "ray-gloo" else spec["num"]
    bound = transfer.bound_seconds(load(spec["bytes"], workers, num), args.rate) if load else None
    return {"op": "ray", "case": case, "system": system, "nodes": args.nodes, "bytes": spec["bytes"],
            "model": CASES[case].model, "rate_mbit": args.rate, "num": num, "work_ms": args.work_ms,
            "seconds": middle_s, "bound_seconds": bound, "ratio": middle_s / bound if bound else None,
            "rounds_per_second": 1 / middle_s, "round_seconds": list(seconds), **more}


def cores_busy(seconds, cpu_seconds):
    return round(min(1.0, sum(cpu_seconds) / max(sum(seconds), 1e-9) / os.cpu_count()), 3)


def turns(args, bed, case):
    """Rows of all systems in turns; of what one system does in several ways, the better."""
    rows = list(all_turns(args, bed, case))
    for same in grouped(rows, lambda row: row["system"]).values():
        ways = {how: middle(some, "seconds") for how, some in grouped(same, lambda row: row["how"]).items()}
        best = min(ways, key=ways.get)
        others = ", ".join(f"{how} {seconds:.3g} s" for how, seconds in ways.items()) if best else ""
        yield from ({**row, "ways": others} for row in same if row["how"] == best)


def all_turns(args, bed, case):
    size, application = size_of(args, case), CASES[case].is_application
    ways = [(system, how) for system in (args.system if CASES[case].load else ["ray"])
            for how in HOW.get((case, system), ("",))]
    with bed.opened(case, size) as spec:
        for turn in range(0 if application else -1, args.repeat):
            for system, how in ways:
                told = bed.rounds(system, how, args.rounds + 1 if application else 1)
                first = 1 if application else 0
                seconds, used = told["seconds"][first:], told["cpu_seconds"][first:]
                if turn >= 0:
                    yield row_of(args, case, system, spec, seconds, {
                        "how": how, "killed": False, "cpu_seconds": round(statistics.mean(used), 3),
                        "cores_busy": cores_busy(seconds, used), "loss": told["loss"]})


def killed(args, bed, case, system):
    """The last node is killed in the middle of a round."""
    node = args.nodes - 1
    with bed.opened(case, size_of(args, case)) as spec:
        bed.ask(do="join", system=system, how="")
        before = bed.ask(do="rounds", count=args.rounds + 1)["seconds"][1:]
        bed.send(do="rounds", count=2 * args.rounds + 1)
        time.sleep(KILL_AT * statistics.median(before))
        bed.ray.kill(node)
        told = bed.answer()
        bed.ask(do="leave")
    seconds, used = told["seconds"], told["cpu_seconds"]
    worst = seconds.index(max(seconds))
    after = seconds[worst + 1:] or seconds
    return row_of(args, case, system, spec, after, {
        "how": "", "killed": True, "cpu_seconds": round(statistics.mean(used), 3),
        "cores_busy": cores_busy(seconds, used), "loss": told["loss"], "workers": told["workers"],
        "before_rounds_per_second": 1 / statistics.median(before), "longest_seconds": max(seconds), "all_seconds": seconds})


def measure(args):
    cases = [case for case in CASES if case in args.only]
    with transfer.cluster(args.nodes, "--rate", args.rate, "--bare", suffix="r") as config:
        set_offloads(config, max(size_of(args, case) for case in cases))
        for _, same in grouped(cases, lambda case: CASES[case].is_application).items():
            yield from measure_some(args, config, same)


def measure_some(args, config, cases):
    """All transfers, or all applications: those have other settings of Ray, as they are larger and nobody dies."""
    with Bed(args, config, max(size_of(args, case) for case in cases)) as bed:
        costs = idle(bed)
        say(f"Ray alone, {args.nodes} nodes without tasks: {costs['idle_cores']:.2f} cores; other programs: "
            f"{percent(costs['other_cpu_share'])} of the machine")
        for case in cases:
            yield from told_of({**row, **costs} for row in unless_lost(bed, case, "all", turns(args, bed, case)))
        applications = [case for case in cases if CASES[case].is_application]
        yield from told_of({**row, **costs} for row in all_killed(args, bed, applications))


def unless_lost(bed, case, system, rows):
    """The rows, and one that says why, in the place of those that did not come. Then there is another driver."""
    try:
        yield from rows
    except Failure as failure:
        yield {"case": case, "system": system, "how": "", "lost": str(failure)}
        bed.end_driver()
        bed.start_driver()


def all_killed(args, bed, cases):
    dead = False
    for case, system in itertools.product(cases, args.system) if args.kill else ():
        if dead:
            bed.revive(args.nodes - 1)
        yield from unless_lost(bed, case, system, (killed(args, bed, case, system) for _ in range(1)))
        dead = True


def told_of(rows):
    for row in rows:
        told = "LOST" if "lost" in row else f"{row['seconds']:>9.4f} s{' (node killed)' if row['killed'] else ''}"
        say(f"  {row['case']:<11}{name_of(row):<16}{told}")
        yield row


def kept(args, rows):
    """Each row is for the page as soon as it has come, but those that try the bench."""
    for row in rows:
        if not args.size and "lost" not in row:
            ray_page.record([row])
        yield row


def idle(bed):
    """While nothing is asked of Ray: cores that its processes keep busy, and the share of all that others do."""
    ours, machine, begin = sum(bed.ray.cpu_seconds().values()), transfer.machine_busy_seconds(), time.monotonic()
    time.sleep(IDLE_S)
    machine, seconds = transfer.machine_busy_seconds() - machine, time.monotonic() - begin
    ours = sum(bed.ray.cpu_seconds().values()) - ours
    return {"idle_cores": ours / seconds,
            "other_cpu_share": round(max(0.0, machine - ours) / seconds / os.cpu_count(), 3)}


def name_of(row):
    return f"{row['system']} {row['how']}".strip()


def table(rows):
    groups = grouped([row for row in rows if not row["killed"]], lambda row: (row["case"], name_of(row)))
    rays = {}
    for (case, _), same in groups.items():
        if same[0]["system"] == "ray":
            rays[case] = min(rays.get(case, float("inf")), middle(same, "seconds"))
    ROUNDS.head()
    for (case, name), same in groups.items():
        every = [s for row in same for s in row["round_seconds"]]
        seconds, ray = statistics.median(every), rays.get(case)
        ours = same[0]["system"] == "sarissa"
        ROUNDS.line(case, name, same[0]["bytes"] / MB, seconds, min(every), max(every), same[0]["bound_seconds"],
                    middle(same, "ratio"), middle(same, "cpu_seconds"), middle(same, "cores_busy"),
                    ray / seconds if ray else None, ray_page.PAPER.get(case, "-") if ours else "-", str(len(same)))


def killed_table(rows):
    KILLED.head()
    for row in rows:
        KILLED.line(row["case"], row["system"], row["before_rounds_per_second"], row["rounds_per_second"],
                    row["longest_seconds"], str(row["workers"]))


def main(argv):
    args = parse(argv)
    shell.require_root("scripts/bench")
    engines.python()
    options.check_memory(args.nodes * 600 * MB, "fewer --nodes")
    told = taken(args, kept(args, measure(args)))
    rows = [row for row in told if "lost" not in row]
    table(rows)
    if any(row["killed"] for row in rows):
        say("a node was killed:")
        killed_table([row for row in rows if row["killed"]])
    tell_lost(told)
