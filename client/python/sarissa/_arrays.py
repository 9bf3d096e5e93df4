# SPDX-License-Identifier: BSD-3-Clause
"""Arrays as objects. An object is the bytes of an array and nothing else, so that reduces and programs in C work
on it. What the bytes mean stands in the object's metadata, as include/sarissa/array.h has it:

    byte 0          0xA1: an array, version 1
    byte 1          the type as reduces number it; 0: another one
    byte 2          C or F: the order of the elements
    byte 3          dimensions
    byte 4          the length of the type's text; bytes 5 to 7 are 0
    then            8 bytes for each dimension, little-endian, and the text (_types.py)

Before, a second object, NAME#array, had that as JSON. It is still read where it is on this node."""

from __future__ import annotations

import json
import re
import struct
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Tuple

from . import _sarissa
from ._types import OF_OBJECTS, OTHER, element, item_bytes, numpy_type, type_text

if TYPE_CHECKING:
    import numpy

DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
DLPACK_BFLOAT, DLPACK_CPU = 4, (1, 0)
DESCRIPTION_MAX = 64 << 10
DIMENSIONS_MAX = 8
ARRAY, META_BYTES, HEAD_BYTES = 0xA1, 128, 8  # of which the lengths and the type have the rest
NOT_CONTIGUOUS = "the bytes of this view do not follow one another: put bytes(view)"
POINTERS = re.compile(r"[OPzX&]|Z(?![fdg])")  # in the format of a buffer: numpy's complex numbers are Zd
SUBCLASSES = {
    "MaskedArray": "its mask is not in its bytes: put array.filled(), or array.data and "
                   "numpy.ma.getmaskarray(array) by two names",
    "recarray": "its elements are records: put array.view(array.dtype.descr, numpy.ndarray)",
    "chararray": "its elements are compared without blanks: put array.view(numpy.ndarray)",
    "matrix": "a reader would have an ndarray, whose * is another: put numpy.asarray(array)"}


class Meaning(NamedTuple):
    """What a description says."""

    dtype: str  # as _types has it
    shape: Tuple[int, ...]
    order: str = "C"
    sample: Optional[str] = None  # of NAME#array: a hash of the first and last KiB

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
        """TypeError where numpy has no such type."""
        return as_numpy(self._view, self._meaning)

    def __repr__(self) -> str:
        return f"<sarissa.Tensor: {self._meaning}>"


def dlpack_type(dtype: str) -> Tuple[int, int]:
    if dtype == "bfloat16":
        return DLPACK_BFLOAT, 16
    if dtype[0] in "<|":
        for code, kind in DLPACK_KINDS.items():
            if dtype[1] == kind:
                return code, 8 * int(dtype[2:])
    raise BufferError(f"DLPack has no type {dtype}: use get()")


class Given(NamedTuple):
    """An array that is to be stored, and what it means. memory: its bytes, in the order of the meaning; None while
    they do not follow one another (strided)."""

    memory: Any
    meaning: Meaning
    strided: Any = None

    @property
    def nbytes(self) -> int:
        return int(self.strided.nbytes if self.memory is None else memoryview(self.memory).nbytes)

    def contiguous(self) -> Given:
        """The same with its memory, after a copy where one is needed."""
        if self.memory is not None:
            return self
        import numpy
        if self.strided.dtype.names is None:
            return of_numpy(numpy.ascontiguousarray(self.strided))
        copy = numpy.zeros(self.strided.shape, self.strided.dtype)  # of records: numpy leaves the padding as it is
        copy[...] = self.strided
        return of_numpy(copy)

    def in_c_order(self) -> Any:
        """The bytes of the elements in C's order."""
        if self.meaning.order == "C":
            return self.contiguous().memory
        import numpy
        return numpy.ascontiguousarray(self.memory.T)


