# SPDX-License-Identifier: BSD-3-Clause
"""Objects in the memory of a cluster's nodes, from Python. Standard library only.

    import sarissa
    with sarissa.open() as node:
        node.put("weights", array)                 # anything with the buffer protocol
        view = node.get("weights", timeout=10)     # read-only memoryview, no copy
        numpy.frombuffer(view, dtype="f4")
        node.reduce("sum", ["a", "b", "c"], dtype="f32")    # wherever they are, or will be put
        total = node.get("sum")

A view keeps its object pinned in the node's memory until the last view of it (slices and numpy
arrays included) has gone; nothing is to be released by hand. One node may serve many threads; the
interpreter runs on while a call waits; Ctrl-C ends a get that waits, after a second at most. After
fork a child opens its own.

close() may be called while other threads wait: they get sarissa.Closed.

When the node's control process is killed and started again nothing is to be done: calls go on there
by themselves, views and writers stay as they are.
"""

import ctypes
import errno
import os
import re
import threading
import time
import warnings
import weakref
from collections import namedtuple

__all__ = ["Error", "Unavailable", "NotFound", "TimedOut", "PartialError", "Closed", "Node", "Info", "open",
           "id_of"]

ID_BYTES = 16
FOREVER = 2**63 - 1
NOWHERE = 2**64 - 1
SOURCES_MAX = 1024
NODES_MAX = 256  # of one error
INLINE_NS = 10**9
OPS = {name: number for number, name in enumerate("sum prod min max avg".split(), 1)}
DTYPES = {name: number for number, name in enumerate(
    "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64".split(), 1)}


class _Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint8 * ID_BYTES)]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64), ("ready", ctypes.c_uint64),
                ("reserved", ctypes.c_uint64 * 5)]


class _Info(ctypes.Structure):
    _fields_ = [("id", _Id), ("size", ctypes.c_uint64), ("generation", ctypes.c_uint64),
                ("local_ready", ctypes.c_uint64), ("copies", ctypes.c_uint32),
                ("partial", ctypes.c_uint32), ("is_inline", ctypes.c_uint32),
                ("making", ctypes.c_uint32), ("lost", ctypes.c_uint32),
                ("lost_node", ctypes.c_uint32), ("down_ns", ctypes.c_uint64),
                ("reserved", ctypes.c_uint64 * 2), ("name", ctypes.c_uint8 * 256)]


class _Bytes(ctypes.Structure):
    """Py_buffer: the memory of an object, also where that is read-only."""
    _fields_ = [("data", ctypes.c_void_p), ("owner", ctypes.c_void_p), ("size", ctypes.c_ssize_t),
                ("item_bytes", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("dimensions", ctypes.c_int), ("format", ctypes.c_void_p),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]

    def __init__(self, source):
        super().__init__()
        self._check_kind(source)
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(source), ctypes.byref(self), 0)

    @staticmethod
    def _check_kind(source):
        try:
            view = memoryview(source)
        except ValueError:  # numpy's dates have no format to tell
            return
        with view:
            if not view.c_contiguous:
                raise TypeError("the bytes of this array do not follow one another: put "
                                "numpy.ascontiguousarray(array), or bytes(view)")
            if "O" in re.sub(":[^:]*:", "", view.format):  # without the names of fields
                raise TypeError("an array of Python objects holds pointers, which mean nothing to "
                                "a reader: put an array of numbers, array.astype(float) perhaps, "
                                "or pickle.dumps(array)")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self))


class _Reduction(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("dtype", ctypes.c_uint32), ("num", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint64 * 6)]


