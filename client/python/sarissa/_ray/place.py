# SPDX-License-Identifier: BSD-3-Clause
"""Where this process is in the Ray cluster: the run folder of the node of its Ray node, the connection to it, and the
lease that holds what this process makes. A folder belongs to one Ray node and one job, so several Ray nodes of a host
have a node each. Without such a folder the node is the one of SARISSA_SOCKET, or the default one."""

from __future__ import annotations

import errno
import inspect
import json
import os
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import ray

from .._errors import Deleted, Error, NoNode, Refused
from .._leases import Lease
from .._node import Node

TESTED = ("2.51", "2.60")  # versions of Ray
TTL_S = 10.0
JOINS_S = 10.0  # a Ray node that has just joined gets its node within
LOCK = threading.RLock()
T = TypeVar("T")
_opened: Dict[Tuple[int, Optional[str]], Tuple[Node, Lease]] = {}  # of this process: a child after fork has its own


def check_version(untested: bool = False) -> None:
    version = ray.__version__
    if not untested and not any(version == one or version.startswith(one + ".") for one in TESTED):
        raise RuntimeError(f"sarissa.ray is tested with Ray {' and '.join(TESTED)}, and this is {version}: install one "
                           f"of them (pip install 'ray=={TESTED[-1]}.*'), or try this one with init(untested=True)")


def has_transports() -> bool:
    """Whether this Ray takes tensor transports in the form that transport.py has."""
    register = getattr(ray.experimental, "register_tensor_transport", None)
    return register is not None and "data_type" in inspect.signature(register).parameters


def check_connected() -> None:
    if not ray.is_initialized():
        raise RuntimeError("Ray is not initialized in this process: call ray.init() before sarissa.ray")


def here() -> Tuple[str, str]:
    """The Ray node and the job of this process."""
    check_connected()
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()


def base() -> str:
    """The folder of this user's nodes, made where it is missing. Others can neither read nor write it."""
    path = f"/tmp/sarissa-{os.geteuid()}"
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    status = os.lstat(path)
    if status.st_uid != os.geteuid() or status.st_mode & 0o77 or not os.path.isdir(path):
        raise Error(errno.EPERM, f"{path} is not a directory of this user alone: remove it")
    return path


def folder(ray_node: str, job: str) -> str:
    return f"{base()}/ray-{ray_node[:12]}-{job}"


def socket_path() -> Optional[str]:
    """Of the node that serves this process; None: the default one."""
    own = folder(*here())
    if os.path.isdir(own):
        return f"{own}/control.sock"
    return os.environ.get("SARISSA_SOCKET")


def ttl() -> float:
    """Of the leases of this job, in seconds."""
    try:
        with open(f"{folder(*here())}/settings.json") as file:
            return float(json.load(file)["ttl"])
    except (OSError, ValueError, KeyError):
        return TTL_S


def describe() -> str:
    """This Ray node, for errors."""
    ray_node, _ = here()
    return f"Ray node {ray_node[:12]} ({ray.util.get_node_ip_address()})"


def _connect() -> Tuple[Node, Lease]:
    """For a task, a node that is being started is waited for. The driver has started it."""
    until = time.monotonic() + (0 if ray._private.worker.global_worker.mode == ray.SCRIPT_MODE else JOINS_S)
    while True:
        try:
            node = Node(socket_path())
            return node, node.lease(ttl=ttl())
        except (Refused, NoNode) as error:
            if time.monotonic() >= until:
                raise NoNode(errno.ENOTCONN, f"{describe()}: no node of sarissa answers here: call sarissa.ray.init() "
                             f"in the driver ({error.strerror})") from None
            time.sleep(0.05)


def _ours() -> Tuple[Node, Lease]:
    with LOCK:
        where = os.getpid(), socket_path()
        if where not in _opened:
            _opened.clear()  # of nodes that have ended
            opened = _connect()
            where = os.getpid(), opened[0].address
            _opened[where] = opened
        return _opened[where]


def node() -> Node:
    """The connection of this process to the node of its Ray node. NoNode where there is none."""
    return _ours()[0]


def lease() -> Lease:
    """What this process makes lives as long as this lease, which ends some seconds after the process."""
    return _ours()[1]


def with_lease(do: Callable[[Lease], T]) -> T:
    """A lease that has ended, because its node lost all state, is replaced by another one."""
    first = lease()
    try:
        return do(first)
    except Deleted:
        with LOCK:
            for where, (opened, old) in _opened.items():
                if old is first:
                    _opened[where] = opened, opened.lease(ttl=ttl())
        return do(lease())


def close() -> None:
    """What this process made goes."""
    with LOCK:
        opened = [both for (pid, _), both in _opened.items() if pid == os.getpid()]
        _opened.clear()
    for node_, lease_ in opened:
        try:
            lease_.end()
        except Error:
            pass  # the node has gone, and its objects with it
        node_.close()


def settings(ray_node: str, job: str, values: Any) -> str:
    """Makes the run folder."""
    path = folder(ray_node, job)
    os.mkdir(path, 0o700)
    with open(f"{path}/settings.json", "w") as file:
        json.dump(values, file)
    return path