def given_array(data: Any) -> Optional[Given]:
    """What put() stores of an array. None when data is just bytes. TypeError for what would not come back as it
    was: the words say what to put."""
    module = sys.modules.get("numpy")
    if module is not None and isinstance(data, (module.ndarray, module.generic)):
        if type(data) not in (module.ndarray, module.memmap) and isinstance(data, module.ndarray):
            raise TypeError(of_subclass(data))
        return of_numpy(module.asarray(data))
    kind = type(data)
    if hasattr(kind, "__dlpack__"):
        return of_dlpack(data)
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        raise TypeError(f"{kind.__name__} is more than an array, and only an array would come back: put "
                        "numpy.asarray(it), and the rest (an index, names, units) by names of their own, or all of it with "
                        "put_object()")
    return None


def of_subclass(array: Any) -> str:
    for kind in type(array).__mro__:
        if kind.__name__ in SUBCLASSES and kind.__module__.split(".")[0] == "numpy":
            return f"{type(array).__name__} is more than an array: {SUBCLASSES[kind.__name__]}"
    return (f"{type(array).__name__} is more than an array, and only an array would come back: put "
            "numpy.asarray(array), and what the class knows besides by names of its own")


def of_numpy(array: Any) -> Given:
    flags = array.flags
    order = "C" if flags.c_contiguous or not flags.f_contiguous else "F"
    meaning = Meaning(type_text(array.dtype), array.shape, order)
    write(meaning)  # which may not fit
    if not flags.forc:
        return Given(None, meaning, array)
    memory = array if order == "C" else array.T
    return Given(memory, meaning)


def of_dlpack(data: Any) -> Given:
    kind = type(data).__name__
    if data.__dlpack_device__()[0] not in (1, 3):
        raise TypeError(f"this {kind} lies in the memory of a device, which a node cannot read: put it.to('cpu'), or what "
                        "else brings it to the host")
    try:
        memory, code, bits, shape = _sarissa.dlpack_import(dlpack_capsule(data))
    except (BufferError, RuntimeError, ValueError) as error:
        raise TypeError(f"this {kind} gives its memory to nobody ({error}): put it.detach() when it is part of a "
                        "gradient, or it.numpy() of what DLPack has no type for, such as bool") from error
    except _sarissa.Strided as error:
        return of_strided_dlpack(data, str(error))
    if code == DLPACK_BFLOAT and bits == 16:
        dtype = "bfloat16"
    elif code in DLPACK_KINDS:
        dtype = f"{'|' if bits == 8 else '<'}{DLPACK_KINDS[code]}{bits // 8}"
    else:
        raise TypeError(f"DLPack's type {code} of {bits} bits is not known: convert the array")
    meaning = Meaning(dtype, shape)
    write(meaning)
    return Given(memory, meaning)


def dlpack_capsule(data: Any) -> Any:
    """Of DLPack 1.0, which can say that memory is read-only, where the library has it."""
    try:
        return data.__dlpack__(max_version=(1, 0))
    except TypeError:  # it is older
        return data.__dlpack__()


def of_strided_dlpack(data: Any, words: str) -> Given:
    try:
        import numpy
        array = numpy.from_dlpack(data)
    except (ImportError, BufferError, RuntimeError, ValueError, TypeError):
        raise TypeError(words) from None
    return of_numpy(array)


def as_bytes(data: Any) -> memoryview:
    """Of bytes, or of an array in C's order; put() takes and refuses the same."""
    given = given_array(data)
    if given is None:
        check_bytes(data)
        return memoryview(data).cast("B")
    memory = given.in_c_order()
    return memoryview(memory.reshape(-1).view("u1") if hasattr(memory, "reshape") else memory)


def check_bytes(data: Any) -> None:
    """That put() may store data as it is."""
    try:
        view = memoryview(data)
    except ValueError:  # numpy's dates have no format to tell
        return
    except TypeError:
        instead = "it.encode()" if isinstance(data, str) else "numpy.asarray(it), or all of it with put_object()"
        raise TypeError(f"an object is bytes, or an array, and not of type {type(data).__name__}: put "
                        f"{instead}") from None
    with view:
        if not view.c_contiguous:
            raise TypeError(NOT_CONTIGUOUS)
        if POINTERS.search("".join(view.format.split(":")[::2])):  # without the names of fields
            raise TypeError(OF_OBJECTS)


def descr(value: Any) -> Any:
    """The fields of a record as numpy takes them: tuples, of which shapes are tuples as well."""
    return [tuple([field[0], descr(field[1]) if isinstance(field[1], list) else field[1],
                   *[tuple(shape) if isinstance(shape, list) else shape for shape in field[2:]]]) for field in value]


