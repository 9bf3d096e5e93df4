# SPDX-License-Identifier: BSD-3-Clause
"""Dask's large values through the object store.

    client = distributed.Client(...)
    client.register_plugin(sarissa.dask.Plugin())    # register_worker_plugin in Debian 12

From then on what is 1 MiB and more does not travel inside Dask's messages between workers when several of them read
it: arrays, bytes, data frames, tensors of the CPU, all that Dask or pickle writes as buffers. Nor does it in those
of scatter() and gather() when the client's host has a node. The message has an id; the receiver takes the object
from its own node. Many receivers form the store's tree. What arrives is what the value was at that moment, and may
be written as without the plugin. What has one reader goes Dask's own way.
Dask decides as before where what goes and how long it lives: when it has let a value go, its objects are deleted;
what a killed worker held ends with its lease. Where no node runs, where the other side does not speak this, where
the store is full or a node has died, values travel Dask's own way; so they do in a cluster with encryption.
docs/user/dask.md says more.

reduce() and allreduce() add up the results of futures in the network, as tasks finish. reductions() does so with
those of dask.array. counts() tells what went through the store."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any, Dict, Optional

import distributed

from ._dask import messages as messages
from ._dask import scheduler as _dask_scheduler
from . import _sarissa
from ._dask.messages import is_encrypted, warn_once
from ._dask.reduces import allreduce, reduce
from ._dask.store import Store
from ._errors import Error, Refused
from ._operations import ttl_ns

__all__ = ["Plugin", "allreduce", "close", "counts", "reduce", "reductions"]

TESTED = ((2022, 12, 1), (2026, 8, 0))  # the first and the last version of distributed
DRAIN_S = 5.0
_store: Optional[Store] = None
_users: Dict[str, int] = {}  # plugins that workers of this process have, by the worker's address
_scatters = False  # this process has made a Plugin, so its client uses the store


def _open_store(ttl: float) -> Store:
    """That of this process."""
    global _store
    if _store is None:
        store = Store(ttl)
        try:
            messages.patch()
            messages.replace(distributed.Client, "_scatter",
                             _dask_scheduler.scatterer(distributed.Client._scatter))
        except BaseException:
            messages.unpatch()
            store.close()
            raise
        _store = store
    return _store


def _close_store() -> None:
    global _store
    store, _store = _store, None
    messages.unpatch()
    if store is not None:
        store.close()


def close() -> None:
    """This process's client stops: what it scatters and gathers goes Dask's own way again."""
    global _scatters
    _scatters = False
    _reconnect()
    if not messages.workers:
        _close_store()


def _reconnect() -> None:
    """The clients of this process connect again, and tell the scheduler whether they take ids."""
    for client in list(distributed.Client._instances):
        if client.status == "running":
            client.loop.add_callback(_forget_connections, client.rpc)


def _forget_connections(rpc: Any) -> None:
    """Those that are not in use, without Dask's line about it, which Debian 12 prints on the terminal."""
    log = logging.getLogger("distributed.core")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        rpc.collect()
    finally:
        log.setLevel(level)


def _counts() -> Dict[str, int]:
    return dict(_store.counts) if _store is not None else {}


def reductions() -> Any:
    """In the block, large reductions of dask.array are built as reduces of the store: sum, prod, mean, min, max,
    nansum and nanprod whose results have chunks of 1 MiB and more; one reduce for each chunk of the result, of 2 to
    1,024 chunks. Results differ from Dask's by the order of the additions only. Others are Dask's own. What was
    built in the block may be computed outside. One thread at a time may be in such a block.

        with sarissa.dask.reductions():
            gradient = gradients.mean(axis=0)
        gradient.compute()"""
    from ._dask.reductions import building  # needs dask.array, which the rest does not
    return building()


def counts(client: Any) -> Dict[str, int]:
    """What all workers have done since they have the plugin. "put": objects put; "passed on": ids sent of
    what was put before; "arrived": objects that came through the store; "as bytes": those that did not
    arrive, and came Dask's own way after all; "not put": sent Dask's own way, as no object was made of it."""
    found = client.run(_counts)
    keys = ("put", "passed on", "arrived", "as bytes", "not put")
    return {key: sum(one.get(key, 0) for one in found.values()) for key in keys}


def _untested() -> str:
    """Why nothing is replaced in this Dask; "": it may be."""
    lacks = messages.missing()
    if lacks:
        return f"sarissa.dask does not find {lacks} in distributed {distributed.__version__}"
    version = tuple(int(part) for part in re.findall(r"\d+", distributed.__version__)[:3])
    if TESTED[0] <= version <= TESTED[1]:
        return ""
    first, last = (".".join(map(str, one)) for one in TESTED)
    return (f"sarissa.dask is tested with distributed {first} to {last}, and this is {distributed.__version__}: "
            "Plugin(untested=True) tries it all the same")


