# SPDX-License-Identifier: BSD-3-Clause
"""Every type and layout of numpy, by every way in: an array comes back as it was, or is refused by words that say
what to put."""

import array as arrays
import asyncio
import ctypes

import numpy
import pytest
import sarissa
import sarissa.aio

rng = numpy.random.default_rng(35)


class Temperature(numpy.ndarray):
    """A subclass with a state of its own."""
    unit = "K"


class Series:
    """As pandas has them."""

    def __init__(self, values, index):
        self.values, self.index = values, index

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self.values, dtype)


class Interface:
    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Tensor:
    """As torch has them: DLPack, without the buffer protocol. refuses: what its __dlpack__ raises."""

    def __init__(self, array, refuses=None, device=(1, 0), versions=False):
        self.array, self.refuses, self.device, self.versions = array, refuses, device, versions

    def __dlpack__(self, **how):
        if self.refuses is not None:
            raise self.refuses
        if how.get("max_version") and not self.versions:
            raise TypeError("got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


TYPES = {
    **{code: numpy.dtype(code) for code in "? b B h H i I l L q Q e f d g F D G S3 U7 V5 M8[D] M8[25us] M8 m8[ns] m8".split()},
    **{f"big {code}": numpy.dtype(code).newbyteorder(">") for code in "h i q e f d D M8[s] U3".split()},
    "record": numpy.dtype([("a", "i4"), ("b", "f8")]),
    "nested": numpy.dtype([("a", [("b", ">i2"), ("c", "S2")]), ("d", "f4", (2, 3))]),
    "aligned": numpy.dtype([("a", "i1"), ("b", "f8")], align=True),
    "titled": numpy.dtype([(("the title", "a"), "i4"), ("b", "f4")]),
    "offsets": numpy.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [4, 12], "itemsize": 20}),
    "out of order": numpy.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]}),
    "overlapping": numpy.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 0]}),
    "nested aligned": numpy.dtype([("a", numpy.dtype([("b", "i1"), ("c", "f8")], align=True)), ("d", "i1")], align=True),
    "no field": numpy.dtype([]), "record class": numpy.dtype((numpy.record, [("a", "i4")])),
    "metadata": numpy.dtype("i4", metadata={"unit": "m"}),
    "metadata inside": numpy.dtype([("a", numpy.dtype("i4", metadata={"unit": "m"}))]),
    "wide": numpy.dtype([(f"a field with a long name {i}", "f8") for i in range(9)]),
    "S0": numpy.dtype("S0"), "U0": numpy.dtype("U0"), "V0": numpy.dtype("V0"),
    "object": numpy.dtype("O"), "object inside": numpy.dtype([("a", "O"), ("b", "i4")]),
}
REFUSED = {"out of order", "overlapping", "nested aligned", "no field", "record class", "metadata", "metadata inside",
           "wide", "S0", "U0", "V0", "object", "object inside"}
LAYOUTS = {
    "plain": lambda a: a, "fortran": numpy.asfortranarray, "strided": lambda a: a[:, ::2],
    "negative": lambda a: a[::-1, ::-1], "inner": lambda a: a[1:, 1:-1], "column": lambda a: a[:, 1],
    "broadcast": lambda a: numpy.broadcast_to(a[:1], (3, a.shape[1])), "no dimension": lambda a: a[0, 0, ...],
    "transposed": lambda a: a.T[::2], "empty": lambda a: a[:0], "empty inside": lambda a: a[:, :0].T,
    "eight": lambda a: a.reshape((1,) * 6 + a.shape), "three": lambda a: a.reshape(2, 2, 6).transpose(1, 0, 2),
    "read-only": lambda a: numpy.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
}


def made(dtype):
    """4 times 6 elements with values."""
    if dtype.hasobject or dtype.itemsize == 0:
        return numpy.ndarray((4, 6), dtype)
    raw = rng.integers(0, 2 if dtype.kind == "b" else 100, 24 * dtype.itemsize, "u1")
    if dtype.kind == "U":
        return numpy.array([["some", "words"] * 3] * 4, dtype)
    if dtype.char in "gG":
        return numpy.arange(24).astype(dtype).reshape(4, 6)
    return raw.view(dtype).reshape(4, 6)


def check(got, given):
    assert type(got) is numpy.ndarray and got.dtype == given.dtype and repr(got.dtype) == repr(given.dtype)
    assert got.dtype.isalignedstruct == given.dtype.isalignedstruct and got.dtype.metadata is None
    # where there is padding, numpy does not copy it
    assert got.shape == given.shape and (got.tobytes() == given.tobytes() or got.tolist() == given.tolist())
    if given.flags.forc:
        assert (got.flags.c_contiguous, got.flags.f_contiguous) == (given.flags.c_contiguous, given.flags.f_contiguous)
    assert not got.flags.writeable


def refusal(call):
    """The words of a refusal by name, or None."""
    try:
        call()
    except (TypeError, ValueError) as error:
        assert "put " in str(error), f"no word what to put instead: {error}"
        return str(error)
    return None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", TYPES)
def test_types_and_layouts(nodes, kind, layout):
    if kind in REFUSED and (layout == "read-only" or TYPES[kind].itemsize == 0 and layout == "fortran"):
        pytest.skip("numpy makes no such array")
    given = numpy.asarray(LAYOUTS[layout](made(TYPES[kind])))
    if kind in REFUSED:
        assert refusal(lambda: nodes[0].put("zoo", given)), "it would not come back as it was"
        assert not nodes[0].ls("zoo")
        return
    if layout == "eight" and kind in ("nested", "offsets"):
        assert "takes" in refusal(lambda: nodes[0].put("zoo", given))
        return
    nodes[0].put("zoo", given)
    nodes[0].put("zoo", given)  # the same bytes
    try:
        check(nodes[0].get("zoo", timeout=20), given)
        if layout in ("plain", "fortran"):
            check(nodes[1].gather(["zoo"], timeout=20)[0], given)
    finally:
        nodes[0].delete("zoo")


