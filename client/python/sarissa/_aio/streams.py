# SPDX-License-Identifier: BSD-3-Clause
"""Lease and Writer for asyncio: what _leases.py and _streams.py have, with coroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Type

from .. import _operations as operations
from .. import _leases, _streams
from . import described_by

if TYPE_CHECKING:
    import numpy

    from .._names import Name
    from .._results import Shape
    from ..aio import Node


@described_by(_streams.Writer)
class Writer:
    """As sarissa.Writer. With `async with` it is sealed, or given up, with the block."""

    def __init__(self, node: Node, writer: _streams.Writer) -> None:
        self._node, self._writer = node, writer

    @property
    def data(self) -> Optional[memoryview]:
        """Writable; None when the object is sealed or given up."""
        return self._writer.data

    @property
    def array(self) -> numpy.ndarray[Any, Any]:
        return self._writer.array

    def tell(self) -> int:
        return self._writer.tell()

    async def publish(self, ready: int) -> None:
        await self._node._in_thread(self._writer.publish, ready)

    async def write(self, piece: Any) -> int:
        count: int = await self._node._in_thread(self._writer.write, piece)
        return count

    async def flush(self) -> None:
        await self._node._in_thread(self._writer.flush)

    async def seal(self) -> None:
        await self._node._in_thread(self._writer.seal)

    async def abort(self) -> None:
        await self._node._in_thread(self._writer.abort)

    async def __aenter__(self) -> Writer:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        if self.data is not None:
            await (self.seal() if kind is None else self.abort())


@described_by(_leases.Lease)
class Lease:
    """As sarissa.Lease. With `async with` it ends with the block."""

    def __init__(self, node: Node, maker: Node, number: int, name: Optional[str], ttl: float) -> None:
        self._node, self._maker = node, maker
        self.name, self.ttl, self.number = name, ttl, number
        self.ended = False
        maker.node._connections.use_lease(number)

    async def put(self, name: Name, data: Any) -> None:
        await self._maker.put(name, data)

    async def create(self, name: Name, size: Optional[int] = None, dtype: Any = None,
                     shape: Optional[Shape] = None) -> Writer:
        return await self._maker.create(name, size, dtype, shape)

    async def hold(self, name: Name) -> None:
        await self._node._run(operations.hold(self.number, name))

    async def drop(self, name: Name) -> None:
        await self._node._run(operations.drop(self.number, name))

    async def end(self) -> None:
        self.ended = True
        try:
            await self._node._run(operations.lease_end(self.number))
        finally:
            self._maker.close()

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        if not self.ended:
            await self.end()
