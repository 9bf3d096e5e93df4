# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as objects. An object is the bytes of an array and nothing else, so that reduces and
programs in C work on it. What the bytes mean stands in a second, tiny object, the description:

    id       id_of(the id of the object, then b"#array")
    name     the name of the object, then "#array"
    bytes    JSON: {"dtype": "<f4", "shape": [2, 3], "order": "C", "sample": "..."}

dtype is numpy's (`dtype.str`, or `dtype.descr` of a record; "bfloat16"). sample is a hash of the
first and last KiB of the array. A description that does not fit its object, because someone has
deleted the array and put something else, does not count: the object is bytes."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Tuple

from . import _sarissa

if TYPE_CHECKING:
    import numpy

DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
DLPACK_BFLOAT, DLPACK_CPU = 4, (1, 0)
NAME_MAX = 255
DESCRIPTION_MAX = 64 << 10
NOT_CONTIGUOUS = ("the bytes of this array do not follow one another: put "
                  "numpy.ascontiguousarray(array), or bytes(view)")
OF_OBJECTS = ("an array of Python objects holds pointers, which mean nothing to a reader: put an "
              "array of numbers, array.astype(float) perhaps, or pickle.dumps(array)")


class Meaning(NamedTuple):
    """What a description says."""

    dtype: Any  # as numpy takes it, hashable
    shape: Tuple[int, ...]
    order: str = "C"
    sample: Optional[str] = None

    @property
    def elements(self) -> int:
        elements = 1
        for length in self.shape:
            elements *= length
        return elements

    def __str__(self) -> str:
        return f"array of {self.dtype}, shape {self.shape}"


class Tensor:
    """An array in the store for libraries with DLPack: torch.from_dlpack(node.get_tensor("x")). The
    object is pinned as long as the tensor, or anything made from it, is in use.

    The memory is read-only. DLPack before 1.0 cannot say so: such a library makes an array that seems
    writable, and writing to it ends the process with a memory fault."""

    def __init__(self, view: Any, meaning: Meaning) -> None:
        self._view = view
        self._meaning = meaning
        self.dtype, self.shape = meaning.dtype, meaning.shape
        self.nbytes: int = view.nbytes

    def __dlpack_device__(self) -> Tuple[int, int]:
        return DLPACK_CPU

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Any = None, copy: Optional[bool] = None) -> Any:
        if copy or dl_device not in (None, DLPACK_CPU):
            raise BufferError("an object of the store is not copied: copy what from_dlpack() makes")
        code, bits = dlpack_type(self.dtype)
        return _sarissa.dlpack_export(self._view, code, bits, self.shape,
                                      self._meaning.order == "F",
                                      max_version is not None and max_version[0] >= 1)

    def numpy(self) -> numpy.ndarray[Any, Any]:
        return as_array(self._view, self._meaning)

    def __repr__(self) -> str:
        return f"<sarissa.Tensor: {self._meaning}>"


def dlpack_type(dtype: Any) -> Tuple[int, int]:
    if dtype == "bfloat16":
        return DLPACK_BFLOAT, 16
    if isinstance(dtype, str) and dtype[0] in "<|":
        for code, kind in DLPACK_KINDS.items():
            if dtype[1] == kind:
                return code, 8 * int(dtype[2:])
    raise BufferError(f"DLPack has no type {dtype}: use get()")


def given_array(data: Any) -> Optional[Tuple[Any, Meaning]]:
    """What put() stores of an array: its memory, and what it means. None when data is just bytes."""
    module = sys.modules.get("numpy")
    if module is not None and isinstance(data, (module.ndarray, module.generic)):
        return of_numpy(module.asarray(data))
    if hasattr(type(data), "__dlpack__"):
        return of_dlpack(data)
    return None


def of_numpy(array: Any) -> Tuple[Any, Meaning]:
    if array.dtype.hasobject:
        raise TypeError(OF_OBJECTS)
    if not array.flags.forc:
        raise TypeError(NOT_CONTIGUOUS)
    order = "C" if array.flags.c_contiguous else "F"
    memory = array if order == "C" else array.T
    return memory, Meaning(type_name(array.dtype), array.shape, order, _sarissa.sample(memory).hex())