_LIST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_void_p)
_BUFFER = ctypes.POINTER(_Buffer)
_SIGNATURES = {
    "sar_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "sar_close": (None, [ctypes.c_void_p]),
    "sar_end_waits": (None, [ctypes.c_void_p]),
    "sar_id_of": (_Id, [ctypes.c_char_p, ctypes.c_size_t]),
    "sar_create": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.c_char_p, ctypes.c_uint64, _BUFFER]),
    "sar_publish": (ctypes.c_int, [ctypes.c_void_p, _BUFFER, ctypes.c_uint64]),
    "sar_seal": (ctypes.c_int, [ctypes.c_void_p, _BUFFER]),
    "sar_abort": (ctypes.c_int, [ctypes.c_void_p, _BUFFER]),
    "sar_put": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.c_char_p, ctypes.c_void_p,
                               ctypes.c_uint64]),
    "sar_get": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.c_int64, _BUFFER]),
    "sar_release": (None, [ctypes.c_void_p, _BUFFER]),
    "sar_reduce": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.c_char_p, ctypes.POINTER(_Id),
                                  ctypes.c_uint, ctypes.POINTER(_Reduction), ctypes.c_int64]),
    "sar_reduce_progress": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.POINTER(_Id),
                                           ctypes.c_uint, ctypes.POINTER(ctypes.c_uint)]),
    "sar_reduce_sources": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.c_int64,
                                          ctypes.POINTER(_Id), ctypes.c_uint]),
    "sar_delete": (ctypes.c_int, [ctypes.c_void_p, _Id]),
    "sar_info_get": (ctypes.c_int, [ctypes.c_void_p, _Id, ctypes.POINTER(_Info)]),
    "sar_list": (ctypes.c_int, [ctypes.c_void_p, _LIST, ctypes.c_void_p]),
    "sar_strerror": (ctypes.c_char_p, [ctypes.c_int]),
    "sar_error_detail": (ctypes.c_char_p, []),
    "sar_error_nodes": (ctypes.c_int, [ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint]),
}

# lost: complete copies on dead nodes; lost_node: the one of these that died last, or None; down: so
# many seconds ago, or None
Info = namedtuple("Info", "id name size generation local_ready copies partial lost lost_node down",
                  defaults=(0, None, None))
Info.__doc__ = "What the directory knows of an object; local_ready is None without a copy here."


class Error(OSError):
    """errno as in the C library's documentation; the text names the object, says what is wrong and
    what to do. Where
    Python has an exception for the errno it is one of that class as well: TimeoutError..."""

    def __reduce__(self):
        if type(self) not in _kinds.values():
            return super().__reduce__()
        return _error, self.args, self.__dict__


class PartialError(Error):
    """A part of the directory does not answer (errno EHOSTUNREACH), so what is asked for may exist
    all the same. missing: the numbers of the nodes that keep this part. found: what ls() has found
    all the same."""

    missing = found = ()


class Unavailable(Error, LookupError):
    """The object cannot be had now. Which of the two it is depends on the timeout."""


class NotFound(Unavailable, FileNotFoundError):
    """Nobody has such an object, and the call did not wait (timeout 0) or never does."""


class TimedOut(Unavailable, TimeoutError):
    """The time is over; the words say what was waited for."""


class Closed(Error, ValueError):
    """The node is closed, perhaps by another thread while this one waited."""

    def __init__(self, number=errno.ESHUTDOWN, text="the node is closed: open another one"):
        super().__init__(number, text)


_own = {errno.EHOSTUNREACH: PartialError, errno.ENOENT: NotFound, errno.ETIMEDOUT: TimedOut}
_kinds = {}  # by Python's class for the errno


def _error(code, text):
    """An Error of the right class, also as pickle makes it again."""
    if code == errno.ESHUTDOWN:
        return Closed(code, text)
    if code in _own:
        return _own[code](code, text)
    base = type(OSError(code, ""))  # picks the subclass
    if base not in _kinds:
        kind = Error if base is OSError else type("Error", (Error, base), {"__module__": __name__})
        _kinds.setdefault(base, kind)
    return _kinds[base](code, text)


def _load():
    try:
        library = ctypes.CDLL(os.environ.get("SARISSA_LIBRARY", "libsarissa.so.0"))
    except OSError as error:
        raise ImportError(f"{error}: install sarissa, or name the library in the environment "
                          "variable SARISSA_LIBRARY") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


