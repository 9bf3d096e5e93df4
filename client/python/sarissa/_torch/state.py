# SPDX-License-Identifier: BSD-3-Clause
"""save() and load(): state dicts of torch as objects of the store. layout.py says how they lie there. A load takes one
of two ways: along the store's tree, which leaves a copy on this node, or by ranges, which leaves none. Nothing here
knows groups or training."""

from __future__ import annotations

import errno
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from .._errors import InvalidArgument, QuotaExceeded, Restarted, StoreFull, TooLarge
from .._leases import Lease
from .._names import Name, timeout_ns
from .._node import Node
from .._refs import node_of
from .._streams import Reader
from . import layout
from .layout import Contents, Spec

PIECE = 4 << 20  # bytes that are written before readers may have them
SMALL = 256 << 10  # blocks up to this come together
TOGETHER = 4 << 20
ROOM_S, FOREVER_S = 1.0, 1e9  # a store without room is waited for so long

MapLocation = Union[None, str, torch.device, Dict[str, str]]


def save(state_dict: Any, name: Name, node: Union[None, Node, Lease] = None, ttl: Optional[float] = None,
         pickle: bool = False) -> int:
    """Stores nested dicts, lists and tuples of tensors and plain values as one object, and returns its bytes. Each tensor
    is copied once, from its memory into the store. Readers may begin before this returns.

    Tensors of any dtype and device, with their shape; with their strides, unless these leave gaps; those that share
    memory share it after load(), too. Plain values: None, bool, int, float, complex, str, bytes, sets, torch.dtype,
    torch.device, torch.Size. The attribute requires_grad is not kept. pickle: stores all other values by pickle, and load()
    needs pickle=True as well, which runs code that this program has chosen.

    node: where it is stored; None: the node of this process. A Lease holds the object from its beginning. ttl: it is
    deleted everywhere after so many seconds.

    Errors: TypeError names the value that cannot be stored; nothing is stored then. Exists: there is an object of that
    name. TooLarge, StoreFull: it does not fit into the store of this node."""
    plan = layout.plan(state_dict, pickle)
    made = node_of(None) if node is None else node
    with made.create(name, plan.size) as writer:
        write(plan, writer)
    if ttl is not None:
        (made._node if isinstance(made, Lease) else made).expire(name, ttl)
    return plan.size


def write(plan: layout.Plan, writer: Any) -> None:
    memory = torch.frombuffer(writer.data, dtype=torch.uint8)
    try:
        memory[:len(plan.head)] = torch.frombuffer(bytearray(plan.head), dtype=torch.uint8)
        memory[len(plan.head):plan.places[0][0]] = 32
        writer.publish(plan.places[0][0])
        for block, (begin, length), (end, _) in zip(plan.blocks, plan.places, plan.places[1:]):
            source = flat(block)
            for at in range(0, length, PIECE):
                last = min(at + PIECE, length)
                memory[begin + at:begin + last].copy_(source[at:last])
                writer.publish(begin + last)
            memory[begin + length:end] = 0
    finally:
        memory = None  # the writer cannot end while it is in use


def flat(block: layout.Block) -> Any:
    if not block.copied:
        return block.memory
    whole = block.memory.contiguous()
    return layout.bytes_of(whole, 0, block.bytes)


# --- reading

class Target(NamedTuple):
    """A tensor of the caller that is to be filled."""

    spec: Spec
    tensor: Any

    @property
    def is_direct(self) -> bool:
        """The bytes of the object are those of its memory, without a gap."""
        tensor, spec = self.tensor, self.spec
        strides = zip(spec.shape, spec.stride, tensor.stride())
        return bool(tensor.device.type == "cpu" and tensor.dtype == spec.dtype and not tensor.is_conj() and
                    not tensor.is_neg() and all(a == b for n, a, b in strides if n > 1) and
                    spec.bytes == tensor.numel() * spec.dtype.itemsize)

    @property
    def memory(self) -> Any:
        tensor = self.tensor.detach()
        return layout.bytes_of(tensor, tensor.storage_offset() * tensor.element_size(), self.spec.bytes)

    @property
    def place(self) -> Tuple[int, int]:
        return self.tensor.data_ptr(), self.spec.first


