# SPDX-License-Identifier: BSD-3-Clause
"""The main job on this machine, in a few minutes: real files cross real nodes.

Four nodes, each a dataplane and a control process in a network namespace of its own, on links
of 200 Mbit/s. Files are put on node 0 and fetched by the others at the same moment; then the same
with 1 % of the packets lost. Then each node puts an array of numbers, and they are added up on the
way: to one node (reduce), to all (allreduce), and with a node that is killed half-way. Everything
is compared, and taken away at the end.

The links are virtual ones, whose driver has no AF_XDP zero-copy: kernel UDP sockets are the fastest
port there, and are used unless --vdev names another.

usage: demo [--rate MBIT] [--nodes N] [--mib SIZE] [--vdev udp|af_xdp|tap]
"""

import array
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import tarfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lib import options, shell  # noqa: E402
from lib.bench import transfer  # noqa: E402
from lib.cluster import nodes  # noqa: E402
from lib.shell import ROOT, Failure, say  # noqa: E402


PORTS = {"udp": "kernel UDP sockets", "af_xdp": "AF_XDP in copy mode", "tap": "tap interfaces"}


def digest_of(path):
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def real_files(directory, mib):
    """Something that everybody has, and something that no compression could help."""
    tree = directory / "source-tree.tar"
    with tarfile.open(tree, "w") as tar:
        for part in sorted(ROOT.iterdir()):
            if not part.name.startswith((".git", "build")):
                tar.add(part, arcname=part.name)
    system = max((p for p in Path("/usr/bin").iterdir() if p.is_file() and not p.is_symlink()),
                 key=lambda p: p.stat().st_size)
    random = directory / f"random-{mib}MiB"
    transfer.write_random(random, mib << 20)
    return [tree, system, random]


