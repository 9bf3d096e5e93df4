# SPDX-License-Identifier: BSD-3-Clause
"""The tensors of one message as the bytes of one object, for the tensor transport of Ray (transport.py): where each
tensor begins, which tensors are taken, and the copies to and from the memory of the host. It has a class for
torch.Tensor and one for numpy.ndarray. It knows neither Ray nor a node."""

from __future__ import annotations

import bisect
import math
import re
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

ALIGN = 64  # bytes; each tensor begins at a multiple
REFUSED = re.compile(r"torch\.(q.*|u?int[1-7])")  # quantized, and elements below a byte, which torch does not copy
Described = Tuple[Tuple[int, ...], Any]  # shape, dtype


class Layout(NamedTuple):
    """offsets and sizes of the tensors, and the size of the object, in bytes."""

    offsets: List[int]
    sizes: List[int]
    size: int


def layout_of(sizes: Sequence[int]) -> Layout:
    offsets, end = [], 0
    for size in sizes:
        begin = -(-end // ALIGN) * ALIGN
        offsets.append(begin)
        end = begin + size
    return Layout(offsets, list(sizes), end)


class Tensors:
    """torch.Tensor of the host: every type whose elements are whole bytes, also strided ones."""

    device = "cpu"

    @staticmethod
    def check(number: int, tensor: Any) -> None:
        """TypeError for a tensor that cannot travel, which says what to return in its place."""
        import torch
        which = f"tensor {number} ({str(tensor.dtype).split('.')[-1]}, shape {tuple(tensor.shape)})"
        if tensor.device.type != "cpu":
            raise TypeError(f"{which} is on device {tensor.device}, and the transport sarissa takes tensors in the memory "
                            "of the host: return tensor.cpu()")
        if tensor.layout != torch.strided or tensor.is_nested:
            layout = "nested" if tensor.is_nested else str(tensor.layout).split(".")[-1]
            raise TypeError(f"{which} has the layout {layout}, and the transport sarissa takes dense tensors: return "
                            "its parts, such as its indices() and values(), or tensor.to_dense()")
        if REFUSED.fullmatch(str(tensor.dtype)):
            raise TypeError(f"{which} has a dtype whose bytes alone do not say its values: return it as another dtype, "
                            "such as tensor.dequantize(), or tensor.view(torch.uint8)")

    @staticmethod
    def described(tensor: Any) -> Described:
        return tuple(tensor.shape), tensor.dtype

    @staticmethod
    def nbytes(described: Described) -> int:
        return math.prod(described[0]) * int(described[1].itemsize)

    @staticmethod
    def write(tensor: Any, memory: memoryview) -> None:
        """Copies it once, in C's order. memory has its size and is not empty."""
        import torch
        there = torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)
        there.copy_(tensor.detach())

    @staticmethod
    def empty(described: Described) -> Any:
        import torch
        return torch.empty(described[0], dtype=described[1])

    @staticmethod
    def memory(tensor: Any) -> Any:
        """The bytes of a contiguous tensor of the host, writable, as an array of u1."""
        import torch
        return tensor.detach().reshape(-1).view(torch.uint8).numpy()

    @staticmethod
    def is_direct(target: Any) -> bool:
        """Whether memory() of a caller's tensor is at hand."""
        return bool(target.device.type == "cpu" and target.is_contiguous())

    @staticmethod
    def copy(target: Any, tensor: Any) -> None:
        target.copy_(tensor)


class Arrays:
    """numpy.ndarray of every type without Python objects."""

    device = "cpu"

    @staticmethod
    def check(number: int, array: Any) -> None:
        if array.dtype.hasobject:
            raise TypeError(f"array {number} ({array.dtype}, shape {array.shape}) has Python objects, and the transport "
                            "sarissa_numpy takes arrays of plain values: convert it with array.astype(...)")

    @staticmethod
    def described(array: Any) -> Described:
        return array.shape, array.dtype

    @staticmethod
    def nbytes(described: Described) -> int:
        return math.prod(described[0]) * int(described[1].itemsize)

    @staticmethod
    def write(array: Any, memory: memoryview) -> None:
        import numpy
        numpy.copyto(numpy.frombuffer(memory, array.dtype).reshape(array.shape), array)

    @staticmethod
    def empty(described: Described) -> Any:
        import numpy
        return numpy.empty(*described)

    @staticmethod
    def memory(array: Any) -> Any:
        return array.reshape(-1).view("u1")

    @staticmethod
    def is_direct(target: Any) -> bool:
        return bool(target.flags.c_contiguous and target.flags.writeable)

    @staticmethod
    def copy(target: Any, array: Any) -> None:
        target[...] = array


def parts(layout: Layout, begin: int, end: int) -> Iterator[Tuple[int, int, int, int]]:
    """The bytes of tensors from begin to end of the object: (tensor, first byte in it, begin and end in the object)."""
    for number in range(max(0, bisect.bisect_right(layout.offsets, begin) - 1), len(layout.offsets)):
        offset = layout.offsets[number]
        first, last = max(begin, offset), min(end, offset + layout.sizes[number])
        if offset >= end:
            return
        if first < last:
            yield number, first - offset, first, last
