# SPDX-License-Identifier: BSD-3-Clause
"""What a topology file means for the emulated network: its ports, which of them hear each other, and
the routes between all others. `sarissa topology show` reads the file. Pure values but for that: it must
not know namespaces or devices.

A port is a pair (node, rail). A segment is what a frame crosses without a router: switches that links
join, or one direct link. Nodes forward between segments, as servers do in BCube and tori."""

import json
import subprocess
from collections import deque

from lib.cluster import nodes
from lib.options import NODES_MOST
from lib.shell import Failure

UNREACHED = 1 << 20


def tool(*argv):
    """What `sarissa topology` prints; its error is ours."""
    done = subprocess.run([str(a) for a in (nodes.binary("cli"), "topology", *argv)], capture_output=True,
                          text=True)
    if done.returncode:
        raise Failure(done.stderr.strip().removeprefix("sarissa: "), done.returncode)
    return done.stdout


def file_of_shape(name, rate_mbit):
    """The topology file of a regular network, as text."""
    return tool(name, *(["--rate", f"{round(rate_mbit * 1e6)}"] if rate_mbit else []))


def read(path):
    """A checked topology; its nodes in the order of their numbers, which are 0 to N - 1."""
    shown = json.loads(tool("show", path, "--json"))
    shown["nodes"].sort(key=lambda node: node["node"])
    numbers = [node["node"] for node in shown["nodes"]]
    if numbers != list(range(len(numbers))):
        missing = next(i for i, number in enumerate(numbers) if i != number)
        raise Failure(f"{path}: there is no node {missing}: a cluster has all nodes from 0 to"
                      f" {len(numbers) - 1}", 2)
    if len(numbers) > NODES_MOST:
        raise Failure(f"{path}: {len(numbers)} nodes: a cluster has at most {NODES_MOST}", 2)
    return shown


class Wires:
    """Of a topology as `sarissa topology show` gives it."""

    def __init__(self, shown):
        self.nodes = [node["rails"] for node in shown["nodes"]]
        self.switches = shown["switches"]
        index = {name: i for i, name in enumerate(self.switches)}
        self.trunks = [(*(index[name] for name in link["between"]), link["rate_bps"]) for link in shown["links"]]
        self.cables = self.pair_direct_links()
        self.other_end = {one: other for pair in self.cables for one, other in (pair, pair[::-1])}
        self.bridge = {}  # by port: the number of its switch; a direct link has one of its own behind those
        for port in self.ports():
            if port not in self.other_end:
                self.bridge[port] = index[self.rail(port)["switch"]]
        for i, cable in enumerate(self.cables):
            self.bridge.update(dict.fromkeys(cable, len(self.switches) + i))
        self.bridges = len(self.switches) + len(self.cables)
        self.join_segments()

    def ports(self):
        return [(node, rail) for node, rails in enumerate(self.nodes) for rail in range(len(rails))]

    def rail(self, port):
        return self.nodes[port[0]][port[1]]

    def rate_bps(self, port):
        """Of a direct link, what both ends can."""
        other = self.other_end.get(port, port)
        return min(self.rail(port)["rate_bps"], self.rail(other)["rate_bps"])

    def pair_direct_links(self):
        """Of several between two nodes, the first rail of one meets the last of the other: so the next
        node of an axis with two meets the one before."""
        cables = []
        for node, rails in enumerate(self.nodes):
            for other in sorted({r["node"] for r in rails if "node" in r and r["node"] > node}):
                mine = [(node, k) for k, r in enumerate(rails) if r.get("node") == other]
                theirs = [(other, k) for k, r in enumerate(self.nodes[other]) if r.get("node") == node]
                cables += zip(mine, reversed(theirs))
        return cables

    def join_segments(self):
        """segment: by port; members: the ports of each segment."""
        above = list(range(self.bridges))

        def top(i):
            while above[i] != i:
                i = above[i]
            return i

        for a, b, _ in self.trunks:
            above[top(a)] = top(b)
        self.segment = {port: top(bridge) for port, bridge in self.bridge.items()}
        self.members = {}
        for port, segment in self.segment.items():
            self.members.setdefault(segment, []).append(port)

    def neighbours(self, port):
        """The ports of other nodes that it hears."""
        return [other for other in self.members[self.segment[port]] if other[0] != port[0]]

    def distances(self, ends):
        """By node, how many links are between it and those ports of a node. A node without a way to them
        goes through the node's other rails, behind all others."""
        distance, target = {}, ends[0][0]
        self.spread(distance, target, [(self.segment[end], 1) for end in ends])
        self.spread(distance, target, [(self.segment[other], UNREACHED) for other in self.ports_of(target)])
        return distance

    def ports_of(self, node):
        return [(node, rail) for rail in range(len(self.nodes[node]))]

    def spread(self, distance, target, start):
        queue, seen = deque(start), set()
        while queue:
            segment, links = queue.popleft()
            if segment in seen:
                continue
            seen.add(segment)
            for node, _ in self.members[segment]:
                if node == target or node in distance:
                    continue
                distance[node] = links
                queue += [(self.segment[other], links + 1) for other in self.ports_of(node)
                          if self.segment[other] not in seen]

    def routes(self, ends):
        """The ways that end at any of those ports of a node: (node, rail, port of the next one, metric). With one
        port, the ways to two ports of a node share none of its links. Of the rails of a node the one
        with the least metric carries the packets, the others while that has no carrier. The next
        one is never further away, so packets do not go in circles."""
        distance, out = self.distances(ends), []
        for node, away in distance.items():
            for own in self.ports_of(node):
                hop = self.next_hop(own, ends, distance, away)
                if hop:
                    metric = 1 + (0 if hop[0] == ends[0][0] else min(distance[hop[0]], 1000))
                    out.append((node, own[1], hop, 64 * metric + (own[1] != ends[0][1]) * (1 + own[1])))
        return out

    def next_hop(self, own, ends, distance, away):
        target, others = ends[0][0], self.neighbours(own)
        for other in others:
            if other in ends or (away >= UNREACHED and other[0] == target):
                return other
        others = [o for o in others if o[0] != target and distance.get(o[0], UNREACHED * 2) <= away]
        return min(others, key=lambda o: (distance[o[0]], o), default=None)

    def forwarding(self, port):
        """On which side of which link each switch of the port's segment passes on what goes to it:
        (switch, number of the link). Ports spread over links that are equally short."""
        near = {self.bridge[port]: 0}
        queue = deque(near)
        links = {}
        for i, (a, b, _) in enumerate(self.trunks):
            links.setdefault(a, []).append((b, i))
            links.setdefault(b, []).append((a, i))
        while queue:
            at = queue.popleft()
            for other, _ in links.get(at, ()):
                if other not in near:
                    near[other] = near[at] + 1
                    queue.append(other)
        out = []
        for switch, far in near.items():
            ways = [i for other, i in links.get(switch, ()) if near[other] < far]
            if ways:
                out.append((switch, ways[sum(port) % len(ways)]))
        return out
