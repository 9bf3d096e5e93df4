# SPDX-License-Identifier: BSD-3-Clause
"""Dask's large arrays through the object store.

    client = distributed.Client(...)
    client.register_worker_plugin(sarissa.dask.Plugin())

From then on arrays of numpy and bytes of 1 MiB and more do not travel inside Dask's messages between
workers, nor in those of scatter() when the client's host has a node. The message has an id; the receiver
takes the object from its own node. Many receivers of one array, of scatter(broadcast=True) and of
replicate() as well, form the store's tree. What arrives is what the array was at that moment, and may be
written as without the plugin.
Dask decides as before where what goes and how long it lives: when it has let an array go, its object
is deleted; what a killed worker held ends with its lease. Where no node runs, where the other side does
not speak this, where the store is full or a node has died, arrays travel Dask's own way; so they do in a
cluster with encryption. docs/user/dask.md says more.

reduce() and allreduce() add up the results of futures in the network, as tasks finish. counts() tells what
went through the store."""

from __future__ import annotations

import asyncio
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

__all__ = ["Plugin", "allreduce", "close", "counts", "reduce"]

TESTED = ("2022.12.1",)  # versions of distributed
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
            messages.replace(distributed.Client, "_unregister_worker_plugin",
                             _unregisterer(distributed.Client._unregister_worker_plugin))
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
    """This process's client stops: what it scatters goes Dask's own way again. Unregistering the plugin does
    it as well."""
    global _scatters
    _scatters = False
    if not messages.workers:
        _close_store()


def _unregisterer(unregister: Any) -> Any:
    async def unregistered(client: Any, name: str, *args: Any, **how: Any) -> Any:
        answer = await unregister(client, name, *args, **how)
        if name == Plugin.name:
            await asyncio.get_running_loop().run_in_executor(None, close)
        return answer
    return unregistered


def _counts() -> Dict[str, int]:
    return dict(_store.counts) if _store is not None else {}


def counts(client: Any) -> Dict[str, int]:
    """What all workers have done since they have the plugin. "put": objects put; "passed on": ids sent of
    what was put before; "arrived": objects that came through the store; "as bytes": those that did not
    arrive, and came Dask's own way after all; "not put": sent Dask's own way, as no object was made of it."""
    found = client.run(_counts)
    keys = ("put", "passed on", "arrived", "as bytes", "not put")
    return {key: sum(one.get(key, 0) for one in found.values()) for key in keys}


def _untested() -> str:
    """Why nothing is replaced in this Dask; "": it may be."""
    if distributed.__version__.partition("+")[0] in TESTED:  # Debian adds +ds.1
        return ""
    return (f"sarissa.dask is tested with distributed {', '.join(TESTED)}, and this is {distributed.__version__}: "
            "Plugin(untested=True) tries it all the same")


class Plugin(distributed.WorkerPlugin):
    """For client.register_worker_plugin(). ttl: so many seconds after a worker was killed its objects
    go. in_clear: also where Dask encrypts its connections, arrays go through the store, which does not.
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
        worker.handlers["get_data"] = messages.confirming(worker.get_data)
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
        worker.handlers.pop(messages.SEND_BYTES, None)
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
