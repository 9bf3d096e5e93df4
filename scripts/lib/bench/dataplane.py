# SPDX-License-Identifier: BSD-3-Clause
"""What the dataplane alone moves, on each kind of port: cycles per packet by stage, packets and payload
per second. Beside it, over the same: testpmd sending to testpmd, and one TCP flow of the kernel with
and without segmentation off-loads; memcpy of the same chunks.

  ring    both ends on one core, in one thread, over net_ring: also what adding costs
  memif   two processes, each on a core of its own
  vhost   the same over net_vhost, which sends, and net_virtio_user
  tap     the same over two net_tap, their kernel ends joined frame by frame
  af_xdp  the same over a veth pair
  tcp     over that veth pair

With --workers an object is cut into a stripe per worker, and worker i of both ends shares core i.
Cycles are those of the time stamp counter, of both ends together, and count only turns with work.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lib import options
from lib.bench import transfer
from lib.bench.tables.table import Columns
from lib.bench.task import Task, built
from lib.cluster import network, process
from lib.shell import Failure, require_root, run, say

DEVICES = ("ring", "memif", "vhost", "tap", "af_xdp", "tcp")
MTUS = (1500, 3498, 9000)
MTU_MAX = {"tap": 1500, "af_xdp": 3498}  # what the drivers take
STAGES = ("total", "receive", "ack", "transmit", "check", "seal", "copy_in", "copy_out", "headers",
          "ahead", "driver")
HEADROOM = 128  # of DPDK's packet buffers
OPEN_S, RUN_S = 30, 60  # what may be waited for
MIB = 1 << 20


def parse(argv):
    parser = options.Parser(prog="bench dataplane", description=__doc__)
    parser.add_argument("--device", nargs="+", choices=DEVICES, default=DEVICES)
    parser.add_argument("--mtu", nargs="+", type=options.MTU, default=MTUS, metavar="BYTES")
    parser.add_argument("--seconds", type=options.SECONDS, default=2, metavar="S", help="of each measurement")
    parser.add_argument("--mib", type=options.whole(1, 1 << 20), default=64, metavar="N",
                        help="of the object")
    parser.add_argument("--patience", type=options.SECONDS, default=30, metavar="S",
                        help="how long one object may take over a ring")
    parser.add_argument("--workers", nargs="+", type=int, metavar="N")
    parser.add_argument("--no-testpmd", action="store_true")
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    args = parser.parse_args(argv)
    cores = len(os.sched_getaffinity(0))
    wrong = [n for n in args.workers or () if not 1 <= n <= cores]
    if wrong:
        raise Failure(f"--workers {wrong[0]}: this machine has {cores} cores", 2)
    return args


@contextlib.contextmanager
def wire(mtu, queues):
    """Two namespaces with one end each of a veth pair; their cluster's name and their own."""
    name = f"bench{os.getpid()}"
    ends = [network.node_netns(name, i) for i in (0, 1)]
    shape = f"mtu {mtu} numrxqueues {queues} numtxqueues {queues}"
    try:
        for netns in ends:
            run("ip", "netns", "add", netns)
        network.ip_batch(ends[0], [f"link add name eth0 {shape} address {network.node_mac(0)} type veth"
                                   f" peer name eth0 netns {ends[1]} address {network.node_mac(1)}"
                                   f" {shape}"])
        for i, netns in enumerate(ends):
            network.in_netns(netns, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
            network.ip_batch(netns, ["link set lo up", "link set eth0 up",
                                     f"addr add {network.node_ip(i)}/16 dev eth0"])
        yield name, ends
    finally:
        network.destroy(name)


def opened(device):
    """The sides in the order in which they open: a client needs its server."""
    return (0, 1) if device == "vhost" else (1, 0)


def ports(device, folder, queues):
    """What the sender and the receiver open."""
    if device == "vhost":
        return [f"vdev:net_vhost0,iface={folder}/vhost.sock,queues={queues}",
                f"vdev:net_virtio_user0,path={folder}/vhost.sock,queues={queues},queue_size=256"]
    if device == "memif":
        return [f"memif:0,role={role},socket={folder}/memif.sock" for role in ("client", "server")]
    return ["tap:send", "tap:receive"] if device == "tap" else ["af_xdp:eth0"] * 2


def vdev(device, side, folder, buffer_bytes):
    """The same for testpmd."""
    if device == "vhost":
        return ports(device, folder, 1)[side].removeprefix("vdev:")
    if device == "memif":
        return (f"net_memif0,role={('client', 'server')[side]},socket={folder}/memif.sock,"
                f"socket-abstract=no,bsize={buffer_bytes - HEADROOM},rsize=8")
    if device == "tap":
        return f"net_tap0,iface={('send', 'receive')[side]}"
    return "net_af_xdp0,iface=eth0"


def cores_of(workers):
    """The cores of the sender's workers, and of the receiver's."""
    cores = sorted(os.sched_getaffinity(0))
    if workers:
        return [cores[:workers]] * 2
    return [cores[:1], cores[-1:]]


class Pair:
    """Two processes, one per end, each in its namespace and on its cores."""

    def __init__(self, device, netns, folder):
        self.device, self.folder = device, folder
        self.netns = [netns[0], netns[1 if device == "af_xdp" else 0]]
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:  # with what it has started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def spawn(self, side, *argv):
        child = subprocess.Popen(["ip", "netns", "exec", self.netns[side], *map(str, argv)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True,
                                 env={**os.environ, "SARISSA_ORDINARY_PAGES": "1"} if self.device == "vhost"
                                 else None)  # whose memory must be one file that both map
        self.children.append(child)
        return child

    def join(self):
        if self.device == "tap":
            network.join(self.netns[0], "send", "receive")


def link(args, device, mtu, workers, netns, folder):
    """What the sender and the receiver tell of their halves."""
    with Pair(device, netns, folder) as pair:
        ends, children = {}, {}
        for side in opened(device):
            cores = cores_of(workers)[side]
            child = children[side] = pair.spawn(
                side, built("dataplane_link"), ("send", "receive")[side], folder / "shared",
                args.seconds, args.mib, "--port", ports(device, folder, len(cores))[side], "--addr",
                f"{network.node_ip(side)}/16", "--mtu", mtu, "--workers", len(cores), "--cores",
                ",".join(map(str, cores)), "--rundir", folder, "--busy-poll")
            ends[side] = Task(("the sender", "the receiver")[side], child.stdin.fileno(),
                              child.stdout.fileno(), lambda child=child: child.poll() is None)
            wait_for(ends[side], child, OPEN_S)
        pair.join()
        for end in ends.values():
            end.send("go")
        return [json.loads(wait_for(ends[side], children[side], RUN_S + args.seconds)) for side in (0, 1)]


def wait_for(end, child, seconds):
    """The next line of an end; a failure has its last words."""
    try:
        return end.line(time.monotonic() + seconds)
    except Failure as failure:
        process.end(child.pid)
        raise Failure(f"{failure}: {child.stderr.read().decode().strip()}") from None


def link_row(args, device, mtu, workers, netns, folder):
    halves = link(args, device, mtu, workers, netns, folder)
    sent = halves[0]
    both = {stage: sum(half["cycles_per_packet"][stage] for half in halves)
            for stage in sent["cycles_per_packet"]}
    packets = sent["bytes"] / sent["chunk_bytes"]
    return {"op": "dataplane", "device": device, "mtu": mtu, "workers": workers or 1,
            "shared_cores": bool(workers), "chunk_bytes": sent["chunk_bytes"],
            "bytes": sent["bytes"], "seconds": sent["seconds"],
            "packets_per_s": packets / sent["seconds"],
            "payload_gbit_s": sent["bytes"] * 8e-9 / sent["seconds"],
            "resent_share": sent["resent_share"], "memcpy_gbit_s": sent["memcpy_gbit_s"], "cycles_per_packet": both,
            "send": halves[0]["cycles_per_packet"], "receive": halves[1]["cycles_per_packet"]}


def testpmd(device, mtu, netns, folder, seconds=3):
    """Packets per second that the receiving one counts; None, and says so, when it does not run."""
    frame = mtu + transfer.ETHERNET_BYTES
    buffer_bytes = max(2176, (frame + 384 + 63) // 64 * 64)
    # the memif driver knows no frames above 1,518 bytes, and passes them
    longest = () if device == "memif" else (f"--max-pkt-len={frame + 4}",)
    with Pair(device, netns, folder) as pair:
        children = {}
        for side in opened(device):
            core, mode = cores_of(None)[side][0], ("txonly", "rxonly")[side]
            children[side] = pair.spawn(
                       side, "timeout", "-k", 2, seconds + 3, "dpdk-testpmd", "--lcores",
                       f"0@{core},1@{core}", "--no-huge", "--no-shconf", "--no-pci",
                       "--no-telemetry", "--iova-mode=va", "-m", 256, "--vdev",
                       vdev(device, side, folder, buffer_bytes), "--", f"--forward-mode={mode}",
                       f"--txpkts={frame}", "--stats-period=1", "--total-num-mbufs=8192",
                       f"--mbuf-size={buffer_bytes}", *longest)
            time.sleep(1)
        pair.join()
        received, errors = children[1].communicate()
        best = max((int(line.split()[1]) for line in received.decode().splitlines()
                    if "Rx-pps:" in line), default=0)
    if best == 0:
        say(f"bench: testpmd does not run over {device}, MTU {mtu}: "
            f"{(errors.decode().strip().splitlines() or ['no word'])[-1]}")
    return best or None


def device_rows(args, device, mtu):
    for workers in args.workers or [None]:
        with wire(mtu, workers or 1) as (_, netns), \
                tempfile.TemporaryDirectory(prefix="sarissa-bench-") as folder:
            row = link_row(args, device, mtu, workers, netns, Path(folder))
            if not (args.no_testpmd or args.workers):
                row["testpmd_packets_per_s"] = testpmd(device, mtu, netns, Path(folder))
        yield row


def ring_rows(args, mtu):
    """The workers share nothing but the caches and the memory: a process for each."""
    for workers in args.workers or [1]:
        command = [built("dataplane"), "--mtu", mtu, "--seconds", args.seconds, "--mib",
                   args.mib // workers, "--patience", args.patience,
                   *(["--no-testpmd"] if args.no_testpmd or args.workers else [])]
        children = [subprocess.Popen(["taskset", "-c", str(core), *map(str, command)],
                                     stdout=subprocess.PIPE)
                    for core in cores_of(workers)[0]]
        told = [child.communicate()[0] for child in children]
        if any(child.returncode for child in children):
            raise Failure("the two endpoints over a ring did not end well")
        told = [json.loads(text) for text in told]
        yield {**told[0], "device": "ring", "workers": workers, "shared_cores": True,
               **{key: sum(one[key] for one in told)
                  for key in ("bytes", "packets_per_s", "payload_gbit_s")},
               "sum_f32": {**told[0]["sum_f32"], "payload_gbit_s": sum(
                   one["sum_f32"]["payload_gbit_s"] for one in told)}}


def tcp_rows(args, mtu):
    for offloads in (True, False):
        with wire(mtu, 1) as (name, netns):
            if not offloads:
                for one in netns:
                    network.in_netns(one, "ethtool -K eth0 tso off gso off gro off")
            size = args.mib * MIB * (32 if offloads else 8)
            seconds, cpu = transfer.tcp_seconds({"name": name}, size)
        yield {"op": "dataplane", "device": "tcp" if offloads else "tcp, single frames", "mtu": mtu,
               "bytes": size, "seconds": seconds, "payload_gbit_s": size * 8e-9 / seconds,
               "cpu_share": cpu / seconds}


def rows(args):
    for device in args.device:
        for mtu in args.mtu:
            if mtu > MTU_MAX.get(device, mtu):
                say(f"bench: {device} takes no MTU above {MTU_MAX[device]}")
            elif device == "ring":
                yield from ring_rows(args, mtu)
            elif device == "tcp":
                yield from tcp_rows(args, mtu)
            else:
                yield from device_rows(args, device, mtu)


COLUMNS = Columns("device<19", "MTU>5", "workers>8", "Mpkt/s>7.2f", "Gbit/s>7.2f", "cycles>8.0f", "receive>8.0f",
                  "ack>5.0f", "transmit>9.0f", "check>6.0f", "seal>5.0f", "in>5.0f", "out>5.0f", "headers>8.0f",
                  "ahead>6.0f", "driver>7.0f", "re-sent>8.4f", "testpmd>8.2f", "memcpy>7.0f")


def tell(row):
    def mega(key):
        return row[key] / 1e6 if row.get(key) else None

    cycles = row.get("cycles_per_packet", {})
    COLUMNS.line(row["device"], row["mtu"], row.get("workers"), mega("packets_per_s"), row["payload_gbit_s"],
                 *map(cycles.get, STAGES), row.get("resent_share"), mega("testpmd_packets_per_s"),
                 row.get("memcpy_gbit_s"))


def ring_lines(row):
    """What only the ring's one thread tells: additions."""
    add, own = row["sum_f32"], row["local_sum_f32"]
    yield (f"MTU {row['mtu']}, added to an f32 object of the receiver: {add['payload_gbit_s']:.2f} "
           f"Gbit/s, {add['cycles_per_packet']['total']:.0f} cycles a packet; two objects of one "
           f"node: {own['cycles_per_chunk']:.0f} cycles a chunk, of which the kernel "
           f"{own['kernel']:.0f}")


def main(argv):
    args = parse(argv)
    if set(args.device) != {"ring"}:
        require_root("scripts/bench")
    COLUMNS.head()
    sums = []
    for row in rows(args):
        tell(row)
        if args.json:
            print(json.dumps(row), flush=True)
        if row["device"] == "ring":
            sums += ring_lines(row)
    for line in sums:
        say(line)
