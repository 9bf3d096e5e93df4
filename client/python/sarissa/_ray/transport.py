# SPDX-License-Identifier: BSD-3-Clause
"""The tensor transport "sarissa" of Ray Direct Transport: the tensors of a result are one object in the store of the
sender's node, and each receiver gets it from its own node. sarissa.ray registers it. Every process that Ray gives it to
imports this file, with the first message at the latest. It knows Ray's interface, and leaves bytes to memory.py and
objects to outgoing.py and incoming.py."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Type

import ray
from ray import exceptions, experimental

from .. import _refs
from .._errors import Error, NoNode
from .._node import Node
from . import memory, place
from .incoming import Incoming
from .outgoing import Outgoing

ABORTED_S = 60.0  # for which an abort waits for its receive to begin
ABORTED_MAX = 1024
TransportError: Any = getattr(exceptions, "RayDirectTransportError", exceptions.RaySystemError)


@dataclass
class Communicator(experimental.CommunicatorMetadata):
    """Nothing: receivers need no more than the metadata of the tensors."""


@dataclass
class Metadata(experimental.TensorTransportMetadata):
    """name: of the object; None when the tensors have no bytes. sender: the Ray node of the process that has put it."""

    name: Optional[str] = None
    sender: str = ""

    def __reduce__(self) -> Tuple[Any, ...]:
        return arrived, (self.tensor_meta, self.tensor_device, self.name, self.sender)


def arrived(*fields: Any) -> Metadata:
    """In another process, which Ray may not have told of the transport, such as an actor that it has restarted."""
    register()
    return Metadata(*fields)


def open_node() -> Node:
    """The node of this process. One that sarissa.ray.init() has begun to start is waited for."""
    path = place.socket_path()
    until = time.monotonic() + (0 if path == os.environ.get("SARISSA_SOCKET") else place.JOINS_S)
    while True:
        try:
            return _refs.node_of(path)
        except NoNode as error:
            if time.monotonic() >= until:
                raise NoNode(error.errno, f"{place.describe()}: no node of sarissa answers here: call sarissa.ray.init() in "
                                          f"the driver, or set SARISSA_SOCKET ({error.strerror})") from None
        time.sleep(0.05)


OUTGOING = Outgoing(open_node, place.ttl)


class Request:
    """What Ray holds while tensors arrive; it fits ray's FetchRequest. When nobody holds it, they are given up."""

    def __init__(self, obj_id: str, tensors: List[Any], incoming: Optional[Incoming], sender: str) -> None:
        self.obj_id, self.tensors, self.incoming, self.sender = obj_id, tensors, incoming, sender
        self.copies: List[Tuple[Any, Any]] = []  # (target, tensor): to be made at the end


