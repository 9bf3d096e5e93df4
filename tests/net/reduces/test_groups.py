#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A synchronisation group of four real nodes: every contribution is counted once, whatever is changed,
killed and restarted meanwhile. Its result is the total of all rounds, and each member adds another
power of 1000, so the last total says how often each was counted."""


import os
import signal
import statistics
import subprocess
import time

import netlib
from lib.cluster import network, nodes, process
from netlib import Cluster, Task, build_dir

NODES = 4

MEMBER = """
import numpy
group = node.group("GROUP")
member = group.join()
say(str(member.number))
pushed = 0
for line in sys.stdin:
  if line.strip() == "leave":
    break
  for _ in range(int(line)):
    member.push(numpy.full(group.count, 1000.0 ** RANK))
    pushed += 1
    result = member.pull(timeout=30)
  stale = max(one.staleness for one in result.members)
  say(f"{result.array[0]:.0f} {result.array[-1]:.0f} {pushed} {result.count} {stale}")
member.leave()
"""

# Two members on one queue.
COROUTINES = """
import asyncio, numpy, sarissa.aio
async def main():
  async with sarissa.aio.open() as node:
    group = await node.group("GROUP")
    members = [await group.join() for _ in RANKS]
    say("0")
    pushed = 0
    async def one(member, rank, count):
      for _ in range(count):
        await member.push(numpy.full(group.count, 1000.0 ** rank))
        result = await member.pull(timeout=30)
      return result.array[0], result.array[-1]
    loop = asyncio.get_running_loop()
    while (line := (await loop.run_in_executor(None, sys.stdin.readline)).strip()) != "leave":
      first, last = (await asyncio.gather(*[one(m, r, int(line)) for m, r in zip(members, RANKS)]))[0]
      pushed += int(line)
      say(f"{first:.0f} {last:.0f} {pushed} 0 0")
    for member in members:
      await member.leave()
