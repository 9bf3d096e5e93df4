# SPDX-License-Identifier: BSD-3-Clause
"""Each program of examples/ does what its first lines say, on the nodes of a local cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sarissa
from conftest import NODES, ROOT

PATIENCE_S = 120


def start(local, node, name, *argv):
    return subprocess.Popen([sys.executable, "-B", ROOT / "examples" / name, *map(str, argv)],
                            env={**os.environ, "SARISSA_SOCKET": local.socket[node]}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def told(child):
    out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, err.decode()
    return out


@pytest.fixture(autouse=True)
def clean(nodes):
    """The programs leave what others may still need."""
    yield
    for info in nodes[0].ls():
        try:
            nodes[0].delete(info.id, raw=True)
        except sarissa.NotFound:
            pass  # its lease has ended


def test_hello(local):
    lines = told(start(local, 0, "hello.py")).decode().splitlines()
    assert lines[0] == "(3, 4) float64 66.0 read-only: True" and lines[1].startswith("'nobody': "), lines


def left(node, *prefixes):
    """What programs of these names leave; all of it has an end."""
    infos = [info for prefix in prefixes for info in node.ls(prefix) if not info.name.endswith("#array")]
    assert all(info.expires is not None for info in infos), infos
    return [info.name for info in infos]


def test_allreduce_numpy(local, nodes):
    children = [start(local, rank, "allreduce_numpy.py", rank, NODES, 8) for rank in range(NODES)]
    assert {told(child) for child in children} == {b"".join(b"step %d sum %.1f\n" % (step, 6 + 4 * step)
                                                            for step in range(8))}
    assert left(nodes[0], "gradient/") == ["gradient/7"]


def test_async_sgd(local, nodes):
    server = start(local, 0, "async_sgd.py", "server", 3)
    workers = [start(local, rank, "async_sgd.py", "worker", rank - 1) for rank in (1, 2, 3)]
    found = [float(word) for word in told(server).decode().split("[")[1].strip(" ]\n").split()]
    assert all(abs(one - right) < 0.2 for one, right in zip(found, (3.0, -2.0, 0.5))), found
    assert all(told(worker).startswith(b"worker") for worker in workers)
    assert len(left(nodes[0], "gradient/", "parameters/", "newest/")) < 30, "80 steps leave more than few would"


def test_stream_file(local, tmp_path):
    (tmp_path / "file").write_bytes(data := os.urandom(5 << 20))
    readers = [start(local, node, "stream_file.py", "get", "streamed") for node in (1, 2)]
    assert told(start(local, 0, "stream_file.py", "put", tmp_path / "file", "streamed")) == b""
    assert [told(reader) == data for reader in readers] == [True, True]


def test_serve_ensemble(local):
    models = [start(local, node, "serve_ensemble.py", "model", node) for node in range(NODES)]
    answers = told(start(local, 1, "serve_ensemble.py", "ask", NODES, 3, 5)).decode().splitlines()
    assert len(answers) == 5 and all("answered by 3 models" in answer for answer in answers), answers
    for model in models:
        told(model)


def test_all_examples_are_run():
    files = [Path(__file__), ROOT / "tests/python/adapters/test_dask.py", *(ROOT / "tests/engines").glob("*/test_*.py")]
    here = "".join(path.read_text() for path in files)
    for path in (ROOT / "examples").glob("*.py"):
        assert re.search(rf'["/]{re.escape(path.name)}"', here), f"no test runs {path.name}"
