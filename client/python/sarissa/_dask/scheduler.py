# SPDX-License-Identifier: BSD-3-Clause
"""scatter() and replicate() through the object store: what a client puts on its host and what Dask's scheduler
passes on. Where the ids do not arrive, all goes once more Dask's own way."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Dict, List, Optional, Sequence

from distributed.protocol import pickle
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized

from .messages import LARGE_BYTES, NOT_PUT, bytes_in, current, dumps_of, is_encrypted, is_mark, ours, plain, put, relay
from .store import Store
from .._errors import Error

BRANCHES = 1 << 10


# --- a client whose host has a node


def _large(data: Any) -> List[Any]:
    values = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else [data]
    return [one for one in values if type(one) in dumps_of and bytes_in(one) >= LARGE_BYTES]


async def _relays(client: Any, store: Store) -> List[str]:
    """The nodes of all workers, when the scheduler passes ids on and all are of our cluster."""
    try:
        answer = await client.scheduler.run_function(
            function=pickle.dumps(_nodes), args=pickle.dumps(()), kwargs=pickle.dumps({}), wait=True)
    except Exception:
        return []  # it may not run functions: the scatter tells what else is wrong
    nodes: Optional[List[str]] = answer.get("result") if answer.get("status") == "OK" else None
    return nodes if nodes and all(store.knows(node) for node in nodes) else []


def _put_early(store: Store, thing: Any, nodes: Sequence[str]) -> None:
    """While Dask computes a hash of it for its key."""
    header, frames = dumps_of[type(thing)](thing)
    if len(frames) == 1:
        try:
            store.ident_of(thing, frames[0], nodes)
        except NOT_PUT:
            pass  # as when it is asked for, which warns


def scatterer(scatter: Callable[..., Any]) -> Callable[..., Any]:
    """What is scattered goes into the store of the client's host; the scheduler gets the ids."""
    async def plainly(*args: Any, **how: Any) -> Any:
        token = plain.set(True)
        try:
            return await scatter(*args, **how)
        finally:
            plain.reset(token)

    async def scattered(client: Any, data: Any, workers: Any = None, broadcast: Any = False, *args: Any,
                        **how: Any) -> Any:
        store, large = current(), _large(data)
        ask = store is not None and large and (store.in_clear or not is_encrypted(client.scheduler.address))
        nodes = await _relays(client, store) if store is not None and ask else []
        if store is None or not large:
            return await scatter(client, data, workers, broadcast, *args, **how)
        if not nodes:  # yet workers that are reached directly may take ids
            try:
                return await scatter(client, data, workers, broadcast, *args, **how)
            except OSError:
                return await plainly(client, data, workers, broadcast, *args, **how)
        for one in large:
            store.scatter_begins(one)
        spread = nodes if broadcast is True and not workers else []
        loop, token = asyncio.get_running_loop(), relay.set(client.scheduler.address)
        puts = [loop.run_in_executor(None, _put_early, store, one, spread) for one in large]
        try:
            return await scatter(client, data, workers, broadcast, *args, **how)
        except (NotRelayed, OSError):  # the ids have not arrived everywhere
            pass
        finally:
            relay.reset(token)
            await asyncio.gather(*puts, return_exceptions=True)
            for one in large:
                store.scatter_ends(one)
        return await plainly(client, data, workers, broadcast, *args, **how)
    return scattered


class NotRelayed(RuntimeError):
    """A worker cannot do with ids, or has not got what they stand for."""


# --- the scheduler