class Wanted(NamedTuple):
    """A block that is to come: bytes of the object from begin on, into memory; and what is done with it then."""

    begin: int
    memory: Any
    targets: Sequence[Target] = ()

    @property
    def length(self) -> int:
        return int(self.memory.numel())

    def end(self) -> None:
        for target in self.targets:
            with torch.no_grad():
                target.tensor.copy_(target.spec.of(self.memory))


class Source:
    """An object that save() writes or has written."""

    def __init__(self, node: Node, name: Name, timeout: Optional[float]) -> None:
        self._node, self.name = node, name
        self._until = None if timeout is None else time.monotonic() + timeout_ns(timeout) / 1e9
        self._reader: Optional[Reader] = None
        self._at = 0  # what the reader has read

    @property
    def _left(self) -> Optional[float]:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def open(self, along_tree: bool) -> Contents:
        """Waits for the object by its head, which needs no room in the store."""
        said = self.contents()
        if along_tree:
            try:
                self._reader = self._node.reader(self.name, min(ROOM_S, FOREVER_S if self._left is None else self._left))
                said = self.contents()
            except (TooLarge, StoreFull, QuotaExceeded):
                self._reader = None
        return said

    def contents(self) -> Contents:
        try:
            start = self._bytes(0, layout.FIRST)
            end = layout.head_bytes(start)
            if end > len(start) and end > self._node.info(self.name).size:
                raise ValueError(f"its head would have {end} bytes")
            return layout.contents(start[:end] if end <= len(start) else start + self._bytes(len(start), end))
        except (ValueError, IndexError) as error:  # OutOfRange is an IndexError
            text = error if type(error) is ValueError else "it was not written by sarissa.torch.save()"
            raise InvalidArgument(errno.EINVAL, f"{self.name!r} is no state dict: {text}") from None

    def _bytes(self, begin: int, end: int) -> bytes:
        memory = bytearray(end - begin)
        self._fetch(begin, memoryview(memory))
        return bytes(memory)

    def _fetch(self, begin: int, memory: memoryview) -> None:
        if self._reader is None:
            self._node.get_ranges(self.name, [(begin, len(memory))], self._left, memory)
            return
        if begin < self._at:
            raise AssertionError("a reader does not go back")
        while self._at < begin:
            self._at += self._reader.readinto(bytearray(min(begin - self._at, PIECE)))
        while len(memory):
            if not (count := self._reader.readinto(memory)):
                raise IndexError
            memory, self._at = memory[count:], self._at + count

    def bring(self, wanted: Sequence[Wanted]) -> None:
        """In the order of their places."""
        for some in [[one] for one in wanted] if self._reader is not None else bundles(wanted):
            if len(some) == 1:
                self._fetch(some[0].begin, view(some[0].memory))
            elif some:
                begin = some[0].begin
                memory = torch.empty(some[-1].begin + some[-1].length - begin, dtype=torch.uint8)
                self._fetch(begin, view(memory))
                for one in some:
                    one.memory.copy_(memory[one.begin - begin:one.begin - begin + one.length])
            for one in some:
                one.end()

    def is_same(self, before: Contents) -> bool:
        """The object is the one that was opened: by ranges another one may have taken its name."""
        return self._reader is not None or self.contents().id == before.id

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def bundles(wanted: Sequence[Wanted]) -> Iterator[List[Wanted]]:
    """Small neighbours come in one request."""
    some: List[Wanted] = []
    for one in wanted:
        near = some and one.length <= SMALL and one.begin + one.length - some[0].begin <= TOGETHER and \
            one.begin - (some[-1].begin + some[-1].length) <= layout.ALIGN
        if not near:
            if some:
                yield some
            some = []
        some.append(one)
        if one.length > SMALL:
            yield some
            some = []
    if some:
        yield some


def view(memory: Any) -> memoryview:
    return memoryview(memory.numpy())


