# SPDX-License-Identifier: BSD-3-Clause
"""LocalCluster, and the fixture of pytest."""

import gc
import os
import subprocess
import sys

import pytest
import sarissa
from conftest import BUILD


def is_up(name):
    return subprocess.run([BUILD / "client/cli/sarissa", "local", "status", "--name", name],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def test_nodes_that_go_with_the_block():
    with pytest.raises(KeyError):
        with sarissa.LocalCluster(2, store=16) as cluster:
            assert len(cluster) == 2 and is_up(cluster.name)
            cluster[0].put("x", b"abc")
            assert cluster[1].get("x", timeout=30) == b"abc" and cluster[-1] is cluster[1]
            assert [node is cluster[number] for number, node in enumerate(cluster)] == [True, True]
            with pytest.raises(IndexError):
                cluster[2]
            with cluster.open(1) as mine:
                assert mine is not cluster[1] and mine.get("x") == b"abc"
            task = "import sarissa; print(bytes(sarissa.open().get('x', timeout=30)))"
            assert subprocess.check_output([sys.executable, "-c", task], env=cluster.environment(1)) == b"b'abc'\n"
            kept = cluster[0]
            cluster.kill(1)
            assert not is_up(cluster.name)
            cluster.start(1)
            assert cluster.open(1).get("x", timeout=30) == b"abc"
            raise KeyError
    assert not is_up(cluster.name)
    with pytest.raises(sarissa.Closed):
        kept.info("x")
    cluster.close()


def test_nobody_refers_to_it():
    name = f"python-{os.getpid()}-gone"
    cluster = sarissa.LocalCluster(1, store=16, name=name)
    child = os.fork()
    if child == 0:
        cluster.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert is_up(name)
    del cluster
    gc.collect()
    assert not is_up(name)


def test_what_it_cannot_be():
    with pytest.raises(sarissa.Error, match="sarissa local up.*1 to 64"):
        sarissa.LocalCluster(65)
    with pytest.raises(sarissa.Error, match="--store takes"):
        sarissa.LocalCluster(1, store=1)


def test_the_fixture(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nsarissa_nodes = 2\nsarissa_store = 16\n")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sarissa.pytest_plugin"]\n')
    (tmp_path / "test_it.py").write_text(
        "def test_a(sarissa_cluster):\n"
        "    sarissa_cluster[0].put('x', b'abc')\n"
        "    assert len(sarissa_cluster) == 2 and sarissa_cluster[1].get('x', timeout=30) == b'abc'\n"
        "    print('NAME=' + sarissa_cluster.name)\n"
        "def test_b(sarissa_cluster):\n"
        "    assert sarissa_cluster[0].get('x', timeout=30) == b'abc'\n")
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
    assert not is_up(done.stdout.split("NAME=")[1].split()[0])