class _Scheduler:
    """What scatter() and replicate() do when the workers speak this. What a client has put on its host is
    passed on. Else, where the scheduler's own host has a node, it puts there what is to be broadcast.
    All workers get it at once."""

    def __init__(self, scheduler: Any, ttl: float) -> None:
        self.scheduler = scheduler
        self.workers: Dict[str, str] = {}  # and their nodes
        try:
            self.store: Optional[Store] = Store(ttl)
        except Error:
            self.store = None
        self.scatter_plain, self.replicate_plain = scheduler.scatter, scheduler.replicate
        scheduler.scatter, scheduler.replicate = self.scatter, self.replicate
        scheduler.handlers.update(scatter=self.scatter, replicate=self.replicate)

    def join(self, worker: str, node: str) -> None:
        self.workers = {one: its for one, its in self.workers.items() if one in self.scheduler.workers}
        self.workers[worker] = node

    def leave(self, worker: str) -> None:
        """After the last one the scheduler is as it was."""
        self.workers.pop(worker, None)
        if set(self.workers) & set(self.scheduler.workers):
            return
        del self.scheduler.scatter, self.scheduler.replicate  # what hid those of the class
        self.scheduler.handlers.update(scatter=self.scatter_plain, replicate=self.replicate_plain)
        self.scheduler.extensions.pop("sarissa", None)
        if self.store is not None:
            asyncio.get_running_loop().run_in_executor(None, self.store.close)

    def nodes(self) -> Optional[List[str]]:
        """Of all workers; None: one has none."""
        found = [self.workers.get(worker.address) for worker in self.scheduler.running]
        return None if None in found else sorted(set(found))  # type: ignore[arg-type]

    def all_speak(self) -> bool:
        return self.nodes() is not None

    def reached(self) -> bool:
        """Whether all workers get what this process puts."""
        nodes = self.nodes()
        return self.store is not None and nodes is not None and all(map(self.store.knows, nodes))

    async def replicate(self, comm: Any = None, branching_factor: int = 2, **how: Any) -> Any:
        """In one step, because receivers pass on what they get while they get it."""
        if self.all_speak():
            branching_factor = BRANCHES
        return await self.replicate_plain(comm=comm, branching_factor=branching_factor, **how)

    async def scatter(self, comm: Any = None, data: Any = None, workers: Any = None, client: Any = None,
                      broadcast: Any = False, timeout: float = 2) -> Any:
        how = {"comm": comm, "workers": workers, "client": client, "broadcast": broadcast, "timeout": timeout}
        relayed = any(isinstance(value, Serialized) and any(map(is_mark, value.frames)) for value in data.values())
        if relayed and not self.all_speak():
            raise NotRelayed("a worker has no node")
        objects = self.objects(data) if broadcast is True and self.reached() else {}
        try:
            if broadcast is not True or not (objects or relayed):
                return await self.scatter_plain(data=data, **how)
            return await self.to_all({**data, **objects}, workers, client)
        except OSError as error:  # a worker has not got all
            if relayed:
                raise NotRelayed(str(error)) from None
            return await self.scatter_plain(data=data, **how)

    async def to_all(self, data: Dict[str, Any], workers: Any, client: Any) -> Any:
        """To all of workers at once."""
        wanted = {self.scheduler.coerce_address(one) for one in workers or ()}
        targets = [worker.address for worker in self.scheduler.running if not wanted or worker.address in wanted]
        if not targets:
            raise OSError("no worker")
        answers = await asyncio.gather(*[self.scheduler.rpc(target).update_data(data=data, report=False)
                                         for target in targets], return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        self.scheduler.update_data(who_has={key: targets for key in data}, nbytes=answers[0]["nbytes"],
                                   client=client)
        return list(data)

    def objects(self, data: Dict[str, Any]) -> Dict[str, Any]:
        """Those of the values that are large, with an id in the place of their bytes."""
        found = {}
        for key, value in data.items():
            if isinstance(value, Serialized) and sum(map(len, value.frames)) >= LARGE_BYTES:
                made = self.converted(value)
                if made is not None:
                    found[key] = made
        return found

    def converted(self, value: Serialized) -> Optional[Serialized]:
        header = value.header
        if header.get("serializer") != "dask" or header.get("is-collection") or \
                len(header.get("split-num-sub-frames", (1,))) != 1 or \
                "sarissa" in header["sub-header"] or header["sub-header"].get("pickle"):
            return None
        frames = decompress(header, value.frames) if "compression" in header else value.frames
        frame = frames[0] if len(frames) == 1 else b"".join(frames)
        assert self.store is not None
        ident = put(self.store, value, frame)
        if ident is None:
            return None
        inner, frames = ours(ident, header["sub-header"])
        made = Serialized({**{key: header[key] for key in ("type", "type-serialized", "serializer")},
                           "sub-header": inner, "split-num-sub-frames": (1,), "split-offsets": (0,),
                           "compression": (None,)}, frames)
        return made


def join(dask_scheduler: Any, address: str, node: str, ttl: float) -> None:
    """Runs on the scheduler, for a worker that speaks this."""
    found = dask_scheduler.extensions.get("sarissa")
    if found is None:
        found = dask_scheduler.extensions["sarissa"] = _Scheduler(dask_scheduler, ttl)
    found.join(address, node)


def leave(dask_scheduler: Any, address: str) -> None:
    """The same, for one that stops."""
    found = dask_scheduler.extensions.get("sarissa")
    if found is not None:
        found.leave(address)


def _nodes(dask_scheduler: Any) -> Optional[List[str]]:
    """Runs on the scheduler, for a client."""
    found = dask_scheduler.extensions.get("sarissa")
    return found.nodes() if found is not None else None


async def tell(scheduler: Any, function: Callable[..., Any], **arguments: Any) -> None:
    """Runs a function on the scheduler; RuntimeError when it does not."""
    answer = await scheduler.run_function(function=pickle.dumps(function), args=pickle.dumps(()),
                                          kwargs=pickle.dumps(arguments), wait=True)
    if answer.get("status") != "OK":
        raise RuntimeError(answer.get("text", "it does not say why"))
