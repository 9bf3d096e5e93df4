# SPDX-License-Identifier: BSD-3-Clause
"""Python objects as objects: a pickle of protocol 5, and beside it the buffers that it refers to. All in one object,
little-endian:

    bytes 0 to 7    b"SARPKL5\\0"
    8 to 11         1: the version
    12 to 15        B: how many buffers
    16 to 23        the bytes of the pickle
    then            8 bytes for each buffer: its length
    then            the pickle
    then            each buffer, from the next multiple of 64 on, with zeros before it"""

from __future__ import annotations

import contextlib
import errno
import pickle
import struct
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Sequence, Tuple

from ._errors import Exists, NotFound, NotPickled
from ._leases import ttl_ns
from ._streams import Writer

if TYPE_CHECKING:
    from ._names import Name
    from ._node import Node

MAGIC, VERSION, ALIGN = b"SARPKL5\0", 1, 64
HEAD = struct.Struct("<8sIIQ")
CREATED_BYTES = 1 << 20  # from here on without a copy beside the store


class Layout(NamedTuple):
    """Where the parts are: first and last byte of the pickle and of each buffer, and of all."""

    pickle: Tuple[int, int]
    buffers: List[Tuple[int, int]]
    size: int


def layout(pickled: int, lengths: Sequence[int]) -> Layout:
    begin = HEAD.size + 8 * len(lengths)
    end, places = begin + pickled, []
    first = (begin, end)
    for length in lengths:
        at = -(-end // ALIGN) * ALIGN
        end = at + length
        places.append((at, end))
    return Layout(first, places, end)


class Parts(NamedTuple):
    """What is to be stored."""

    head: bytes
    pickle: bytes
    buffers: List[memoryview]
    layout: Layout

    def write(self, memory: memoryview) -> None:
        begin, at = self.layout.pickle
        memory[:begin] = self.head
        memory[begin:at] = self.pickle
        for (begin, end), buffer in zip(self.layout.buffers, self.buffers):
            memory[at:begin] = bytes(begin - at)
            memory[begin:end] = buffer
            at = end

    def joined(self) -> bytearray:
        memory = bytearray(self.layout.size)
        self.write(memoryview(memory))
        return memory


def parts_of(value: Any) -> Parts:
    buffers: List[memoryview] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        """False: out of the pickle."""
        try:
            raw = buffer.raw()
        except BufferError:  # it is not contiguous
            return True
        if not raw.nbytes:
            return True
        buffers.append(raw)
        return False
    pickled = pickle.dumps(value, 5, buffer_callback=beside)
    lengths = [buffer.nbytes for buffer in buffers]
    head = HEAD.pack(MAGIC, VERSION, len(buffers), len(pickled)) + struct.pack(f"<{len(lengths)}Q", *lengths)
    return Parts(head, pickled, buffers, layout(len(pickled), lengths))


def refuse(name: Name, what: str) -> NotPickled:
    return NotPickled(errno.EBADMSG, f"{name!r} {what}: get() gives its bytes")


def value_of(name: Name, memory: memoryview) -> Any:
    """The object in these bytes, of which it keeps what its buffers are."""
    if memory.nbytes < HEAD.size or memory[:len(MAGIC)] != MAGIC:
        raise refuse(name, "was not put by put_object()")
    _, version, count, pickled = HEAD.unpack_from(memory)
    if version != VERSION:
        raise refuse(name, f"is a pickled object of version {version}, and this package reads version {VERSION}")
    if count > (memory.nbytes - HEAD.size) // 8:
        raise refuse(name, f"has {memory.nbytes} bytes, too few for {count} buffers: it is damaged")
    found = layout(pickled, struct.unpack_from(f"<{count}Q", memory, HEAD.size))
    if found.size != memory.nbytes:
        raise refuse(name, f"has {memory.nbytes} bytes, and its head says {found.size}: it is damaged")
    begin, end = found.pickle
    return pickle.loads(memory[begin:end], buffers=[memory[begin:end] for begin, end in found.buffers])


def put_object(self: Node, name: Name, value: Any, ttl: Optional[float] = None) -> None:
    """Stores any object that pickle takes. What has a buffer of its own in the pickle's protocol 5, such as
    arrays of numpy at any depth, is copied once, into the store. One of that name with the same bytes may
    exist already; with others: FileExistsError. ttl: expire() so many seconds from now.

    >>> node.put_object("model", {"weights": numpy.ones(3), "step": 7})
    >>> node.get_object("model")["weights"].tolist()
    [1.0, 1.0, 1.0]
    """
    lifetime, parts = None if ttl is None else ttl_ns(ttl), parts_of(value)
    if parts.layout.size < CREATED_BYTES or not created(self, name, parts):
        with self._connections.room() as handle:
            handle.put(name, parts.joined())
    if lifetime is not None:
        with contextlib.suppress(NotFound):  # somebody has deleted it already
            self._open().expire(name, lifetime)


def created(node: Node, name: Name, parts: Parts) -> bool:
    """False: there is an object of that name, and put() has to compare."""
    try:
        with node._connections.room() as handle:
            creation = handle.create(name, parts.layout.size)
    except Exists:
        return False
    with Writer(creation, parts.layout.size) as writer:
        assert writer.data is not None
        parts.write(writer.data)
    return True


def get_object(self: Node, name: Name, timeout: Optional[float] = None) -> Any:
    """The object that put_object() has stored, waiting up to timeout seconds for it (None: no limit). Its
    arrays are read-only views into the node's memory: nothing is copied, and the object stays pinned until
    the last of them has gone. NotPickled when it was put by another call.

    Unpickling runs code that the program that put the object has chosen: get objects of programs that you trust."""
    return value_of(name, memoryview(self._view(name, timeout)))  # type: ignore[arg-type]
