# SPDX-License-Identifier: BSD-3-Clause
"""What Node, Group, Lease and their asyncio forms do. Each operation is a generator of steps, which are calls of
the extension: it yields a Step, is sent what that has brought, and returns the result. The classes run them: Node
waits for each step in the thread that calls, aio.Node in its event loop. So arguments are checked, and results
built, once."""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from . import _arrays, _objects, _sarissa
from . import _results as results
from ._arrays import Given, Meaning
from ._connections import VIEWS_MAX
from ._errors import ClockAhead, Error, Exists, NotFound, OutOfRange, PartialError
from ._names import DTYPES, FOREVER, Name, dtype_of, op_of, timeout_ns, unsigned
from ._results import Holder, Info, Member, Shape
from ._streams import Writer
from ._types import item_bytes

SPREAD = 1
TOTAL = 1  # a flag of groups
RESULTS = {"round": 0, "total": TOTAL}
COPIED_BYTES = 1 << 20  # of strided arrays: from here on without a copy beside the store
T = TypeVar("T")


class Step(NamedTuple):
    """what: the name of a call of the extension, or a function that may wait. views: so many may come. about: the
    objects that it waits for, up to limit_ns."""

    what: Union[str, Callable[..., Any]]
    arguments: Tuple[Any, ...] = ()
    views: int = 0
    about: Sequence[Name] = ()
    limit_ns: int = FOREVER


Steps = Generator[Step, Any, T]
Range = Tuple[int, int]  # first byte, and how many


def ttl_ns(seconds: float) -> int:
    if not 0 < seconds < 3.2e8:
        raise ValueError(f"a time to live of {seconds} s: use a positive time of up to ten years")
    return max(1, int(seconds * 1e9))  # 0 is for ever


def names_of(names: Sequence[Name]) -> List[Name]:
    if isinstance(names, (str, bytes)):
        raise TypeError("a list of names is wanted, not one name")
    return list(names)


# --- writing

def put(name: Name, data: Any, ttl: Optional[float]) -> Steps[None]:
    lifetime = None if ttl is None else ttl_ns(ttl)
    given = _arrays.given_array(data)
    if given is None:
        _arrays.check_bytes(data)
        yield Step("put", (name, data), 1)
    else:
        yield from _put_array(name, given)
    if lifetime is not None:
        yield from _live(name, lifetime)


def _live(name: Name, lifetime: int) -> Steps[None]:
    with contextlib.suppress(NotFound):  # somebody has deleted it already
        yield Step("expire", (name, lifetime))


def _put_array(name: Name, given: Given) -> Steps[None]:
    meta = _arrays.write(given.meaning)

    def fill(memory: memoryview) -> None:
        import numpy
        numpy.copyto(_arrays.as_numpy(memory, given.meaning), given.strided)
    try:
        # of records the padding would stay as it was
        if given.memory is None and given.nbytes >= COPIED_BYTES and given.strided.dtype.names is None and \
                (yield from _filled(name, given.nbytes, meta, fill)):
            return
        yield Step("put", (name, given.contiguous().memory, None, meta), 1)
    except Exists as error:
        try:
            stored = _arrays.read((yield Step("info", (name,)))[12])
        except Error:
            stored = None
        raise error if stored is None or stored == given.meaning else \
            results.exists(name, stored, given.meaning) from None


def _filled(name: Name, size: int, meta: Optional[bytes], fill: Callable[[memoryview], None]) -> Steps[bool]:
    """Copies once, into the store. False: there is an object of that name, and a put has to compare."""
    try:
        creation = yield Step("create", (name, size, meta), 1)
    except Exists:
        return False
    with Writer(creation, size) as writer:
        assert writer.data is not None
        fill(writer.data)
        yield Step(writer.seal)
    return True


def put_object(name: Name, value: Any, ttl: Optional[float]) -> Steps[None]:
    lifetime = None if ttl is None else ttl_ns(ttl)
    yield from put_parts(name, _objects.parts_of(value))
    if lifetime is not None:
        yield from _live(name, lifetime)


def put_parts(name: Name, parts: _objects.Parts) -> Steps[None]:
    size = parts.layout.size
    if size < _objects.CREATED_BYTES or not (yield from _filled(name, size, None, parts.write)):
        yield Step("put", (name, parts.joined()), 1)