def load(name: Name, into: Any = None, map_location: MapLocation = None, node: Optional[Node] = None,
         keys: Optional[Sequence[str]] = None, strict: bool = True, timeout: Optional[float] = None,
         whole: Optional[bool] = None, pickle: bool = False) -> Any:
    """The state dict that save() has stored or is storing, waiting up to timeout seconds for it (None: no limit).

    into: a state dict whose tensors are filled in place, such as model.state_dict(), and whose plain values are replaced; it
    is returned. Bytes go into the memory of its tensors without another copy where device and strides are those of the
    object. Values that are missing or too many, and a shape or dtype that differs, are a RuntimeError that names all of
    them, before anything is changed. strict=False: missing and unexpected values are passed over.
    keys: names of values or of dicts, as "model.weight" or "optimizer"; only these come. KeyError: there is none.
    map_location: a device, or a dict of devices, as for torch.load; None: the device that each tensor was on.
    whole: True brings the object to this node along the tree that readers share, and False brings ranges, which leave no
    copy here. None: ranges for keys=, and for an object that is larger than the store; the tree for all others.
    pickle: unpickles values, which runs code of the program that has stored them.

    Errors: InvalidArgument: the object is no state dict. TimedOut, Deleted, Lost: as of Node.get()."""
    reads = node_of(None) if node is None else node
    source = Source(reads, name, timeout)
    try:
        said = source.open(keys is None if whole is None else whole)
        tree = chosen(said, name, keys)
        if layout.has_pickle(tree) and not pickle:
            layout.Decoder((), False).value(["pickle", ""])
        if into is None:
            made = fresh(source, said, tree, map_location, pickle)
        else:
            made = fill(source, said, tree, into, Strictness(name, strict, keys), pickle)
        if not source.is_same(said):
            raise Restarted(errno.ERESTART, f"{name!r} was stored again while it came: load it again")
        return made
    finally:
        source.close()


def chosen(said: Contents, name: Name, keys: Optional[Sequence[str]]) -> Any:
    if keys is None:
        return said.tree
    if isinstance(keys, str):
        raise TypeError(f"keys={keys!r}: give a list of names")
    names = [one for one, _ in layout.leaves(said.tree)]
    for key in keys:
        if not any(layout.within(one, [key]) for one in names):
            raise KeyError(f"{name!r} has no {key!r}: it has {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}")
    return layout.pruned(said.tree, list(keys))


def place_of(saved: str, map_location: MapLocation) -> Any:
    if map_location is not None and not isinstance(map_location, (str, torch.device, dict)):
        raise TypeError(f"map_location is a {type(map_location).__name__}: give a device, or a dict of devices")
    given = map_location.get(saved, saved) if isinstance(map_location, dict) else map_location
    device = torch.device(saved if given is None else given)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RuntimeError(f"a tensor of the device {device}, which is not to be had here ({str(error).splitlines()[0]}): load with "
                           "map_location='cpu'") from None
    return device


def fresh(source: Source, said: Contents, tree: Any, map_location: MapLocation, pickle: bool) -> Any:
    """Tensors in memory of their own, one for each block."""
    needed = range(len(said.specs)) if layout.has_pickle(tree) else sorted(set(layout.numbers_of(tree)))
    devices = {number: place_of(said.specs[number].device, map_location) for number in needed}
    blocks = {said.specs[number].block for number in needed}
    wanted = {block: Wanted(said.places[block][0], torch.empty(said.places[block][1], dtype=torch.uint8))
              for block in sorted(blocks)}
    source.bring(list(wanted.values()))
    there: Dict[Tuple[int, Any], Any] = {}
    tensors: List[Any] = [None] * len(said.specs)
    for number in needed:
        spec, device = said.specs[number], devices[number]
        if (spec.block, device) not in there:
            there[spec.block, device] = wanted[spec.block].memory.to(device)
        tensors[number] = spec.of(there[spec.block, device])
    return layout.Decoder(tensors, pickle).value(tree)


# --- into the caller's tensors

class Strictness:
    """Collects all that does not fit."""

    def __init__(self, name: Name, strict: bool, keys: Optional[Sequence[str]]) -> None:
        self._name, self._strict, self._keys = name, strict, keys
        self.missing: List[str] = []
        self.unexpected: List[str] = []
        self.others: List[str] = []

    def lacks(self, path: Tuple[Any, ...]) -> None:
        name = layout.where(path)
        if self._keys is None or layout.within(name, self._keys):
            self.missing.append(name)

    def end(self) -> None:
        texts = []
        if self._strict and self.missing:
            texts.append("Missing key(s) in the object: " + ", ".join(f'"{one}"' for one in self.missing))
        if self._strict and self.unexpected:
            texts.append("Unexpected key(s) in the object: " + ", ".join(f'"{one}"' for one in self.unexpected))
        texts += self.others
        if texts:
            raise RuntimeError(f"Error(s) in loading {self._name!r} into a state dict:\n\t" + "\n\t".join(texts))


