#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two emulated machines with network cards on vfio-pci behind an emulated IOMMU, the daemons on pci:
ports. For each kind of card objects cross and are compared."""

import contextlib
import functools
import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "net"), str(Path(__file__).resolve().parent)]
import netlib  # noqa: E402
import image  # noqa: E402
from guest import FAR, FAR_ADDRESS, Guests, Node, address  # noqa: E402

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


def objects_cross(card):
    with nodes(card) as (a, b):
        for size in (1, MIB + 7, LARGE):
            cross(a, b, size)
        assert "the card reads payload from the store" in a.log() and a.counter("io_tx_in_place") > 10000
        cross(b, a, MIB)
        return f"{a.counter('tx_chunk_resends')} of {a.counter('tx_chunks')} chunks sent again, " \
               f"{a.counter('io_tx_copied')} of them copied"


def objects_cross_virtio():
    return objects_cross("virtio-net-pci")


def objects_cross_e1000e():
    return objects_cross("e1000e")


def objects_cross_vmxnet3():
    return objects_cross("vmxnet3")


def objects_cross_in_a_vlan():
    """Tagged frames of a full MTU, in longer rings; with two workers, whose packets no rule of the card
    parts, and which says so."""
    for card, workers in (("e1000e", 1), ("vmxnet3", 2)):
        with nodes(card, "--vlan", "78", "--descriptors", "512", "--workers", str(workers)) as (a, b):
            cross(a, b, MIB)
            assert ("it takes no rule for the UDP port of worker 0" in a.log()) == (workers == 2), a.log()
            assert ("warn  rules" in a.guest.run("sarissa doctor")[1]) == (workers == 2)


def wrong_options_of_a_card():
    """One line each, and the status of a failure."""
    guest = guests()[0]
    for card, words, options in (
            ("vmxnet3", "use --descriptors 512", "--descriptors 256"),
            ("e1000e", "use --descriptors 4096", "--descriptors 8000"),
            ("e1000e", "use fewer --workers", "--workers 8"),
            ("virtio-net-pci", "use a smaller --mtu", "--mtu 9000")):
        status, text = guest.run(f"sarissa-dataplane --rundir /tmp/wrong --store 16 --addr 10.78.0.9/24 "
                                 f"--port pci:{address(card)} {options}")
        last = text.splitlines()[-1]
        assert status == 1 and words in last, f"{card} {options}: {status}, {text}"


def objects_cross_a_card_of_uio():
    """Its interrupt would storm: it is not asked for."""
    card, driver = "e1000e", "/sys/bus/pci/drivers"
    place = f"/sys/bus/pci/devices/{address(card)}"

    def bind(name):
        for guest in guests():
            guest.must(f"echo {address(card)} >{place}/driver/unbind; echo {name} >{place}/driver_override; "
                       f"echo {address(card)} >{driver}_probe")

    bind("uio_pci_generic")
    try:
        with nodes(card) as (a, b):
            cross(a, b, 2 * MIB)
            said = a.guest.run("sarissa doctor")[1]
            assert "has the driver uio_pci_generic: payload is copied" in said, said
            assert "warn  payload" in said, said
            assert "the card reads payload" not in a.log() and a.counter("io_tx_in_place") == 0
            for guest in guests():
                assert "nobody cared" not in guest.must("dmesg"), "an interrupt has stormed"
    finally:
        bind("vfio-pci")


def the_link_is_pulled():
    """In the middle of a get; what comes after it is back."""
    for card in ("virtio-net-pci", "e1000e", "vmxnet3"):
        with nodes(card) as (a, b):
            b.guest.run("rm -f /tmp/ended")
            b.wait_in_log("the link is up")
            assert "the link is down" not in b.log(), "it was never"
            digest = make(a.guest, LARGE)
            a.guest.must("sarissa put pulled /tmp/sent")
            b.guest.must("(sarissa get pulled /tmp/got --timeout 60; echo $? >/tmp/ended) >/tmp/get.log 2>&1 &")
            netlib.wait_for(lambda: b.counter("rx_chunks") > 100, netlib.PATIENCE_S, "chunks come")
            for guest in guests():
                guest.link(card, False)
            b.wait_in_log("the link is down")
            for guest in guests():
                guest.link(card, True)
            b.wait_in_log("the link is up")
            netlib.wait_for(lambda: b.guest.run("cat /tmp/ended")[0] == 0, netlib.PATIENCE_S, "the get ends")
            ended = b.guest.must("cat /tmp/ended /tmp/get.log; rm -f /tmp/ended")
            if ended.startswith("0"):
                assert b.guest.must("md5sum </tmp/got") == digest, "other bytes"
            else:
                assert "sarissa: " in ended, f"it does not say why: {ended}"
            a.guest.must("sarissa rm pulled")
            netlib.wait_for(b.ready, netlib.PATIENCE_S, "both are up again")
            cross(a, b, MIB)


def a_dataplane_is_killed():
    """The sender's, in the middle of a get, and started again: the card and the store are there."""
    with nodes("virtio-net-pci") as (a, b):
        b.guest.run("rm -f /tmp/ended")
        digest = make(a.guest, LARGE)
        a.guest.must("sarissa put killed /tmp/sent")
        b.guest.must("(sarissa get killed /tmp/got --timeout 60; echo $? >/tmp/ended) >/tmp/get.log 2>&1 &")
        netlib.wait_for(lambda: b.counter("rx_chunks") > 100, netlib.PATIENCE_S, "chunks come")
        a.kill("dataplane")
        a.guest.run("rm /tmp/dataplane.log")
        a.start("dataplane")
        a.wait_in_log("ready on")
        netlib.wait_for(lambda: b.guest.run("cat /tmp/ended")[0] == 0, netlib.PATIENCE_S, "the get ends")
        ended = b.guest.must("cat /tmp/ended /tmp/get.log; rm -f /tmp/ended")
        assert ended.startswith("0"), f"the get failed: {ended}"
        assert b.guest.must("md5sum </tmp/got") == digest, "other bytes"