def create(name: Name, size: Optional[int], dtype: Any, shape: Optional[Shape]) -> Steps[Writer]:
    if dtype is None or shape is None:
        if size is None:
            raise TypeError("say how large it is: create(name, size), or create(name, dtype=..., shape=...)")
        return Writer((yield Step("create", (name, unsigned(size, 64)), 1)), size)
    named = results.created_type(dtype)
    lengths = (shape,) if isinstance(shape, int) else tuple(int(length) for length in shape)
    meaning = Meaning(named, lengths)
    if any(length < 0 for length in lengths):
        raise ValueError(f"no object can be an {meaning}")
    size = unsigned(item_bytes(named) * meaning.elements, 64)
    creation = yield Step("create", (name, size, _arrays.write(meaning)), 1)
    return Writer(creation, size, lambda memory: _arrays.as_numpy(memory, meaning))


def delete(name: Name) -> Steps[None]:
    yield Step("delete", (name,))


# --- reading

def view(name: Name, timeout: Optional[float], what: str = "get") -> Steps[_sarissa.View]:
    """what: "begin" for one that may still arrive."""
    limit = timeout_ns(timeout)
    got: _sarissa.View = yield Step(what, (name, limit), 1, (name,), limit)
    return got


def get_into(name: Name, buffer: Any, timeout: Optional[float]) -> Steps[int]:
    limit = timeout_ns(timeout)
    return (yield from _in_range(Step("get_into", (name, buffer, limit), 0, (name,), limit)))


def get_ranges(name: Name, ranges: Sequence[Range], timeout: Optional[float], into: Any) -> Steps[List[memoryview]]:
    limit, wanted = timeout_ns(timeout), [(unsigned(offset, 64), unsigned(count, 64)) for offset, count in ranges]
    ends = list(itertools.accumulate((count for _, count in wanted), initial=0))
    memory = bytearray(ends[-1]) if into is None else into
    flat = memoryview(memory)
    if into is None:
        flat = flat.toreadonly()
    elif flat.readonly:
        raise ValueError("into is read-only: give memory that can be written")
    elif flat.nbytes < ends[-1]:
        raise ValueError(f"into has {flat.nbytes} bytes, the ranges have {ends[-1]}: give more memory")
    elif flat.nbytes and (flat.format, flat.ndim) != ("B", 1):
        flat = flat.cast("B")
    yield from _in_range(Step("get_ranges", (name, memory, wanted, limit), 0, (name,), limit))
    return [flat[start:end] for start, end in zip(ends, ends[1:])]


def _in_range(step: Step) -> Steps[int]:
    """ERANGE means another thing here."""
    try:
        return int((yield step))
    except ClockAhead as error:
        raise OutOfRange(*error.args) from None


def gather(names: Sequence[Name], timeout: Optional[float], raw: bool) -> Steps[List[Any]]:
    """In turns of what a connection holds."""
    wanted, limit = names_of(names), timeout_ns(timeout)
    until, views = time.monotonic_ns() + limit, []
    for at in range(0, max(len(wanted), 1), VIEWS_MAX):
        part = wanted[at:at + VIEWS_MAX]
        left = limit if at == 0 or limit == FOREVER else max(0, until - time.monotonic_ns())
        views += yield Step("gather", (part, left), len(part), part, left)
    if raw:
        return [memoryview(one) for one in views]
    return [results.as_put(name, one) for name, one in zip(wanted, views)]


# --- how long objects live

def expire(name: Name, ttl: Optional[float]) -> Steps[None]:
    yield Step("expire", (name, 0 if ttl is None else ttl_ns(ttl)))


def lease(name: Optional[str], ttl: float) -> Steps[int]:
    number: int = yield Step("lease", (name, ttl_ns(ttl)))
    return number


def hold(number: int, name: Name) -> Steps[None]:
    yield Step("hold", (number, name))


def drop(number: int, name: Name) -> Steps[None]:
    yield Step("drop", (number, name))


def lease_end(number: int) -> Steps[None]:
    yield Step("lease_end", (number,))


# --- reduces

def reduce_request(target: Name, sources: Sequence[Name], op: str, dtype: Any, num: int, spread: bool,
                   limit_ns: int, min: int = 0, deadline: Optional[float] = None) -> _sarissa.Reduce:
    """As the extension takes it."""
    if (min > 0) != (deadline is not None):
        raise ValueError(f"min={min}, deadline={deadline}: a reduce has both or none of them: when it does with "
                         "fewer sources, and with how many at least")
    return (target, names_of(sources), op_of(op), 0 if dtype is None else DTYPES[dtype_of(dtype)], unsigned(num, 32),
            SPREAD if spread else 0, limit_ns, unsigned(min, 32), timeout_ns(deadline or 0, "deadline"))


