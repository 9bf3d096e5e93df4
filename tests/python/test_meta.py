# SPDX-License-Identifier: BSD-3-Clause
"""The metadata of objects on real nodes: by the extension, a queue and the command."""

import json
import subprocess
import time

import pytest
import sarissa
from conftest import BUILD
from sarissa import _sarissa

NOTE = b"\x01 what its creator says"
SIZES = (0, 100, 5 << 20)
LIMIT_NS = 20 * 10**9


def command(local, node, *argv, status=0, text=""):
    done = subprocess.run([BUILD / "client/cli/sarissa", argv[0], "--socket", local.socket[node], *argv[1:]],
                          input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == status, f"{argv}: {done.returncode}, {done.stderr}"
    return done.stdout if status == 0 else done.stderr


def answer(queue):
    answers = queue.wait(LIMIT_NS)
    assert len(answers) == 1
    if isinstance(answers[0][1], BaseException):
        raise answers[0][1]
    return answers[0][1]


def got(handle, name):
    return handle.get(name, LIMIT_NS)


def here(handle, name):
    """Once the node has noticed that all of it is there."""
    late = time.monotonic() + LIMIT_NS / 1e9
    view = None
    while view is None:
        assert time.monotonic() < late, "it is not found here"
        view = handle.here(name)
    return view


@pytest.mark.parametrize("size", SIZES)
def test_every_node_gets_them(local, size):
    name = f"meta/{size}"
    handles = [_sarissa.Handle(path) for path in local.socket]
    handles[0].put(name, bytes(size), None, NOTE)
    for handle in handles:
        view = got(handle, name)
        assert view.meta == NOTE and view.nbytes == size
        assert here(handle, name).meta == NOTE, "the next get asks nobody"
        assert handle.info(name)[-1] == NOTE
        assert [one[-1] for one in handle.list(name)] == [NOTE]
    handles[1].delete(name)
    handles[2].put(name, bytes(size))
    assert got(handles[0], name).meta == b"" and handles[0].info(name)[-1] == b""


def test_a_creation_has_them_before_its_bytes(local):
    writer, reader = _sarissa.Handle(local.socket[0]), _sarissa.Handle(local.socket[1])
    creation = writer.create("meta/creation", 1 << 20, NOTE)
    assert reader.begin("meta/creation", LIMIT_NS).meta == NOTE
    creation.seal()
    assert got(reader, "meta/creation").meta == NOTE


@pytest.mark.parametrize("size", SIZES)
def test_a_queue_has_them(local, size):
    name = f"meta/queue/{size}"
    queues = [_sarissa.Handle(path).queue(4) for path in local.socket[:2]]
    queues[0].put(1, name, bytes(size), None, NOTE)
    answer(queues[0])
    for queue in queues:
        queue.get(2, name, LIMIT_NS)
        assert answer(queue).meta == NOTE
        queue.info(3, name)
        assert answer(queue)[-1] == NOTE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("by_queue", (False, True))
def test_the_same_bytes_with_other_metadata_are_another_object(local, size, by_queue):
    name = f"meta/other/{size}/{by_queue}"
    handles = [_sarissa.Handle(path) for path in local.socket]

    def put(node, meta):
        if not by_queue:
            handles[node].put(name, bytes(size), None, meta)
            return
        queue = handles[node].queue(1)
        queue.put(1, name, bytes(size), None, meta)
        answer(queue)
    put(0, NOTE)
    for node in (0, 1):
        put(node, NOTE)
        for other in (b"\x01 something else", None):
            with pytest.raises(sarissa.Exists, match="other metadata"):
                put(node, other)
    assert got(handles[2], name).meta == NOTE


def test_what_does_not_fit_is_refused(local):
    handle = _sarissa.Handle(local.socket[0])
    for meta in (bytes(129), b"\xa1", b"\xa1" + bytes(40)):
        with pytest.raises(ValueError, match="metadata"):
            handle.put("meta/refused", b"x", None, meta)
    handle.put("meta/most", b"x", None, b"\x02" * 128)
    assert got(handle, "meta/most").meta == b"\x02" * 128


def test_the_command_shows_them(local):
    command(local, 0, "put", "meta/array", "-", "--dtype", "f32", "--shape", "2,3", text="x" * 24)
    command(local, 0, "put", "meta/vector", "-", "--dtype", "u8", text="x" * 24)
    command(local, 0, "put", "meta/bytes", "-", text="x" * 24)
    assert "f32[2,3]" in command(local, 1, "stat", "meta/array")
    listed = command(local, 1, "ls", "meta/").splitlines()
    assert [line.split()[-1] for line in listed if "meta/vector" in line] == ["u8[24]"]
    assert [line.split()[-1] for line in listed if "meta/bytes" in line] == ["meta/bytes"]
    told = json.loads(command(local, 2, "stat", "meta/array", "--json"))
    assert told["array"] == {"dtype": "f32", "type": "<f4", "shape": [2, 3], "order": "C"}
    assert bytes.fromhex(told["meta"])[:5] == bytes([0xA1, 3, ord("C"), 2, 3])
    told = json.loads(command(local, 2, "stat", "meta/bytes", "--json"))
    assert told["array"] is None and told["meta"] == ""
    assert "size" in command(local, 0, "put", "meta/wrong", "-", "--dtype", "f32", "--shape", "2,4", text="x" * 24,
                             status=1)
    assert "multiple" in command(local, 0, "put", "meta/wrong", "-", "--dtype", "f64", text="x" * 20, status=1)
    for wrong in (("--dtype", "f33"), ("--shape", "3")):
        command(local, 0, "put", "meta/wrong", "-", *wrong, status=2)
    command(local, 0, "put", "meta/wrong", "-", "--dtype", "u8", "--shape", "2,x", status=1)
