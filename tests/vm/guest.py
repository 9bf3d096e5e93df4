# SPDX-License-Identifier: BSD-3-Clause
"""Two emulated machines, back to back: each card of the one is wired to that of the other. For tests/vm;
what runs in them is the cases' business."""

import json
import os
import shlex
import socket
import subprocess
import time
from pathlib import Path

import image
import netlib
from lib.cluster import process

CARDS = ("virtio-net-pci", "e1000e", "vmxnet3")  # card i is behind port i: its address is 0000:0I:00.0
MORE = {"virtio-net-pci": ",iommu_platform=on,disable-legacy=on,host_mtu=1504"}
MEMORY_MIB = 1280
KERNEL_LINE = ("console=ttyS0 quiet panic=-1 intel_iommu=on iommu=pt nokaslr mitigations=off"
               " init_on_alloc=0 no_timer_check random.trust_cpu=on")
PAGES = " hugepages=256"
# two memory nodes; a card, pages of 1 GiB and of 2 MiB at the second, which has the core 1
FAR = (["-smp", "2", "-m", "4608M", "-object", "memory-backend-ram,id=near,size=1024M",
        "-object", "memory-backend-ram,id=far,size=3584M", "-numa", "node,nodeid=0,cpus=0,memdev=near",
        "-numa", "node,nodeid=1,cpus=1,memdev=far", "-device", "pxb-pcie,id=bus1,bus_nr=64,bus=pcie.0,numa_node=1",
        "-device", "pcie-root-port,id=far_slot,chassis=1,bus=bus1",
        "-device", "virtio-net-pci,bus=far_slot,mac=02:78:00:00:00:01,iommu_platform=on,disable-legacy=on"],
       " hugepagesz=1G hugepages=1:2 hugepagesz=2M hugepages=0:40,1:100")
FAR_ADDRESS = "0000:41:00.0"
BOOT_S = 120
COMMAND_S = 90


def address(card):
    return f"0000:{CARDS.index(card) + 1:02x}:00.0"


def connect(path):
    line = socket.socket(socket.AF_UNIX)

    def there():
        try:
            line.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    netlib.wait_for(there, netlib.PATIENCE_S, f"QEMU listens at {path}")
    return line


class Guest:
    """One machine: its shell, and the monitor of its QEMU."""

    def __init__(self, directory, number, kernel, initrd, machine=None):
        """machine: the arguments that make another one than CARDS, and the last words of its kernel."""
        self.number, self.directory, self.said = number, directory, b""
        self.addr = f"10.78.0.{number + 1}"
        argv = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "10", "qemu-system-x86_64",
                "-accel", "tcg", "-machine", "q35", "-cpu", "max", "-nodefaults", "-display", "none", "-no-reboot",
                "-kernel", kernel, "-initrd", initrd, "-append", KERNEL_LINE + (machine[1] if machine else PAGES),
                "-device", "intel-iommu,intremap=on,device-iotlb=on",
                "-serial", f"file:{self.path('console')}",
                "-serial", f"unix:{self.path('shell')},server=on,wait=off",
                "-qmp", f"unix:{self.path('monitor')},server=on,wait=off"]
        argv += machine[0] if machine else ["-smp", "1", "-m", MEMORY_MIB]
        for i, card in enumerate([] if machine else CARDS):
            argv += ["-device", f"pcie-root-port,id=slot{i},chassis={i + 1},slot={i + 1},addr={i + 4:x}",
                     "-netdev", f"stream,id=wire{i},server={'off' if number else 'on'},addr.type=unix,"
                     f"addr.path={directory / f'wire{i}'}",
                     "-device", ",".join(f"{key}={value}" for key, value in self.device(card).items())]
        self.child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                                      stdout=open(self.path("qemu"), "wb"), stderr=subprocess.STDOUT)
        self.shell, self.monitor = connect(self.path("shell")), connect(self.path("monitor"))
        self.answers = self.monitor.makefile("r")
        self.answers.readline()
        self.tell("qmp_capabilities")

    def path(self, what):
        return self.directory / f"{what}{self.number}"

    def tell(self, command, **arguments):
        """To QEMU."""
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            line = self.answers.readline()
            assert line, f"QEMU {self.number} has ended: {netlib.tail(self.path('qemu').read_text())}"
            answer = json.loads(line)
            assert "error" not in answer, f"QEMU: {command}: {answer['error']}"
            if "return" in answer:
                return answer["return"]

    def link(self, card, up):
        self.tell("set_link", name=f"card{CARDS.index(card)}", up=up)

    def device(self, card):
        """What QEMU makes of a card."""
        i = CARDS.index(card)
        return {"driver": card, "id": f"card{i}", "netdev": f"wire{i}", "bus": f"slot{i}",
                "mac": f"02:78:00:00:{i:02x}:{self.number + 1:02x}",
                **dict(word.split("=") for word in MORE.get(card, "").split(",") if word)}

    def unplug(self, card):
        self.tell("device_del", id=f"card{CARDS.index(card)}")

    def plug(self, card):
        self.tell("device_add", **self.device(card))

    def bind(self, place, driver="vfio-pci"):
        """A card that has just come, to a driver."""
        folder = f"/sys/bus/pci/devices/{place}"
        netlib.wait_for(lambda: self.run(f"test -e {folder}/vendor")[0] == 0, netlib.PATIENCE_S, f"{place} is there")
        self.run(f"echo {place} >{folder}/driver/unbind; echo {driver} >{folder}/driver_override; "
                 f"echo {place} >/sys/bus/pci/drivers_probe")

    def until(self, mark, seconds):
        end = time.monotonic() + seconds
        while mark not in self.said:
            left = end - time.monotonic()
            assert left > 0 and self.child.poll() is None, \
                f"guest {self.number} was silent for {seconds} s, or has ended: " \
                f"{self.path('console').read_text(errors='replace')[-1500:]}{self.said.decode(errors='replace')}"
            self.shell.settimeout(min(left, 1))
            try:
                self.said += self.shell.recv(1 << 16)
            except TimeoutError:
                pass
        text, _, self.said = self.said.partition(mark)
        return text.decode(errors="replace")

    def run(self, command, seconds=COMMAND_S):
        """Exit status and output of a command of the shell."""
        number = time.monotonic_ns()
        mark = f"<{number}>"
        self.shell.sendall(f"{{ {command}\n}} </dev/null 2>&1; echo \"<{number}>$?;\"\n".encode())
        text = self.until(mark.encode(), seconds)
        return int(self.until(b";", seconds)), text.strip()

    def must(self, command, seconds=COMMAND_S):
        status, text = self.run(command, seconds)
        assert status == 0, f"guest {self.number}: {command}: exit {status}: {netlib.tail(text)}"
        return text

    def end(self):
        for line in (self.shell, self.monitor):
            line.close()
        process.end(self.child.pid)
        self.child.wait()


