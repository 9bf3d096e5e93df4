#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two emulated machines with network cards on vfio-pci behind an emulated IOMMU, the daemons on pci:
ports. For each kind of card objects cross and are compared."""

import contextlib
import functools
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "net"), str(Path(__file__).resolve().parent)]
import netlib  # noqa: E402
import image  # noqa: E402
from guest import Guests, Node  # noqa: E402

MIB = 1 << 20
LARGE = 20 * MIB


@functools.cache
def guests():
    """Booted once, for all cases."""
    image.need_qemu()
    directory = stack.enter_context(netlib.scratch())
    return stack.enter_context(Guests(directory))


@contextlib.contextmanager
def nodes(card, *options):
    both = [Node(guest, card, *options) for guest in guests()]
    try:
        for node in both:
            node.begin()
        for node in both:
            netlib.wait_for(node.ready, netlib.PATIENCE_S, f"node {node.guest.number} sees both")
        yield both
    except AssertionError:
        for node in both:
            for kind in ("dataplane", "control"):
                print(f"  -- {kind} of guest {node.guest.number}:\n{netlib.tail(node.log(kind))}")
        raise
    finally:
        for node in both:
            node.end()


def make(guest, size):
    """A file of random bytes; its digest."""
    guest.must(f"head -c {size} /dev/urandom >/tmp/sent")
    return guest.must("md5sum </tmp/sent")


def cross(source, target, size):
    """An object of the one, got by the other, compared."""
    digest = make(source.guest, size)
    source.guest.must(f"sarissa put object-{size} /tmp/sent")
    target.guest.must(f"sarissa get object-{size} /tmp/got --timeout 60")
    assert target.guest.must("md5sum </tmp/got") == digest, f"{size} bytes: other bytes"
    source.guest.must(f"sarissa rm object-{size}; rm /tmp/sent")
    target.guest.must("rm /tmp/got")


def objects_cross_virtio():
    with nodes("virtio-net-pci") as (a, b):
        for size in (1, MIB + 7, LARGE):
            cross(a, b, size)
        cross(b, a, MIB)


with contextlib.ExitStack() as stack:
    netlib.run(objects_cross_virtio)
