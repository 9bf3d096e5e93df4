# SPDX-License-Identifier: BSD-3-Clause
"""How a state dict lies in an object: a head in JSON that has the nested values and describes the tensors, and then
blocks, which are pieces of the tensors' storages. state.py writes and reads such objects. Nothing here knows nodes.

    bytes 0 to 7    b"SARTORC1"
    8 to 15         the bytes of the JSON, little-endian
    then            the JSON, with blanks behind it up to the first block
    then            each block, at a multiple of 64 bytes, the first one at 4,096 or later

Tensors that overlap in a storage are in one block, so tied weights stay tied. A tensor whose elements have gaps between
them, and that shares them with no other, is stored without the gaps."""

from __future__ import annotations

import base64
import io
import json
import pickle as pickles
import struct
import uuid
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import torch

MAGIC, HEAD, ALIGN, FIRST = b"SARTORC1", struct.Struct("<8sQ"), 64, 4096
WITHIN = 16  # a block begins at such a multiple of its storage, for elements of any type
SEQUENCES: Dict[type, str] = {list: "list", tuple: "tuple", torch.Size: "size", set: "set", frozenset: "frozenset"}
MAKERS = {kind: make for make, kind in SEQUENCES.items()}
PLAIN = (type(None), bool, int, float, str)
PICKLED = "pickle=True stores it by pickle, which runs code where it is loaded"


class Spec(NamedTuple):
    """A tensor of the object. first: bytes from the beginning of its block; stride, shape: elements."""

    dtype: Any
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    block: int
    first: int
    device: str

    @property
    def bytes(self) -> int:
        """From the first to the last byte of its elements."""
        return span(self.shape, self.stride) * int(self.dtype.itemsize)

    def of(self, block: Any) -> Any:
        """The tensor in a tensor of its block's bytes."""
        made = torch.empty(0, dtype=self.dtype, device=block.device)
        at = block.storage_offset() + self.first
        return made.set_(block.untyped_storage(), at // self.dtype.itemsize, self.shape, self.stride)


def span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to the last one."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride))


def bytes_of(tensor: Any, first: int, count: int) -> Any:
    """Bytes of a tensor's storage as a tensor of uint8, which shares its memory."""
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage(), first, (count,), (1,))


def where(path: Sequence[Any]) -> str:
    return ".".join(str(part) for part in path) or "the state dict"


def check(tensor: Any, path: Sequence[Any]) -> None:
    """TypeError for a tensor that is more than elements with a stride."""
    found = None
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        found = f"a {type(tensor).__name__}: store a plain tensor in its place, or {PICKLED}"
    elif tensor.layout != torch.strided:
        found = f"a tensor of layout {tensor.layout}: store its to_dense(), or its indices and values"
    elif tensor.is_quantized or tensor.is_nested or str(tensor.dtype).startswith("torch.q"):
        found = "a quantized or nested tensor: store a plain tensor in its place"
    elif tensor.device.type == "meta":
        found = "a tensor of device meta, which has no elements: give it memory first"
    if found is not None:
        raise TypeError(f"{where(path)} is {found}")


class Held(NamedTuple):
    """A tensor that is to be stored, with its place in its storage: first and last byte."""

    tensor: Any
    first: int
    last: int


class Block(NamedTuple):
    """memory: its bytes, a tensor of uint8 on the device that has them; or a tensor to be made contiguous."""

    memory: Any
    bytes: int
    copied: bool


class Tensors:
    """The tensors of a state dict, found while it is walked, and the blocks that they need."""

    def __init__(self) -> None:
        self.held: List[Held] = []
        self._numbers: Dict[int, int] = {}
        self._given: List[Any] = []  # keeps the ids

    def add(self, tensor: Any, path: Sequence[Any]) -> int:
        check(tensor, path)
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self.held)
            self._given.append(tensor)
            plain = tensor.detach().resolve_conj().resolve_neg()
            first = plain.storage_offset() * plain.element_size()
            self.held.append(Held(plain, first, first + span(plain.shape, plain.stride()) * plain.element_size()))
        return self._numbers[id(tensor)]

    def _together(self) -> Iterator[List[int]]:
        """Numbers of tensors that overlap."""
        places: Dict[Tuple[str, int], List[int]] = {}
        for number, one in enumerate(self.held):
            key = (str(one.tensor.device), one.tensor.untyped_storage().data_ptr())
            places.setdefault(key if one.last > one.first else ("", number), []).append(number)
        for numbers in places.values():
            numbers.sort(key=lambda number: self.held[number].first)
            group, end = numbers[:1], self.held[numbers[0]].last
            for number in numbers[1:]:
                if self.held[number].first >= end:
                    yield group
                    group = []
                group.append(number)
                end = max(end, self.held[number].last)
            yield group

    def blocks(self) -> Tuple[List[Spec], List[Block]]:
        specs: List[Any] = [None] * len(self.held)
        blocks: List[Block] = []
        for group in sorted(self._together(), key=min):
            number = group[0]
            tensor, first, last = self.held[number]
            if len(group) == 1 and tensor.numel() * tensor.element_size() < last - first:
                stride = torch.empty(tensor.shape, device="meta").stride()
                blocks.append(Block(tensor, tensor.numel() * tensor.element_size(), True))
                specs[number] = (tuple(stride), 0, len(blocks) - 1)
                continue
            first, last = first - first % WITHIN, max(self.held[number].last for number in group)
            blocks.append(Block(bytes_of(tensor, first, last - first), last - first, False))
            for number in group:
                specs[number] = (self.held[number].tensor.stride(), self.held[number].first - first, len(blocks) - 1)
        return [Spec(one.tensor.dtype, tuple(one.tensor.shape), tuple(stride), block, first, str(one.tensor.device))
                for one, (stride, first, block) in zip(self.held, specs)], blocks