class Guests:
    """Both, or one of another kind, booted, for the time of a with block."""

    def __init__(self, directory, *machines):
        self.directory, self.all = Path(directory), []
        self.machines = machines or (None, None)

    def __enter__(self):
        initrd = self.directory / "initrd"
        kernel = image.initrd(initrd)
        try:
            for number, machine in enumerate(self.machines):
                self.all.append(Guest(self.directory, number, kernel, initrd, machine))
            for guest in self.all:
                guest.until(b"ready\n", BOOT_S)
        except BaseException:
            self.__exit__()
            raise
        return self.all

    def __exit__(self, *_):
        for guest in self.all:
            guest.end()


class Node:
    """The daemons of one guest, on one of its cards."""

    def __init__(self, guest, card, *options):
        self.guest, self.card = guest, card
        alone = card not in CARDS
        peers = "10.78.0.1:7400" + ("" if alone else ",10.78.0.2:7400")
        place = card if alone else address(card)
        self.argv = {"dataplane": ["sarissa-dataplane", "--port", f"pci:{place}", "--addr",
                                   f"{guest.addr}/24", "--store", "64",
                                   *(option.format(host=guest.number + 1) for option in options)],
                     "control": ["sarissa-control", "--node", str(guest.number), "--nodes", peers]}

    def start(self, kind):
        """In the background; its log goes on where it was."""
        self.guest.must(f"{shlex.join(self.argv[kind])} >>/tmp/{kind}.log 2>&1 & echo $! >/tmp/{kind}.pid")

    def log(self, kind="dataplane"):
        return self.guest.run(f"cat /tmp/{kind}.log")[1]

    def kill(self, kind, signal="KILL"):
        self.guest.run(f"kill -{signal} $(cat /tmp/{kind}.pid); wait $(cat /tmp/{kind}.pid)")

    def alive(self, kind="dataplane"):
        return self.guest.run(f"kill -0 $(cat /tmp/{kind}.pid)")[0] == 0

    def wait_in_log(self, text, kind="dataplane"):
        netlib.wait_for(lambda: text in self.log(kind), netlib.PATIENCE_S,
                        f"'{text}' in the log of {kind} {self.guest.number}:\n{self.log(kind)}")

    def ready(self):
        """Both nodes are up, as this one sees it."""
        status, text = self.guest.run("sarissa status --json")
        return status == 0 and [json.loads(line)["state"] for line in text.splitlines()].count("up") == 2

    def counter(self, name):
        for line in self.guest.must("sarissa status --counters --json").splitlines():
            if name in (counters := json.loads(line).get("counters", {})):
                return counters[name]
        raise AssertionError(f"no counter {name}")

    def begin(self):
        self.guest.run("rm -f /tmp/*.log; mkdir -p /run/sarissa")
        self.start("dataplane")
        netlib.wait_for(lambda: "ready on" in self.log() or not self.alive(), netlib.PATIENCE_S, "it starts")
        assert self.alive(), self.log()
        self.start("control")

    def end(self):
        for kind in ("control", "dataplane"):
            self.kill(kind, "TERM")