class Filling:
    """Compares the tree of an object with the caller's values: which tensors are to be filled, and what is to be set."""

    def __init__(self, said: Contents, strictness: Strictness, pickle: bool) -> None:
        self._said, self._strictness, self._pickle = said, strictness, pickle
        self.targets: List[Target] = []
        self.sets: List[Tuple[Any, Any, Any]] = []  # container, key, value

    def walk(self, node: Any, value: Any, path: Tuple[Any, ...]) -> None:
        kind = layout.kind_of(node)
        if kind in ("dict", "ordered") and isinstance(value, dict):
            self._dict(node, value, path)
        elif kind in ("list", "tuple") and isinstance(value, (list, tuple)) and len(value) == len(node) - 1:
            for i, one in layout.children(node):
                self._item(one, value, i, path + (i,))
        else:
            found = type(value).__name__
            self._strictness.others.append(f"type mismatch for {layout.where(path)}: a {kind} in the object, and a {found} here")

    def _dict(self, node: Any, value: Any, path: Tuple[Any, ...]) -> None:
        keys = [layout.Decoder((), False).value(pair[0]) for pair in node[1 if node[0] == "dict" else 2:]]
        for key, (part, child) in zip(keys, layout.children(node)):
            if key in value:
                self._item(child, value, key, path + (part,))
            else:
                self._strictness.unexpected += [name for name, _ in layout.leaves(child, path + (part,))]
        for key in value.keys() - set(keys):
            self._strictness.lacks(path + (key,))

    def _item(self, node: Any, holder: Any, key: Any, path: Tuple[Any, ...]) -> None:
        value = holder[key]
        if layout.kind_of(node) == "tensor" or isinstance(value, torch.Tensor):
            self._tensor(node, value, path)
        elif layout.is_container(node) and (isinstance(value, dict) or any(layout.numbers_of(node))
                                            or isinstance(holder, tuple)):
            self.walk(node, value, path)
        elif not isinstance(holder, tuple):
            self.sets.append((holder, key, layout.Decoder((), self._pickle).value(node)))
        elif layout.Decoder((), self._pickle).value(node) != value:
            self._strictness.others.append(f"{layout.where(path)} is part of a tuple, which cannot be changed")

    def _tensor(self, node: Any, value: Any, path: Tuple[Any, ...]) -> None:
        name, others = layout.where(path), self._strictness.others
        if layout.kind_of(node) != "tensor" or type(value) not in (torch.Tensor, torch.nn.Parameter):
            here, there = type(value).__name__, layout.kind_of(node) or type(node).__name__
            others.append(f"type mismatch for {name}: a {there} in the object, and a {here} here")
            return
        spec = self._said.specs[node[1]]
        if tuple(value.shape) != spec.shape:
            others.append(f"size mismatch for {name}: shape {torch.Size(spec.shape)} in the object, and {value.shape} here")
        elif value.dtype != spec.dtype:
            others.append(f"dtype mismatch for {name}: {spec.dtype} in the object, and {value.dtype} here")
        else:
            self.targets.append(Target(spec, value))


def fill(source: Source, said: Contents, tree: Any, into: Any, strictness: Strictness, pickle: bool) -> Any:
    filling = Filling(said, strictness, pickle)
    filling.walk(tree, into, ())
    strictness.end()
    by_block: Dict[int, List[Target]] = {}
    for target in filling.targets:
        by_block.setdefault(target.spec.block, []).append(target)
    wanted = []
    for block, targets in sorted(by_block.items()):
        begin, length = said.places[block]
        if all(one.is_direct for one in targets) and len({(one.place, one.spec.bytes) for one in targets}) == 1:
            wanted.append(Wanted(begin + targets[0].spec.first, targets[0].memory))
        else:
            wanted.append(Wanted(begin, torch.empty(length, dtype=torch.uint8), targets))
    source.bring(wanted)
    for holder, key, value in filling.sets:
        holder[key] = value
    return into
