# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as objects: types and shapes survive, nothing is copied, and what does not fit is refused."""

import asyncio
import gc
import json
import os
import time

import numpy
import pytest
import sarissa
import sarissa.aio
from conftest import Local

MIB = 1 << 20


def mapped(address):
    """The line of /proc/self/maps that holds an address."""
    for line in open("/proc/self/maps"):
        begin, end = (int(part, 16) for part in line.split()[0].split("-"))
        if begin <= address < end:
            return line
    raise AssertionError("nothing is mapped there")


ARRAYS = {
    "floats": numpy.arange(24, dtype="f4").reshape(2, 3, 4),
    "fortran": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
    "scalar": numpy.array(7.5),
    "of numpy": numpy.float32(2.5),
    "empty": numpy.zeros((0, 5), "i2"),
    "bools": numpy.array([True, False]),
    "complex": numpy.array([1 + 2j]),
    "dates": numpy.array(["2026-11-26", "NaT"], "M8[D]"),
    "text": numpy.array(["some", "words"]),
    "big-endian": numpy.arange(5, dtype=">u4"),
    "records": numpy.array([(1, 2.5, (3, 4))], [("a", "i4"), ("b", "f8"), ("c", "u1", (2,))]),
    "large": numpy.arange(1 << 20, dtype="f8"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_type_and_shape_survive(nodes, name):
    array = ARRAYS[name]
    nodes[0].put(name, array)
    nodes[0].put(name, array)
    for node in (nodes[0], nodes[1]):
        got = node.get(name, timeout=20)
        assert isinstance(got, numpy.ndarray) and got.dtype == array.dtype
        assert got.shape == array.shape and got.tobytes("A") == array.tobytes("A")
        assert got.size == 0 or not got.flags.writeable
        assert bytes(node.get(name, raw=True)) == array.tobytes("A")
    assert [info.name for info in nodes[2].ls(name)] == [name]
    nodes[2].delete(name)


def test_bytes_stay_bytes(node):
    node.put("bytes", b"some bytes")
    assert isinstance(node.get("bytes"), memoryview)
    node.delete("bytes")


def test_get_copies_nothing_and_is_fast(node):
    array = numpy.ones(8 * MIB)  # 64 MiB
    node.put("large", array)
    got = node.get("large")
    assert "memfd" in mapped(got.ctypes.data), mapped(got.ctypes.data)
    with pytest.raises(ValueError):
        got[0] = 2
    took = []
    for _ in range(200):
        begin = time.perf_counter()
        node.get("large")
        took.append(time.perf_counter() - begin)
    assert min(took) < 20e-6, f"{min(took) * 1e6:.1f} us"
    node.delete("large")
    assert got[-1] == 1 and got.sum() == 8 * MIB  # deleted, and readable as long as it is used
    used = node._open()  # the handle lives as long as the view
    del used


def test_a_view_pins_its_object(local):
    node = local.open()
    node.put("pinned", numpy.arange(5))
    piece = node.get("pinned")[2:]
    node.close()
    del node
    gc.collect()
    assert piece.tolist() == [2, 3, 4]
    with local.open() as other:
        other.delete("pinned")
    assert piece.tolist() == [2, 3, 4]


def test_what_is_no_array_of_numbers_is_refused(node):
    for array, word in ((numpy.array([1, "two", None], dtype=object), "put_object"),
                        (numpy.zeros(2, [("a", "O")]), "put_object")):
        with pytest.raises(TypeError, match=word):
            node.put("refused", array)
        with node.create("refused", 1000) as writer:
            with pytest.raises(TypeError, match=word):
                writer.write(array)
            writer.abort()
    with pytest.raises(TypeError, match="bytes"):
        node.put("refused", memoryview(b"0123456789")[::2])
    with pytest.raises(sarissa.NotFound):
        node.get("refused", timeout=0)
    for size in (-1, 2**64):
        with pytest.raises(ValueError, match="between 0 and"):
            node.create("refused", size)
    for arguments in ({"dtype": "O", "shape": 3}, {"dtype": "f8", "shape": -3}):
        with pytest.raises(ValueError, match="no object can be"):
            node.create("refused", **arguments)


def test_a_name_has_one_meaning(node):
    node.put("meant", numpy.arange(6))
    with pytest.raises(sarissa.Exists, match=r"shape \(6,\).*not as.*\(2, 3\)"):
        node.put("meant", numpy.arange(6).reshape(2, 3))
    with pytest.raises(sarissa.Exists):
        node.put("meant", numpy.arange(7))
    assert node.get("meant").shape == (6,)
    node.delete("meant")
    with pytest.raises(sarissa.NotFound):
        node.get("meant", timeout=0)


def test_an_array_is_one_object(nodes):
    """Whatever is done with its name is done with all of it."""
    node = nodes[0]
    array = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))
    watch = node.watch("one/")
    node.put("one/array", array)
    node.put("n" * 255, array)  # no room for anything behind the name
    for prefix, name in (("one/", "one/array"), ("nnn", "n" * 255)):
        assert [info.name for info in nodes[1].ls(prefix)] == [name]
    assert (nodes[1].get("n" * 255, timeout=20) == array).all()
    nodes[1].delete("one/array")
    kinds = [next(watch).kind]
    while kinds[-1] != "gone":
        event = watch.get(timeout=20)
        assert event.name == "one/array"
        kinds.append(event.kind)
    watch.close()
    with node.lease() as lease:
        node.put("one/held", array)
        lease.hold("one/held")
        node.expire("one/held", 1000)
        assert nodes[1].info("one/held").leases == 1 and [info.name for info in node.ls("one/")] == ["one/held"]
    node.delete("n" * 255)


