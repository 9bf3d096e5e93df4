# SPDX-License-Identifier: BSD-3-Clause
"""The Python package, against the node at $SARISSA_SOCKET, by pytest. Run by cli_commands."""

import array
import copy
import ctypes
import errno
import gc
import os
import pickle
import signal
import threading
import time
import warnings
import weakref

import pytest
import sarissa
import sarissa._node
import sarissa._operations
import sarissa._watch


@pytest.fixture
def node():
    with sarissa.open() as opened:
        yield opened


def sockets():
    """How many this process has open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:  # that of the folder itself
            pass
    return found


def raises(kind, number, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert number is None or error.errno == number, error
        return error
    raise AssertionError(f"{call} did not raise {kind}")


def test_there_and_back(node):
    for size in (0, 1, 63, 65535, 65536, 65537, 1048583):
        data = bytes(i * 31 % 251 for i in range(size))
        node.put(f"py{size}", data)
        view = node.get(f"py{size}", timeout=0)
        assert view.readonly and view.nbytes == size and view == data
        node.delete(f"py{size}")
        assert view == data
    node.put("floats", array.array("d", [1.5, 2.5]))
    assert node.get("floats", timeout=float("inf")).cast("d")[1] == 2.5


def test_errors(node):
    raises(sarissa.Error, errno.ENOENT, node.get, "nobody", timeout=0)
    raises(FileNotFoundError, errno.ENOENT, node.delete, "nobody")
    raises(TimeoutError, errno.ETIMEDOUT, node.get, "nobody", timeout=0.02)
    for timeout, kind, base in ((0, sarissa.NotFound, FileNotFoundError),
                                (0.02, sarissa.TimedOut, TimeoutError)):
        raises(kind, None, node.get, "nobody", timeout=timeout)
        raises(sarissa.Unavailable, None, node.get, "nobody", timeout=timeout)
        raises(LookupError, None, node.get, "nobody", timeout=timeout)
        raises(base, None, node.get, "nobody", timeout=timeout)
        again = pickle.loads(pickle.dumps(kind(7, "words")))
        assert type(again) is kind and (again.errno, str(again)) == (7, str(kind(7, "words")))
    node.put("once", b"x")
    node.put("once", b"x")
    raises(FileExistsError, errno.EEXIST, node.put, "once", b"y")
    raises(FileExistsError, errno.EEXIST, node.put, "once", b"xx")
    raises(FileExistsError, errno.EEXIST, node.create, "once", 1)
    raises(ValueError, None, node.get, b"short id")
    raises(ValueError, None, node.get, "x", timeout=-1)
    raises(TypeError, None, node.put, "x", 7)
    raises(sarissa.Error, errno.ECONNREFUSED, sarissa.open, "/nonexistent/x")
    raises(ValueError, None, node.create, "x", 2**64)
    raises(ValueError, None, node.create, "x", -1)
    raises(ValueError, None, node.reduce, "x", ["a"], dtype="f32", num=2**32)
    with node.create("x", 8) as writer:
        raises(ValueError, None, writer.publish, 2**64 + 8)
        writer.publish(8)


class Pointers(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.py_object)]


class Names(ctypes.Structure):
    _fields_ = [("Other", ctypes.c_int), ("O", ctypes.c_int)]


def test_pointers_are_no_bytes(node):
    """They would be put as they are, and mean nothing to anybody else."""
    for pointers in ((ctypes.py_object * 3)(1, "two", 3.0), (Pointers * 2)()):
        why = raises(TypeError, None, node.put, "pointers", pointers)
        assert "put_object" in str(why), why
    for view in (memoryview(b"every other")[::2], memoryview(array.array("d", [1, 2, 3]))[::-1]):
        why = raises(TypeError, None, node.put, "pointers", view)
        assert "put bytes(view)" in str(why), why
    node.put("names", (Names * 2)((1, 2), (3, 4)))
    assert list(node.get("names").cast("i")) == [1, 2, 3, 4]
    node.put("square", memoryview(bytes(range(6))).cast("B", (2, 3)))
    assert bytes(node.get("square")) == bytes(range(6))


def test_errors_name_the_object(node):
    """By the name that the caller used, or by id:HEX."""
    node.put("here", b"1234")
    with node.create("being written", 4) as writer:
        for name, call in (("nobody", lambda: node.get("nobody", timeout=0)),
                           ("nobody", lambda: node.get("nobody", timeout=0.02)),
                           ("nobody", lambda: node.delete("nobody")),
                           ("nobody", lambda: node.info("nobody")),
                           ("nobody", lambda: node.reduce_sources("nobody", timeout=0)),
                           ("here", lambda: node.put("here", b"123")),
                           ("here", lambda: node.create("here", 4)),
                           ("being written", lambda: node.get("being written", timeout=0)),
                           ("being written", lambda: node.get("being written", timeout=0.02))):
            error = raises(sarissa.Error, None, call)
            assert error.strerror.startswith(f"'{name}': "), error
            assert str(error).count(name) == 1, error
        ident = sarissa.id_of("nobody")
        error = raises(sarissa.Error, None, node.get, ident, timeout=0)
        assert error.strerror.startswith(f"id:{ident.hex()}: "), error
        writer.data[:] = b"abcd"


def test_errors_can_be_pickled(node):
    """As every pool of processes does with them."""
    for kind, call in ((FileNotFoundError, lambda: node.delete("nobody")),
                       (TimeoutError, lambda: node.get("nobody", timeout=0.02)),
                       (sarissa.Error, lambda: node.reduce("x", [], dtype="f32"))):
        error = raises(kind, None, call)
        error.more = "kept"
        for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(same) is type(error) and isinstance(same, sarissa.Error), type(same)
            assert isinstance(same, kind) and same.args == error.args and str(same) == str(error)
            assert (same.errno, same.strerror, same.more) == (error.errno, error.strerror, "kept")

    own = Own(5, "text")
    same = pickle.loads(pickle.dumps(own))
    assert type(same) is Own and same.args == (5, "text"), same


class Own(sarissa.Error):
    pass


def test_ids_and_names(node):
    node.put("näm\udcff", b"1")
    assert bytes(node.get(sarissa.id_of("näm\udcff"))) == b"1"
    assert "näm\udcff" in [info.name for info in node.ls()]
    info = node.info("näm\udcff")
    assert (info.size, info.copies, info.local_ready) == (1, 1, 1)
    node.put(b"0123456789abcdef", b"by id")
    assert bytes(node.get(b"0123456789abcdef")) == b"by id"


def test_writers(node):
    with node.create("piece by piece", 6) as writer:
        writer.data[:3] = b"abc"
        writer.publish(3)
        writer.data[3:] = b"def"
    assert bytes(node.get("piece by piece")) == b"abcdef"
    raises(ValueError, None, writer.seal)
    try:
        with node.create("given up", 6):
            raise KeyError
    except KeyError:
        pass
    raises(sarissa.Error, errno.ENOENT, node.get, "given up", timeout=0)
    writer = node.create("held", 6)
    held = writer.data[1:]
    raises(BufferError, None, writer.seal)
    held[0] = 7
    del held
    writer.seal()


def test_a_dropped_writer_gives_up(node):
    def there():
        return "dropped" in [info.name for info in node.ls()]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        writer = node.create("dropped", 6)
        assert there()
        del writer
        gc.collect()
        assert not there(), "a Writer that has gone still holds its object"
        assert [w.category for w in told] == [ResourceWarning], told
        view = node.create("dropped", 6).data[2:]  # only the view is left
        gc.collect()
        view[:] = b"cdef"
        assert there(), "its memory is in use"
        del view
        gc.collect()
        assert not there() and len(told) == 2, told
        writer = node.create("dropped", 6)
        held = writer.data[1:]
        raises(BufferError, None, writer.seal)
        del writer
        assert there()
        held[:] = b"bcdef"
        del held
        gc.collect()
        assert not there() and len(told) == 3, told
        for end in (sarissa.Writer.seal, sarissa.Writer.abort):
            writer = node.create("dropped", 6)
            end(writer)
            del writer
            gc.collect()
            if there():
                node.delete("dropped")
        assert len(told) == 3, told
    other = sarissa.open()
    writer = other.create("dropped", 6)
    other.close()
    writer.seal()  # it needs no node
    del writer
    node.delete("dropped")


def test_reduces(node):
    node.reduce("python sum", ["a", "b", sarissa.id_of("c")], num=2, spread=True, timeout=5,
                dtype="f64")
    assert node.reduce_sources("python sum") == [sarissa.id_of("a"), sarissa.id_of("b")]
    assert node.get("python sum", timeout=0).nbytes == 1000
    raises(FileExistsError, errno.EEXIST, node.reduce, "python sum", ["a"], dtype="f32")
    raises(FileNotFoundError, errno.ENOENT, node.reduce_sources, "nobody's sum", timeout=0)
    raises(ValueError, None, node.reduce, "x", ["a"], op="mean", dtype="f32")
    raises(TypeError, None, node.reduce, "x", "abc", dtype="f32")
    raises(ValueError, None, node.reduce, "x", ["a"], dtype="f9")
    raises(sarissa.Error, errno.EINVAL, node.reduce, "x", [], dtype="f32")
    raises(sarissa.Error, errno.EINVAL, node.reduce, "x", ["a"], dtype="f32", timeout=0)
    node.reduce("typed", ["a", "b"])  # control takes the type of the sources


def test_views_outlive_the_node():
    node = sarissa.open()
    node.put("outlives", b"still here")
    piece = node.get("outlives")[6:]
    node.close()
    gc.collect()
    assert bytes(piece) == b"here"
    raises(ValueError, None, node.get, "outlives")


def test_a_signal_spoils_no_put(node):
    class Stop(Exception):
        pass

    fired = []

    def stop(*_):
        fired.append(True)
        raise Stop
    data = bytes(range(256)) * 2048
    before = signal.signal(signal.SIGALRM, stop)
    began = time.monotonic()
    node.put("undisturbed", data)
    took = time.monotonic() - began
    for delay in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        fired.clear()
        try:
            signal.setitimer(signal.ITIMER_REAL, delay * took)
            node.put(f"signal {delay}", data)
            while not fired:
                pass
            raise AssertionError("the exception of the signal's handler got lost")
        except Stop:
            pass
        if f"signal {delay}" in [info.name for info in node.ls()]:
            assert node.get(f"signal {delay}", timeout=0) == data
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_a_wait(node):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop
    before = signal.signal(signal.SIGALRM, stop)
    for seconds in (0.05, 0.3):
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)  # at the earliest within this block
            node.get("still to come", timeout=200)
            raise AssertionError("it came")
        except Stop:
            pass
        assert time.monotonic() - began < 100, "it waited for its time"
    signal.signal(signal.SIGALRM, before)
    node.put("still to come", b"now")  # nothing of it stays with who has left
    node.delete("still to come")
    raises(TimeoutError, errno.ETIMEDOUT, node.get, "still to come", timeout=1.2)


class Held:
    pass


def test_errors_hold_nothing(node, monkeypatch):
    """What the callers of a call that fails had, such as views, goes with them, not when the next
    cycle is looked for."""
    def closed():
        return sarissa.Closed(errno.ESHUTDOWN, "closed")

    def with_something_held(call):
        held = Held()
        seen.append(weakref.ref(held))
        call()
    def step(_):
        raise closed()
    monkeypatch.setattr(node, "_do", step)
    seen = []
    gc.disable()
    try:
        for call in (lambda: node._run(sarissa._operations.delete("x")),
                     lambda: list(sarissa._watch.events([(0, closed())]))):
            try:
                with_something_held(call)
                raise AssertionError("no error")
            except sarissa.Closed:
                pass
            assert seen.pop()() is None, call
    finally:
        gc.enable()


def test_a_signal_leaves_nothing_behind(node):
    """Whenever it comes: amid a get, or just as it has pinned the object."""
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop
    before = signal.signal(signal.SIGALRM, stop)
    node.put("pinned", b"x")
    stopped = 0
    while stopped < 300:
        try:
            signal.setitimer(signal.ITIMER_REAL, 20e-6 + stopped * 1e-7)
            while True:
                node.get("pinned", raw=True)
        except Stop:
            stopped += 1
    signal.signal(signal.SIGALRM, before)
    assert len([node.get("pinned", raw=True) for _ in range(1024)]) == 1024


def test_a_node_that_is_forgotten_is_closed():
    gc.collect()
    before, node = sockets(), sarissa.open()
    node.put("forgotten", b"x")
    view = node.get("forgotten")
    assert sockets() == before + 1
    del node
    gc.collect()
    assert view == b"x" and sockets() == before + 1
    del view
    gc.collect()
    assert sockets() == before


def test_names_that_are_no_text(node):
    say = raises(ValueError, None, node.put, "\ud800", b"x")
    assert "UTF-8" in str(say) and "id of 16 bytes" in str(say), say
    raises(ValueError, None, node.put, "zero\0byte", b"x")
    raises(sarissa.NameTooLong, errno.ENAMETOOLONG, node.put, "n" * 256, b"x")
    for name in (7, None, b"", b"x" * 17):
        raises(ValueError, None, node.get, name, timeout=0)


def test_timeouts_are_checked(node):
    for timeout in (-1, -1e-9, float("-inf"), float("nan")):
        say = raises(ValueError, None, node.get, "nobody", timeout=timeout)
        assert "None waits without limit" in str(say), say
    raises(TypeError, None, node.get, "nobody", timeout="soon")
    node.put("there", b"x")
    for timeout in (None, 1e300, float("inf"), 2**200):
        assert node.get("there", timeout=timeout) == b"x"


def test_pieces(node):
    third = 1 << 18
    with node.create("streamed", 3 * third) as writer:
        reader = node.reader("streamed")
        assert reader.size == 3 * third and reader.read(0) == b""
        raises(TimeoutError, errno.ETIMEDOUT, node.reader("streamed", 0.02).wait, 1)
        assert writer.write(b"head" + bytes(third - 4)) == third
        assert reader.read(4) == b"head"
        assert writer.write(array.array("I", range(third // 4))) == third
        assert [len(next(reader.pieces(third))) for _ in range(2)] == [third - 4, third]
        writer.write(b"tail")
        writer.flush()
        assert reader.read(100) == b"tail"
        raises(ValueError, None, writer.write, bytes(third))
        assert writer.tell() == 2 * third + 4
        writer.write(bytes(third - 4))
    assert b"".join(node.reader("streamed").pieces(1000)) == node.get("streamed")
    assert reader.readall() == bytes(third - 4)
    reader.close()
    raises(ValueError, None, reader.read, 1)


def test_a_child_opens_its_own(node):
    node.put("before the fork", b"x")
    view = node.get("before the fork")
    child = os.fork()
    if child == 0:
        try:
            assert view == b"x"
            raises(sarissa.InvalidArgument, errno.EINVAL, node.get, "before the fork", timeout=0)
            del view
            with sarissa.open() as own:
                assert own.get("before the fork") == b"x"
            os._exit(0)
        except BaseException as error:
            print(error)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert view == b"x" and node.get("before the fork") == b"x"


def test_pins_are_given_back(node):
    node.put("often", b"x" * 100)
    for _ in range(3000):
        node.get("often")
    kept = [node.get("often", raw=True) for _ in range(1024)]
    more = node.get("often", raw=True)  # another connection has room
    assert more == kept[0] == b"x" * 100
    del more
    kept.clear()
    node.get("often")


def test_threads_wait(node):
    got = []
    waiters = [threading.Thread(target=lambda: got.append(bytes(node.get("later", timeout=100))))
               for _ in range(8)]
    for waiter in waiters:
        waiter.start()
    node.put("later", b"now")
    for waiter in waiters:
        waiter.join()
    assert got == [b"now"] * 8


def test_close_ends_waits(monkeypatch):
    node, ends = sarissa.open(), []
    view = kept(node, "kept")
    waits = [lambda: node.get("never"), lambda: node.get("never", timeout=1000),
             lambda: node.get("never either")]

    def wait(call):
        try:
            ends.append(call())
        except BaseException as error:
            ends.append(error)
    threads = [threading.Thread(target=wait, args=(call,), daemon=True) for call in waits * 3]
    for thread in threads:
        thread.start()

    waits_now, do = threading.Event(), sarissa.Node._do

    def told(*arguments):
        waits_now.set()
        return do(*arguments)
    monkeypatch.setattr(sarissa.Node, "_do", told)

    def close():  # once the main thread waits
        assert waits_now.wait(60)
        node.close()
    closer = threading.Thread(target=close, daemon=True)
    closer.start()
    why = raises(sarissa.Closed, errno.ESHUTDOWN, node.get, "never")
    for thread in [closer, *threads]:
        thread.join(60)
        assert not thread.is_alive(), "it still waits"
    assert [type(end) for end in ends] == [sarissa.Closed] * len(threads), ends
    assert view == b"x" * 1000 and isinstance(why, (sarissa.Error, ValueError)), why
    same = pickle.loads(pickle.dumps(why))
    assert type(same) is sarissa.Closed and same.args == why.args, same
    raises(sarissa.Closed, errno.ESHUTDOWN, node.get, "kept")
    node.close()


def kept(node, name):
    node.put(name, b"x" * 1000)
    return node.get(name)


def test_close_comes_at_any_time():
    """Also amid calls that do not wait, and twice at once."""
    for turn in range(30):
        node, wrong = sarissa.open(), []

        def work():
            try:
                while True:
                    assert kept(node, "busy") == b"x" * 1000
                    node.info("busy")
            except sarissa.Closed:
                pass
            except BaseException as error:
                wrong.append(error)
        threads = [threading.Thread(target=work) for _ in range(4)]
        threads += [threading.Thread(target=node.close) for _ in range(2)]
        for thread in threads:
            thread.start()
            time.sleep(turn * 1e-4)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "it does not end"
        assert not wrong, wrong
