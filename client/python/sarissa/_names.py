# SPDX-License-Identifier: BSD-3-Clause
"""Names, timeouts and the lists of operations and types: what callers write, as the extension wants
it."""

from __future__ import annotations

from typing import Any, Optional, Union

from . import _sarissa

Name = Union[str, bytes]  # a name, or an id of 16 bytes

FOREVER = 2**63 - 1
OPS = {name: number for number, name in enumerate("sum prod min max avg".split(), 1)}
DTYPES = {name: number for number, name in enumerate(
    "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64".split(), 1)}
# as numpy writes them
NUMPY = {"<f2": "f16", "bfloat16": "bf16", "<f4": "f32", "<f8": "f64", "|i1": "i8", "<i2": "i16",
         "<i4": "i32", "<i8": "i64", "|u1": "u8", "<u2": "u16", "<u4": "u32", "<u8": "u64"}


OURS = {ours: numpys for numpys, ours in NUMPY.items()}


def id_of(name: Name) -> bytes:
    """The id (16 bytes) of a name: str, or any bytes. No name is empty."""
    if not len(name):
        raise ValueError("a name has one character or more: name the object")
    if isinstance(name, str):
        return _sarissa.id_from(name)
    return _sarissa.id_of(name)


def timeout_ns(seconds: Optional[float], what: str = "timeout") -> int:
    if seconds is None:
        return FOREVER
    if not seconds >= 0:
        raise ValueError(f"a {what} of {seconds} s: it is not negative; None waits without limit")
    return int(seconds * 1e9) if seconds < FOREVER / 1e9 else FOREVER


def unsigned(value: int, bits: int) -> int:
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is not between 0 and {(1 << bits) - 1}")
    return value


def op_of(op: str) -> int:
    if op not in OPS:
        raise ValueError(f"no such operation: '{op}': use one of {', '.join(OPS)}")
    return OPS[op]


def numpy_name(dtype: Any) -> Any:
    """A type as numpy knows it. "i8" is ours: eight bits."""
    return OURS.get(dtype, dtype) if isinstance(dtype, str) else dtype


def dtype_of(dtype: Any) -> str:
    """A name of DTYPES from one, or from what numpy takes for a type."""
    if dtype is None:
        raise TypeError("say what the sources are arrays of: reduce(..., dtype=\"f64\"), or another "
                        f"one of {', '.join(DTYPES)}")
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    text = dtype if isinstance(dtype, str) else ""
    if text not in NUMPY:
        try:
            import numpy
            made = numpy.dtype(dtype)
            text = made.name if made.kind == "V" else made.str
        except (ImportError, TypeError):
            pass
    if text not in NUMPY:
        raise ValueError(f"no reduce adds up {dtype!r}: use one of {', '.join(DTYPES)}")
    return NUMPY[text]