def fetch(config, name, directory, receivers):
    """All receivers call get at once; seconds until the last has the whole."""
    begin = time.monotonic()
    children = [subprocess.Popen([nodes.binary("cli"), "get", name, directory / f"got-{node}",
                                  "--timeout", "300"], env=nodes.environment(config, node),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for node in receivers]
    for node, child in zip(receivers, children):
        _, errors = child.communicate()
        if child.returncode:
            raise Failure(f"node {node}: get {name}: {errors.strip()}")
    return time.monotonic() - begin


def compare(directory, receivers, expected, name):
    """What was got, with what should have been; it is removed."""
    for node in receivers:
        got = directory / f"got-{node}"
        if digest_of(got) != expected:
            raise Failure(f"node {node} got other bytes of {name}: keep the logs in "
                          "/run/sarissa-cluster and report it")
        got.unlink()


def one_round(config, directory, path, receivers, label):
    """Put, get everywhere, compare digests, remove; returns a row of the table."""
    name, size = f"{path.name} ({label})", path.stat().st_size
    transfer.command(config, 0, "put", name, path)
    seconds = fetch(config, name, directory, receivers)
    compare(directory, receivers, digest_of(path), path.name)
    transfer.command(config, 0, "rm", name)
    bound = transfer.bound_seconds(size, config["rate"])
    return path.name, label, len(receivers), size, seconds, bound


HELD = 4  # arrays of a node in its store at once
BLOCK = 1 << 20  # the arrays repeat themselves, so that a sum is soon made


def gradient(node):
    """The numbers of a node: small integers as f32, whose sums are exact."""
    draw = random.Random(node)
    return array.array("f", [draw.randrange(256) for _ in range(BLOCK // 4)])


def digest_of_sum(sources, mib):
    total = array.array("f", [sum(column) for column in zip(*(gradient(i) for i in sources))])
    digest = hashlib.sha256()
    for _ in range(mib):
        digest.update(total)
    return digest.hexdigest()


def put_gradients(config, directory, mib, kind):
    names = []
    for node in range(config["nodes"]):
        path = directory / "gradient"
        with open(path, "wb") as out:
            for _ in range(mib):
                out.write(gradient(node))
        names.append(f"{kind}-{node}")
        transfer.command(config, node, "put", names[-1], path)
        path.unlink()
    return names


def used_sources(names, out, errors, digest, mib, count):
    """The sources of the sum, as the node reports; by trying, if the requester was killed."""
    if out:
        return [names.index(name) for name in json.loads(out)["used"]]
    if "the node that knew" in errors:
        for used in itertools.combinations(range(len(names)), count):
            if digest_of_sum(used, mib) == digest:
                return list(used)
    raise Failure(f"reduce: {errors.strip()}")


def add_up(config, directory, mib, kind, receivers, *options, during=None):
    """Every node's numbers, added up at the receivers; returns a row of the table."""
    names = put_gradients(config, directory, mib, kind)
    target = f"sum ({kind})"
    begin = time.monotonic()
    child = subprocess.Popen([nodes.binary("cli"), "reduce", target, *names, "--wait", "--json",
                              "--timeout", "120", *options], env=nodes.environment(config, 0),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if during:
        during()
    for attempt in range(8):
        try:
            fetch(config, target, directory, receivers)
            break
        except Failure as failure:  # what it had was replaced: the error says to get it again
            if during is None or "again" not in str(failure) or attempt == 7:
                raise
    seconds = time.monotonic() - begin
    out, errors = child.communicate()
    used = used_sources(names, out, errors, digest_of(directory / f"got-{receivers[0]}"), mib,
                        count=len(names) - (during is not None))
    compare(directory, receivers, digest_of_sum(used, mib), target)
    transfer.command(config, 0, "rm", target)
    if during is None:
        transfer.command(config, 0, "rm", *names)
    bound = transfer.bound_seconds(mib << 20, config["rate"])
    return seconds, bound, used


def sums(config, directory, mib):
    """Reduce, allreduce, and a reduce that loses a node; rows of the table."""
    count = config["nodes"]
    everybody = range(count)
    rows = []
    seconds, bound, used = add_up(config, directory, mib, "reduce", [0])
    rows.append((f"{len(used)} arrays of f32", "reduce", 1, mib << 20, seconds, bound))
    seconds, bound, used = add_up(config, directory, mib, "allreduce", everybody, "--spread")
    rows.append((f"{len(used)} arrays of f32", "allreduce", count, mib << 20, seconds,
                 bound * 2 * (count - 1) / count))
    if count < 3:
        return rows
    victim = 1

    def kill():
        time.sleep(bound / 2)
        shell.run(transfer.CLUSTER, "kill", "--name", config["name"], victim, "node")

    seconds, bound, used = add_up(config, directory, mib, "killed", [0], "--num", str(count - 1),
                                  during=kill)
    rows.append((f"{len(used)} of {count} arrays", "a node killed", 1, mib << 20, seconds, bound))
    shell.run(transfer.CLUSTER, "start", "--name", config["name"], victim, "node")
    return rows


def show(rows):
    print(f"\n{'object':<24}{'path':<16}{'to':>4}{'MiB':>8}{'seconds':>9}{'bound':>8}{'ratio':>7}")
    for name, label, count, size, seconds, bound in rows:
        print(f"{name[:23]:<24}{label:<16}{count:>4}{size / 2**20:>8.1f}{seconds:>9.2f}{bound:>8.2f}"
              f"{seconds / bound:>7.2f}")


KILLED = """ In the last row a node was killed after half of the bound. The
sum holds exactly the arrays that the reduce reports; the array in reserve replaces a lost one.
Partial sums with the lost array were recomputed, which costs half of the bound and a little more;
below 8 MiB up to a second more, if the dead node coordinated the reduce."""


def explain(args, rows):
    total = sum(count * size for _, _, count, size, _, _ in rows) / 2**20
    print(f"""
What this was: {args.nodes} nodes moved {total:.0f} MiB over their own reliable UDP on
{PORTS[args.vdev]}; every copy had the digest of the original. 'bound' is the time that the bytes alone need
on one link of {args.rate:g} Mbit/s; whole frames of 1514 bytes carry a little less payload than
that, so {transfer.tcp_ratio(1500):.2f} would be a TCP flow at its best. Node 0 sends to one
receiver at a time: the others get the chunks that it has received already, so that a broadcast
costs hardly more than one transfer. The lossy rounds lose one packet in a hundred on every path.
The sums were made on the way, chunk by chunk, and compared with sums made here; an allreduce moves
2(p-1)/p of the array through every link.{KILLED if args.nodes >= 3 else ""}

Next: scripts/cluster --help to run nodes of your own, scripts/bench transfer for the numbers.""")


def demo(args):
    with transfer.scratch() as directory:
        say("demo: collecting files")
        files = real_files(directory, args.mib)
        biggest = max(p.stat().st_size for p in files) >> 20
        say(f"demo: starting {args.nodes} nodes over {PORTS[args.vdev]}, links of {args.rate:g} Mbit/s")
        with transfer.cluster(args.nodes, "--rate", args.rate, "--vdev", args.vdev,
                              "--store", max(2 * biggest, 5 * args.mib) + 64) as config:
            rows = []
            receivers = range(1, args.nodes)
            for path in files:
                say(f"demo: {path.name}: node 0 -> node 1, then to all at once")
                rows.append(one_round(config, directory, path, [1], "one receiver"))
                rows.append(one_round(config, directory, path, receivers, "all at once"))
            say("demo: the same with 1 % loss")
            shell.run(transfer.CLUSTER, "fault", "--name", config["name"], "all", "--loss", 1)
            rows.append(one_round(config, directory, files[-1], [1], "1 % loss"))
            rows.append(one_round(config, directory, files[-1], receivers, "1 % loss, all"))
            shell.run(transfer.CLUSTER, "fault", "--name", config["name"], "all", "--loss", 0)
            say("demo: numbers of every node, added up on the way; then with a node killed")
            rows += sums(config, directory, args.mib)
            print(transfer.command(config, 0, "status").rstrip())
        show(rows)
        explain(args, rows)


def main():
    parser = options.Parser(prog="demo", description=__doc__)
    parser.add_argument("--rate", type=options.RATE, default=200, metavar="MBIT")
    parser.add_argument("--nodes", type=options.NODES, default=4, metavar="N")
    parser.add_argument("--mib", type=options.SIZE_MIB, default=64, metavar="SIZE")
    named = os.environ.get(options.VDEV_VARIABLE)
    parser.add_argument("--vdev", choices=PORTS, default=options.vdev() if named else "udp")
    args = parser.parse_args()
    shell.require_root("scripts/demo")
    options.check_memory(HELD * args.nodes * args.mib << 20, "name a lower --mib, or fewer --nodes")
    shell.setup()
    demo(args)


os.umask(0o022)
shell.debian_tools_only()
shell.main("demo", main)
