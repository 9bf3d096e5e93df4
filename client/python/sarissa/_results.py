# SPDX-License-Identifier: BSD-3-Clause
"""Results of operations as callers get them: arrays with their type and shape, Info, Member, Holder. Node and
aio.Node make them with the same functions, which ask nobody."""

from __future__ import annotations

import errno
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _arrays, _sarissa
from ._arrays import Meaning, Tensor
from ._errors import Error, Exists
from ._names import NUMPY, Name, dtype_of, numpy_name
from ._types import item_bytes, type_text

NOWHERE = 2**64 - 1
Shape = Union[int, Sequence[int]]


class Info(NamedTuple):
    """What the directory knows of an object; local_ready is None without a copy here. lost: complete
    copies on dead nodes; lost_node: the one of these that died last, or None; down: so many seconds
    ago, or None. leases: so many hold it; 0: it lives until it is deleted. expires: in so many seconds,
    or None. meta: the metadata that its creator gave."""

    id: bytes
    name: str
    size: int
    generation: int
    local_ready: Optional[int]
    copies: int
    partial: int
    lost: int = 0
    lost_node: Optional[int] = None
    down: Optional[float] = None
    leases: int = 0
    expires: Optional[float] = None
    meta: bytes = b""


class Member(NamedTuple):
    """A node of the cluster, as the local one sees it."""

    node: int
    is_self: bool
    state: str  # "never seen", "up", "down"
    address: str
    workers: int


class Holder(NamedTuple):
    """A node's copy of an object. size: the bytes of it that are there; down: the node died so many seconds
    ago, or None."""

    node: int
    complete: bool
    size: int
    down: Optional[float] = None


def holder(raw: Tuple[int, int, int, float]) -> Holder:
    node, complete, size, down = raw
    return Holder(node, bool(complete), size, down or None)


def info(raw: _sarissa.Info) -> Info:
    (ident, name, size, generation, local, copies, partial, lost, node, down_ns, leases, expires_ns,
     meta) = raw
    return Info(ident, name, size, generation, None if local == NOWHERE else local, copies, partial,
                lost, node if lost else None, down_ns / 1e9 if lost else None, leases,
                expires_ns / 1e9 if expires_ns else None, meta)


def member(raw: Tuple[int, int, int, bytes, int, int]) -> Member:
    import ipaddress
    number, is_self, state, address, port, workers = raw
    ip = ipaddress.IPv6Address(address)
    text = str(ip.ipv4_mapped) if ip.ipv4_mapped else f"[{ip}]"
    return Member(number, bool(is_self), ("never seen", "up", "down")[state], f"{text}:{port}",
                  workers)


def meaning_of(name: Name, view: _sarissa.View) -> Optional[Meaning]:
    """What an object is an array of; None: it is bytes."""
    meaning = _arrays.read(view.meta) if view.meta else _from_json(name, view)
    return meaning if meaning is not None and _arrays.fits(view, meaning) else None


def _from_json(name: Name, view: _sarissa.View) -> Optional[Meaning]:
    """The same of an array that an earlier version has put: NAME#array, where it is here."""
    try:
        text = view.handle.here(_arrays.description_id(_sarissa.id_from(name)))
    except Error:
        return None
    if text is None or text.nbytes > _arrays.DESCRIPTION_MAX:
        return None
    return _arrays.read_json(bytes(memoryview(text)))  # type: ignore[arg-type]


def as_put(name: Name, view: _sarissa.View) -> Any:
    """The array that was put, or the bytes."""
    meaning = meaning_of(name, view)
    if meaning is not None:
        return _arrays.as_array(view, meaning)
    return memoryview(view)  # type: ignore[arg-type]


def tensor(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Tensor:
    """For a library that speaks DLPack. TypeError when the object is no array, unless dtype says what it is."""
    if dtype is not None:
        return Tensor(view, fitting(name, view, dtype, shape))
    meaning = meaning_of(name, view)
    if meaning is None:
        raise TypeError(f"{name!r} was not put as an array: use get() or get_array()")
    return Tensor(view, meaning)


def shaped(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Any:
    """An object as the array that the caller says it is: a Tensor where numpy has no such type (bf16)."""
    return _arrays.as_array(view, fitting(name, view, dtype, shape))


def summed(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Any:
    """The result of an allreduce: the array that its sources were, or as the caller says."""
    return shaped(name, view, dtype, shape) if dtype is not None and (shape is not None or not view.meta) else \
        as_put(name, view)


def fitting(name: Name, view: _sarissa.View, dtype: Any, shape: Optional[Shape]) -> Meaning:
    text = created_type(dtype)
    each = item_bytes(text)
    if not each or view.nbytes % each:
        raise ValueError(f"{name!r} has {view.nbytes} bytes: they are no array of {dtype}")
    count = view.nbytes // each
    lengths = (count,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    if lengths.count(-1) == 1:
        rest = Meaning(text, tuple(length for length in lengths if length != -1)).elements
        lengths = tuple(count // rest if length == -1 and rest else length for length in lengths)
    meaning = Meaning(text, lengths)
    if meaning.elements != count or any(length < 0 for length in lengths):
        raise ValueError(f"{name!r} has {count} elements of {dtype}: they have no shape {shape}")
    return as_described(name, _arrays.read(view.meta) if view.meta else None, meaning)


def as_described(name: Name, stored: Optional[Meaning], wanted: Meaning) -> Meaning:
    """What the caller wants, in the order of what was put."""
    if stored is None or stored.order == "C":
        return wanted
    if (stored.dtype, stored.shape) != (wanted.dtype, wanted.shape):
        raise ValueError(f"{name!r} is an {stored}, in Fortran order, and not an {wanted}: get it as it is, or with "
                         "raw=True")
    return stored


def exists(name: Name, stored: Meaning, meaning: Meaning) -> Exists:
    return Exists(errno.EEXIST, f"{name!r} exists as an {stored}, not as an {meaning}: delete it first, "
                                "or put it by another name")


def mine(array: Any, sources: Sequence[Name], rank: Optional[int]) -> Tuple[Any, Meaning]:
    """The array of one participant of a reduce, in C order: its memory, and what it means."""
    if rank is None or not 0 <= rank < len(sources):
        raise ValueError("allreduce(array=...) needs rank=, the place of the array in sources")
    given = _arrays.given_array(array)
    if given is None:
        raise TypeError("a reduce takes arrays of numpy, or of another library that speaks DLPack, and not "
                        f"{type(array).__name__}: use numpy.asarray(value); for bytes, put them and name dtype=")
    dtype_of(given.meaning.dtype)
    return given.in_c_order(), given.meaning._replace(order="C")


def created_type(dtype: Any) -> str:
    """The text of a type that the caller names: numpy's way, or ours."""
    named = numpy_name(dtype)
    if isinstance(named, str) and named in NUMPY:
        return named
    import numpy
    try:
        return type_text(numpy.dtype(named))
    except TypeError as error:
        raise ValueError(f"no object can be an array of {dtype!r}: {error}") from None