def test_who_loses_changes_nothing(nodes, local):
    """Two put other arrays, or bytes, by one name: the object of the first stays as it was."""
    async def lose(value):
        async with sarissa.aio.open(local.socket[1]) as node:
            await node.put("won", value)
    first = numpy.zeros(100_000)
    first[50_000] = 1  # as sparse gradients are: both ends are the same
    second = first * 2
    nodes[0].put("won", first)
    for value in (second, second[::2], first.reshape(100, 1000), first.astype(">f8"), first.tobytes(), b"bytes"):
        for lost in (lambda: nodes[1].put("won", value), lambda: asyncio.run(lose(value))):
            with pytest.raises(sarissa.Exists):
                lost()
        got = nodes[2].get("won", timeout=20)
        assert got.dtype == first.dtype and got.shape == first.shape and got[50_000] == 1
    nodes[0].delete("won")


def test_large_strided_arrays(nodes):
    """They are copied into the store, not beside it; the same one may be put again, another one not."""
    whole = numpy.arange(1 << 20, dtype="f8").reshape(1024, 1024)
    for given in (whole[:, ::2], whole[::-1], whole.T[::2], numpy.broadcast_to(whole[0], (300, 1024))):
        nodes[0].put("strided", given)
        nodes[0].put("strided", given.copy())
        nodes[0].put("strided", given)
        with pytest.raises(sarissa.Exists):
            nodes[0].put("strided", given + 1)
        got = nodes[1].get("strided", timeout=20)
        assert got.shape == given.shape and (got == given).all()
        nodes[0].delete("strided")


def test_padding_is_no_others_bytes(node):
    kind = numpy.dtype([("a", "i1"), ("b", "f8")], align=True)
    given = numpy.zeros(200_000, kind)[::2]
    node.put("secret", b"TOPSECRET-" * 400_000)
    node.delete("secret")
    node.put("padded", given)
    node.put("padded", given)
    assert b"SECRET" not in bytes(node.get("padded", raw=True))


