# SPDX-License-Identifier: BSD-3-Clause
"""The backend "sarissa" of torch.distributed beside gloo: each rank is a process on a node of its own."""

import json
import subprocess

import pytest
import torch
import torch.distributed as dist
import ranks

import sarissa
from sarissa._cluster import program

REDUCED = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8]
COPIED = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
OURS_ALONE = [torch.complex64, torch.float8_e4m3fn]  # gloo does not gather them
OPS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
COUNTS = (1, 77, 16000, 50000)  # elements: in the directory, nearly too large for it, and too large


@pytest.fixture(scope="module")
def cluster():
    with sarissa.LocalCluster(4) as made:
        yield made


# --- what ranks do: each compares with gloo in the same process

def values(rank, dtype, *shape):
    """Whole numbers, of which sums and products are exact in all types."""
    made = torch.randint(0, 3, shape, generator=torch.Generator().manual_seed(rank * 1000 + sum(shape)))
    return made.to(torch.float32).to(dtype)


def same(a, b):
    a, b = a.contiguous(), b.contiguous()
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(-1).view(torch.uint8), b.view(-1).view(torch.uint8))


def both(gloo, call):
    """The results of call(group) of both backends."""
    ours, theirs = call(None), call(gloo)
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs):
        assert same(mine, its), (mine, its)


def reduces(rank, size):
    gloo, cases = dist.new_group(backend="gloo"), 0
    for dtype in REDUCED:
        for count in COUNTS if dtype is torch.float32 else (77,):
            for op in OPS:
                def all_reduce(group):
                    given = values(rank, dtype, count)
                    dist.all_reduce(given, op, group=group)
                    return [given]

                def reduce(group):
                    given = values(rank, dtype, count)
                    dist.reduce(given, 2, op, group=group)
                    return [given] if rank == 2 else []

                def reduce_scatter(group):
                    output = torch.empty(count, dtype=dtype)
                    dist.reduce_scatter(output, [values(rank + 10 * at, dtype, count) for at in range(size)], op, group=group)
                    return [output]
                for call in (all_reduce, reduce, reduce_scatter) if op is OPS[0] else (all_reduce,):
                    both(gloo, call)
                    cases += 1
    mean, total = values(rank, torch.float32, 77), values(rank, torch.float32, 77)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    dist.all_reduce(total, group=gloo)
    assert torch.equal(mean, total / size)
    turned = values(rank, torch.float32, 20, 30).t()  # not contiguous
    wanted = values(rank, torch.float32, 20, 30)
    dist.all_reduce(turned)
    dist.all_reduce(wanted, group=gloo)
    assert torch.equal(turned, wanted.t())
    any_is = torch.tensor([rank == 1, False])
    dist.all_reduce(any_is, dist.ReduceOp.MAX)
    assert any_is.tolist() == [True, False]
    return cases


def random_sums(rank, size):
    """Floats are added in another order."""
    gloo = dist.new_group(backend="gloo")
    given = torch.randn(1 << 18, generator=torch.Generator().manual_seed(rank))
    wanted = given.clone()
    dist.all_reduce(given)
    dist.all_reduce(wanted, group=gloo)
    torch.testing.assert_close(given, wanted, rtol=1e-5, atol=1e-5)
    everybody = [torch.empty_like(given) for _ in range(size)]
    dist.all_gather(everybody, given)
    assert all(same(one, given) for one in everybody)
    return True


def copies(rank, size):
    gloo, cases = dist.new_group(backend="gloo"), 0
    for dtype in COPIED:
        for count in COUNTS:
            def made(at=0):
                return values(rank + 10 * at, torch.float32, count).to(dtype)

            def broadcast(group):
                given = made()
                dist.broadcast(given, 1, group=group)
                return [given]

            def all_gather(group):
                outputs = [torch.empty(count, dtype=dtype) for _ in range(size)]
                dist.all_gather(outputs, made(), group=group)
                return outputs

            def gather(group):
                outputs = [torch.empty(count, dtype=dtype) for _ in range(size)] if rank == 3 else None
                dist.gather(made(), outputs, 3, group=group)
                return outputs or []

            def scatter(group):
                output = torch.empty(count, dtype=dtype)
                dist.scatter(output, [made(at) for at in range(size)] if rank == 0 else None, 0, group=group)
                return [output]
            for call in (broadcast, all_gather, gather, scatter):
                both(gloo, call)
                cases += 1
    for dtype in OURS_ALONE:
        outputs = [torch.empty(77, dtype=dtype) for _ in range(size)]
        dist.all_gather(outputs, values(rank, torch.float32, 77).to(dtype))
        for source, output in enumerate(outputs):
            assert same(output, values(source, torch.float32, 77).to(dtype))
    return cases


