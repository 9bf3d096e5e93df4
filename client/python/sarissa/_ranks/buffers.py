# SPDX-License-Identifier: BSD-3-Clause
"""The buffers of a communicator's calls with a capital letter, as mpi4py takes them: an array, or a list of a buffer
with its count, or its type, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._names import numpy_name

if TYPE_CHECKING:
    import numpy
    Vector = numpy.ndarray[Any, Any]

FORMS = "use an array, or [buffer, count], [buffer, type], [buffer, count, type] or [buffer, (count, first), type]"


def vector(given: Any, writable: bool = False) -> Vector:
    """The memory as an array of one dimension."""
    import numpy
    buffer, count, kind = parts(given)
    array = buffer if isinstance(buffer, numpy.ndarray) else numpy.frombuffer(buffer, "u1" if kind is not None else None) \
        if not hasattr(buffer, "__array__") else numpy.asarray(buffer)
    if not array.flags.forc:
        raise ValueError("the elements of this buffer do not follow one another: use a copy of it")
    if writable and not array.flags.writeable:
        raise ValueError("the result has no room: this buffer is read-only")
    flat = array.reshape(-1, order="A")
    if kind is not None:
        flat = flat.view(numpy_name(kind))
    if count is None:
        return flat
    first, length = count[::-1] if isinstance(count, (tuple, list)) else (0, count)
    if first < 0 or length < 0 or first + length > len(flat):
        raise ValueError(f"a buffer of {len(flat)} elements has no {length} from {first} on")
    return flat[first:first + length]


def parts(given: Any) -> Any:
    """(buffer, count or None, type or None)"""
    if not isinstance(given, (list, tuple)):
        return given, None, None
    if len(given) == 3:
        return tuple(given)
    if len(given) == 2:
        buffer, other = given
        return (buffer, other, None) if isinstance(other, (int, tuple, list)) else (buffer, None, other)
    raise TypeError(f"{len(given)} parts are no buffer: {FORMS}")


def shown(array: Vector) -> str:
    return f"{len(array)} {array.dtype.str}"