def description_id(ident: bytes) -> bytes:
    return _sarissa.id_of(ident + b"#array")


def write(meaning: Meaning) -> bytes:
    """As metadata. TypeError when it does not fit."""
    text = meaning.dtype.encode()
    if len(meaning.shape) > DIMENSIONS_MAX:
        raise TypeError(f"an array of {len(meaning.shape)} dimensions: an object has at most {DIMENSIONS_MAX}: put "
                        "array.reshape(...) with fewer")
    room = META_BYTES - HEAD_BYTES - 8 * len(meaning.shape)
    if len(text) > room:
        raise TypeError(f"the type {meaning.dtype} takes {len(text)} bytes to describe, and an array of "
                        f"{len(meaning.shape)} dimensions has {room}: put fields by names of their own, or give them "
                        "shorter names")
    return struct.pack(f"<BBcBB3x{len(meaning.shape)}Q", ARRAY, element(meaning.dtype), meaning.order.encode(),
                       len(meaning.shape), len(text), *meaning.shape) + text


@lru_cache(maxsize=1024)
def read(meta: bytes) -> Optional[Meaning]:
    """None when it describes no array."""
    if len(meta) < HEAD_BYTES or meta[0] != ARRAY or meta[2:3] not in (b"C", b"F") or meta[3] > DIMENSIONS_MAX:
        return None
    begin = HEAD_BYTES + 8 * meta[3]
    if meta[4] == 0 or len(meta) != begin + meta[4]:
        return None
    try:
        text = meta[begin:].decode()
    except UnicodeDecodeError:
        return None
    return Meaning(text, struct.unpack(f"<{meta[3]}Q", meta[HEAD_BYTES:begin]), meta[2:3].decode())


@lru_cache(maxsize=1024)
def read_json(text: bytes) -> Optional[Meaning]:
    """The same of NAME#array."""
    try:
        described = json.loads(text)
        shape = tuple(described["shape"])
        sample = described["sample"]
        if not all(type(length) is int and length >= 0 for length in shape):
            return None
        if described["order"] not in ("C", "F") or not (sample is None or isinstance(sample, str)):
            return None
        dtype = described["dtype"]
        if isinstance(dtype, list):  # a record, before its fields were text
            dtype = repr(descr(dtype))
        return Meaning(dtype, shape, described["order"], sample) if isinstance(dtype, str) and dtype else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def fits(view: Any, meaning: Meaning) -> bool:
    """Whether the description is of these bytes."""
    each = item_bytes(meaning.dtype)
    if each == 0 and not OTHER.fullmatch(meaning.dtype):  # else another program has the type, and this one may not
        return False
    size_fits = each * meaning.elements == view.nbytes if each else \
        meaning.elements == view.nbytes == 0 or meaning.elements > 0 == view.nbytes % meaning.elements
    return size_fits and (meaning.sample is None or meaning.sample == _sarissa.sample(view).hex())


def as_array(view: Any, meaning: Meaning) -> Any:
    """Without a copy: an array of numpy, or a Tensor where numpy has no such type and DLPack has."""
    if numpy_type(meaning.dtype) is None:
        try:
            dlpack_type(meaning.dtype)
        except BufferError:
            return as_numpy(view, meaning)  # which says what to do
        return Tensor(view, meaning)
    return as_numpy(view, meaning)


def as_numpy(view: Any, meaning: Meaning) -> numpy.ndarray[Any, Any]:
    import numpy
    dtype = numpy_type(meaning.dtype)
    if dtype is None:
        raise TypeError(f"this is an {meaning}, a type that this program's numpy has not: install ml_dtypes, get the bytes "
                        "with raw=True, or use get_tensor() and a library that has the type")
    if meaning.elements == 0:  # numpy.frombuffer takes no empty memory
        array: numpy.ndarray[Any, Any] = numpy.empty(meaning.shape, dtype)
        array.flags.writeable = False
        return array
    return numpy.frombuffer(view, dtype).reshape(meaning.shape, order=meaning.order)  # type: ignore