@pytest.mark.parametrize("ask", ("get_array", "get_tensor", "allreduce"))
def test_an_order_is_kept_where_the_caller_names_the_shape(node, ask):
    """And another type or shape of what was put in Fortran's order is refused by name."""
    name, given = f"fortran {ask}", numpy.asfortranarray([[1., 2., 3.], [4., 5., 6.]])
    node.put(name, given)

    def asked(dtype, shape):
        if ask == "allreduce":
            return node.allreduce(f"{name} {dtype} {shape}", [name], dtype=dtype, shape=shape, timeout=30)
        got = getattr(node, ask)(name, dtype=dtype, shape=shape)
        return got.numpy() if ask == "get_tensor" else got
    assert numpy.array_equal(asked("f8", (2, 3)), given)
    with pytest.raises(ValueError, match="Fortran order"):
        asked("f8", (3, 2))
    if ask != "allreduce":
        with pytest.raises(ValueError, match="and not an array of <i8"):
            asked("i64", (2, 3))
        with pytest.raises(ValueError, match="Fortran order"):
            asked("u8", None)
    node.put(f"c {ask}", numpy.arange(6.))
    name = f"c {ask}"
    assert asked("f8", (3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_arrays_of_the_version_before(node):
    """Bytes, and a description in a second object, which is written no more."""
    def put_older(name, array, **said):
        node.put(name, array.tobytes("A"))
        text = {"dtype": array.dtype.str, "shape": array.shape, "order": "C", **said}
        text.setdefault("sample", sarissa._sarissa.sample(array.tobytes("A")).hex())
        described = sarissa._arrays.description_id(sarissa.id_of(name))
        node._open().put(described, json.dumps(text).encode(), f"{name}#array")
        return described
    array = numpy.arange(6.0).reshape(2, 3)
    records = numpy.zeros(2, [("a", "i4"), ("b", "f8", (2,))])
    for given, said in ((array, {}), (numpy.asfortranarray(array), {"order": "F"}), (array, {"sample": None}),
                        (records, {"dtype": [["a", "<i4"], ["b", "<f8", [2]]]})):
        described = put_older("older", given, **said)
        got = node.get("older")
        assert got.dtype == given.dtype and got.shape == given.shape and got.tobytes() == given.tobytes()
        assert node.gather(["older"])[0].tobytes() == given.tobytes()
        assert isinstance(node.get("older", raw=True), memoryview)
        node.delete("older")
        node.put("older", b"x" * given.nbytes)  # what is left over does no harm
        assert isinstance(node.get("older"), memoryview) or said.get("sample", 0) is None
        node.delete("older")
        node.put("older", numpy.arange(4))
        assert node.get("older").tolist() == [0, 1, 2, 3]
        node.delete("older")
        node.delete(described)


@pytest.mark.parametrize("text", [
    b"", b"no JSON", b"{}", b"[]", b"\xff", b"[" * 5000, json.dumps({"dtype": "O", "shape": [1], "order": "C",
                                                                  "sample": None}).encode(),
    *[json.dumps({"dtype": "<f8", "shape": [4], "order": "C", "sample": None, **wrong}).encode()
      for wrong in ({"shape": [-4]}, {"shape": [5]}, {"shape": [1e9]}, {"shape": "4"}, {"shape": [2**70]},
                    {"dtype": "f99"}, {"dtype": None}, {"dtype": [["a"]]}, {"dtype": {"a": 1}},
                    {"dtype": "V0"}, {"order": "Z"}, {"sample": 7}, {"sample": "00"},
                    {"shape": [[4]]}, {"shape": None})]])
def test_descriptions_are_not_trusted(node, text):
    node.put("forged", b"x" * 32)
    node._open().put(sarissa._arrays.description_id(sarissa.id_of("forged")), text)
    assert node.get("forged") == b"x" * 32
    node.delete("forged")
    node.delete(sarissa._arrays.description_id(sarissa.id_of("forged")))


@pytest.mark.parametrize("meta", [
    b"", b"my own", b"\xa1", b"\xa1" * 128, b"\xa2" + bytes(7), *[
        bytes([0xA1, 4, ord("C"), 1, 3, 0, 0, 0]) + lengths + text for lengths, text in (
            ((4).to_bytes(8, "little"), b"<f8"), ((5).to_bytes(8, "little"), b"<f8"), (b"", b"<f8"),
            ((4).to_bytes(8, "little"), b"f99"), ((4).to_bytes(8, "little"), b"[1]"), (bytes(8), b"\xff\xff\xff"),
            ((32).to_bytes(8, "little"), b"|O8"), ((4).to_bytes(8, "little"), b"<f8 "))]])
def test_metadata_are_not_trusted(node, meta):
    """The node refuses what describes no array of this size; what Python could not read are bytes."""
    try:
        node._open().put("forged", b"x" * 32, None, meta)
    except sarissa.InvalidArgument:
        return
    got = node.get("forged")
    assert got == b"x" * 32 if isinstance(got, memoryview) else got.tobytes() == b"x" * 32
    node.delete("forged")


def test_arrays_are_filled_in_place(nodes):
    with pytest.raises(ValueError, match="is not between 0 and"):
        nodes[0].create("huge", dtype="c16", shape=(1 << 60,))
    with nodes[0].create("filled", dtype="f32", shape=(3, 4)) as writer:
        writer.array[:] = numpy.arange(12).reshape(3, 4)
    got = nodes[1].get("filled", timeout=20)
    assert got.dtype == numpy.float32 and got.tolist() == numpy.arange(12).reshape(3, 4).tolist()
    with pytest.raises(TypeError, match="dtype"):
        nodes[0].create("sizeless")
    with pytest.raises(BufferError):
        writer = nodes[0].create("held", dtype="f8", shape=4)
        held = writer.array
        writer.seal()
    del held
    writer.abort()
    nodes[0].delete("filled")


@pytest.mark.parametrize("columns", (3, 60_000))
def test_bytes_among_arrays_need_a_type(nodes, columns):
    array = numpy.ones((2, columns), "f4")
    puts = {"mixed/bytes": lambda: nodes[0].put("mixed/bytes", array.tobytes()),
            "mixed/array": lambda: nodes[1].put("mixed/array", array)}
    for first, then in (("mixed/bytes", "mixed/array"), ("mixed/array", "mixed/bytes")):
        nodes[0].reduce("mixed", list(puts), dtype="f32", timeout=60)
        puts[first]()
        puts[then]()
        assert (nodes[0].get_array("mixed", "f32", timeout=30) == 2).all()
        with pytest.raises(sarissa.InvalidArgument, match="name the dtype"):
            nodes[0].reduce("unlike", list(puts), timeout=60)
            nodes[0].reduce_sources("unlike", timeout=20)
        for name in ("mixed", *puts):
            nodes[0].delete(name)


def test_reduces_know_arrays(nodes):
    parts = [numpy.full((3, 5), rank, "f8") for rank in range(4)]
    for rank, part in enumerate(parts):
        nodes[rank].put(f"part{rank}", part)
    names = [f"part{rank}" for rank in range(4)]
    nodes[0].reduce("total", names)
    assert nodes[3].get("total", timeout=20).tolist() == sum(parts).tolist()
    nodes[1].reduce("largest", names, "max", dtype=numpy.float64)
    got = nodes[2].get_array("largest", "f64", (3, 5), timeout=20)
    assert got.tolist() == numpy.full((3, 5), 3.0).tolist()
    with pytest.raises(ValueError, match="no shape"):
        nodes[2].get_array("largest", "f64", (3, 4))
    nodes[0].put("other", numpy.full((5, 3), 1.0))
    assert nodes[3].get("largest", timeout=20).shape == (3, 5)
    with pytest.raises(sarissa.InvalidArgument, match=r"'other' is f64\[5,3\], source 'part0' is f64\[3,5\]"):
        nodes[0].reduce("none", ["part0", "other"], timeout=20)
        nodes[0].reduce_sources("none", timeout=20)
    nodes[0].put("dates", numpy.array(["2026-11-26"], "M8[D]"))
    with pytest.raises(sarissa.InvalidArgument, match="dates.*M8"):
        nodes[0].reduce("none", ["dates"], timeout=20)
        nodes[0].reduce_sources("none", timeout=20)
    nodes[0].put("short", numpy.zeros(2))
    with pytest.raises(sarissa.InvalidArgument, match=r"'short' is f64\[2\]"):
        nodes[0].reduce("none", ["part0", "short"], dtype="f64", timeout=20)
        nodes[0].reduce_sources("none", timeout=20)
    nodes[0].put("odd", b"12345")
    with pytest.raises(sarissa.InvalidArgument, match="5 bytes"):
        nodes[0].reduce("none", ["odd"], dtype="f64", timeout=20)
        nodes[0].reduce_sources("none", timeout=20)
    for name in ("total", "largest", "other", "dates", "short", "odd", *names):
        nodes[0].delete(name)


def test_dlpack_both_ways(node):
    """numpy plays the other library: it hides behind what does not have the buffer protocol."""
    class Other:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = numpy.arange(6, dtype="i4").reshape(2, 3)
    node.put("other's", Other(array))
    assert node.get("other's").tolist() == array.tolist() and node.get("other's").dtype == "i4"
    node.put("strided", Other(array[:, ::2]))
    assert node.get("strided").tolist() == array[:, ::2].tolist()
    node.delete("strided")
    tensor = node.get_tensor("other's")
    again = numpy.from_dlpack(tensor)
    assert again.tolist() == array.tolist() and "memfd" in mapped(again.ctypes.data)
    del tensor
    gc.collect()
    node.delete("other's")
    assert again.tolist() == array.tolist()
    node.put("fortran's", numpy.asfortranarray(array))
    assert numpy.from_dlpack(node.get_tensor("fortran's")).tolist() == array.tolist()
    node.get_tensor("fortran's").__dlpack__(max_version=(1, 0))  # taken by nobody, and freed
    node.delete("fortran's")
    node.put("bytes", b"some")
    with pytest.raises(TypeError, match="not put as an array"):
        node.get_tensor("bytes")
    node.delete("bytes")


def test_local_arrays_are_readable_while_another_node_dies():
    """They are complete here, and nobody else is asked what they are."""
    cluster = Local(nodes=3, name=f"python-death-{os.getpid()}")
    try:
        source, reader = cluster.open(0), cluster.open(1)
        names = [f"weights/{number}" for number in range(20)]
        for number, name in enumerate(names):
            source.put(name, numpy.full(1000, number, "f4"))
            source.broadcast(name, [1], timeout=60)
        cluster.run("kill", "2")
        reads = 0
        while reads == 0 or next(member.state for member in reader.nodes() if member.node == 2) != "down":
            with cluster.open(1) as fresh:
                for number, name in enumerate(names):
                    for node in (reader, fresh):
                        got = node.get(name, timeout=0)
                        assert got.shape == (1000,) and got[0] == number
                        reads += 1
    finally:
        cluster.run("down")
