# SPDX-License-Identifier: BSD-3-Clause
"""scatter(), gather() and replicate() through the object store: what a client puts on its host and what Dask's
scheduler passes on. Where the ids do not arrive, all goes once more Dask's own way.
The scheduler also says which results have several readers."""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Callable, Counter, Dict, List, Optional, Sequence, Set

import distributed
from dask.sizeof import sizeof
from distributed.core import send_recv
from distributed.protocol import pickle
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized
from distributed.utils import has_keyword

from .messages import (HANDSHAKE, LARGE_BYTES, NOT_PUT, SEND_IDS, SEVERAL, TOLD, bytes_in, current, frames_of,
                       is_encrypted, is_mark, plain, relay, with_ids)
from .store import Store
from .._errors import Error

BRANCHES = 1 << 10


# --- a client whose host has a node


def _large(data: Any) -> List[Any]:
    values = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else [data]
    return [one for one in values if type(one) not in (dict, list, tuple, set) and sizeof(one) >= LARGE_BYTES]


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
    for index, frame in enumerate(frames_of(thing)[1]):
        if bytes_in(frame) >= LARGE_BYTES:
            try:
                store.ident_of(thing, index, frame, nodes)
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
    """What scatter(), gather() and replicate() do when the workers speak this. What a client has put on its
    host is passed on. Else, where the scheduler's own host has a node, it puts there what is to be
    broadcast. All workers get it at once. A client on a node gets ids of what it gathers."""

    def __init__(self, scheduler: Any, ttl: float) -> None:
        self.scheduler = scheduler
        self.workers: Dict[str, str] = {}  # and their nodes
        try:
            self.store: Optional[Store] = Store(ttl)
        except Error:
            self.store = None
        self.plain = {name: scheduler.handlers[name] for name in ("scatter", "gather", "replicate")}
        scheduler.replicate = self.replicate  # scatter() calls it
        scheduler.handlers.update({"scatter": self.scatter, "gather": self.gather, "replicate": self.replicate,
                                   SEVERAL: self.read_by_several})
        self.replicating: Counter[Any] = collections.Counter()  # keys

    def join(self, worker: str, node: str) -> None:
        self.workers = {one: its for one, its in self.workers.items() if one in self.scheduler.workers}
        self.workers[worker] = node

    def leave(self, worker: str) -> None:
        """After the last one the scheduler is as it was."""
        self.workers.pop(worker, None)
        if set(self.workers) & set(self.scheduler.workers):
            return
        del self.scheduler.replicate  # what hid that of the class
        self.scheduler.handlers.update(self.plain)
        self.scheduler.handlers.pop(SEVERAL, None)
        self.scheduler.extensions.pop("sarissa", None)
        if self.store is not None:
            try:
                asyncio.get_running_loop().run_in_executor(None, self.store.close)
            except RuntimeError:  # the program ends, and the loop's threads have
                self.store.close()

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

    def read_by_several(self, keys: Any) -> List[Any]:
        """Those that two workers, which have not got them, have tasks for. A worker asks that is to send them."""
        return [key for key in keys if key in self.replicating or self.has_several_readers(self.scheduler.tasks.get(key))]

    @staticmethod
    def has_several_readers(task: Any) -> bool:
        readers: Set[Any] = set()
        for reader in (task.waiters or ()) if task is not None else ():
            if reader.processing_on is not None and reader.processing_on not in (task.who_has or ()):
                readers.add(reader.processing_on)
                if len(readers) > 1:
                    return True
        return False

    async def replicate(self, comm: Any = None, keys: Any = (), branching_factor: int = 2, **how: Any) -> Any:
        """In one step, because receivers pass on what they get while they get it."""
        if self.all_speak():
            branching_factor = BRANCHES
        self.replicating.update(keys)
        try:
            return await self.plainly("replicate", comm, keys=keys, branching_factor=branching_factor, **how)
        finally:
            self.replicating.subtract(keys)
            self.replicating += collections.Counter()  # without those that are at zero

    async def plainly(self, name: str, comm: Any, **how: Any) -> Any:
        """As Dask does it."""
        if has_keyword(self.plain[name], "comm"):  # of Debian's Dask
            how["comm"] = comm
        return await self.plain[name](**how)

    async def gather(self, comm: Any = None, keys: Any = (), serializers: Any = None) -> Any:
        """Large results as ids, where the client is on a node of the workers' cluster."""
        reader = (getattr(comm, "remote_info", None) or {}).get(HANDSHAKE)
        by_ids = await self.ids_of(keys, reader) if reader is not None and serializers is None else {}
        answer = await self.plainly("gather", comm, keys=[key for key in keys if key not in by_ids],
                                    serializers=serializers)
        if answer["status"] == "OK":
            answer["data"].update(by_ids)
        return answer

    async def ids_of(self, keys: Any, reader: str) -> Dict[Any, Any]:
        """What workers answer with ids; without those that cannot."""
        wanted: Dict[str, List[Any]] = {}
        for key in keys:
            task = self.scheduler.tasks.get(key)
            if task is not None and task.nbytes >= LARGE_BYTES:
                holder = next((one.address for one in task.who_has or () if one.address in self.workers), None)
                if holder is not None:
                    wanted.setdefault(holder, []).append(key)
        answers = await asyncio.gather(*[self._ids_from(*one, reader) for one in wanted.items()], return_exceptions=True)
        return {key: value for answer in answers if not isinstance(answer, BaseException)
                for key, value in answer.items()}

    async def _ids_from(self, worker: str, keys: List[Any], reader: str) -> Dict[Any, Any]:
        comm = await self.scheduler.rpc.connect(worker)
        try:
            answer = await send_recv(comm, op=SEND_IDS, keys=keys, reader=reader)
            if answer["status"] != "OK":
                return {}
            await comm.write("OK")
            return answer["data"]  # type: ignore[no-any-return]
        finally:
            self.scheduler.rpc.reuse(worker, comm)

    async def scatter(self, comm: Any = None, data: Any = None, workers: Any = None, client: Any = None,
                      broadcast: Any = False, timeout: float = 2) -> Any:
        how = {"workers": workers, "client": client, "broadcast": broadcast, "timeout": timeout}
        relayed = any(isinstance(value, Serialized) and any(map(is_mark, value.frames)) for value in data.values())
        if relayed and not self.all_speak():
            raise NotRelayed("a worker has no node")
        objects = self.objects(data) if broadcast is True and self.reached() else {}
        try:
            if broadcast is not True or not (objects or relayed):
                return await self.plainly("scatter", comm, data=data, **how)
            return await self.to_all({**data, **objects}, workers, client)
        except OSError as error:  # a worker has not got all
            if relayed:
                raise NotRelayed(str(error)) from None
            return await self.plainly("scatter", comm, data=data, **how)

    async def to_all(self, data: Dict[str, Any], workers: Any, client: Any) -> Any:
        """To all of workers at once."""
        wanted = {self.scheduler.coerce_address(one) for one in workers or ()}
        targets = [worker.address for worker in self.scheduler.running if not wanted or worker.address in wanted]
        if not targets:
            raise OSError("no worker")
        how = {"report": False} if has_keyword(distributed.Worker.update_data, "report") else {}
        answers = await asyncio.gather(*[self.scheduler.rpc(target).update_data(data=data, **how)
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
        """With ids in the place of large frames, which Dask has cut in pieces."""
        header = dict(value.header)
        if header.get("is-collection") or TOLD in header:
            return None
        pieces = decompress(header, value.frames) if "compression" in header else value.frames
        counts = header.get("split-num-sub-frames") or (1,) * len(pieces)
        frames, at = [], 0
        for count in counts:
            frames.append(pieces[at] if count == 1 else b"".join(pieces[at:at + count]))
            at += count
        assert self.store is not None
        header, frames = with_ids(self.store, value, header, frames)
        if TOLD not in header:
            return None
        header.update({"split-num-sub-frames": (1,) * len(frames), "split-offsets": tuple(range(len(frames))),
                       "compression": (None,) * len(frames)})
        return Serialized(header, frames)


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
