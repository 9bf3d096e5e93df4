# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of our scripts. What is wrong with them is told in one line, before anything begins."""

import argparse
import fnmatch
import math
import os
import tempfile
from pathlib import Path

from lib.shell import Failure

MIB = 1 << 20
SUPPRESS = argparse.SUPPRESS
LARGEST = 1 << 42  # bytes of a store: the dataplane's own limit
NODES_MOST = 200


class Parser(argparse.ArgumentParser):
    def __init__(self, **how):
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **how})

    def error(self, message):
        raise Failure(f"{' '.join(message.split())}: see scripts/{self.prog} --help", 2)


def span(least, most):
    return f"from {least:,} to {most:,}" if most < math.inf else f"of at least {least:,}"


def whole(least, most=math.inf):
    """The type of an argument that counts."""
    def parse(text):
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number {span(least, most)}")
        return number
    return parse


def real(least, most=math.inf, above=False, zero=False):
    """Finite; above: not the least itself; zero: also 0."""
    def parse(text):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        inside = math.isfinite(number) and least <= number <= most and not (above and number == least)
        if not inside and not (zero and number == 0):
            raise argparse.ArgumentTypeError(
                f"'{text}' is no number " + (f"above {least:g}" if above else span(least, most)) +
                (", nor 0" if zero else ""))
        return number
    return parse


COUNT = whole(1, 1000000)
SECONDS = real(0, above=True)
RATE = real(0.01, 1000000)  # in Mbit/s, as tc can keep it
RATE_OR_NONE = real(0.01, 1000000, zero=True)
MTU = whole(1280, 9000)
VDEVS = ("af_xdp", "udp", "tap")  # what carries the packets of a cluster of scripts/cluster
VDEV_VARIABLE = "SARISSA_VDEV"
MTU_AF_XDP_MOST = 3498  # dataplane/io/ports/port.c
SIZE = whole(1, LARGEST)
SIZE_MIB = whole(1, LARGEST // MIB)
NODES = whole(2, NODES_MOST)
OBJECTS = whole(1024, 1 << 20)
WORKERS = whole(1, 16)


def vdevs(text):
    """The type of an argument that names what carries packets, or one for each rail."""
    wrong = [kind for kind in text.split(",") if kind not in VDEVS]
    if wrong:
        raise argparse.ArgumentTypeError(f"'{wrong[0]}' is none of {' '.join(VDEVS)}")
    return text


def vdev_of(config, rail):
    """What carries packets on that rail of a cluster: the last that is named is of all further ones."""
    kinds = config["vdev"].split(",")
    return kinds[min(rail, len(kinds) - 1)]


def chosen(option, patterns, names, hint):
    """Those of the names that a pattern fits; each pattern fits one."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise Failure(f"{option}: '{pattern}' is none: {hint}", 2)
    return [name for name in names if any(fnmatch.fnmatch(name, one) for one in patterns)]


def check_folder(option, path):
    """That it is there, or can be made, and written into."""
    path, there = Path(path), Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise Failure(f"{option} {path}: {there} cannot be written into: {error.strerror}: name "
                      "another folder", 2) from None


def check_file(option, path):
    """That it can be written; its folder is there."""
    path = Path(path)
    try:
        if path.exists():
            with open(path, "ab"):
                return
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise Failure(f"{option} {path} cannot be written: {error.strerror}: name another file",
                      2) from None


def memory():
    """/proc/meminfo: name to number, mostly of KiB."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return {name: int(value.split()[0]) for name, value in lines.items()}


def memory_free():
    """Bytes that can be had without swapping."""
    return memory()["MemAvailable"] << 10


def huge_free():
    """Bytes of huge pages, where stores may lie."""
    now = memory()
    return now.get("HugePages_Free", 0) * now.get("Hugepagesize", 0) << 10


def check_memory(wanted, what):
    free = memory_free() + huge_free()
    if wanted > free:
        raise Failure(f"not enough memory: {free / 2**30:.1f} GiB are free, and it would take "
                      f"{wanted / 2**30:.1f}: {what}", 2)


def check_mtu(mtu, vdev, instead="--vdev udp or tap"):
    if "af_xdp" in vdev.split(",") and mtu > MTU_AF_XDP_MOST:
        raise Failure(f"--mtu {mtu}: AF_XDP takes up to {MTU_AF_XDP_MOST}, more goes with {instead}", 2)


def vdev(usual=None):
    """What carries packets where nothing is said. usual: of programs that have another default."""
    name = os.environ.get(VDEV_VARIABLE) or usual or VDEVS[0]
    if name not in VDEVS:
        raise Failure(f"{VDEV_VARIABLE}={name}: choose of {' '.join(VDEVS)}", 2)
    return name
