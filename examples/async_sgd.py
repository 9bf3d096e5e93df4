#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asynchronous gradient descent: a parameter server takes gradients as they come, and workers go on with the
newest parameters. async_sgd.py server WORKERS | worker RANK, each on a node. What has been read is deleted, and what
nobody reads any more goes after a minute."""

import asyncio
import sys

import numpy
import sarissa
import sarissa.aio

STEPS, RATE, TTL_S = 80, 0.1, 60
WANTED = numpy.array([3.0, -2.0, 0.5])  # what the data hide


def put(node, name, value):
    node.node.put(name, value, ttl=TTL_S)


async def server(workers):
    async with sarissa.aio.open() as node:
        parameters = numpy.zeros(len(WANTED))
        put(node, "parameters/0", parameters)
        newest = dict.fromkeys(range(workers), 0)  # what each worker goes on with
        coming = {asyncio.ensure_future(node.get(f"gradient/{rank}/0")): (rank, 0) for rank in range(workers)}
        for version in range(1, STEPS + 1):
            done, _ = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
            task = done.pop()  # the first of them; the others have their turn
            rank, step = coming.pop(task)
            parameters = parameters - RATE * task.result()
            put(node, f"parameters/{version}", parameters)
            put(node, f"newest/{rank}/{step + 1}", numpy.array(version if version < STEPS else -1))
            await node.delete(f"gradient/{rank}/{step}")
            if step:
                await node.delete(f"newest/{rank}/{step}")  # it has read that, or had no gradient to give
            former, newest[rank] = newest[rank], version
            if former not in newest.values():
                await node.delete(f"parameters/{former}")
            coming[asyncio.ensure_future(node.get(f"gradient/{rank}/{step + 1}"))] = rank, step + 1
        for task, (rank, step) in coming.items():
            task.cancel()
            if step:
                continue
            put(node, f"newest/{rank}/1", numpy.array(-1))  # its first gradient came too late
        for rank, step in coming.values():
            if step:
                end(node, rank, step)
        print("found", numpy.round(parameters, 2))


def end(node, rank, step):
    """A worker that waits after its last gradient, or is still at it, stops at its next look."""
    try:
        put(node, f"newest/{rank}/{step + 1}", numpy.array(-1))
    except sarissa.Exists:
        pass


def worker(rank):
    random = numpy.random.default_rng(rank)
    with sarissa.open() as node:
        version = step = 0
        while version >= 0:
            parameters = node.get(f"parameters/{version}", timeout=60)
            data = random.normal(size=(64, len(WANTED)))
            gradient = 2 * data.T @ (data @ parameters - data @ WANTED) / len(data)
            node.put(f"gradient/{rank}/{step}", gradient, ttl=TTL_S)
            step += 1
            version = int(node.get(f"newest/{rank}/{step}", timeout=60))
        print("worker", rank, "gave", step, "gradients")


if sys.argv[1] == "server":
    asyncio.run(server(int(sys.argv[2])))
else:
    worker(int(sys.argv[2]))
