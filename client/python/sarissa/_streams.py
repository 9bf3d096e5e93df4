# SPDX-License-Identifier: BSD-3-Clause
"""Objects piece by piece: Writer makes one that readers may have while it grows, Reader reads one
that grows. Node makes both."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Type

from . import _sarissa
from ._arrays import as_bytes
from ._names import Name, timeout_ns, unsigned
from ._patience import Patience
from ._waits import end_block

if TYPE_CHECKING:
    import numpy

PUBLISH_BYTES = 256 << 10  # a call to the node for so many
PIECE_BYTES = 1 << 20


class Writer:
    """An object under creation. As a context manager it is sealed at the end, and given up when an
    exception passes. No view of `data` may be left by then. One that is neither sealed nor aborted is
    given up when it and the last view of its data have gone.

    Fill `data` (or `array`) and publish() what is final, or write() piece after piece.

    >>> with node.create("piece by piece", 10) as writer:
    ...     reader = node.reader("piece by piece")   # of any process, on any node
    ...     writer.write(b"first")
    ...     writer.data[5:] = b", rest"[:5]
    5
    >>> reader.read()
    b'first, res'
    """

    def __init__(self, creation: _sarissa.Creation, size: int,
                 as_array: Optional[Callable[[Any], numpy.ndarray[Any, Any]]] = None,
                 sealing: Optional[Callable[[Any], None]] = None) -> None:
        self._creation, self._size, self._as_array = creation, size, as_array
        self._sealing = sealing
        self._written = self._published = 0
        #: writable; None when the object is sealed or given up
        self.data: Optional[memoryview] = memoryview(creation)  # type: ignore[arg-type]

    @property
    def array(self) -> numpy.ndarray[Any, Any]:
        """The memory as the array that create() was asked for; let go of it before the end."""
        if self._as_array is None:
            raise TypeError("no array: name its dtype and shape in create()")
        return self._as_array(self._creation)

    def publish(self, ready: int) -> None:
        """Bytes before ready are final: readers may have them now."""
        self._creation.publish(unsigned(ready, 64))
        self._published = max(self._published, ready)

    def write(self, piece: Any) -> int:
        """Appends bytes, which are final. Readers have them after 256 KiB, flush() or the end."""
        if self.data is None:
            raise ValueError("the object is sealed or given up already")
        with as_bytes(piece) as source:
            count = len(source)
            end = self._written + count
            if end > self._size:
                raise ValueError(f"{end} bytes are more than the object has, {self._size}: create "
                                 "a larger one")
            self.data[self._written:end] = source
        self._written = end
        if end - self._published >= PUBLISH_BYTES:
            self.publish(end)
        return count

    def flush(self) -> None:
        """Readers may have all that was written."""
        if self._written > self._published:
            self.publish(self._written)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._written

    def _end(self, how: Callable[[], None]) -> None:
        if self.data is None:
            raise ValueError("the object is sealed or given up already")
        try:
            self.data.release()
            self.data = None
            how()
        except BufferError:
            self.data = memoryview(self._creation)  # type: ignore[arg-type]
            raise BufferError("views of the object's data are still in use") from None

    def seal(self) -> None:
        """All bytes are final. The object stays until it is deleted."""
        if self._sealing is not None and self.data is not None:
            self._sealing(self.data)
        self._end(self._creation.seal)

    def abort(self) -> None:
        """Gives the object up."""
        self._end(self._creation.abort)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        if self.data is not None:
            end_block(self.seal if kind is None else self.abort, kind is not None)


class Reader(io.RawIOBase):
    """An object that may still grow, as a file that is read once from its start. Each wait takes up
    to the timeout of reader(). pieces() gives the memory itself, without a copy."""

    def __init__(self, view: _sarissa.View, timeout: Optional[float], name: Name) -> None:
        super().__init__()
        self._name = name
        self._view, self._timeout_ns = view, timeout_ns(timeout)
        self._memory = memoryview(view).toreadonly()  # type: ignore[arg-type]
        self._at = 0
        self.size: int = view.nbytes

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def wait(self, upto: int) -> int:
        """Waits until so many bytes from the start have come; says how many have."""
        upto = min(upto, self.size)
        ready = self._view.ready
        if ready >= upto:
            return ready
        handle = self._view.handle
        return handle.wait_for(self._view, upto, self._timeout_ns,
                               look=Patience(handle, [self._name], self._timeout_ns))

    def _next(self, room: int) -> memoryview:
        """What is there next, at most so many bytes; empty at the end."""
        if self.closed:
            raise ValueError("the reader is closed")
        if self._at == self.size or room == 0:
            return self._memory[:0]
        end = min(self.wait(self._at + 1), self._at + room)
        piece = self._memory[self._at:end]
        self._at = end
        return piece

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer).cast("B") as into:
            piece = self._next(len(into))
            into[:len(piece)] = piece
            return len(piece)

    def pieces(self, room: int = PIECE_BYTES) -> Iterator[memoryview]:
        """The rest as read-only views of at most room bytes, each as soon as it has come."""
        while len(piece := self._next(room)) > 0:
            yield piece

    def close(self) -> None:
        if not self.closed:
            self._memory = memoryview(b"")
            del self._view
        super().close()
