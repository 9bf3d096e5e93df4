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

import errno
import pickle
import struct
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Sequence, Tuple

from ._errors import NotPickled

if TYPE_CHECKING:
    from ._names import Name

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


def parts_of(value: Any, dumps: Callable[..., bytes] = pickle.dumps) -> Parts:
    """dumps: another one's, such as cloudpickle's."""
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
    pickled = dumps(value, 5, buffer_callback=beside)
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
