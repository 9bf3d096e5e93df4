# SPDX-License-Identifier: BSD-3-Clause
"""LocalCluster: nodes on this machine's loopback addresses, for tests, notebooks and examples. It is `sarissa local`
(sarissa(1)) with a name of its own."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
import weakref
from pathlib import Path
from typing import Any, Dict, List, Optional, Type

from ._errors import Error
from ._node import Node

NUMBERS = itertools.count()
BUILT = Path(__file__).resolve().parents[2] / "cli" / "sarissa"  # beside the package in a build folder


def program() -> str:
    """The command of this build, or the one of the PATH."""
    found = str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("sarissa")
    if found is None:
        raise Error(errno.ENOENT, "a local cluster needs the command sarissa: install it, or name its folder in PATH")
    return found


def run(command: str, name: str, verb: str, *words: str) -> str:
    done = subprocess.run([command, "local", verb, f"--name={name}", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Error(errno.EIO, f"sarissa local {verb}: {done.stderr.strip().removeprefix('sarissa: ')}")
    return done.stdout


def end(command: str, name: str, pid: int, opened: Dict[int, Node]) -> None:
    if pid != os.getpid():  # a child after fork has no cluster
        return
    while opened:
        opened.popitem()[1].close()
    run(command, name, "down")


class LocalCluster:
    """Nodes 0 to n - 1, without root, each with a store of so many MiB. The cluster goes at the end of the with block,
    at close(), when nothing refers to it any more, and at the end of the program.

    >>> with sarissa.LocalCluster(2) as cluster:
    ...     cluster[0].put("x", b"abc")
    ...     bytes(cluster[1].get("x", timeout=10))
    b'abc'

    A program that is killed leaves it: `sarissa local down --name NAME`."""

    def __init__(self, n: int, store: int = 256, objects: Optional[int] = None, workers: int = 1, rails: int = 1,
                 name: Optional[str] = None) -> None:
        self.name = f"python-{os.getpid()}-{next(NUMBERS)}" if name is None else name
        self._command = program()
        self._opened: Dict[int, Node] = {}
        more = [] if objects is None else ["--objects", str(objects)]
        run(self._command, self.name, "up", str(n), "--store", str(store), "--workers", str(workers),
            "--rails", str(rails), *more)
        self._end = weakref.finalize(self, end, self._command, self.name, os.getpid(), self._opened)
        try:
            lines = run(self._command, self.name, "status", "--json").splitlines()
            #: of each node, for sarissa.open() and SARISSA_SOCKET
            self.sockets: List[str] = [json.loads(line)["socket"] for line in lines]
        except BaseException:
            self._end()
            raise

    def __len__(self) -> int:
        return len(self.sockets)

    def __getitem__(self, node: int) -> Node:
        """A connection to that node, which lives as long as the cluster."""
        socket = self.sockets[node]  # IndexError ends a loop over the cluster
        node %= len(self.sockets)
        if node not in self._opened:
            self._opened[node] = Node(socket)
        return self._opened[node]

    def open(self, node: int) -> Node:
        """A connection that is the caller's."""
        return Node(self.sockets[node])

    def environment(self, node: int) -> Dict[str, str]:
        """Of a process that is to be a task of that node: subprocess.run(..., env=cluster.environment(1))."""
        return {**os.environ, "SARISSA_SOCKET": self.sockets[node], "SARISSA_NODE": str(node % len(self))}

    def kill(self, node: int) -> None:
        """At once, as a power cut would."""
        run(self._command, self.name, "kill", str(node))

    def start(self, node: int) -> None:
        """Again, with an empty store."""
        run(self._command, self.name, "start", str(node))

    def close(self) -> None:
        self._end()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Any, trace: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sarissa.LocalCluster: {self.name}, {len(self)} nodes>"
