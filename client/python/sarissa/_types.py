# SPDX-License-Identifier: BSD-3-Clause
"""Types of arrays as text, and back: "<f4", ">i8", "<M8[25us]", "bfloat16", or the fields of a record. What
comes back equals what went in, or there is no text for it. numpy is imported only where it is needed."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from importlib import import_module
from typing import Any, Optional

from ._names import DTYPES, NUMPY

KINDS = "biufcSUVMm"  # whose elements are all in the buffer
PLAIN = re.compile(rf"[<>|=][{KINDS}]\d+(\[\w+\])?|[<>|][Mm]8")
OTHER = re.compile(r"bfloat16|u?int[24]|float[468]_\w+")  # of ml_dtypes, which may be missing here
ALIGNED = "aligned "  # before the fields of a record with C's padding
OF_OBJECTS = ("an array of Python objects holds pointers, which mean nothing to a reader: put an "
              "array of numbers, array.astype(float) perhaps, or put_object()")


def element(text: str) -> int:
    """The number of a type that reduces add up; 0: another one."""
    return DTYPES[NUMPY[text]] if text in NUMPY else 0


def type_text(dtype: Any) -> str:
    """TypeError, with what to do, for a type that a reader could not have as it was."""
    if dtype.kind == "T":
        raise TypeError("an array of StringDType holds pointers, which mean nothing to a reader: put "
                        "array.astype('U')")
    if dtype.hasobject:
        raise TypeError(OF_OBJECTS)
    if dtype.itemsize == 0:
        raise TypeError(f"elements of {dtype!r} have no bytes: put an array of another type")
    if _has_metadata(dtype):
        plain = "array.dtype.str" if dtype.names is None else "array.dtype.descr"
        raise TypeError(f"the metadata of the type {dtype!r} is not in the array's bytes: put array.view({plain}), and "
                        "the metadata by a name of its own")
    text = _written(dtype)
    made = numpy_type(text) if text is not None else None
    if text is None or made is None or not _same(made, dtype):
        raise TypeError(f"a reader could not have the type {dtype!r} as it is: " + _instead(dtype))
    return text


def _written(dtype: Any) -> Optional[str]:
    if dtype.names is None:
        return str(dtype.str if dtype.type.__module__ == "numpy" else dtype.name)
    try:
        return (ALIGNED if dtype.isalignedstruct else "") + repr(dtype.descr)
    except ValueError:  # fields that overlap, or are out of order
        return None


def _instead(dtype: Any) -> str:
    if dtype.names is None:
        return "put the array as bytes, or convert it with array.astype()"
    if dtype.type.__name__ != "void":
        return "put array.view(array.dtype.descr, numpy.ndarray)"
    return "put numpy.lib.recfunctions.repack_fields(array, recurse=True)"


def _has_metadata(dtype: Any) -> bool:
    if dtype.metadata:
        return True
    if dtype.subdtype is not None:
        return _has_metadata(dtype.subdtype[0])
    return dtype.names is not None and any(_has_metadata(dtype.fields[name][0]) for name in dtype.names)


def _same(made: Any, dtype: Any) -> bool:
    """Equality of numpy's leaves out what repr shows: alignment, titles, the class of elements."""
    return bool(made == dtype) and (made.type is dtype.type or made.names is None) and repr(made) == repr(dtype)


@lru_cache(maxsize=1024)
def numpy_type(text: str) -> Any:
    """None when numpy has no such type, or it is none of an array in the store."""
    import numpy
    record: Any = numpy.lib.format.descr_to_dtype
    try:
        if text.startswith(ALIGNED):
            fields = record(ast.literal_eval(text[len(ALIGNED):]))
            made = numpy.dtype({"names": list(fields.names), "formats": [fields.fields[n][0] for n in fields.names],
                                "offsets": [fields.fields[n][1] for n in fields.names],
                                "titles": [(*fields.fields[n], None)[2] for n in fields.names],
                                "itemsize": fields.itemsize}, align=True)
        elif text.startswith("["):
            made = record(ast.literal_eval(text))
        elif PLAIN.fullmatch(text):
            made = numpy.dtype(text)
        else:
            made = _of_other(text)
    except (TypeError, ValueError, SyntaxError, LookupError, RecursionError, MemoryError, AttributeError):
        return None
    return None if made is None or made.hasobject or made.itemsize == 0 else made


def _of_other(text: str) -> Any:
    """One that another package adds to numpy, such as bfloat16."""
    import numpy
    if not OTHER.fullmatch(text):
        return None
    try:
        made = numpy.dtype(text)
    except TypeError:
        try:
            made = numpy.dtype(getattr(import_module("ml_dtypes"), text))
        except ImportError:
            return None
    return made if made.type.__module__ != "numpy" else None


def item_bytes(text: str) -> int:
    """0: not known here."""
    if text == "bfloat16":
        return 2
    try:
        made = numpy_type(text)
    except ImportError:
        return 0
    return int(made.itemsize) if made is not None else 0
