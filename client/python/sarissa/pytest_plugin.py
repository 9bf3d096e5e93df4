# SPDX-License-Identifier: BSD-3-Clause
"""A fixture of pytest: a cluster of real nodes for the tests of a program. In conftest.py:

    pytest_plugins = ["sarissa.pytest_plugin"]

and in a test:

    def test_sum(sarissa_cluster):
        sarissa_cluster[0].put("x", b"abc")
        assert sarissa_cluster[1].get("x", timeout=10) == b"abc"

All tests of a run share it. sarissa_nodes and sarissa_store (MiB) in pytest.ini say how large it is."""

from __future__ import annotations

from typing import Iterator

import pytest

from ._cluster import LocalCluster

__all__ = ["sarissa_cluster"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("sarissa_nodes", "nodes of the fixture sarissa_cluster", default="2")
    parser.addini("sarissa_store", "MiB of the store of each of them", default="256")


@pytest.fixture(scope="session")
def sarissa_cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A sarissa.LocalCluster for the time of the run."""
    nodes, store = (int(str(request.config.getini(name))) for name in ("sarissa_nodes", "sarissa_store"))
    with LocalCluster(nodes, store) as cluster:
        yield cluster
