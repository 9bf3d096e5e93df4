# SPDX-License-Identifier: BSD-3-Clause
"""Lease: what objects live by. An object that a lease has ever held is deleted everywhere when the last
of its leases lets it go or ends, also because its process was killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Type

from . import _operations as operations
from ._waits import end_block

if TYPE_CHECKING:
    from ._names import Name
    from ._node import Node
    from ._results import Shape
    from ._streams import Writer


class Lease:
    """Made by Node.lease(). It goes on when the node's control is restarted. As a context manager it
    ends with the block, and what it holds alone goes.

    >>> with node.lease(ttl=10) as lease:
    ...     lease.put("for a while", b"x")
    ...     node.info("for a while").leases
    1
    """

    def __init__(self, node: Node, maker: Node, number: int, name: Optional[str], ttl: float) -> None:
        self._node, self._maker = node, maker
        self.name, self.ttl, self.number = name, ttl, number
        self.ended = False
        maker._connections.use_lease(number)

    def put(self, name: Name, data: Any) -> None:
        """Node.put of an object that the lease holds from its first moment on. One with the same bytes that exists
        already is held only if another lease holds it: hold() it."""
        self._maker.put(name, data)

    def create(self, name: Name, size: Optional[int] = None, dtype: Any = None,
               shape: Optional[Shape] = None) -> Writer:
        """Node.create of an object that the lease holds."""
        return self._maker.create(name, size, dtype, shape)

    def hold(self, name: Name) -> None:
        """Holds an object that exists, such as one of put_object() or the result of a reduce."""
        self._node._run(operations.hold(self.number, name))

    def drop(self, name: Name) -> None:
        """Lets it go. It is deleted everywhere unless another lease holds it."""
        self._node._run(operations.drop(self.number, name))

    def end(self) -> None:
        """Now. What no other lease holds is being deleted when this returns. Deleted when it has ended already."""
        self.ended = True
        try:
            self._node._run(operations.lease_end(self.number))
        finally:
            self._maker.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        if not self.ended:
            end_block(self.end, kind is not None)