class Plugin(distributed.WorkerPlugin):
    """For client.register_plugin(), or register_worker_plugin() in Debian's Dask. ttl: so many seconds after a
    worker was killed its objects go. in_clear: also where Dask encrypts its connections, arrays go through the store, which does not.
    untested: also with a version of distributed that the package was not tested with.
    A worker on a host without a node warns, and works as without the plugin. On a host without a
    node, what the client scatters goes to the scheduler Dask's own way."""

    name = "sarissa"

    def __init__(self, ttl: float = 10.0, in_clear: bool = False, untested: bool = False) -> None:
        global _scatters
        self.ttl, self.in_clear, self.untested, self.version = ttl, in_clear, untested, _sarissa.version
        self.joined = False
        ttl_ns(ttl)
        for client in list(distributed.Client._instances):
            if client.status == "running" and client.scheduler is not None and not in_clear and \
                    is_encrypted(client.scheduler.address):
                warn_once(self._clear_text(f"the scheduler {client.scheduler.address}"))
        reason = "" if untested else _untested()
        if reason:
            warn_once(f"what this client scatters goes Dask's own way: {reason}")
            return
        try:
            _open_store(ttl).in_clear |= in_clear
            _scatters = True
            _reconnect()
        except Refused:
            pass
        except Error as error:
            warn_once(f"what this client scatters goes Dask's own way: {error}")

    @staticmethod
    def _clear_text(who: str) -> str:
        return (f"{who} encrypts its connections, and the object store does not: arrays go Dask's own way; "
                "sarissa.dask.Plugin(in_clear=True) sends them through the store in clear")

    async def setup(self, worker: Any) -> None:
        if self.version != _sarissa.version:
            raise RuntimeError(f"sarissa.dask.Plugin is of version {self.version} (the client), and the "
                               f"package of worker {worker.address} of version {_sarissa.version}: install "
                               "one version on both")
        encrypts = is_encrypted(worker.address) or is_encrypted(worker.scheduler.address) or \
            worker.security.require_encryption
        if encrypts and not self.in_clear:
            warn_once(self._clear_text(f"worker {worker.address}"))
            return
        reason = "" if self.untested else _untested()
        if reason:
            warn_once(f"worker {worker.address}: arrays go Dask's own way: {reason}")
            return
        try:
            store = _open_store(self.ttl)  # another version of the node: VersionMismatch, to the client
        except Refused as error:
            warn_once(f"worker {worker.address}: arrays go Dask's own way: {error}")
            return
        store.in_clear |= self.in_clear
        self.joined = True
        _users[worker.address] = _users.get(worker.address, 0) + 1
        messages.workers[worker.address] = worker
        worker.handlers[messages.SEND_BYTES] = messages.send_bytes
        worker.handlers["get_data"] = messages.confirming(worker)
        worker.handlers[messages.SEND_IDS] = messages.sending_ids(worker)
        worker.rpc.collect()  # connections from before do not say that we take ids
        try:
            await _dask_scheduler.tell(worker.scheduler, _dask_scheduler.join, address=worker.address,
                                       node=store.address, ttl=self.ttl)
        except Exception as error:
            warn_once("the scheduler cannot take part, so scatter(broadcast=True) sends arrays Dask's own "
                      f"way: {error}")

    async def teardown(self, worker: Any) -> None:
        """When it is unregistered, or the worker ends: all is as it was."""
        if not self.joined:
            return
        _users[worker.address] -= 1
        if _users[worker.address] > 0:
            return
        del _users[worker.address], messages.workers[worker.address]
        try:
            await asyncio.wait_for(_dask_scheduler.tell(worker.scheduler, _dask_scheduler.leave,
                                                        address=worker.address), DRAIN_S)
        except Exception:
            pass  # it has gone
        if not messages.workers and not _scatters:
            await self._stop(worker)
        for name in (messages.SEND_BYTES, messages.SEND_IDS):
            worker.handlers.pop(name, None)
        worker.handlers["get_data"] = worker.get_data

    @staticmethod
    async def _stop(worker: Any) -> None:
        """No id is sent to us any more, and those under way have come, when the store is closed."""
        assert _store is not None
        _store.retires = True
        worker.rpc.collect()
        loop = asyncio.get_running_loop()
        until = loop.time() + DRAIN_S
        busy = {comm for address, comms in worker.rpc.occupied.items() for comm in comms
                if address != worker.scheduler.address}
        while (_store.arriving or busy & set().union(*worker.rpc.occupied.values())) and loop.time() < until:
            await asyncio.sleep(0.01)
        await loop.run_in_executor(None, _close_store)