def reduce(target: Name, sources: Sequence[Name], op: str, dtype: Any, num: int, spread: bool,
           timeout: Optional[float], min: int, deadline: Optional[float]) -> Steps[None]:
    yield Step("reduce", reduce_request(target, sources, op, dtype, num, spread, timeout_ns(timeout), min, deadline))


def reduce_sources(target: Name, timeout: Optional[float]) -> Steps[List[bytes]]:
    ids: List[bytes] = yield Step("reduce_sources", (target, timeout_ns(timeout)))
    return ids


def reduce_progress(target: Name) -> Steps[Tuple[List[bytes], List[bytes]]]:
    found, present = yield Step("reduce_progress", (target,))
    return found[:present], found[present:]


def allreduce(target: Name, sources: Sequence[Name], op: str, dtype: Any, shape: Optional[Shape],
              timeout: Optional[float], array: Any, rank: Optional[int]) -> Steps[Any]:
    if array is not None:
        memory, meaning = results.mine(array, sources, rank)
        yield Step("put", (sources[rank or 0], memory, None, _arrays.write(meaning)), 1)
        dtype, shape = meaning.dtype, meaning.shape
    request = reduce_request(target, sources, op, dtype, 0, False, timeout_ns(timeout))
    got = yield Step("allreduce", request, 1, (target,), request[6])
    return results.summed(target, got, dtype, shape)


def broadcast(name: Name, nodes: Optional[Sequence[int]], timeout: Optional[float]) -> Steps[None]:
    numbers, limit = list(nodes) if nodes is not None else [], timeout_ns(timeout)
    if nodes is None or numbers:
        yield Step("broadcast", (name, numbers, limit), 0, (name,), limit)


# --- the cluster

def info(name: Name) -> Steps[Info]:
    return results.info((yield Step("info", (name,))))


def ls(prefix: str) -> Steps[List[Info]]:
    try:
        return [results.info(raw) for raw in (yield Step("list", (prefix,)))]
    except PartialError as error:
        error.found = [results.info(raw) for raw in error.found]
        raise


def holders(name: Name) -> Steps[List[Holder]]:
    return [results.holder(raw) for raw in (yield Step("holders", (name,)))]


def nodes() -> Steps[List[Member]]:
    return [results.member(raw) for raw in (yield Step("nodes"))]


# --- groups

def create_group(name: str, dtype: Any, count: int, op: str, policy: str, members: int, kind: str,
                 switch: Optional[str]) -> Steps[Dict[str, Any]]:
    """What it is then, as group_info says."""
    if kind not in RESULTS:
        raise ValueError(f"results={kind!r}: use one of {', '.join(RESULTS)}")
    yield Step("group_create", (name, op_of(op), DTYPES[dtype_of(dtype)], unsigned(count, 64), unsigned(members, 32),
                                RESULTS[kind], policy, switch))
    return (yield from group_info(name))


def group_info(name: str) -> Steps[Dict[str, Any]]:
    described: Dict[str, Any] = yield Step("group_info", (name,))
    return described


def group_policy(name: str, text: str) -> Steps[int]:
    version: int = yield Step("group_policy", (name, text))
    return version


def group_remove(name: str) -> Steps[None]:
    yield Step("group_remove", (name,))


def group_join(name: str, cohort: Optional[str]) -> Steps[_sarissa.GroupMember]:
    made: _sarissa.GroupMember = yield Step("group_join", (name, cohort))
    return made


def explain_policy(text: str) -> Steps[str]:
    table: str = yield Step("policy_explain", (text,))
    return table


def group_push(member: _sarissa.GroupMember, contribution: Any) -> Steps[None]:
    yield Step("group_push", (member, contribution))


def group_pull(member: _sarissa.GroupMember,
               timeout: Optional[float]) -> Steps[Tuple[Optional[_sarissa.View], int, int, int, int]]:
    pulled: Tuple[Optional[_sarissa.View], int, int, int, int] = yield Step("group_pull", (member, timeout_ns(timeout)))
    return pulled


def group_contributors(member: _sarissa.GroupMember, round: int, attempt: int) -> Steps[List[Tuple[int, int, int, int]]]:
    raw: List[Tuple[int, int, int, int]] = yield Step("group_contributors", (member, round, attempt))
    return raw


def group_leave(member: _sarissa.GroupMember) -> Steps[None]:
    yield Step("group_leave", (member,))
