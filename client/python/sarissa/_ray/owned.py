# SPDX-License-Identifier: BSD-3-Clause
"""How long objects live. The process that makes the first Ref of an object owns it: it holds it by its lease, and
deletes it when no Ref of it is left, here or anywhere. Ray counts for that: a Ref that has been pickled has a Ray
reference inside. A process that puts an object for a Ref of another process holds it until the owner does.

One thread of the process does what waits. Ref.__del__ only hands it a name, as the garbage collector may run
anywhere."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set

import ray

from .._errors import Error, NotFound
from .._names import Name
from . import place

if TYPE_CHECKING:
    from .refs import Origin, Ref

LOOK_S = 0.25  # how often the thread looks whether Refs are in scope, and objects there
ROOM_S, ROOM_LOOK_S = 2.0, 0.05  # a full store is tried again for so long, so often
HANDOVER_S = 60.0  # an object that its owner does not take within is let go
LOCK = threading.RLock()


class Owned:
    """One object. refs: of this process. token: the Ray reference inside pickled Refs, until this process has none, or
    nobody has put the object for a while; scopes: hex numbers of all that there were. held: the lease has the object,
    comes: something will say when it is there. nowhere: since when no other process has had a Ref of what nobody has
    put. keep: Refs that it needs."""

    def __init__(self, name: Name) -> None:
        self.name, self.refs = name, 0
        self.token: Any = None
        self.scopes: Set[str] = set()
        self.nowhere: Optional[float] = None
        self.held = self.comes = False
        self.keep: List[Any] = []


_names: Dict[Name, Owned] = {}
_kept: List[Any] = []  # Refs inside objects of other owners
_handed: Dict[Name, float] = {}  # put for others: until when the lease of this process holds them at most
_ending: Dict[Name, Owned] = {}  # without a Ref in this process: of its thread
_events: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
_thread: Optional[threading.Thread] = None
_pid = os.getpid()


def _begin() -> None:
    """The thread of this process. A child after fork has nothing of it."""
    global _thread, _pid
    with LOCK:
        if _pid != os.getpid():
            _pid, _thread = os.getpid(), None
            forget()
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_serve, daemon=True, name="sarissa-ray-refs")
            _thread.start()


def own(name: Name) -> None:
    _begin()
    with LOCK:
        if name in _names:
            raise ValueError(f"{name!r} is the name of another Ref of this process: take another one")
        _names[name] = Owned(name)


def count(ref: Ref) -> None:
    with LOCK:
        entry = _names.get(ref.name)
        if entry is not None:
            entry.refs += 1


def gone(ref: Ref) -> None:
    if ref.name in _names:
        _events.put(ref.name)


def later(what: Callable[[], None]) -> None:
    """In the thread."""
    _begin()
    _events.put(what)


def bind(ref: Ref) -> None:
    """The object is held when its task has ended."""
    entry, task = _names.get(ref.name), ref._origin.task
    if entry is None or task is None:
        return
    name = entry.name
    entry.comes = True
    entry.scopes.add(task.hex())
    task.future().add_done_callback(lambda _: later(lambda: hold(name, True)))


def coming(name: Name, keep: Sequence[Any]) -> None:
    """hold() will be called when the object is there. Until then it needs these."""
    entry = _names[name]
    entry.comes, entry.keep = True, list(keep)


def sent(ref: Ref) -> Origin:
    """The origin that travels: with a Ray reference."""
    origin, entry = ref._origin, _names.get(ref.name)
    if origin.task is not None or origin.token is not None or entry is None:
        return origin
    with LOCK:
        if entry.token is None:
            entry.token = ray.put(None)
            entry.scopes.add(entry.token.hex())
            if not entry.held:
                _events.put(None)  # the thread may wait for nothing: now another process may put it
        return origin._replace(token=entry.token)


def put(name: Name, inside: Sequence[Any]) -> None:
    """This process has put it, with these Refs inside, and its lease holds it."""
    entry = _names.get(name)
    if entry is not None:
        entry.held, entry.keep = True, list(inside)
        return
    _begin()
    _kept.extend(inside)
    with LOCK:
        _handed[name] = time.monotonic() + HANDOVER_S


def is_held(name: Name) -> bool:
    """Whether it was put, so that it is there or was lost: of an object that this process owns."""
    entry = _names.get(name)
    return entry is not None and entry.held


def is_abandoned(name: Name, seconds: float) -> bool:
    """Whether others have had a Ref of it, and for so long nobody has, and nobody has put it."""
    entry = _names.get(name)
    since = None if entry is None or entry.held else entry.nowhere
    return since is not None and time.monotonic() - since >= seconds


def free(ref: Ref) -> None:
    """At once, everywhere."""
    with LOCK:
        entry = _names.pop(ref.name, None)
    if entry is not None:
        entry.keep = []
    with contextlib.suppress(NotFound):
        place.node().delete(ref.name)


def make_room() -> None:
    """Has the thread look once more, and delete what nobody needs. Ray tells others a moment later."""
    _begin()
    seen = threading.Event()

    def look() -> None:
        _look()
        seen.set()
    _events.put(look)
    seen.wait(LOOK_S)
    time.sleep(ROOM_LOOK_S)


def forget() -> None:
    """The nodes have ended, with all objects."""
    with LOCK:
        for table in (_names, _handed, _kept, _ending):
            table.clear()  # type: ignore[attr-defined]


# --- the thread

def hold(name: Name, ended: bool) -> None:
    """What it has needed may go. ended: what makes the object has ended, so it is there or will not be. Otherwise the
    thread tries again."""
    entry = _names.get(name)
    if entry is None or entry.held:
        return
    entry.comes, entry.keep = ended, []
    try:
        place.with_lease(lambda lease: lease.hold(name))
        entry.held = True
    except NotFound:
        pass
    except Error:
        entry.comes = False


def in_scope() -> Optional[Any]:
    """Hex numbers of the Ray references that are in scope for this process; None where Ray does not tell."""
    worker = getattr(ray._private.worker.global_worker, "core_worker", None)
    counts = getattr(worker, "get_all_reference_counts", None)
    if counts is None or not ray.is_initialized():
        return None
    return {one.decode() for one in counts()}


def _serve() -> None:
    looked = time.monotonic()
    while True:
        busy = _ending or _handed or any(not one.held for one in list(_names.values()))
        try:
            event = _events.get(timeout=LOOK_S if busy else None)
        except queue.Empty:
            event = None
        try:
            if callable(event):
                event()
            elif event is not None:
                _uncount(event)
            if busy and time.monotonic() - looked >= LOOK_S:
                looked = time.monotonic()
                _look()
        except Exception:
            if not ray.is_initialized():
                return
        event = None


def _uncount(name: Name) -> None:
    with LOCK:
        entry = _names.get(name)
        if entry is None:
            return
        entry.refs -= 1
        if entry.refs > 0:
            return
        entry.token = None
    if entry.scopes:
        _ending[name] = entry
    else:
        _end(entry)


def _end(entry: Owned) -> None:
    with LOCK:
        if entry.refs > 0:
            return
        _names.pop(entry.name, None)
    entry.keep = []
    with contextlib.suppress(Error):
        place.node().delete(entry.name)


def _look() -> None:
    missing = [one for one in list(_names.values()) if not one.held and not one.comes]
    known = in_scope() if _ending or any(one.scopes for one in missing) else None
    for name, entry in list(_ending.items()):
        if entry.refs > 0:  # it has come back
            del _ending[name]
        elif known is not None and not entry.scopes & known:
            del _ending[name]
            _end(entry)
    for entry in missing:
        hold(entry.name, False)
        _look_who_has(entry, known)
    for name, until in list(_handed.items()):
        _let_go(name, until)


def _look_who_has(entry: Owned, known: Optional[Any]) -> None:
    """Of what nobody has put. Without the token of this process Ray tells whether others have one."""
    with LOCK:
        if entry.scopes and known is not None and not entry.scopes & known:
            entry.nowhere = entry.nowhere or time.monotonic()
        else:
            entry.nowhere = None
        if not entry.held and entry.refs > 0:
            entry.token = None


def _let_go(name: Name, until: float) -> None:
    """Drops what its owner holds now."""
    try:
        if place.node().info(name).leases < 2 and time.monotonic() < until:
            return
        place.with_lease(lambda lease: lease.drop(name))
    except NotFound:
        pass
    except Error:
        if time.monotonic() < until:
            return
    _handed.pop(name, None)