asyncio.run(main())
"""

CREATE = "node.create_group('t', 'f64', 100, policy='bsp', members=4, results='total')\nsay('made')\n"
INFO = "import json\nsay(json.dumps(node.group('t').info()))\n"


class Program(Task):
    """A command in the place of Python code."""

    def __init__(self, cluster, node, *command):
        self.child = cluster.start(node, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Member:
    def __init__(self, cluster, rank, group="t"):
        self.rank, self.pushed, self.total = rank, 0, 0
        self.task = self.begun(cluster, group)
        self.number = int(self.task.heard())

    def begun(self, cluster, group):
        return Task(cluster, self.rank, MEMBER.replace("RANK", str(self.rank)).replace("GROUP", group))

    def begin(self, rounds):
        self.task.child.stdin.write(f"{rounds}\n")
        self.task.child.stdin.flush()

    def end(self):
        """(contributions in the last result, the stalest of them)"""
        first, last, pushed, count, stale = map(int, self.task.heard().split())
        assert first == last, "the elements of one total differ"
        self.total, self.pushed = first, pushed
        return count, stale

    def leave(self):
        self.begin("leave")
        self.task.end()


class QueueMember(Member):
    def begun(self, cluster, group):
        return Program(cluster, self.rank, build_dir() / "tests/net/queue_task", "member", self.rank, group)


class Coroutines(Member):
    """Of this rank and the next."""

    def begun(self, cluster, group):
        return Task(cluster, self.rank, COROUTINES.replace("RANKS", f"({self.rank}, {self.rank + 1})").replace("GROUP", group))


def rounds(members, count, meanwhile=None):
    for member in members:
        member.begin(count)
    if meanwhile:
        meanwhile()
    return [member.end() for member in members]


def counted(total, rank):
    return total // 1000 ** rank % 1000


def all_counted(members):
    """The newest total has each contribution of the members once."""
    total = max(member.total for member in members)
    for member in members:
        assert counted(total, member.rank) == member.pushed, \
            f"of member {member.rank} {counted(total, member.rank)} contributions are in the total, " \
            f"not {member.pushed}"
    return total


def once(cluster, code):
    task = Task(cluster, 0, code)
    said = task.heard()
    task.end()
    return said


def info(cluster):
    return netlib.json.loads(once(cluster, INFO))


def policy(cluster, text):
    return int(once(cluster, f"say(str(node.group('t').policy('{text}')))\n"))


def restart(cluster, node):
    cluster.verb("kill", node, "control")
    cluster.verb("start", node, "control")


def shown(cluster):
    return netlib.json.loads(cluster.must(0, "sarissa", "group", "show", "s", "--json"))


def rounds_until(cluster, members, what, least):
    """Runs rounds until so many have been made by the switch or have fallen: members that are late are not waited for."""
    for _ in range(50):
        if (now := shown(cluster)[what]) >= least:
            return now
        rounds(members, 4)
    raise AssertionError(f"{what}: {now} after 200 rounds, not {least}")


def rounds_by_switch(cluster, members, more):
    return rounds_until(cluster, members, "switched", shown(cluster)["switched"] + more)


def rounds_after_switch(cluster, members):
    """The switch dies in the middle of rounds."""
    begun = shown(cluster)["round"]

    def kill():
        netlib.wait_for(lambda: shown(cluster)["round"] > begun + 2, netlib.PATIENCE_S, "rounds go on")
        os.kill(process.alive(nodes.switch_file(cluster.config, "pid")), signal.SIGKILL)

    rounds(members, 60, kill)
    return rounds_until(cluster, members, "fallen", 1)


def create_switched(cluster, members):
    cluster.must(0, "sarissa", "group", "create", "s", "--count", 3000, "--dtype", "f64", "--members", members, "--total",
                 "--switch", network.aggregator_ip())


def a_switch_makes_rounds(cluster):
    """Under bsp and k-of-n; and when it is killed in the middle, the nodes make them: nothing counts twice."""
    create_switched(cluster, 3)
    members = [Member(cluster, rank, "s") for rank in range(3)]
    rounds_by_switch(cluster, members, 3)
    all_counted(members)
    cluster.must(0, "sarissa", "policy", "set", "s", "k-of-n 2 deadline 40ms")
    made = rounds_by_switch(cluster, members, 2)
    all_counted(members)

    rounds_after_switch(cluster, members)
    all_counted(members)
    seen = shown(cluster)
    assert seen["switched"] >= made and seen["switched"] < seen["rounds"], seen
    text = cluster.must(0, "sarissa", "group", "show", "s")
    assert f"{seen['switched']} rounds by a switch" in text, text
    for member in members:
        member.leave()
    cluster.must(0, "sarissa", "group", "rm", "s")
    return f"{seen['switched']} of {seen['rounds']} rounds by the switch, {seen['fallen']} fell to the nodes"


def a_group_counts_each_contribution_once():
    with Cluster(NODES, "--switch", "dpdk", "--vdev", "udp") as cluster:
        switched = a_switch_makes_rounds(cluster)
        assert once(cluster, CREATE) == "made"
        members = [Member(cluster, rank) for rank in range(NODES)]
        assert rounds(members, 5) == [(4, 0)] * NODES, "under bsp each round has everybody"
        all_counted(members)

        versions = []
        rounds(members, 40, lambda: versions.append(policy(cluster, "ssp 2")))
        ended = rounds(members, 20)
        assert max(stale for _, stale in ended) <= 2
        assert versions == [2] and policy(cluster, "bsp") == 3
        rounds(members, 2)
        all_counted(members)

        owner = info(cluster)["owner"]
        rounds(members, 30, lambda: restart(cluster, owner))
        all_counted(members)
        other = next(node for node in range(NODES) if node != owner)
        rounds(members, 30, lambda: restart(cluster, other))
        all_counted(members)

        victim = members.pop(next(m.rank for m in members if m.rank not in (0, owner)))
        before = victim.pushed
        victim.begin(100)
        rounds(members, 30, victim.task.kill)
        total = all_counted(members)
        assert before <= counted(total, victim.rank) <= before + 31

        seen = info(cluster)
        assert seen["live"] == 3 and seen["version"] == 3 and seen["policy"] == "bsp"
        assert {m["member"] for m in seen["members"]} == {m.number for m in members}
        for member in members:
            member.leave()
        once(cluster, "node.group('t').remove()\nsay('gone')\n")
        left = cluster.must(0, "sarissa", "ls", ".group/", "--json")
        netlib.wait_for(lambda: not cluster.must(0, "sarissa", "ls", ".group/", "--json"),
                        netlib.PATIENCE_S, f"the objects of a removed group go: {left}")
        return f"total {total}; {switched}"


def queues_and_coroutines_use_the_switch():
    """Members that wait in calls, in a queue and in coroutines of one queue make rounds together, with the switch
    and when it has died."""
    with Cluster(3, "--switch", "dpdk", "--vdev", "udp") as cluster:
        create_switched(cluster, 4)
        members = [Member(cluster, 0, "s"), QueueMember(cluster, 1, "s"), Coroutines(cluster, 2, "s")]
        made = rounds_by_switch(cluster, members, 40)
        of = shown(cluster)["rounds"]
        total = all_counted(members)
        assert counted(total, 3) == members[2].pushed
        fallen = rounds_after_switch(cluster, members)
        total = all_counted(members)
        assert counted(total, 3) == members[2].pushed
        for member in members:
            member.leave()
        return f"{made} of {of} rounds by the switch, later {fallen} fell to the nodes; total {total}"


def owned_elsewhere(cluster, not_by=0):
    """A group of 400 KB totals whose owner is another node: (its name, its owner)."""
    for n in range(64):
        name = f"d{n}"
        once(cluster, f"node.create_group('{name}', 'f64', 50000, policy='bsp', members=4, results='total')\nsay('made')")
        owner = netlib.json.loads(cluster.must(0, "sarissa", "group", "show", name, "--json"))["owner"]
        if owner != not_by:
            return name, owner
        cluster.must(0, "sarissa", "group", "rm", name)
    raise AssertionError("all groups are owned by one node")


def an_owner_dies_with_its_member():
    """Everybody has the last round when the owner's node dies with its member: it stays in all later totals,
    and the others go on in seconds."""
    with Cluster(NODES, "--vdev", "udp") as cluster:
        name, owner = owned_elsewhere(cluster)
        members = [Member(cluster, rank, name) for rank in range(NODES)]
        rounds(members, 20)
        delivered = all_counted(members)
        victim = members.pop(owner)
        victim.task.kill()
        cluster.verb("kill", owner, "node")
        begun = time.monotonic()
        rounds(members, 1)
        took = time.monotonic() - begun
        total = all_counted(members)
        assert counted(total, victim.rank) == victim.pushed, f"a delivered round has left the total: {delivered}, then {total}"
        assert took < 10, f"the others waited for {took:.1f} s"
        rounds(members, 5)
        all_counted(members)
        return f"the next round came after {took:.1f} s; total {total}"


def a_result_streams_while_it_is_made():
    """Over slow links a sum and its way back to all members overlap: a pull takes the time of an allreduce, below that of a sum
    and then a copy, each of which has every byte on one link."""
    size, rate, turns = 2_000_000, 100, 5
    with Cluster(NODES, "--vdev", "udp", "--rate", rate, "--store", 64) as cluster:
        once(cluster, f"node.create_group('f', 'f64', {size // 8}, policy='bsp', members=4)\nsay('made')")
        members = [Member(cluster, rank, "f") for rank in range(NODES)]
        took = []
        for _ in range(turns):
            begun = time.monotonic()
            assert {count for count, _ in rounds(members, 1)} == {NODES}
            took.append(time.monotonic() - begun)
        for member in members:
            member.leave()
    link = size * 8 / (rate * 1e6)
    round_s = statistics.median(took)
    assert 1.4 * link < round_s < 1.9 * link, f"a round takes {took} s, one of its arrays {link:.3f} s on a link"
    return f"a round takes {round_s / link:.2f} times what one array needs on a link"


netlib.need_root()
netlib.run(a_group_counts_each_contribution_once, queues_and_coroutines_use_the_switch, an_owner_dies_with_its_member,
           a_result_streams_while_it_is_made)
