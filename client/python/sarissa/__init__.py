# SPDX-License-Identifier: BSD-3-Clause
"""Objects in the memory of a cluster's nodes, from Python.

    >>> import numpy, sarissa
    >>> node = sarissa.open()
    >>> node.put("weights", numpy.ones((1000, 1000)))      # or anything with the buffer protocol
    >>> node.get("weights", timeout=10).shape              # a read-only array, no copy
    (1000, 1000)
    >>> node.reduce("sum", ["a", "b"], dtype="f32")        # wherever they are, or will be put
    >>> node.put("a", numpy.full(2, 1, "f4"))
    >>> node.put("b", numpy.full(2, 2, "f4"))
    >>> node.get_array("sum", "f32").tolist()
    [3.0, 3.0]
    >>> node.close()                                       # or: with sarissa.open() as node

A view keeps its object pinned in the node's memory until the last view of it (slices and arrays
included) has gone; nothing is to be released by hand. One node may serve many threads; the
interpreter runs on while a call waits; Ctrl-C ends every call within a second, also where the node does
not answer: what was being made is given up. After fork a child opens its own.

close() may be called while other threads wait: they get sarissa.Closed. When the node's control
process is killed and started again nothing is to be done: calls go on there by themselves, views
and writers stay as they are.

numpy is needed for arrays only."""

from importlib.util import find_spec

if find_spec(__name__ + "._sarissa") is None:
    raise ImportError(f"the package in {__path__[0]} has no extension: it is a source folder. Build it with "
                      "scripts/setup and use build/client/python (PYTHONPATH), or install it: pip install "
                      "--no-build-isolation .")

from . import _sarissa
from ._arrays import Tensor
from ._errors import (Busy, Cancelled, ClockAhead, Closed, Deleted, DeviceError, Error, Exists, Interrupted, InUse,
                      InvalidArgument, Late, Lost, NameTooLong, NoAccess, NoDevice, NoNode, NotFound, NotPickled, OutOfMemory,
                      OutOfRange, PartialError, QuotaExceeded, Refused, Restarted, StorageError, StoreFull, TimedOut, TooLarge,
                      TooManyViews, Unavailable, Unreachable, Unsupported, VersionMismatch, WaitWarning)
from ._names import DTYPES, OPS, id_of
from ._cluster import LocalCluster
from ._ranks.communicator import Communicator
from ._groups import Contributor, Group, GroupMember, Result
from ._leases import Lease
from ._node import Node, open
from ._results import Holder, Info, Member
from ._refs import Ref, as_completed, wait
from ._streams import Reader, Writer
from ._watch import Event, Watch

__version__ = _sarissa.version

__all__ = [
    "Busy", "Cancelled", "ClockAhead", "Closed", "Communicator", "Contributor", "DTYPES", "Deleted", "DeviceError", "Error", "Event", "Exists",
    "Group", "GroupMember", "Holder", "InUse", "Info", "Interrupted", "InvalidArgument", "Late", "Lease", "LocalCluster", "Lost", "Member",
    "NameTooLong", "NoAccess", "NoDevice", "NoNode", "Node", "NotFound", "NotPickled", "OPS", "OutOfMemory", "OutOfRange", "PartialError", "QuotaExceeded",
    "Reader", "Ref", "Refused", "Restarted", "Result", "StorageError", "StoreFull", "Tensor", "TimedOut", "TooLarge",
    "TooManyViews", "Unavailable", "Unreachable", "Unsupported", "VersionMismatch", "WaitWarning", "Watch", "Writer",
    "__version__", "as_completed", "id_of", "wait",
]  # not open: `from sarissa import *` leaves Python's as it is
