# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions: one class per error code of the C library, each with the node's own words. The
extension raises them through error(). They are pickled as every other exception is."""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Optional, Sequence, Type


class Error(OSError):
    """errno as in the C library's documentation; the text names the object, says what is wrong and
    what to do. Where Python has an exception for the errno it is one of that class as well:
    TimeoutError..."""


class InvalidArgument(Error, ValueError):
    """An argument does not hold (EINVAL), of the call or of the reduce that it asks for, or is too long (E2BIG)."""


class PartialError(Error):
    """A part of the directory does not answer (EHOSTUNREACH), so what is asked for may exist all
    the same. missing: the numbers of the nodes that keep this part. found: what ls() has found all
    the same."""

    missing: Sequence[int] = ()
    found: Sequence[Any] = ()


class Unavailable(Error, LookupError):
    """The object cannot be had now. It is NotFound with a timeout of 0, and TimedOut with any other."""


class NotFound(Unavailable, FileNotFoundError):
    """Nobody has such an object, and the call did not wait (timeout 0) or never does (ENOENT)."""


class TimedOut(Unavailable, TimeoutError):
    """The time is over (ETIMEDOUT); the words say what was waited for."""


class Exists(Error, FileExistsError):
    """The name is in use, by other bytes or by a reduce (EEXIST)."""


class StoreFull(Error):
    """The store, or a table, has no room (ENOSPC)."""


class QuotaExceeded(StoreFull):
    """This user has as many bytes, or objects, on this node as it may have (EDQUOT)."""


class OutOfMemory(Error, MemoryError):
    """This process has no memory, or no room for addresses (ENOMEM)."""


class StorageError(Error):
    """A disk of the node fails (EIO)."""


class TooLarge(Error):
    """Larger than the whole store (EFBIG)."""


class NameTooLong(Error, ValueError):
    """More than 255 bytes (ENAMETOOLONG)."""


class Deleted(Error):
    """The object was deleted or evicted, or its writer gave it up (ESTALE). Of a lease or a member of a group: it has
    ended."""


class Lost(Error):
    """The object, or a part of it, is lost with nodes that died: put it again (ENODATA). The cluster knows this for 30 s
    after their death; then the object is as if nobody had put it."""


class Restarted(Error):
    """Another generation takes the object's place: get it again (ERESTART)."""


class Cancelled(Error):
    """The operation was cancelled, or what it was to make was deleted (ECANCELED)."""


class Late(Error):
    """The round of this contribution has closed, and the group's policy refuses it (ETIME)."""


class TooManyViews(Error):
    """More than 1,024 views and writers on one connection (EMFILE). A Node opens further connections by itself, so
    that only the limits of the node count."""


class InUse(Error):
    """An operation of a queue has this member or buffer, or another process has this rank of a communicator (EBUSY)."""


class ClockAhead(Error):
    """The clock of a node is more than an hour ahead (ERANGE); the words name the nodes."""


class OutOfRange(Error, IndexError):
    """The object has no such bytes, or has more than there is room for (ERANGE of get_into and get_ranges)."""


class Unsupported(Error):
    """The switch cannot compute that (ENOTSUP)."""


class Unreachable(Error, ConnectionError):
    """No switch answers at this address (ENETUNREACH)."""


class NoDevice(Error):
    """There is no CUDA driver, or no such GPU (ENODEV)."""


class DeviceError(Error):
    """The CUDA driver reports an error, which the words name (EREMOTEIO)."""


class Interrupted(Error, InterruptedError):
    """A signal has ended the call (EINTR). Where its handler raises, that exception comes instead."""


class NotPickled(Error, ValueError):
    """get_object() of an object that put_object() has not stored, or that is damaged (EBADMSG)."""


class Busy(Error, BlockingIOError):
    """The node, or the connection, has too much at hand: try again later (EAGAIN)."""


class NoNode(Error, ConnectionError):
    """No node runs here, or it has gone (ECONNREFUSED, ENOTCONN)."""


class Refused(NoNode, ConnectionRefusedError):
    """No node runs at this socket path (ECONNREFUSED)."""


class NoAccess(Error, PermissionError):
    """This user may not open the node's socket (EACCES), or may not ask for that (EPERM)."""


class VersionMismatch(Error):
    """The package and the node speak different versions (EPROTONOSUPPORT, EPROTO)."""


class Closed(Error, ValueError):
    """The node is closed, perhaps by another thread while this one waited (ESHUTDOWN)."""

    def __init__(self, number: int = errno.ESHUTDOWN,
                 text: str = "the node is closed: open another one") -> None:
        super().__init__(number, text)


class WaitWarning(UserWarning):
    """A call has waited for five seconds; the words say for what."""


KINDS: Dict[int, Type[Error]] = {
    errno.EINVAL: InvalidArgument, errno.E2BIG: InvalidArgument, errno.EHOSTUNREACH: PartialError, errno.ENOENT: NotFound,
    errno.ETIMEDOUT: TimedOut, errno.EEXIST: Exists, errno.ENOSPC: StoreFull, errno.EFBIG: TooLarge,
    errno.ENAMETOOLONG: NameTooLong, errno.ESTALE: Deleted, errno.ENODATA: Lost,
    errno.ERESTART: Restarted, errno.ECANCELED: Cancelled, errno.EMFILE: TooManyViews, errno.ETIME: Late,
    errno.EAGAIN: Busy, errno.ECONNREFUSED: Refused, errno.ENOTCONN: NoNode, errno.EACCES: NoAccess,
    errno.EPERM: NoAccess,
    errno.EPROTONOSUPPORT: VersionMismatch, errno.EPROTO: VersionMismatch, errno.ESHUTDOWN: Closed,
    errno.EDQUOT: QuotaExceeded, errno.ENOMEM: OutOfMemory, errno.EIO: StorageError, errno.EBUSY: InUse,
    errno.ERANGE: ClockAhead, errno.ENOTSUP: Unsupported, errno.ENETUNREACH: Unreachable, errno.EINTR: Interrupted,
    errno.ENODEV: NoDevice, errno.EREMOTEIO: DeviceError,
}


def error(number: int, words: bytes, missing: List[int], name: Optional[bytes], ident: bytes,
          found: Any) -> Error:
    """What the extension raises. name: what the caller calls the object of which C knows the id."""
    text = words.decode("utf-8", "replace")
    if name:
        shown = "".join(c if c.isprintable() else "?" for c in name.decode("utf-8", "replace"))
        text = text.replace(f"id:{ident.hex()}", f"'{shown}'")
    made = KINDS.get(number, Error)(number, text)
    if isinstance(made, PartialError):
        made.missing = missing
        if found is not None:
            made.found = found
    return made