def whole_tensors(rank, size):
    gloo = dist.new_group(backend="gloo")

    def all_gather(group):
        output = torch.empty(size * 6, 5)
        dist.all_gather_into_tensor(output, values(rank, torch.float32, 6, 5), group=group)
        return [output]

    def reduce_scatter(group):
        output = torch.empty(6, 5)
        dist.reduce_scatter_tensor(output, values(rank, torch.float32, size * 6, 5), group=group)
        return [output]

    def all_to_all_single(group):
        output = torch.empty(size * 2, 3)
        dist.all_to_all_single(output, values(rank, torch.float32, size * 2, 3), group=group)
        return [output]

    def uneven(group):
        counts = [[1, 2, 0, 3], [2, 1, 1, 0], [0, 4, 1, 1], [3, 0, 2, 1]]
        output = torch.empty(sum(counts[source][rank] for source in range(size)), 3)
        dist.all_to_all_single(output, values(rank, torch.float32, sum(counts[rank]), 3),
                               [counts[source][rank] for source in range(size)], counts[rank], group=group)
        return [output]
    for call in (all_gather, reduce_scatter, all_to_all_single, uneven):
        both(gloo, call)
    outputs = [torch.empty(2) for _ in range(size)]
    dist.all_to_all(outputs, [torch.full((2,), 10.0 * rank + at) for at in range(size)])
    assert [one[0].item() for one in outputs] == [10.0 * source + rank for source in range(size)]
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": at} for at in range(size)]
    shared = ["yes", 2] if rank == 1 else [None, None]
    dist.broadcast_object_list(shared, 1)
    assert shared == ["yes", 2]
    dist.barrier()
    dist.group.WORLD.monitored_barrier()
    return True


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    sent, came = torch.full((70000,), float(rank)), torch.empty(70000)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, right), dist.P2POp(dist.irecv, came, left)])
    for work in works:
        work.wait()
    assert (came == left).all()
    if rank == 0:  # tags keep apart, and order holds within one
        for tag, value in ((7, 1.0), (8, 2.0), (7, 3.0)):
            dist.send(torch.tensor([value]), 1, tag=tag)
    elif rank == 1:
        got = []
        for tag in (8, 7, 7):
            one = torch.empty(1)
            dist.recv(one, 0, tag=tag)
            got.append(one.item())
        assert got == [2.0, 1.0, 3.0], got
    if rank == 3:
        sources, one = set(), torch.empty(1)
        for _ in range(3):
            sources.add((dist.recv(one), one.item()))
        assert sources == {(0, 0.0), (1, 1.0), (2, 2.0)}, sources
    else:
        dist.send(torch.tensor([float(rank)]), 3)
    return True


def works(rank, size):
    """Many at a time, ended by wait() and by futures."""
    tensors = [torch.full((1000 * (at + 1),), float(rank + at)) for at in range(20)]
    begun = [dist.all_reduce(one, async_op=True) for one in tensors]
    doubled = begun[3].get_future().then(lambda ended: [2 * ended.value()[0]])
    for work in reversed(begun):
        work.wait()
    assert all(work.is_completed() and work.is_success() for work in begun)
    wanted = [float(sum(range(size)) + size * at) for at in range(20)]
    assert [one[0].item() for one in tensors] == wanted
    assert doubled.wait()[0][0].item() == 2 * wanted[3]
    pair = [torch.ones(2), torch.ones(300)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for one in pair:
            dist.all_reduce(one)
    manager.wait()
    assert pair[0].tolist() == [4.0, 4.0] and (pair[1] == 4).all()
    return True


def subgroups(rank, size):
    pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    mine = pairs[rank % 2]
    one = torch.tensor([float(rank)])
    dist.all_reduce(one, group=mine)
    other = torch.tensor([float(rank)])
    dist.broadcast(other, rank % 2 + 2, group=mine)
    dist.destroy_process_group(mine)
    total = torch.ones(1)
    dist.all_reduce(total)
    return [one.item(), other.item(), total.item()]


def all_of_them(rank, size):
    return [reduces(rank, size), random_sums(rank, size), copies(rank, size), whole_tensors(rank, size), messages(rank, size),
            works(rank, size), subgroups(rank, size)]


def test_every_operation_gives_what_gloo_gives(cluster):
    results = ranks.run(__file__, "all_of_them", cluster)
    for rank, (reduced, sums, copied, *others, groups) in enumerate(results):
        assert reduced == (len(REDUCED) - 1 + len(COUNTS)) * (len(OPS) + 2)
        assert copied == len(COPIED) * len(COUNTS) * 4
        assert [sums, *others] == [True] * 4
        assert groups == [[2.0, 2.0, 4.0], [4.0, 3.0, 4.0]][rank % 2]
    assert not [info.name for info in cluster[0].ls(".torch/")]  # nothing is left


def more_than_the_store(rank, size):
    tensors = [torch.full((1 << 20,), float(rank + at)) for at in range(160)]
    for work in [dist.all_reduce(one, async_op=True) for one in tensors]:
        work.wait()
    assert [one[-1].item() for one in tensors] == [2.0 * at + 1 for at in range(160)]
    try:
        dist.all_reduce(torch.ones(80 << 20))
    except sarissa.torch.CollectiveError as error:
        return str(error)


def test_a_store_of_256_mib_takes_sums_of_640_mib():
    with sarissa.LocalCluster(2, store=256) as cluster:
        for words in ranks.run(__file__, "more_than_the_store", cluster):
            assert words.startswith("all_reduce sum of float32 [83886080]: ")
            assert "the object has 335544320 bytes" in words, words


ranks.main(globals())