# --- values

class Pickler(pickles.Pickler):
    """Leaves plain tensors to Tensors."""

    def __init__(self, memory: io.BytesIO, tensors: Tensors, path: Tuple[Any, ...]) -> None:
        super().__init__(memory, 5)
        self._tensors, self._path = tensors, path

    def persistent_id(self, value: Any) -> Any:
        plain = type(value) is torch.Tensor and value.layout == torch.strided
        return self._tensors.add(value, self._path) if plain else None


class Unpickler(pickles.Unpickler):
    def __init__(self, memory: io.BytesIO, tensors: Sequence[Any]) -> None:
        super().__init__(memory)
        self._tensors = tensors

    def persistent_load(self, number: Any) -> Any:
        return self._tensors[number]


class Encoder:
    """Values as JSON has them: [kind, ...] for what JSON does not know."""

    def __init__(self, pickle: bool) -> None:
        self.tensors, self._pickle = Tensors(), pickle
        self._around: List[int] = []  # ids of the containers that a value is in

    def value(self, value: Any, path: Tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind in (torch.Tensor, torch.nn.Parameter):
            return ["tensor", self.tensors.add(value, path)]
        if kind in SEQUENCES or kind in (dict, OrderedDict):
            if id(value) in self._around:
                raise ValueError(f"{where(path)} contains itself")
            self._around.append(id(value))
            made = self._container(value, kind, path)
            self._around.pop()
            return made
        return self._single(value, kind, path)

    def _container(self, value: Any, kind: type, path: Tuple[Any, ...]) -> Any:
        if kind in SEQUENCES:
            return [SEQUENCES[kind], *(self.value(one, path + (i,)) for i, one in enumerate(value))]
        pairs = [[self.value(key, path + (key,)), self.value(one, path + (key,))] for key, one in value.items()]
        if kind is dict:
            return ["dict", *pairs]
        return ["ordered", self.value(getattr(value, "_metadata", None), path + ("_metadata",)), *pairs]

    def _single(self, value: Any, kind: type, path: Tuple[Any, ...]) -> Any:
        if kind is bytes:
            return ["bytes", base64.b64encode(value).decode()]
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind is torch.dtype:
            return ["dtype", str(value).partition(".")[2]]
        if kind is torch.device:
            return ["device", str(value)]
        if self._pickle:
            return ["pickle", base64.b64encode(self._pickled(value, path)).decode()]
        if isinstance(value, torch.Tensor):
            check(value, path)
        raise TypeError(f"{where(path)} is a {kind.__module__}.{kind.__qualname__}: store tensors, dicts, lists, tuples, sets, "
                        f"numbers, text, bytes, dtypes and devices in its place, or {PICKLED}")

    def _pickled(self, value: Any, path: Tuple[Any, ...]) -> bytes:
        memory = io.BytesIO()
        Pickler(memory, self.tensors, path).dump(value)
        return memory.getvalue()


class Decoder:
    """The value of a head. tensors: one for each Spec."""

    def __init__(self, tensors: Sequence[Any], pickle: bool) -> None:
        self._tensors, self._pickle = tensors, pickle

    def value(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        kind, *rest = node
        if kind == "tensor":
            return self._tensors[rest[0]]
        if kind in MAKERS:
            return MAKERS[kind](self.value(one) for one in rest)
        if kind == "dict":
            return {self.value(key): self.value(one) for key, one in rest}
        if kind == "ordered":
            return ordered(self.value(rest[0]), ((self.value(key), self.value(one)) for key, one in rest[1:]))
        return self._single(kind, rest)

    def _single(self, kind: str, rest: List[Any]) -> Any:
        if kind == "bytes":
            return base64.b64decode(rest[0])
        if kind == "complex":
            return complex(*rest)
        if kind == "dtype":
            return dtype_of(rest[0])
        if kind == "device":
            return torch.device(rest[0])
        if kind == "pickle":
            return self._unpickled(base64.b64decode(rest[0]))
        raise ValueError(f"a value of kind {kind!r}, which this package does not know")

    def _unpickled(self, data: bytes) -> Any:
        if not self._pickle:
            raise TypeError("it has values that were stored by pickle. Unpickling runs code that the program which stored "
                            "them has chosen: load(..., pickle=True) if you trust that program")
        return Unpickler(io.BytesIO(data), self._tensors).load()


def ordered(metadata: Any, pairs: Any) -> Any:
    made: Any = OrderedDict(pairs)
    if metadata is not None:
        made._metadata = metadata
    return made


def dtype_of(name: str) -> Any:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"a tensor of torch.{name}, which this version of torch ({torch.__version__}) does not have")
    return found


# --- the object

def aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN


def places(head: int, lengths: Sequence[int]) -> List[Tuple[int, int]]:
    """First byte and length of each block behind a head of so many bytes; the last pair is the end of the object."""
    at, found = max(FIRST, aligned(head)), []
    for length in lengths:
        found.append((at, length))
        at = aligned(at + length)
    return [*found, (at, 0)]


class Plan(NamedTuple):
    """What save() writes."""

    head: bytes
    blocks: List[Block]
    places: List[Tuple[int, int]]

    @property
    def size(self) -> int:
        return self.places[-1][0]


def plan(value: Any, pickle: bool) -> Plan:
    encoder = Encoder(pickle)
    tree = encoder.value(value, ())
    specs, blocks = encoder.tensors.blocks()
    lengths = [block.bytes for block in blocks]
    text = json.dumps({"id": uuid.uuid4().hex, "value": tree, "blocks": lengths, "tensors": [
        [str(one.dtype).partition(".")[2], one.shape, one.stride, one.block, one.first, one.device] for one in specs]},
        separators=(",", ":")).encode()
    head = HEAD.pack(MAGIC, len(text)) + text
    return Plan(head, blocks, places(len(head), lengths))


class Contents(NamedTuple):
    """What the head of an object says. tree: values as the Encoder makes them."""

    id: str
    tree: Any
    specs: List[Spec]
    places: List[Tuple[int, int]]


def head_bytes(start: bytes) -> int:
    """How many bytes the head has, by its first 16."""
    if len(start) < HEAD.size or start[:len(MAGIC)] != MAGIC:
        raise ValueError("it was not written by sarissa.torch.save()")
    return HEAD.size + int(HEAD.unpack_from(start)[1])


def contents(head: bytes) -> Contents:
    """ValueError for a head that save() has not written."""
    try:
        said = json.loads(head[HEAD.size:])
        lengths = [int(length) for length in said["blocks"]]
        specs = [Spec(dtype_of(dtype), tuple(shape), tuple(stride), block, first, device)
                 for dtype, shape, stride, block, first, device in said["tensors"]]
        fits = all(0 <= one.first and min((*one.shape, *one.stride, 0)) >= 0 and 0 <= one.block < len(lengths) and
                   one.first % one.dtype.itemsize == 0 and len(one.shape) == len(one.stride) and
                   one.first + one.bytes <= lengths[one.block] for one in specs)
        if not fits or min(lengths, default=0) < 0:
            raise ValueError("a tensor that does not lie in its block")
        return Contents(str(said["id"]), said["value"], specs, places(len(head), lengths))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"its head is damaged ({error})") from None


