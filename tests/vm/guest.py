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
from lib import process

CARDS = ("virtio-net-pci", "e1000e", "vmxnet3")  # card i is behind port i: its address is 0000:0I:00.0
MORE = {"virtio-net-pci": ",iommu_platform=on,disable-legacy=on,host_mtu=1504"}
MEMORY_MIB = 1280
KERNEL_LINE = ("console=ttyS0 quiet panic=-1 intel_iommu=on iommu=pt hugepages=256 nokaslr mitigations=off"
               " init_on_alloc=0 no_timer_check random.trust_cpu=on")
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

    def __init__(self, directory, number, kernel, initrd):
        self.number, self.directory, self.said = number, directory, b""
        self.addr = f"10.78.0.{number + 1}"
        argv = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "10", "qemu-system-x86_64",
                "-accel", "tcg", "-machine", "q35", "-cpu", "max", "-smp", "1", "-m", MEMORY_MIB, "-nodefaults", "-display", "none", "-no-reboot",
                "-kernel", kernel, "-initrd", initrd, "-append", KERNEL_LINE,
                "-device", "intel-iommu,intremap=on,device-iotlb=on",
                "-serial", f"file:{self.path('console')}",
                "-serial", f"unix:{self.path('shell')},server=on,wait=off",
                "-qmp", f"unix:{self.path('monitor')},server=on,wait=off"]
        for i, card in enumerate(CARDS):
            argv += ["-device", f"pcie-root-port,id=slot{i},chassis={i + 1},slot={i + 1},addr={i + 4:x}",
                     "-netdev", f"stream,id=wire{i},server={'off' if number else 'on'},addr.type=unix,"
                     f"addr.path={directory / f'wire{i}'}",
                     "-device", f"{card},id=card{i},netdev=wire{i},bus=slot{i},"
                     f"mac=02:78:00:00:{i:02x}:{number + 1:02x}{MORE.get(card, '')}"]
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
            answer = json.loads(self.answers.readline())
            assert "error" not in answer, f"QEMU: {command}: {answer['error']}"
            if "return" in answer:
                return answer["return"]

    def link(self, card, up):
        self.tell("set_link", name=f"card{CARDS.index(card)}", up=up)

    def unplug(self, card):
        self.tell("device_del", id=f"card{CARDS.index(card)}")

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
    """Both, booted, for the time of a with block."""

    def __init__(self, directory):
        self.directory, self.all = Path(directory), []

    def __enter__(self):
        initrd = self.directory / "initrd"
        kernel = image.initrd(initrd)
        try:
            for number in (0, 1):
                self.all.append(Guest(self.directory, number, kernel, initrd))
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
        peers = "10.78.0.1:7400,10.78.0.2:7400"
        self.argv = {"dataplane": ["sarissa-dataplane", "--port", f"pci:{address(card)}", "--addr",
                                   f"{guest.addr}/24", "--store", "64", *options],
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
