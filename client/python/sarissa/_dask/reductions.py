# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of dask.array as reduces of the store (sarissa.dask.reductions).

dask.array calls reduction() with what its sum, prod, min, max and mean do to a chunk and to the results. For those
with large results the tasks here stand in the place of Dask's tree: each chunk's own result is a source, put
where it is. All else is left to Dask. Tasks and their results are those of reduces.py."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import dask.array
import dask.array.chunk
import dask.array.reductions
import numpy
from dask.highlevelgraph import HighLevelGraph

from .messages import LARGE_BYTES
from .reduces import SOURCES_MAX, end, result_of, source_of
from .._names import dtype_of

Index = Tuple[int, ...]


def _kinds() -> Dict[Any, Tuple[str, Callable[..., Any]]]:
    """What is done to a chunk and to the results, as dask.array names it: our operation and numpy's function."""
    chunk, own = dask.array.chunk, dask.array.reductions
    return {(chunk.sum, chunk.sum): ("sum", numpy.sum), (chunk.nansum, chunk.sum): ("sum", numpy.nansum),
            (chunk.prod, chunk.prod): ("prod", numpy.prod), (chunk.nanprod, chunk.prod): ("prod", numpy.nanprod),
            (own.chunk_min, chunk.min): ("min", numpy.min), (own.chunk_max, chunk.max): ("max", numpy.max),
            (own.mean_chunk, own.mean_agg): ("mean", numpy.sum)}


def _axes(axis: Any, ndim: int) -> Index:
    """ValueError for what is no axis."""
    given = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = tuple(sorted({int(one) % ndim for one in given if -ndim <= int(one) < ndim}))
    if not axes or len(axes) != len(list(given)):
        raise ValueError(f"{axis!r} are not axes of {ndim}")
    return axes


def _fits(x: Any, axes: Index, dtype: Any) -> bool:
    """Whether a reduce of the store can do it, and is worth it."""
    sizes = [size for dimension in x.chunks for size in dimension]
    if any(math.isnan(size) or size == 0 for size in sizes) or type(getattr(x, "_meta", None)) is not numpy.ndarray:
        return False
    try:
        dtype_of(dtype)
    except (TypeError, ValueError):
        return False
    largest = math.prod(max(dimension) for i, dimension in enumerate(x.chunks) if i not in axes) * dtype.itemsize
    return bool(largest >= LARGE_BYTES) and 2 <= math.prod(x.numblocks[axis] for axis in axes) <= SOURCES_MAX


def _chunk(block: Any, function: Callable[..., Any], axes: Index, to: Any) -> Any:
    how = {} if function in (numpy.min, numpy.max) else {"dtype": to}
    return numpy.ascontiguousarray(function(block, axis=axes, keepdims=True, **how))


def _finish(result: Any, sources: List[Any], op: str, base: str, axes: Optional[Index], count: int, dtype: Any) -> Any:
    """The result as dask.array has it. axes: those that go. count: of what a mean is of, or 0."""
    total = end(result, sources, op, base)
    if count:
        total = numpy.true_divide(total, count).astype(dtype, copy=False)
    return total if axes is None else numpy.squeeze(total, axis=axes)


def _built(x: Any, op: str, function: Callable[..., Any], axes: Index, keepdims: bool, dtype: Any) -> Any:
    """An array of dask whose chunks are results of reduces."""
    ones = tuple((1,) * len(sizes) if i in axes else sizes for i, sizes in enumerate(x.chunks))
    partial = x.map_blocks(functools.partial(_chunk, function=function, axes=axes, to=dtype), chunks=ones, dtype=dtype,
                           meta=numpy.empty((0,) * x.ndim, dtype))
    name = f"sarissa-{op}-{uuid.uuid4().hex}"
    graph: Dict[Any, Any] = {}
    count = math.prod(x.shape[axis] for axis in axes) if op == "mean" else 0
    summed = "sum" if op == "mean" else op
    for index in itertools.product(*(range(1 if i in axes else n) for i, n in enumerate(x.numblocks))):
        base, blocks = f"dask-reduce/{uuid.uuid4().hex}", \
            itertools.product(*(range(n) if i in axes else (index[i],) for i, n in enumerate(x.numblocks)))
        keys, names = [], []
        for number, block in enumerate(blocks):
            keys.append((f"{name}-source", *block))
            names.append(f"{base}/{number}")
            graph[keys[-1]] = (source_of, (partial.name, *block), names[-1])
        out = index if keepdims else tuple(at for i, at in enumerate(index) if i not in axes)
        graph[(f"{name}-reduce", *index)] = (result_of, keys[0], base, names, summed, False, None)
        graph[(name, *out)] = (_finish, (f"{name}-reduce", *index), keys, summed, base, None if keepdims else axes,
                               count, dtype)
    chunks = tuple((1,) if i in axes else sizes for i, sizes in enumerate(x.chunks) if keepdims or i not in axes)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[partial])
    return dask.array.Array(layers, name, chunks, dtype=dtype, meta=numpy.empty((0,) * len(chunks), dtype))


def _reducer(reduction: Callable[..., Any]) -> Callable[..., Any]:
    kinds = _kinds()

    @functools.wraps(reduction)
    def reduced(x: Any, chunk: Any, aggregate: Any, *args: Any, **how: Any) -> Any:
        op, function = kinds.get((chunk, aggregate), ("", None))
        given = {key: value for key, value in how.items() if value is not None}
        if function is not None and not args and isinstance(x, dask.array.Array) and \
                not set(given) - {"axis", "keepdims", "dtype", "split_every", "combine", "concatenate"}:
            with contextlib.suppress(ValueError):  # of axes: Dask says so
                axes, dtype = _axes(how.get("axis"), x.ndim), numpy.dtype(how.get("dtype") or x.dtype)
                if _fits(x, axes, dtype):
                    return _built(x, op, function, axes, bool(how.get("keepdims")), dtype)
        return reduction(x, chunk, aggregate, *args, **how)
    return reduced


@contextlib.contextmanager
def building() -> Iterator[None]:
    """sarissa.dask.reductions()."""
    module = dask.array.reductions
    former = module.reduction
    module.reduction = _reducer(former)
    try:
        yield
    finally:
        module.reduction = former
