# SPDX-License-Identifier: BSD-3-Clause
"""Ray tasks and methods of actors whose value goes through the store: the caller has its Ref at once. What Ray returns
for them is a Status. Ray's references of the Refs among the arguments are arguments as well, so Ray begins the task
when these are there."""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import ray

from .._errors import Exists, NotFound, StoreFull
from .._names import Name
from . import owned, place, values
from .refs import Ref, Status, nested, new
from .waits import get

OUT, AFTER = "_sarissa_out", "_sarissa_after"


def put(value: Any, ref: Optional[Ref]) -> Ref:
    given = new() if ref is None else ref
    status = store(given.name, value, False)
    given._origin = given._origin._replace(made=True, kind=status.kind)
    return given


def store(name: Name, value: Any, again: bool) -> Status:
    """again: a task that Ray runs once more may replace what it has put."""
    def make() -> str:
        return place.with_lease(lambda lease: values.put(lease._maker, name, value))
    with nested() as inside:
        try:
            kind = with_room(make)
        except Exists:
            if not again:
                raise
            with contextlib.suppress(NotFound):
                place.node().delete(name)
            kind = with_room(make)
    owned.put(name, inside)
    return Status(kind, inside)


def with_room(make: Callable[[], str]) -> str:
    """Objects without a Ref go within a moment: a full store is tried again."""
    until = time.monotonic() + owned.ROOM_S
    while True:
        try:
            return make()
        except StoreFull:
            if time.monotonic() >= until:
                raise
            owned.make_room()


def brought(args: Sequence[Any], named: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    """Refs among the arguments as their values, as Ray has it for its own."""
    refs = [one for one in (*args, *named.values()) if isinstance(one, Ref)]
    if not refs:
        return list(args), named
    of = dict(zip(refs, get(refs, None)))

    def value(one: Any) -> Any:
        return of[one] if isinstance(one, Ref) else one
    return [value(one) for one in args], {key: value(one) for key, one in named.items()}


def before(args: Sequence[Any]) -> List[Any]:
    """Ray references that the task is to wait for: of Refs that a single task makes."""
    return [one._origin.task for one in args
            if isinstance(one, Ref) and one._origin.task is not None and not one._origin.made]


def runner(function: Callable[..., Any]) -> Callable[..., Status]:
    def run(_sarissa_out: str, _sarissa_count: int, *args: Any, **named: Any) -> Status:
        given, by_name = brought(args[_sarissa_count:], named)
        return store(_sarissa_out, function(*given, **by_name), True)
    run.__name__, run.__qualname__ = function.__name__, function.__qualname__
    run.__module__, run.__doc__ = function.__module__, function.__doc__
    return run


class Task:
    """A function whose calls are Ray tasks, and whose values go through the store: made by sarissa.ray.task."""

    def __init__(self, function: Callable[..., Any], options: Dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self._remote: Any = None

    def remote(self, *args: Any, **named: Any) -> Ref:
        """Begins a task: the Ref of its value, at once."""
        if self._remote is None:
            made = runner(self._function)
            self._remote = ray.remote(**self._options)(made) if self._options else ray.remote(made)
        out, waits = new(), before((*args, *named.values()))
        return out.bind(self._remote.remote(out.name, len(waits), *waits, *args, **named))

    def options(self, **options: Any) -> Task:
        """With other options of Ray, such as num_cpus."""
        return Task(self._function, {**self._options, **options})

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise TypeError(f"{self._function.__name__} is a task: call {self._function.__name__}.remote()")

    def __reduce__(self) -> Tuple[Any, ...]:
        return Task, (self._function, self._options)


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def run(self: Any, *args: Any, **named: Any) -> Any:
            import asyncio
            out = split(named)
            if out is None:
                return await function(self, *args, **named)
            loop = asyncio.get_running_loop()
            given, by_name = await loop.run_in_executor(None, brought, args, named)
            value = await function(self, *given, **by_name)
            return await loop.run_in_executor(None, store, out, value, True)
    else:
        @functools.wraps(function)
        def run(self: Any, *args: Any, **named: Any) -> Any:
            out = split(named)
            if out is None:
                return function(self, *args, **named)
            given, by_name = brought(args, named)
            return store(out, function(self, *given, **by_name), True)
    del run.__wrapped__  # type: ignore[attr-defined]  # Ray would take the signature from there
    run.__signature__ = widened(inspect.signature(function))  # type: ignore[attr-defined]
    return run


def split(named: Dict[str, Any]) -> Optional[str]:
    """Takes away what call() has added."""
    for key in [key for key in named if key.startswith(AFTER)]:
        del named[key]
    out: Optional[str] = named.pop(OUT, None)
    return out


def widened(signature: inspect.Signature) -> inspect.Signature:
    """With any named arguments: Ray looks at it before a call."""
    parameters = list(signature.parameters.values())
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        parameters.append(inspect.Parameter("_sarissa_more", inspect.Parameter.VAR_KEYWORD))
    return signature.replace(parameters=parameters)


def call(actor_method: Any, args: Sequence[Any], named: Dict[str, Any]) -> Ref:
    waits = before((*args, *named.values()))
    if isinstance(actor_method, Task):
        actor_method()  # says what to do
    if not hasattr(actor_method, "remote"):
        raise TypeError(f"{actor_method!r} is no method of an actor: sarissa.ray.call(actor.method, ...)")
    more = {f"{AFTER}{number}": one for number, one in enumerate(waits)}
    out = new()
    try:
        return out.bind(actor_method.remote(*args, **named, **more, **{OUT: out.name}))
    except TypeError as error:  # Ray has looked at the method's parameters
        if OUT not in str(error):
            raise
        name = getattr(actor_method, "_method_name", actor_method)
        raise TypeError(f"{name} has no decorator @sarissa.ray.method, which call() needs: add it to the method, or use "
                        "ray's remote()") from None