# --- trees and names

class Nothing:
    """No part of a tree."""


def children(node: Any) -> Iterator[Tuple[Any, Any]]:
    """The nodes in a node of a container, each with its key."""
    kind = node[0] if isinstance(node, list) else None
    if kind in ("dict", "ordered"):
        for key, one in node[1 if kind == "dict" else 2:]:
            yield str(key[1:]) if isinstance(key, list) else key, one
    elif kind in MAKERS:
        yield from enumerate(node[1:])


def kind_of(node: Any) -> Any:
    """None: of a plain value."""
    return node[0] if isinstance(node, list) else None


def is_container(node: Any) -> bool:
    return kind_of(node) in ("dict", "ordered", "list", "tuple")


def leaves(node: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[str, Any]]:
    """The name of each value that is no container, as a.b.0, with its node."""
    if not is_container(node):
        yield where(path), node
    for part, one in children(node) if is_container(node) else ():
        yield from leaves(one, path + (part,))


def within(name: str, keys: Sequence[str]) -> bool:
    return any(name == key or name.startswith(key + ".") for key in keys)


def pruned(node: Any, keys: Sequence[str], path: Tuple[Any, ...] = ()) -> Any:
    """The part of a tree that keys name; Nothing when there is none."""
    if path and within(where(path), keys):
        return node
    if not is_container(node):
        return Nothing
    begin = 2 if node[0] == "ordered" else 1
    kept = []
    for (part, child), given in zip(children(node), node[begin:]):
        if (found := pruned(child, keys, path + (part,))) is not Nothing:
            kept.append([given[0], found] if node[0] in ("dict", "ordered") else found)
    return [*node[:begin], *kept] if kept else Nothing


def numbers_of(node: Any) -> Iterator[int]:
    """Of the tensors in a tree, but for those in pickles."""
    if kind_of(node) == "tensor":
        yield node[1]
    for _, one in children(node):
        yield from numbers_of(one)


def has_pickle(node: Any) -> bool:
    return kind_of(node) == "pickle" or any(has_pickle(one) for _, one in children(node))