def sent(node):
    """By rail that is up, the bytes that the node has sent."""
    rows = map(json.loads, node.guest.must("sarissa peers --json").splitlines())
    return {row["rail"]: row["tx_bytes"] for row in rows if row["up"]}


def two_cards_carry_a_copy():
    """Of unlike drivers, in one process. One of them is unplugged, and plugged in again."""
    second = ("--port", f"pci:{address('e1000e')}", "--addr", "10.78.1.{host}/24")
    with nodes("virtio-net-pci", *second) as (a, b):
        netlib.wait_for(lambda: len(sent(a)) == 2, netlib.PATIENCE_S, "both rails are up")
        cross(a, b, LARGE)
        by_rail = netlib.until(lambda: sent(a), lambda rails: len(rails) == 2 and min(rails.values()) > LARGE // 8,
                               "bytes by rail")
        said = a.guest.run("sarissa doctor")[1]
        assert all(f"{address(card)} has the driver vfio-pci" in said for card in ("virtio-net-pci", "e1000e")), said
        a.guest.unplug("e1000e")
        a.wait_in_log("its device has gone")
        cross(a, b, MIB)
        cross(b, a, MIB)
        a.guest.plug("e1000e")
        a.guest.bind(address("e1000e"))
        a.wait_in_log("it is back")
        netlib.wait_for(lambda: len(sent(a)) == 2, netlib.PATIENCE_S, "both rails are up again")
        before = sent(a)
        cross(a, b, LARGE)
        netlib.until(lambda: [sent(a).get(rail, 0) - count for rail, count in before.items()],
                     lambda rails: min(rails) > LARGE // 8, "bytes by rail, afterwards")
        return f"MiB by rail: {[count >> 20 for count in by_rail.values()]}"


def a_card_is_unplugged():
    """The last case: it is not there afterwards."""
    with nodes("virtio-net-pci") as (a, b):
        a.guest.unplug("virtio-net-pci")
        a.wait_in_log("the card has been taken away")
        netlib.wait_for(lambda: not a.alive(), netlib.PATIENCE_S, "the dataplane ends")


def everything_is_at_the_cards_memory_node():
    """On a machine of two: the store, in pages of 1 GiB; cores elsewhere are named. It runs alone."""
    image.need_qemu()
    with netlib.scratch() as directory, Guests(directory, FAR) as (guest,):
        node = Node(guest, FAR_ADDRESS, "--store", "1024", "--cores", "0")
        node.begin()
        node.wait_in_log("attached")
        log = node.log()
        assert "worker 0: core 0 is at memory node 0, the card at node 1" in log, log
        assert "store of 1024 MiB in huge pages of 1 GiB" in log, log
        netlib.wait_for(lambda: guest.run("sarissa put far /bin/busybox")[0] == 0, netlib.PATIENCE_S, "a put")
        said = guest.run("sarissa doctor")[1]
        for line in ("warn  memory node   the card is at node 1, and 1 workers are, or may be, elsewhere",
                     f"ok    card          {FAR_ADDRESS} has the driver vfio-pci, in IOMMU group",
                     "ok    1 GiB pages   0 of 2 are free"):
            assert line in said, said
        maps = guest.must("grep sarissa-store /proc/$(cat /tmp/dataplane.pid)/numa_maps")
        assert "prefer:1" in maps and "N1=1" in maps and "N0" not in maps, maps
        node.end()
        node = Node(guest, FAR_ADDRESS, "--store", "16", "--cores", "1")
        node.begin()
        assert "memory node" not in node.log(), node.log()
        node.end()


with contextlib.ExitStack() as stack:
    netlib.run(everything_is_at_the_cards_memory_node, objects_cross_virtio, objects_cross_e1000e,
               objects_cross_vmxnet3, objects_cross_in_a_vlan, wrong_options_of_a_card,
               objects_cross_a_card_of_uio, the_link_is_pulled, a_dataplane_is_killed,
               two_cards_carry_a_copy, a_card_is_unplugged)
