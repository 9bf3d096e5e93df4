# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as objects: types and shapes survive, nothing is copied, and what does not fit is refused."""

import gc
import json
import time

import numpy
import pytest
import sarissa

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
    nodes[2].delete(name)
    assert name + "#array" not in [info.name for info in nodes[2].ls()]


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
    for array, word in ((numpy.array([1, "two", None], dtype=object), "pickle.dumps"),
                        (numpy.zeros(2, [("a", "O")]), "pickle.dumps")):
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


def test_a_description_that_is_left_over_does_no_harm(node, local):
    node.put("left", numpy.arange(4))
    node._open().delete("left")  # as `sarissa rm` does it
    node.put("left", b"x" * 32)
    assert isinstance(node.get("left"), memoryview)
    node._open().delete("left")
    node.put("left", numpy.arange(4.0))
    assert node.get("left").tolist() == [0, 1, 2, 3]
    node.delete("left")


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


def test_arrays_are_filled_in_place(nodes):
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
    with pytest.raises(TypeError, match=r"'part0'.*\(3, 5\).*'other'.*\(5, 3\)"):
        nodes[0].reduce("none", ["part0", "other"])
    nodes[0].put("dates", numpy.array(["2026-11-26"], "M8[D]"))
    with pytest.raises(ValueError, match="no reduce adds up.*M8"):
        nodes[0].reduce("none", ["dates"])
    nodes[0].put("short", numpy.zeros(2))
    with pytest.raises(sarissa.InvalidArgument, match="size"):
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