def _check(code, ident=None, key=None):
    """Raises what has failed. ident and key: the object that the call is about, of which C often
    knows the id only."""
    if code >= 0:
        return code
    detail = (_lib.sar_error_detail() or _lib.sar_strerror(code)).decode("utf-8", "replace")
    if key:
        name = "".join(c if c.isprintable() else "?" for c in key.decode("utf-8", "replace"))
        detail = detail.replace(f"id:{bytes(ident.bytes).hex()}", f"'{name}'")
    error = _error(-code, detail)
    if isinstance(error, PartialError):
        nodes = (ctypes.c_uint32 * NODES_MAX)()
        error.missing = nodes[:min(_lib.sar_error_nodes(nodes, NODES_MAX), NODES_MAX)]
    raise error


def _key(name):
    return name.encode("utf-8", "surrogateescape") if isinstance(name, str) else bytes(name)


def id_of(name):
    """The id (16 bytes) of a name: str, or any bytes."""
    key = _key(name)
    return bytes(_lib.sar_id_of(key, len(key)).bytes)


def _named(name):
    """What a caller may name an object by: a str, or an id of 16 bytes. (id, name or None)"""
    if isinstance(name, str):
        key = _key(name)
        if b"\0" in key:
            raise ValueError("a name has no zero bytes")
        return _lib.sar_id_of(key, len(key)), key
    if len(name) != ID_BYTES:
        raise ValueError(f"an object is named by a str, or by an id of {ID_BYTES} bytes")
    return _Id((ctypes.c_uint8 * ID_BYTES)(*name)), None


def _unsigned(value, bits):
    """ctypes cuts off what does not fit."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is not between 0 and {(1 << bits) - 1}")
    return value


def _timeout(seconds):
    if seconds is None:
        return FOREVER
    if seconds < 0:
        raise ValueError("a timeout is not negative; None waits without limit")
    return int(min(seconds * 1e9, FOREVER))


class _Waiter(threading.Thread):
    """Waits in place of another thread. What it brings to one that has left goes with it."""

    def __init__(self, ask, timeout_ns):
        super().__init__(daemon=True)
        self.ask, self.timeout_ns = ask, timeout_ns
        self.answer = self.error = None

    def run(self):
        try:
            self.answer = self.ask(self.timeout_ns)
        except BaseException as error:
            self.error = error


def _wait(ask, timeout_ns):
    """ask(timeout_ns), which waits in C, where no handler of a signal is run. Handlers, Ctrl-C's
    among them, run in the main thread: what takes long there goes on in another one."""
    if timeout_ns <= INLINE_NS or threading.current_thread() is not threading.main_thread():
        return ask(timeout_ns)
    begin = time.monotonic_ns()
    try:
        return ask(INLINE_NS)
    except Error as error:
        if error.errno not in (errno.ETIMEDOUT, errno.ENOTCONN):
            raise
    if timeout_ns < FOREVER:
        timeout_ns = max(1, timeout_ns - (time.monotonic_ns() - begin))
    waiter = _Waiter(ask, timeout_ns)
    try:
        waiter.start()
    except RuntimeError:  # no more threads, or none any more: the interpreter is about to end
        return ask(timeout_ns)
    waiter.join()
    if waiter.error:
        raise waiter.error
    return waiter.answer


def _info(raw):
    name = bytes(raw.name).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    local = None if raw.local_ready == NOWHERE else raw.local_ready
    lost = (raw.lost, raw.lost_node, raw.down_ns / 1e9) if raw.lost else (0, None, None)
    return Info(bytes(raw.id.bytes), name, raw.size, raw.generation, local, raw.copies, raw.partial,
                *lost)


class _Handle:
    """The C handle; closed when its node is closed, and the last buffer and call have gone.

    It has one hold per user, and the last to be taken away is the one that was there first. Without
    a lock: a collection of garbage, or a signal's handler, may drop one amid any of these steps."""

    _LAST = object()

    def __init__(self, path):
        pointer = ctypes.c_void_p()
        _check(_lib.sar_open(None if path is None else os.fsencode(path), ctypes.byref(pointer)))
        self.pointer, self.holds = pointer, [self._LAST]

    def hold(self):
        self.holds.append(None)
        if self.holds[0] is not self._LAST:
            raise Closed

    def drop(self):
        if self.holds.pop() is self._LAST:
            _lib.sar_close(self.pointer)

    def __enter__(self):
        self.hold()
        return self.pointer

    def __exit__(self, *_):
        self.drop()

    def release(self, buffer):
        _lib.sar_release(self.pointer, ctypes.byref(buffer))
        self.drop()


