# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.torch.save() and load() between two nodes: every dtype, tied weights, strides, streaming, in place, a part,
an object larger than the reader's store, and each input that is refused."""

import copy
import os
import re
import subprocess
import sys
import threading
import time
import types
from collections import OrderedDict
from pathlib import Path

import pytest
import sarissa
import sarissa.torch
import torch
from sarissa._torch import layout
from sarissa._torch import state as states

MIB = 1 << 20


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(2, store=64) as nodes:
        yield nodes


def same(one, other):
    """Equal to the last bit, NaN too."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        raw = [x.detach().contiguous().flatten().view(torch.uint8) if x.dim() else x.detach().reshape(1).view(torch.uint8)
               for x in (one, other)]
        return torch.equal(*raw)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_the_page(cluster, tmp_path):
    """The program of docs/user/torch.md."""
    page = (Path(__file__).resolve().parents[3] / "docs/user/torch.md").read_text().partition("## Store and load")[2]
    program = tmp_path / "page.py"
    program.write_text(re.search(r"```python\n(.*?)```", page, re.S).group(1) + "print(state['step'], len(state['optimizer']))\n")
    done = subprocess.run([sys.executable, "-B", program], env={**os.environ, "SARISSA_SOCKET": cluster[0].address},
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "7 2\n"), done.stderr
    cluster[0].delete("run/7")


def roundtrip(cluster, name, state, **options):
    sarissa.torch.save(state, name, node=cluster[0])
    return sarissa.torch.load(name, node=cluster[1], timeout=20, **options)


def all_dtypes():
    kinds = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    for kind in sorted(kinds, key=str):
        if kind == torch.bool:
            yield torch.tensor([True, False] * 8)
        elif not str(kind).startswith("torch.q"):  # those of quantized tensors
            yield torch.arange(16 * kind.itemsize, dtype=torch.uint8).view(kind)


@pytest.mark.parametrize("whole", [True, False])
def test_every_dtype_comes_back_to_the_bit(cluster, whole):
    state = {str(tensor.dtype): tensor for tensor in all_dtypes()}
    assert {"torch.bfloat16", "torch.float8_e4m3fn", "torch.bool", "torch.complex64", "torch.float16"} <= set(state)
    got = roundtrip(cluster, f"dtypes {whole}", state, whole=whole)
    assert [name for name in state if not same(state[name], got[name])] == []


def test_plain_values_and_containers_come_back_as_they_were(cluster):
    state = {"a": None, "b": True, "c": -(1 << 70), "d": [1.5, float("inf"), (1, "x", b"\0\xff")], 3: {"tensor": 1, "x.y": 2},
             "e": {1, 2}, "f": 1 + 2j, "g": torch.bfloat16, "h": torch.device("cpu"), "i": torch.Size([2, 3]),
             "j": OrderedDict(z=1, a=2), "empty": {}, "none": torch.empty(0, 3), "scalar": torch.tensor(7), (1, 2): "tuple"}
    assert same(roundtrip(cluster, "plain", state), state)
    assert torch.isnan(torch.tensor(roundtrip(cluster, "nan", {"x": float("nan")})["x"]))


def test_tied_weights_stay_tied_and_gaps_are_not_stored(cluster):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    model[1].weight = model[0].weight
    state = {"model": model.state_dict(), "part": torch.arange(1 << 20)[::4096], "wide": torch.ones(1).expand(1 << 20),
             "last": torch.arange(12).view(3, 4).t(), "image": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)}
    size = sarissa.torch.save(state, "tied", node=cluster[0])
    assert size < 64 << 10  # the weight once, one element of wide, 256 of part
    got = sarissa.torch.load("tied", node=cluster[1], timeout=20)
    assert same(got, state)
    got["model"]["0.weight"].fill_(3)
    assert got["model"]["1.weight"].eq(3).all()
    assert [got[key].stride() for key in ("last", "image", "wide")] == [state[key].stride() for key in ("last", "image", "wide")]


def test_views_of_a_tensor_share_memory_after_a_load(cluster):
    base = torch.arange(100, dtype=torch.int16)
    got = roundtrip(cluster, "views", {"left": base[3:60], "right": base[40:], "words": base[52:56].view(torch.int64)})
    got["left"][40] = -1
    assert got["right"][3] == -1


def test_a_load_in_place_fills_the_tensors_themselves(cluster):
    torch.manual_seed(1)
    one, two = (torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(500, 500))
                for _ in range(2))
    sarissa.torch.save({"model": one.state_dict(), "epoch": 3, "betas": (0.9, 0.99)}, "place", node=cluster[0])
    for whole in (True, False):
        for parameter in two.parameters():
            parameter.data.zero_()
        pointers = [parameter.data_ptr() for parameter in two.parameters()]
        into = {"model": two.state_dict(), "epoch": 0, "betas": (0.5, 0.5)}
        assert sarissa.torch.load("place", into=into, node=cluster[1], whole=whole, timeout=20) is into
        assert same(two.state_dict(), one.state_dict()) and into["epoch"] == 3 and into["betas"] == (0.9, 0.99)
        assert pointers == [parameter.data_ptr() for parameter in two.parameters()]


def test_targets_of_other_strides_and_tied_targets_are_filled(cluster):
    square = torch.rand(40, 40)
    sarissa.torch.save({"a": square, "b": square, "c": square.t()}, "strides", node=cluster[0])
    wide = torch.zeros(40, 80)
    into = {"a": wide[:, ::2], "b": torch.zeros(40, 40), "c": torch.zeros(40, 40)}
    sarissa.torch.load("strides", into=into, node=cluster[1], timeout=20)
    assert torch.equal(wide[:, ::2], square) and torch.equal(into["c"], square.t()) and wide[:, 1::2].eq(0).all()


def test_a_reader_begins_before_the_writer_has_ended(cluster):
    state = {"first": torch.full((2 * MIB,), 7, dtype=torch.uint8), "more": torch.ones(MIB, dtype=torch.uint8), "last": torch.ones(8 * MIB, dtype=torch.uint8)}
    plan, got = layout.plan(state, False), threading.Event()
    with cluster[0].create("stream", plan.size) as writer:
        loaded = {}

        def read():
            loaded.update(sarissa.torch.load("stream", keys=["first"], node=cluster[1], timeout=30))
            got.set()
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        half = layout.Plan(plan.head, plan.blocks[:2], plan.places[:3])
        states.write(half, writer)
        assert got.wait(20), "the reader waits for the whole object"
        assert loaded["first"].eq(7).all()
        reader.join()
        begin, length = plan.places[2]
        writer.data[begin:begin + length] = b"\1" * length
    assert sarissa.torch.load("stream", node=cluster[1], timeout=20)["last"].eq(1).all()


def test_a_part_comes_by_ranges_and_leaves_no_copy(cluster):
    state = {"model": {f"layer{i}": torch.rand(MIB // 4) for i in range(8)}, "other": torch.rand(MIB), "n": None}
    sarissa.torch.save(state, "part", node=cluster[0])
    got = sarissa.torch.load("part", keys=["model.layer3", "n"], node=cluster[1], timeout=20)
    assert same(got, {"model": {"layer3": state["model"]["layer3"]}, "n": None})
    assert [holder.node for holder in cluster[1].holders("part")] == [0]
    with pytest.raises(KeyError, match="no 'model.layer9': it has model.layer0"):
        sarissa.torch.load("part", keys=["model.layer9"], node=cluster[1], timeout=20)
    into = {"model": {"layer5": torch.zeros(MIB // 4)}, "mine": 1}
    sarissa.torch.load("part", keys=["model.layer5"], into=into, node=cluster[1], timeout=20)
    assert torch.equal(into["model"]["layer5"], state["model"]["layer5"]) and into["mine"] == 1


def test_an_object_larger_than_the_readers_store_comes_by_ranges():
    with sarissa.LocalCluster(2, store=64) as nodes:
        state = {"a": torch.arange(10 * MIB // 8), "b": torch.arange(30 * MIB // 8)}
        sarissa.torch.save(state, "large", node=nodes[0])
        held = nodes[1].create("ballast", 40 * MIB)  # so that 40 MiB more do not fit
        got = sarissa.torch.load("large", node=nodes[1], timeout=20)
        assert same(got, state) and [holder.node for holder in nodes[1].holders("large")] == [0]
        held.abort()


@pytest.mark.parametrize("value, error", [
    (torch.ones(3).to_sparse(), "w.1 is a tensor of layout torch.sparse_coo: store its to_dense"),
    (torch.ones(3, device="meta"), "w.1 is a tensor of device meta"),
    (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "w.1 is a quantized"),
    (lambda: None, "w.1 is a builtins.function: store tensors"),
    (torch.nn.Linear(1, 1), "w.1 is a torch.nn.modules.linear.Linear: store tensors"),
])
def test_a_value_that_cannot_be_stored_is_named_and_nothing_is_stored(cluster, value, error):
    with pytest.raises(TypeError, match=error):
        sarissa.torch.save({"w": [0, value]}, "refused", node=cluster[0])
    with pytest.raises(sarissa.NotFound):
        cluster[0].info("refused")


def test_a_dict_that_contains_itself_is_named(cluster):
    state = {}
    state["again"] = [state]
    with pytest.raises(ValueError, match="again.0 contains itself"):
        sarissa.torch.save(state, "loop", node=cluster[0])


def test_pickle_is_asked_for_on_both_sides(cluster):
    inside = torch.ones(3)
    state = {"x": inside, "y": range(4), "z": types.SimpleNamespace(tensor=inside)}
    with pytest.raises(TypeError, match="y is a builtins.range.*pickle=True"):
        sarissa.torch.save(state, "pickled", node=cluster[0])
    sarissa.torch.save(state, "pickled", node=cluster[0], pickle=True)
    with pytest.raises(TypeError, match="stored by pickle. Unpickling runs code"):
        sarissa.torch.load("pickled", node=cluster[1], timeout=20)
    got = sarissa.torch.load("pickled", node=cluster[1], timeout=20, pickle=True)
    assert got["y"] == range(4) and got["x"] is got["z"].tensor and torch.equal(got["x"], inside)


def test_what_does_not_fit_is_named_as_torch_does_and_nothing_is_changed(cluster):
    sarissa.torch.save({"a": torch.ones(2), "b": torch.ones(3), "c": torch.ones(4), "e": torch.ones(1)}, "misfit",
                       node=cluster[0])
    into = {"a": torch.zeros(2), "b": torch.zeros(4), "c": torch.zeros(4, dtype=torch.float16), "d": 1}
    with pytest.raises(RuntimeError) as caught:
        sarissa.torch.load("misfit", into=into, node=cluster[1], timeout=20)
    text = str(caught.value)
    for part in ('Missing key(s) in the object: "d"', 'Unexpected key(s) in the object: "e"', "size mismatch for b: shape "
                 "torch.Size([3]) in the object, and torch.Size([4]) here", "dtype mismatch for c: torch.float32 in the object"):
        assert part in text, text
    assert into["a"].eq(0).all()
    into = {"a": torch.zeros(2), "d": 1}
    sarissa.torch.load("misfit", into=into, node=cluster[1], timeout=20, strict=False)
    assert into["a"].eq(1).all() and into["d"] == 1


def test_other_objects_are_no_state_dicts(cluster):
    for name, data in (("bytes", b"x" * 5000), ("short", b"x"), ("cut", b"SARTORC1" + (1 << 60).to_bytes(8, "little")),
                       ("junk", b"SARTORC1" + (4).to_bytes(8, "little") + b"junk" + bytes(5000))):
        cluster[0].put(name, data)
        for whole in (True, False):
            with pytest.raises(sarissa.InvalidArgument, match=f"'{name}' is no state dict"):
                sarissa.torch.load(name, node=cluster[1], timeout=20, whole=whole)


def test_a_tensor_outside_its_block_is_refused(cluster):
    sarissa.torch.save({"x": torch.ones(4)}, "sound", node=cluster[0])
    data = bytes(cluster[0].get("sound", raw=True))
    cluster[0].put("forged", data.replace(b'[4],[1],0,0', b'[9],[9],0,0'))
    with pytest.raises(sarissa.InvalidArgument, match="does not lie in its block"):
        sarissa.torch.load("forged", node=cluster[1], timeout=20)


def test_devices_and_names(cluster):
    sarissa.torch.save({"x": torch.ones(4)}, "here", node=cluster[0])
    with pytest.raises(sarissa.Exists):
        sarissa.torch.save({"x": torch.zeros(4)}, "here", node=cluster[0])
    with pytest.raises(RuntimeError, match="device cuda, which is not to be had here.*map_location='cpu'"):
        sarissa.torch.load("here", node=cluster[1], map_location="cuda", timeout=20)
    with pytest.raises(TypeError, match="map_location is a function"):
        sarissa.torch.load("here", node=cluster[1], map_location=lambda *_: None, timeout=20)
    with pytest.raises(sarissa.TimedOut):
        sarissa.torch.load("nobody has this", node=cluster[1], timeout=0.3)
    meta = sarissa.torch.load("here", node=cluster[1], map_location={"cpu": "cpu"}, timeout=20)
    assert same(meta, {"x": torch.ones(4)})


def test_an_object_under_a_lease_goes_with_it(cluster):
    with cluster[0].lease() as lease:
        sarissa.torch.save({"x": torch.ones(4)}, "leased", node=lease)
        assert cluster[0].info("leased").leases == 1
    sarissa.torch.save({"x": torch.ones(4)}, "timed", node=cluster[0], ttl=0.2)
    until = time.monotonic() + 20
    while any(one.name in ("leased", "timed") for one in cluster[0].ls()):
        assert time.monotonic() < until


def test_an_optimizer_goes_on_where_it_was(cluster):
    torch.manual_seed(2)
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    twin = copy.deepcopy(model)
    other = torch.optim.Adam(twin.parameters(), lr=0.5)

    def step(which, rule):
        rule.zero_grad()
        which(torch.ones(10)).sum().backward()
        rule.step()
    step(model, optimizer)
    sarissa.torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "adam", node=cluster[0])
    got = sarissa.torch.load("adam", node=cluster[1], timeout=20)
    twin.load_state_dict(got["model"])
    other.load_state_dict(got["optimizer"])
    step(model, optimizer)
    step(twin, other)
    assert same(model.state_dict(), twin.state_dict())
