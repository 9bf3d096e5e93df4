# SPDX-License-Identifier: BSD-3-Clause
"""to_device() and from_device(): objects into and out of tensors of a GPU, by sar_device_get and sar_device_put. The
store is read by the GPU itself, while the object still arrives. torch.py names them. It does not know how the CUDA
driver is called, nor what save() and load() store."""

from __future__ import annotations

from typing import Any, Optional

import torch

from .. import _arrays
from .._errors import ClockAhead, OutOfRange
from .._names import OURS, Name, timeout_ns
from .._node import Node
from .._operations import Step, Steps
from .._refs import node_of
from .tensors import DTYPES, described, size_of


def to_device(name: Name, tensor: Any, timeout: Optional[float] = None, node: Optional[Node] = None) -> Any:
    """Copies the object's bytes into a contiguous tensor of a CUDA device, while the object arrives, and returns the
    tensor: it has them then. The copies take their place in the device's current stream. timeout: seconds until the
    object has arrived; None: no limit. node: None: the one of this process.

    Errors: ValueError: the tensor is not of CUDA or not contiguous, or has more bytes than the object. OutOfRange: it
    has fewer. NoDevice: there is no CUDA driver. DeviceError: it has failed. The tensor may have been written then."""
    check("to_device", tensor)
    got = copy_to(node_of(None) if node is None else node, name, tensor.data_ptr(), size_of(tensor), stream_of(tensor), timeout)
    if got != size_of(tensor):
        raise ValueError(f"to_device: {name!r} has {got} bytes, and the tensor {size_of(tensor)} ({described([tensor])}): give "
                         "a tensor of its size")
    return tensor


def from_device(name: Name, tensor: Any, node: Optional[Node] = None) -> None:
    """Makes an object of a contiguous tensor of a CUDA device. It is an array of the tensor's dtype and shape: get() gives
    it as one. Readers may begin before this returns. node: None: the one of this process.

    Errors: as of to_device(). Exists: there is an object of that name."""
    check("from_device", tensor)
    meta = None
    if tensor.dtype in DTYPES and tensor.dim() <= _arrays.DIMENSIONS_MAX:
        meta = _arrays.write(_arrays.Meaning(OURS[DTYPES[tensor.dtype]], tuple(tensor.shape)))
    copy_from(node_of(None) if node is None else node, name, tensor.data_ptr(), size_of(tensor), stream_of(tensor), meta)


def check(call: str, tensor: Any) -> None:
    if tensor.device.type != "cuda":
        raise ValueError(f"{call}: this tensor is on {tensor.device}, and the call takes tensors of a CUDA device: use "
                         "node.get_into() and node.put() with tensor.numpy()")
    if tensor.layout is not torch.strided or not tensor.is_contiguous():
        raise ValueError(f"{call}: the elements of this tensor do not follow one another: use tensor.contiguous()")


def stream_of(tensor: Any) -> int:
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def copy_to(node: Node, name: Name, memory: int, nbytes: int, stream: int, timeout: Optional[float]) -> int:
    """Into memory of a device: the object's bytes."""
    limit = timeout_ns(timeout)

    def steps() -> Steps[int]:
        try:
            return int((yield Step("device_get", (name, memory, nbytes, stream, limit), 1, (name,), limit)))
        except ClockAhead as error:  # ERANGE means another thing here
            raise OutOfRange(*error.args) from None
    return node._run(steps())


def copy_from(node: Node, name: Name, memory: int, nbytes: int, stream: int, meta: Optional[bytes]) -> None:
    def steps() -> Steps[None]:
        yield Step("device_put", (name, memory, nbytes, stream, meta), 1)
    node._run(steps())