class Transport(experimental.TensorTransportManager):
    """Of torch.Tensor. Ray makes one in each process."""

    NAME = "SARISSA"
    KIND: Any = memory.Tensors

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: Dict[str, Metadata] = {}
        self._receives: Dict[str, List[Incoming]] = {}
        self._aborted: Dict[str, float] = {}  # receives that have not begun; when they were aborted

    def tensor_transport_backend(self) -> str:
        return self.NAME

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True  # what is wrong with its node is said by its first call that needs it

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: Optional[str] = None) -> Communicator:
        return Communicator()

    # --- the sender

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: List[Any]) -> Metadata:
        """Puts the tensors as they are now. A second call with the same id, of a task that Ray repeats, puts nothing."""
        with self._lock:
            if obj_id in self._sent:
                return self._sent[obj_id]
        try:
            made = self._put(rdt_object)
        except BaseException:
            unkeep(obj_id)
            raise
        with self._lock:
            self._sent[obj_id] = made
        return made

    def _put(self, rdt_object: List[Any]) -> Metadata:
        for number, tensor in enumerate(rdt_object):
            self.KIND.check(number, tensor)
        described = [self.KIND.described(tensor) for tensor in rdt_object]
        layout = memory.layout_of([self.KIND.nbytes(one) for one in described])

        def fill(room: memoryview) -> None:
            for tensor, offset, size in zip(rdt_object, layout.offsets, layout.sizes):
                if size:
                    self.KIND.write(tensor, room[offset:offset + size])

        name = OUTGOING.put(layout.size, fill) if layout.size else None
        return Metadata(described, self.KIND.device if rdt_object else None, name,
                        ray.get_runtime_context().get_node_id())

    def send_multiple_tensors(self, tensors: List[Any], tensor_transport_metadata: Any,
                              communicator_metadata: Any) -> None:
        raise NotImplementedError("the transport sarissa is one-sided: receivers get what is in the store")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: List[Any]) -> None:
        with self._lock:
            self._sent.pop(obj_id, None)
        if tensor_transport_meta.name is not None:
            OUTGOING.drop(tensor_transport_meta.name)

    # --- the receiver

    def recv_multiple_tensors(self, obj_id: str, tensor_transport_metadata: Any, communicator_metadata: Any,
                              target_buffers: Optional[List[Any]] = None) -> List[Any]:
        return self.wait_fetch_complete(self.fetch_multiple_tensors(
            obj_id, tensor_transport_metadata, communicator_metadata, target_buffers))

    def fetch_multiple_tensors(self, obj_id: str, tensor_transport_metadata: Any, communicator_metadata: Any,
                               target_buffers: Optional[List[Any]] = None) -> Request:
        """Begins, so that several arrive side by side."""
        meta, kind = tensor_transport_metadata, self.KIND
        layout = memory.layout_of([kind.nbytes(one) for one in meta.tensor_meta])
        targets = target_buffers or [None] * len(meta.tensor_meta)
        tensors = [target if target is not None and kind.is_direct(target) else kind.empty(one)
                   for target, one in zip(targets, meta.tensor_meta)]
        request = Request(obj_id, list(target_buffers or tensors), None, meta.sender)
        request.copies = [pair for pair in zip(targets, tensors) if pair[0] is not None and pair[0] is not pair[1]]
        if meta.name is None:
            return request
        with said(obj_id, meta.sender):
            request.incoming = Incoming(open_node(), meta.name, layout, [kind.memory(one) for one in tensors])
        with self._lock:
            self._receives.setdefault(obj_id, []).append(request.incoming)
            if time.monotonic() < self._aborted.pop(obj_id, 0.0) + ABORTED_S:
                request.incoming.abort()
        return request

    def wait_fetch_complete(self, fetch_request: Any, timeout: float = -1) -> List[Any]:
        """TimeoutError leaves it under way, until Ray lets go of the request."""
        incoming = fetch_request.incoming
        if incoming is not None:
            try:
                with said(fetch_request.obj_id, fetch_request.sender):
                    incoming.wait(None if timeout < 0 else timeout)
            finally:
                self._forget(fetch_request.obj_id, incoming)
        for target, tensor in fetch_request.copies:
            self.KIND.copy(target, tensor)
        return list(fetch_request.tensors)

    def _forget(self, obj_id: str, incoming: Incoming) -> None:
        with self._lock:
            left = [one for one in self._receives.get(obj_id, []) if one is not incoming]
            if left:
                self._receives[obj_id] = left
            else:
                self._receives.pop(obj_id, None)

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        """In another thread than the receive, which raises then. One that has not begun yet does when it begins."""
        with self._lock:
            for incoming in self._receives.get(obj_id, []):
                incoming.abort()
            if obj_id not in self._receives:
                self._aborted[obj_id] = time.monotonic()
                while len(self._aborted) > ABORTED_MAX:
                    del self._aborted[next(iter(self._aborted))]


class ArrayTransport(Transport):
    """Of numpy.ndarray."""

    NAME = "SARISSA_NUMPY"
    KIND = memory.Arrays


def unkeep(obj_id: str) -> None:
    """Ray 2.60 keeps tensors whose task has failed for as long as the actor lives."""
    with contextlib.suppress(AttributeError, AssertionError):
        store = ray._private.worker.global_worker.rdt_manager.rdt_store
        if store.is_primary_copy(obj_id):
            store.pop_object(obj_id)


class said:
    """Errors of Sarissa in the block as Ray's own, with both ends in their words. TimeoutError passes."""

    def __init__(self, obj_id: str, sender: str) -> None:
        self._obj_id, self._sender = obj_id, sender

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Error) and not isinstance(error, TimeoutError):
            raise TransportError(f"the tensors of object {self._obj_id} have not come from Ray node {self._sender}: "
                                 f"{error.strerror}") from error


def register() -> List[str]:
    """The names, in lower case. What is registered already stays. Without torch there is none for it."""
    import numpy
    kinds: List[Tuple[Type[Transport], Any]] = [(ArrayTransport, numpy.ndarray)]
    with contextlib.suppress(ImportError):
        import torch
        kinds.insert(0, (Transport, torch.Tensor))
    for transport, data_type in kinds:
        with contextlib.suppress(ValueError):  # registered already
            experimental.register_tensor_transport(transport.NAME, [transport.KIND.device], transport, data_type)
    return [transport.NAME.lower() for transport, _ in kinds]