OTHERS = {
    "masked": numpy.ma.masked_array([1.0, -9999.0, 3.0], mask=[False, True, False]), "masked constant": numpy.ma.masked,
    "masked record": numpy.ma.zeros(2, [("a", "i4")])[0],
    "matrix": numpy.matrix([[1, 2], [3, 4]]), "recarray": numpy.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "record": numpy.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])[0],
    "chararray": numpy.char.array(["a ", "b"]), "subclass": numpy.arange(3.0).view(Temperature),
    "series": Series([1, 2, 3], "abc"), "interface": Interface(numpy.arange(3)),
    "nine dimensions": numpy.zeros((1,) * 9), "list": [1, 2, 3], "dict": {"a": 1}, "text": "text", "none": None,
    "number": 7, "device": Tensor(numpy.arange(3), device=(2, 0)),
    "grad": Tensor(None, refuses=RuntimeError("Can't export tensors that require gradient, use tensor.detach()")),
    "bool of torch": Tensor(None, refuses=RuntimeError("Bool type is not supported by dlpack")),
    "read-only of dlpack": Tensor(None, refuses=BufferError("cannot export a read-only array")),
    "pointers": (ctypes.c_void_p * 3)(), "words of C": (ctypes.c_char_p * 3)(), "strided bytes": memoryview(b"12345")[::2],
}


def ways(nodes, path, value):
    """Every way of an array into the store, but those that need numbers."""
    async def with_aio():
        async with sarissa.aio.open(path) as node:
            await node.put("other", value)

    def leased():
        with nodes[0].lease() as lease:
            lease.put("other", value)

    def piece():
        with nodes[0].create("other", 1 << 10) as writer:
            try:
                writer.write(value)
            finally:
                writer.abort()
    return {"put": lambda: nodes[0].put("other", value), "lease": leased, "aio": lambda: asyncio.run(with_aio()),
            "write": piece}


@pytest.mark.parametrize("way", ways(None, None, None))
@pytest.mark.parametrize("kind", OTHERS)
def test_what_would_not_come_back_is_refused(nodes, local, kind, way):
    if way == "write" and kind == "nine dimensions":
        pytest.skip("pieces have no dimensions")
    assert refusal(ways(nodes, local.socket[0], OTHERS[kind])[way]), f"{way} takes it"
    assert not nodes[0].ls("other")


@pytest.mark.parametrize("kind", ["masked", "matrix", "subclass", "series", "grad", "device"])
def test_groups_and_allreduces_refuse_the_same(nodes, kind):
    group = nodes[0].create_group("zoo", "f8", 3)
    try:
        with group.join() as member:
            assert refusal(lambda: member.push(OTHERS[kind]))
            member.push(numpy.arange(6.0)[::2])
            assert member.pull(timeout=60).array.tolist() == [0, 2, 4]
            member.push(numpy.arange(3.0).astype("f8")[::-1])
            assert member.pull(timeout=60).array.tolist() == [2, 1, 0]
    finally:
        group.remove()
    assert refusal(lambda: nodes[0].allreduce("zoo", ["zoo/0"], array=OTHERS[kind], rank=0, timeout=20))
    assert not nodes[0].ls("zoo")


def test_scalars_memmaps_and_typed_memory(node, tmp_path):
    file = numpy.memmap(tmp_path / "file", "f4", "w+", shape=(2, 3))
    file[:] = 7
    for given in (file, numpy.float32(2.5), numpy.datetime64("2026-11-28"), numpy.bytes_(b"ab\0"), numpy.bool_(True)):
        node.put("zoo", given)
        check(node.get("zoo"), numpy.asarray(given))
        node.delete("zoo")
    for given in (arrays.array("d", [1, 2]), bytearray(b"some"), memoryview(numpy.arange(3)), b"",
                  memoryview(numpy.zeros(2, "D")), (ctypes.c_double * 3)()):
        node.put("zoo", given)
        assert bytes(node.get("zoo")) == bytes(given)
        node.delete("zoo")


def test_pieces_of_arrays(node):
    pieces = [numpy.arange(6).reshape(2, 3).T, numpy.arange(10)[::-3], numpy.array(["2026"], "M8[Y]"), numpy.float32(2),
              numpy.zeros(2, [("a", "i1"), ("b", "f8")]), numpy.zeros((0, 3)), b"bytes"]
    whole = b"".join(piece if isinstance(piece, bytes) else piece.tobytes() for piece in pieces)
    with node.create("zoo", len(whole)) as writer:
        for piece in pieces:
            writer.write(piece)
    assert node.get("zoo") == whole
    node.delete("zoo")


@pytest.mark.parametrize("layout", ["plain", "fortran", "strided", "negative", "column", "broadcast"])
def test_tensors_of_other_libraries(node, layout):
    given = LAYOUTS[layout](numpy.arange(24, dtype="f4").reshape(4, 6).copy())
    if not given.flags.writeable:
        given = numpy.lib.stride_tricks.as_strided(numpy.zeros(6, "f4"), (3, 6), (0, 4))
    node.put("zoo", Tensor(given))
    got = node.get("zoo")
    assert got.dtype == given.dtype and got.tolist() == given.tolist()
    node.delete("zoo")
