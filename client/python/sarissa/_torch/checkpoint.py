# SPDX-License-Identifier: BSD-3-Clause
"""CheckpointTransport: torchft's interface for the state that a replica which comes back gets from another one. The
state is one object of the store, which all that recover load along one tree, while it is written. It does not import
torchft, and is one of its transports where the program has."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from datetime import timedelta
from typing import Any, Callable, List, Optional

from .._errors import Deleted, Error, Unavailable
from .._leases import Lease
from .._node import Node
from .._refs import node_of
from . import state as states

LEASE_S, RETRY_S = 10.0, 0.05


class CheckpointTransport:
    """For torchft.Manager(checkpoint_transport=sarissa.torch.CheckpointTransport()). node: None: that of this process, on
    both sides. state_dict: called by a receiver; the tensors of the state dict that it returns are filled in place where
    they fit. pickle: values other than tensors and plain ones, such as a DTensor, are pickled, as torchft's own transports
    do with all; unpickling runs code of the sender, so pickle=False is for senders that are not trusted."""

    def __init__(self, node: Optional[Node] = None, state_dict: Optional[Callable[[], Any]] = None, pickle: bool = True) -> None:
        interface = sys.modules.get("torchft.checkpointing.transport")
        if interface is not None:
            interface.CheckpointTransport.register(type(self))
        self._node = node_of(None) if node is None else node
        self._state_dict, self._pickle = state_dict, pickle
        self._prefix = f"torchft/{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._lease: Optional[Lease] = None

    def metadata(self) -> str:
        """What recv_checkpoint() of another replica needs."""
        return self._prefix

    def send_checkpoint(self, dst_ranks: List[int], step: int, state_dict: Any, timeout: timedelta) -> None:
        """Copies the state into the store of this node, where receivers may have it meanwhile. It returns when the copy is
        made: the state may be changed then. A second call for a step that is still there does nothing."""
        with self._lock:
            if self._lease is None:
                self._lease = self._node.lease(ttl=LEASE_S)
            try:
                states.save(state_dict, f"{self._prefix}/{step}", node=self._lease, pickle=self._pickle)
            except FileExistsError:
                pass

    def disallow_checkpoint(self) -> None:
        """The state is being deleted when this returns. torchft calls it when all have what they need."""
        with self._lock:
            lease, self._lease = self._lease, None
            if lease is not None:
                try:
                    lease.end()
                except Deleted:  # it has ended with the node
                    pass

    def recv_checkpoint(self, src_rank: int, metadata: str, step: int, timeout: timedelta) -> Any:
        """The state of that step. TimeoutError: nobody has sent it in time."""
        name, seconds = f"{metadata}/{step}", timeout.total_seconds()
        into, until = None if self._state_dict is None else self._state_dict(), time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            try:
                return states.load(name, into=into, node=self._node, timeout=left, pickle=self._pickle)
            except (Deleted, Unavailable) as error:  # the sender may send it once more
                if left == 0:
                    raise TimeoutError(f"timed out after {seconds:g} s: no checkpoint of step {step} from rank {src_rank} "
                                       f"({error})") from None
                time.sleep(min(RETRY_S, left))

    def shutdown(self, wait: bool = True) -> None:
        try:
            self.disallow_checkpoint()
        except Error:  # the node has gone, and the state with it
            pass
