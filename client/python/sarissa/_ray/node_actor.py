# SPDX-License-Identifier: BSD-3-Clause
"""NodeActor: the actor on each Ray node that has a node there. _ray.cluster makes it in the driver; when the driver or
the Ray node has gone, Ray ends the actor, and its supervisor takes the node down."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from .. import _cluster
from .._errors import Error, Refused, NoNode
from .._node import Node
from . import place

PORT_FIRST, PORT_STEP, PORT_LAST = 7400, 16, 32000
BEGINS_S = 60.0  # a new folder is in use within
MEET_S = 0.02


class Answer(NamedTuple):
    """error: one line, or "": value is what was asked for."""

    value: Any = None
    error: str = ""


def daemon(kind: str) -> str:
    """The program, where `sarissa local` looks for it: beside the command or in sbin; in a build folder by kind."""
    folder = Path(_cluster.program()).resolve().parent
    for path in (folder / f"sarissa-{kind}", folder.parent / "sbin" / f"sarissa-{kind}",
                 folder.parent.parent / kind / f"sarissa-{kind}"):
        if os.access(path, os.X_OK):
            return str(path)
    raise Error(2, f"sarissa-{kind} is not beside the command {folder}/sarissa: install it")


def sweep() -> None:
    """Removes folders whose supervisor was killed."""
    for path in Path(place.base()).glob("ray-*"):
        try:
            if not (path / "lock").exists() and time.time() - path.stat().st_mtime > BEGINS_S:
                shutil.rmtree(path, ignore_errors=True)
            with open(path / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # in use, or just being made


def raylet() -> List[int]:
    """The number of Ray's process of this Ray node, where it is the parent of this one."""
    parent = os.getppid()
    try:
        words = Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
    return [parent] if os.path.basename(words[0]) == b"raylet" else []


class NodeActor:
    def __init__(self, ip: str) -> None:
        self._ip = ip
        self._port: Optional[socket.socket] = None
        self._supervisor: Optional[subprocess.Popen[str]] = None
        self._reads = threading.Lock()  # what the supervisor says, to its end

    def prepare(self) -> Answer:
        """Finds the programs, and an address that is free: "IP:PORT"."""
        try:
            daemon("dataplane"), daemon("control")
            sweep()
        except (Error, OSError) as error:
            return Answer(error=str(getattr(error, "strerror", None) or error))
        family = socket.AF_INET6 if ":" in self._ip else socket.AF_INET
        for port in range(PORT_FIRST, PORT_LAST, PORT_STEP):
            made = socket.socket(family, socket.SOCK_DGRAM)
            try:
                made.bind((self._ip, port))
            except OSError as error:
                made.close()
                if error.errno != 98:
                    return Answer(error=f"cannot bind to {self._ip}: {error.strerror}: start this Ray node with an "
                                  "address of this host (--node-ip-address)")
                continue
            self._port = made  # until start()
            return Answer(f"[{self._ip}]:{port}" if ":" in self._ip else f"{self._ip}:{port}")
        return Answer(error=f"no UDP port is free on {self._ip}")

    def start(self, number: int, seeds: List[str], how: Dict[str, Any]) -> Answer:
        """The socket's path, when the node serves."""
        assert self._port is not None
        port = self._port.getsockname()[1]
        self._port.close()
        try:
            folder = place.settings(*place.here(), how)
        except (Error, OSError) as error:
            return Answer(error=f"cannot make its run folder: {error}")
        words = json.dumps({"folder": folder, "raylet": raylet(),
                            "dataplane": [daemon("dataplane"), "--rundir", folder, "--port", f"udp:{self._ip}",
                                          "--udp-port", str(port), "--store", str(how["store"]), *how["dataplane"]],
                            "control": [daemon("control"), "--rundir", folder, "--node", str(number),
                                        "--seeds", ",".join(seeds), "--restart-grace", "3", *how["control"]]})
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")), words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._supervisor.stdout is not None
        line = self._supervisor.stdout.readline().strip()
        if line != "ready":
            return Answer(error=line or "its supervisor has ended")
        return Answer(f"{folder}/control.sock")

    def meet(self, numbers: List[int], timeout: float) -> Answer:
        """Waits until its node takes these nodes for up."""
        until = time.monotonic() + timeout
        with Node(f"{place.folder(*place.here())}/control.sock") as node:
            while missing := set(numbers) - {one.node for one in node.nodes() if one.state == "up"}:
                if time.monotonic() > until:
                    return Answer(error=f"it does not reach node {min(missing)} after {timeout:.0f} s: let UDP from port "
                                  f"{PORT_FIRST} on through between the hosts")
                time.sleep(MEET_S)
        return Answer()

    def existing(self) -> Answer:
        """The socket's path of the node that this host has already."""
        path = os.environ.get("SARISSA_SOCKET")
        try:
            with Node(path) as node:
                node.nodes()
        except (Refused, NoNode) as error:
            return Answer(error=f"{error.strerror}: start a node there, or call init() without nodes=\"existing\"")
        except Error as error:
            return Answer(error=str(error.strerror))
        return Answer(path or "")

    def wait(self) -> str:
        """Until the node has ended for good: why."""
        if self._supervisor is None:
            return "it was not started"
        assert self._supervisor.stdout is not None
        with self._reads:
            said = self._supervisor.stdout.read().strip()
        return said or "its supervisor has ended"

    def stop(self) -> None:
        """Returns when nothing of the node is left."""
        if self._supervisor is not None:
            assert self._supervisor.stdin is not None
            self._supervisor.stdin.close()
            self.wait()