def _give_up(handle, buffer):
    """Of a Writer that has gone."""
    warnings.warn("a Writer was dropped without seal() or abort(): its object is given up",
                  ResourceWarning, stacklevel=2)
    try:
        _lib.sar_abort(handle.pointer, ctypes.byref(buffer))
    finally:
        handle.drop()


class Writer:
    """An object under creation. As a context manager it is sealed at the end, and given up when an
    exception passes. No view of `data` may be left by then. One that is neither sealed nor aborted is
    given up when it and the last view of its data have gone."""

    def __init__(self, handle, name, size):
        ident, key = _named(name)
        size = _unsigned(size, 64)
        self._handle, self._buffer = handle, _Buffer()
        handle.hold()
        try:
            _check(_lib.sar_create(handle.pointer, ident, key, size, ctypes.byref(self._buffer)))
        except BaseException:  # of a signal's handler, perhaps, when the object is there already
            _lib.sar_abort(handle.pointer, ctypes.byref(self._buffer))
            handle.drop()
            raise
        self._map((ctypes.c_uint8 * self._buffer.size).from_address(self._buffer.data))

    def _map(self, memory):
        self.data = memoryview(memory).cast("B")  #: writable
        self._dropped = weakref.finalize(memory, _give_up, self._handle, self._buffer)
        self._dropped.atexit = False  # the node takes it back from a process that has ended

    def publish(self, ready):
        """Bytes before ready are final: readers may have them now."""
        _check(_lib.sar_publish(self._handle.pointer, ctypes.byref(self._buffer),
                                _unsigned(ready, 64)))

    def _unmap(self):
        if self.data is None:
            raise ValueError("the object is sealed or given up already")
        memory = weakref.ref(self._dropped.detach()[0])
        self.data = None
        left = memory()
        if left is not None:
            self._map(left)
            raise BufferError("views of the object's data are still in use")

    def seal(self):
        self._unmap()
        try:
            _check(_lib.sar_seal(self._handle.pointer, ctypes.byref(self._buffer)))
        except BaseException:
            _lib.sar_abort(self._handle.pointer, ctypes.byref(self._buffer))
            raise
        finally:
            self._handle.drop()

    def abort(self):
        self._unmap()
        try:
            _check(_lib.sar_abort(self._handle.pointer, ctypes.byref(self._buffer)))
        finally:
            self._handle.drop()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.data is None:
            return
        if kind is None:
            self.seal()
            return
        try:
            self.abort()
        except (Error, BufferError):
            pass  # the exception that brought us here matters more; the node takes back the rest


