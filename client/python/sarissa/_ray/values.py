# SPDX-License-Identifier: BSD-3-Clause
"""Values as objects of the store, and back: arrays of numpy and tensors of torch as arrays, all else as a pickle with
its buffers beside it, made by Ray's cloudpickle, so that functions and classes of a script travel. It knows no Ref."""

from __future__ import annotations

import io
import sys
from typing import Any, Callable, Optional

import ray.cloudpickle

from .. import _objects
from .._arrays import Tensor
from .._names import Name
from .._node import Node
from .._operations import put_parts

NUMPY, TORCH, OBJECT = "numpy", "torch", "object"  # kinds of values


def torch() -> Any:
    """The module, where this process has it already."""
    return sys.modules.get("torch")


def is_tensor(value: Any) -> bool:
    return torch() is not None and isinstance(value, torch().Tensor)


def _is_plain(tensor: Any) -> bool:
    """One that is its elements, and nothing more."""
    return bool(type(tensor) is torch().Tensor and tensor.device.type == "cpu" and not tensor.requires_grad
                and tensor.layout is torch().strided and not tensor.is_conj() and not tensor.is_neg())


def _tensor(array: Any) -> Any:
    import torch as module
    return module.from_numpy(array.copy())  # the array is read-only memory of the store


class Pickler(ray.cloudpickle.CloudPickler):
    def reducer_override(self, value: Any) -> Any:
        """Tensors as arrays of numpy, whose memory is not copied into the pickle."""
        if is_tensor(value) and _is_plain(value):
            try:
                return _tensor, (value.numpy(),)
            except TypeError:  # numpy has no such type
                pass
        return super().reducer_override(value)


def dumps(value: Any, protocol: int, buffer_callback: Callable[[Any], Any]) -> bytes:
    with io.BytesIO() as file:
        Pickler(file, protocol=protocol, buffer_callback=buffer_callback).dump(value)
        return file.getvalue()


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def check(value: Any) -> None:
    """TypeError for a tensor of a device."""
    if is_tensor(value) and value.device.type != "cpu":
        raise TypeError(f"the tensor is on {value.device}, and objects are in the memory of hosts: put tensor.cpu()")


def put(node: Node, name: Name, value: Any) -> str:
    """By a connection that a lease has: the kind."""
    check(value)
    kind = NUMPY if is_array(value) else TORCH if is_tensor(value) and _is_plain(value) else OBJECT
    if kind != OBJECT:
        try:
            node.put(name, value)
            return kind
        except TypeError:  # it would not come back as it is
            pass
    node._run(put_parts(name, _objects.parts_of(value, dumps)))
    return OBJECT


def value_of(name: Name, got: Any, kind: Optional[str]) -> Any:
    """What get() of a Node has brought. kind: TORCH gives a tensor of the caller's own."""
    if isinstance(got, memoryview):
        return _objects.value_of(name, got) if got[:len(_objects.MAGIC)] == _objects.MAGIC else got
    if kind != TORCH:
        return got
    import torch as module
    return module.from_dlpack(got).clone() if isinstance(got, Tensor) else module.from_numpy(got.copy())