def type_name(dtype: Any) -> Any:
    """As a description has it."""
    if dtype.names is not None:
        return hashable(dtype.descr)
    return dtype.name if dtype.kind == "V" and dtype.fields is None and dtype.type.__module__ != "numpy" \
        else dtype.str


def of_dlpack(data: Any) -> Tuple[Any, Meaning]:
    if data.__dlpack_device__()[0] not in (1, 3):
        raise TypeError("this array lies in the memory of a device: bring it to the host first")
    memory, code, bits, shape = _sarissa.dlpack_import(data.__dlpack__())
    if code == DLPACK_BFLOAT and bits == 16:
        dtype = "bfloat16"
    elif code in DLPACK_KINDS:
        dtype = f"{'|' if bits == 8 else '<'}{DLPACK_KINDS[code]}{bits // 8}"
    else:
        raise TypeError(f"DLPack's type {code} of {bits} bits is not known: convert the array")
    return memory, Meaning(dtype, shape, "C", _sarissa.sample(memory).hex())


def check_bytes(data: Any) -> None:
    """That put() may store data as it is."""
    try:
        view = memoryview(data)
    except ValueError:  # numpy's dates have no format to tell
        return
    with view:
        if not view.c_contiguous:
            raise TypeError(NOT_CONTIGUOUS)
        if "O" in "".join(view.format.split(":")[::2]):  # without the names of fields
            raise TypeError(OF_OBJECTS)


def hashable(value: Any) -> Any:
    return tuple(hashable(one) for one in value) if isinstance(value, (list, tuple)) else value


def descr(value: Any) -> Any:
    """A record's type as numpy takes it: a list of tuples, of which shapes are tuples as well."""
    if not isinstance(value, tuple):
        return value
    return [tuple([field[0], descr(field[1]), *field[2:]]) for field in value]


def description_id(ident: bytes) -> bytes:
    return _sarissa.id_of(ident + b"#array")


def description_name(name: Any) -> Optional[str]:
    """None where there is none, or no room for it."""
    if not isinstance(name, str):
        return None
    longer = name + "#array"
    return longer if len(longer.encode("utf-8", "surrogateescape")) <= NAME_MAX else None


def write(meaning: Meaning) -> bytes:
    return json.dumps(meaning._asdict()).encode()


@lru_cache(maxsize=1024)
def read(text: bytes) -> Optional[Meaning]:
    """None when it is no description."""
    try:
        described = json.loads(text)
        shape = tuple(described["shape"])
        sample = described["sample"]
        if not all(type(length) is int and length >= 0 for length in shape):
            return None
        if described["order"] not in ("C", "F") or not (sample is None or isinstance(sample, str)):
            return None
        if not isinstance(described["dtype"], (str, list)):
            return None
        meaning = Meaning(hashable(described["dtype"]), shape, described["order"], sample)
        hash(meaning)
        return meaning
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


@lru_cache(maxsize=1024)
def numpy_type(dtype: Any) -> Any:
    """None when numpy has no such type."""
    import numpy
    try:
        made = numpy.dtype(descr(dtype))
    except (TypeError, ValueError, SyntaxError, LookupError, RecursionError):
        return None
    return None if made.hasobject or made.itemsize == 0 else made


def item_bytes(dtype: Any) -> int:
    if dtype == "bfloat16":
        return 2
    made = numpy_type(dtype)
    return int(made.itemsize) if made is not None else 0


def fits(view: Any, meaning: Meaning) -> bool:
    """Whether the description is of these bytes."""
    each = item_bytes(meaning.dtype)
    return each > 0 and each * meaning.elements == view.nbytes and (
        meaning.sample is None or meaning.sample == _sarissa.sample(view).hex())


def as_array(view: Any, meaning: Meaning) -> numpy.ndarray[Any, Any]:
    """Without a copy."""
    import numpy
    dtype = numpy_type(meaning.dtype)
    if dtype is None:
        raise TypeError(f"this is an {meaning}, a type that numpy has not: use get_tensor()")
    if meaning.elements == 0:  # numpy.frombuffer takes no empty memory
        return numpy.empty(meaning.shape, dtype)
    return numpy.frombuffer(view, dtype).reshape(meaning.shape, order=meaning.order)  # type: ignore