class Node:
    """A connection to the local node. Objects are named by a str, or by an id of 16 bytes."""

    def __init__(self, path=None):
        self._handle = _Handle(path)
        self._drop = weakref.finalize(self, self._handle.drop)  # once
        self._drop.atexit = False

    def _open(self):
        handle = self._handle
        if handle is None:
            raise Closed
        return handle

    def create(self, name, size):
        """Room for an object of size bytes, to be filled piece by piece: a Writer."""
        return Writer(self._open(), name, size)

    def put(self, name, data):
        """Stores a copy of data (bytes, array, memoryview...) as an object. One of that name with
        the same bytes may exist already; with others: FileExistsError. Arrays of Python objects and
        those whose bytes do not follow one another: TypeError."""
        ident, key = _named(name)
        with _Bytes(data) as source, self._open() as node:
            _check(_lib.sar_put(node, ident, key, source.data, source.size))

    def get(self, name, timeout=None):
        """The object as a read-only memoryview, waiting up to timeout seconds (None: no limit)."""
        ident, key = _named(name)
        return _wait(lambda timeout_ns: self._get(ident, key, timeout_ns), _timeout(timeout))

    def _get(self, ident, key, timeout_ns):
        buffer, handle = _Buffer(), self._open()
        handle.hold()
        try:
            _check(_lib.sar_get(handle.pointer, ident, timeout_ns, ctypes.byref(buffer)), ident,
                   key)
        except BaseException:  # of a signal's handler, perhaps, when the object is pinned already
            handle.release(buffer)
            raise
        memory = (ctypes.c_uint8 * buffer.size).from_address(buffer.data)
        weakref.finalize(memory, handle.release, buffer).atexit = False
        return memoryview(memory).cast("B").toreadonly()

    def reduce(self, target, sources, op="sum", dtype=None, num=0, spread=False, timeout=None):
        """Begins to make the object target from sources, element by element, as they come into
        being on any nodes: op is one of OPS, dtype of DTYPES. dtype must be given: objects are
        bytes, and nothing else tells what they are arrays of. With num the first num to arrive
        suffice. spread: every node with a source will get the result too. Returns as soon as
        nothing that is known speaks against it: get the target for the result. After timeout
        seconds the reduce ends without one."""
        if dtype is None:
            raise TypeError("say what the sources are arrays of: reduce(..., dtype=\"f64\"), or "
                            f"another one of {', '.join(DTYPES)}")
        if op not in OPS or dtype not in DTYPES:
            raise ValueError(f"no such operation or type: use one of {', '.join(OPS)}, and of "
                             f"{', '.join(DTYPES)}")
        if isinstance(sources, (str, bytes)):
            raise TypeError("sources are a list of names, not one name")
        ident, key = _named(target)
        ids = [_named(source)[0] for source in sources]
        how = _Reduction(OPS[op], DTYPES[dtype], _unsigned(num, 32), 1 if spread else 0)
        with self._open() as node:
            _check(_lib.sar_reduce(node, ident, key, (_Id * len(ids))(*ids), len(ids),
                                   ctypes.byref(how), _timeout(timeout)))

    def reduce_sources(self, target, timeout=None):
        """Waits until the reduce into target has ended: the ids of the sources in the result."""
        ident, key = _named(target)
        return _wait(lambda timeout_ns: self._reduce_sources(ident, key, timeout_ns),
                     _timeout(timeout))

    def _reduce_sources(self, ident, key, timeout_ns):
        ids = (_Id * SOURCES_MAX)()
        with self._open() as node:
            count = _check(_lib.sar_reduce_sources(node, ident, timeout_ns, ids, SOURCES_MAX),
                           ident, key)
        return [bytes(ids[i].bytes) for i in range(min(count, SOURCES_MAX))]

    def reduce_progress(self, target):
        """How far the reduce into target is: the ids of the sources that exist, and of those that
        are missing. Does not wait."""
        ident, key = _named(target)
        ids, present = (_Id * SOURCES_MAX)(), ctypes.c_uint()
        with self._open() as node:
            count = _check(_lib.sar_reduce_progress(node, ident, ids, SOURCES_MAX,
                                                    ctypes.byref(present)), ident, key)
        found = [bytes(ids[i].bytes) for i in range(min(count, SOURCES_MAX))]
        return found[:present.value], found[present.value:]

    def delete(self, name):
        """Removes every copy in the cluster. Views in use stay as they are."""
        ident, key = _named(name)
        with self._open() as node:
            _check(_lib.sar_delete(node, ident), ident, key)

    def info(self, name):
        raw, (ident, key) = _Info(), _named(name)
        with self._open() as node:
            _check(_lib.sar_info_get(node, ident, ctypes.byref(raw)), ident, key)
        return _info(raw)

    def ls(self):
        """Every object of the cluster: a list of Info. PartialError when a part of the directory
        does not answer: its found is the list without what that part knows."""
        found, failed = [], []

        def take(raw, _):
            try:
                found.append(_info(raw.contents))
            except BaseException as error:  # a signal's handler may raise here; C knows of none
                failed.append(error)
            return len(failed)
        with self._open() as node:
            code = _lib.sar_list(node, _LIST(take), None)
            if failed:
                raise failed[0]
            try:
                _check(code)  # inside: the last failure of this thread
            except PartialError as error:
                error.found = found
                raise
        return found

    def close(self):
        """Ends the connection, once the last view has gone. So does the last reference to this.
        What waits in other threads ends at once: Closed."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with handle as node:
                _lib.sar_end_waits(node)
        self._drop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open(path=None):  # as in the C library: sarissa.open()
    """Connects to the node at a socket path, or $SARISSA_SOCKET, or the default one."""
    return Node(path)
