# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as memory: which types a reduce knows, and the bytes of a tensor for puts and gets. process_group.py uses
it. It knows no group and no node."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, List, Sequence

import torch
from torch.distributed import ReduceOp

from .. import _arrays
from .._names import OURS

OPS = {ReduceOp.SUM: "sum", ReduceOp.PRODUCT: "prod", ReduceOp.MIN: "min", ReduceOp.MAX: "max", ReduceOp.AVG: "avg"}
DTYPES = {getattr(torch, theirs): ours for theirs, ours in {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}.items()
    if hasattr(torch, theirs)}
COPIED_FROM, COPIED_MAX = 48 << 10, 64 << 10
ORDERED = ("min", "max")  # those that give one of their arguments


def shown(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")


def described(tensors: Sequence[Any]) -> str:
    return ", ".join(f"{shown(one.dtype)} {list(one.shape)}" for one in tensors)


def check(call: str, tensors: Sequence[Any]) -> None:
    """That the tensors lie in memory that a node reads."""
    for one in tensors:
        if one.device.type != "cpu":
            raise ValueError(f"{call}: this tensor is on {one.device}, and the backend sarissa takes tensors of the cpu: "
                             "use tensor.to('cpu')")
        if one.layout is not torch.strided:
            raise ValueError(f"{call}: this tensor is {shown(one.layout)}, and the backend sarissa takes dense ones: use "
                             "tensor.to_dense()")


def op_name(call: str, op: Any) -> str:
    for known, name in OPS.items():
        if op == known:
            return name
    raise ValueError(f"{call}: the backend sarissa has no reduction {str(getattr(op, 'op', op)).split('.')[-1]}: "
                     "use one of SUM, PRODUCT, MIN, MAX and AVG")


def reduced_type(call: str, dtype: Any, op: str) -> str:
    """As reduces name it. TypeError for the others."""
    if dtype is torch.bool and op in ORDERED:
        return "u8"
    if dtype not in DTYPES:
        known = ", ".join(shown(one) for one in DTYPES)
        raise TypeError(f"{call}: no reduce of Sarissa computes {op} of {shown(dtype)}: convert the tensor to one of {known}")
    return DTYPES[dtype]


def flat(tensor: Any) -> Any:
    """Its elements one after the other: a view, or a copy where they are not."""
    return tensor.detach().contiguous().view(-1)


def source(tensor: Any) -> Any:
    """A contiguous tensor as a source of a sum. The directory keeps a second copy of what has up to 64 KiB before a put
    is done: from 48 KiB on some zeros more cost less."""
    if not COPIED_FROM <= size_of(tensor) <= COPIED_MAX:
        return tensor
    padded = torch.zeros(COPIED_MAX // tensor.element_size() + 1, dtype=tensor.dtype)
    padded[:tensor.numel()] = tensor
    return padded


def fill_sum(tensor: Any, view: Any) -> None:
    """The beginning of a view of the store, for a sum of sources."""
    if view.nbytes < size_of(tensor):
        raise ValueError(f"{view.nbytes} bytes have come for a tensor of {size_of(tensor)} bytes")
    ctypes.memmove(tensor.data_ptr(), view.address, size_of(tensor))


def flat_output(tensor: Any) -> Any:
    """Where the bytes of a result go. settle() brings them into the tensor."""
    return tensor.detach().view(-1) if tensor.is_contiguous() else torch.empty(tensor.numel(), dtype=tensor.dtype)


def settle(tensor: Any, where: Any) -> None:
    if where.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(where.view(tensor.shape))


def settle_all(tensors: Sequence[Any], where: Sequence[Any], wanted: bool = True) -> None:
    if wanted:
        for tensor, came in zip(tensors, where):
            settle(tensor, came)


def size_of(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def total(tensors: Iterable[Any]) -> int:
    return sum(map(size_of, tensors))


def memory(tensor: Any) -> Any:
    """The bytes of a contiguous tensor as a buffer, which does not keep the tensor."""
    return (ctypes.c_ubyte * size_of(tensor)).from_address(tensor.data_ptr())


def fill(tensor: Any, view: Any) -> None:
    """Copies a view of the store into a contiguous tensor. The interpreter runs on meanwhile."""
    if view.nbytes != size_of(tensor):
        raise ValueError(f"{view.nbytes} bytes have come for a tensor of {size_of(tensor)} bytes ({described([tensor])}): "
                         "give tensors of one shape and type on both sides")
    if view.nbytes:
        ctypes.memmove(tensor.data_ptr(), view.address, view.nbytes)


def meta(dtype: str, tensor: Any) -> bytes:
    """The description of an array of one dimension, which reduces compare."""
    return _arrays.write(_arrays.Meaning(OURS[dtype], (tensor.numel(),)))


def split(tensor: Any, count: int) -> List[Any]:
    """Equal parts of a contiguous tensor along its memory."""
    return list(flat(tensor).chunk(count)) if tensor.numel() else [flat(tensor)] * count


def pieces(call: str, tensor: Any, splits: Sequence[int], count: int) -> List[Any]:
    """Along the first dimension: of these lengths, or equal."""
    if splits:
        if len(splits) != count or sum(splits) != tensor.shape[0]:
            raise ValueError(f"{call}: the lengths {list(splits)} for {count} ranks do not add up to {tensor.shape[0]}")
        return list(tensor.split(list(splits)))
    if tensor.shape[0] % count:
        raise ValueError(f"{call}: {tensor.shape[0]} rows for {count} ranks: give the lengths of the parts")
    return list(tensor.split(tensor.shape[0] // count)) if tensor.shape[0] else [tensor] * count
