# SPDX-License-Identifier: BSD-3-Clause
"""The driver of Ray in `bench ray`, on node 0: ray_work.py STORE. It makes the workers of an application on the other
nodes and runs rounds of it. Takes lines of JSON, answers each with one:

  {"do": "open", "case", "spec", "nodes"}  workers on these nodes: one each
  {"do": "join", "system", "how"}          from here on arrays travel so
  {"do": "rounds", "count"}                {"seconds", "cpu_seconds": of each round, "loss", "workers": how many there are}
  {"do": "alive", "count"}                 when Ray has so many nodes, and each has one of ours
  {"do": "leave"}, {"do": "close"}

STORE: MiB of each of our nodes, which sarissa.ray.init() starts; 0: none of ours is needed.

The applications are in ray_apps. It does not know of the network."""

import itertools
import json
import logging
import os
import sys
import time
import traceback

import ray

from ray_apps import a3c, policy, serving, sgd, transfers

CASES = {"broadcast": (transfers.Worker, transfers.Broadcast), "reduce": (transfers.Worker, transfers.Reduce),
         "empty": (transfers.Worker, transfers.Empty),
         "sgd": (sgd.Worker, sgd.Server), "policy": (policy.Worker, policy.Server), "a3c": (a3c.Worker, a3c.Server),
         "serving": (serving.Worker, serving.Server)}
FIRST_PORT = 20000
ALIVE_S = 120.0  # Ray may take so long to find that a node has died


class Driver:
    def __init__(self, store):
        ray.init(address=os.environ["RAY_ADDRESS"], logging_level=logging.ERROR, log_to_driver=False)
        self.store = None
        if store:
            import sarissa.ray
            self.store = sarissa.ray
            self.store.init(store=store)
        self.meetings = (f"{os.environ['SARISSA_RAY_NODE_IP']}:{port}" for port in itertools.count(FIRST_PORT))
        self.server, self.workers = None, []

    def open(self, case, spec, nodes):
        worker, server = CASES[case]
        kind = ray.remote(num_cpus=0, max_restarts=0)(worker)
        self.workers = [kind.options(resources={f"node{node}": 1}).remote(node, spec) for node in nodes]
        ray.get([worker.__ray_ready__.remote() for worker in self.workers])
        self.server = server(spec, self.workers, self.meetings)

    def join(self, system, how):
        self.server.join(system, how)

    def rounds(self, count):
        seconds, cpu_seconds = zip(*(self.server.timed() for _ in range(count)))
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "loss": self.server.loss(),
                "workers": len(self.server.workers)}

    def alive(self, count):
        until = time.monotonic() + ALIVE_S
        while time.monotonic() < until:
            there = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
            ours = {one.ray_node for one in self.store.nodes()} if self.store else there
            if len(there) == count and there == ours:
                return
            time.sleep(0.1)
        raise TimeoutError(f"Ray has {len(there)} nodes, {len(ours)} of them with one of ours, and not {count}")

    def leave(self):
        self.server.leave()

    def close(self):
        for worker in self.workers:
            ray.kill(worker)
        self.server, self.workers = None, []


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is not an answer
    driver = Driver(int(sys.argv[1]))
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        fields = json.loads(line)
        try:
            told = getattr(driver, fields.pop("do"))(**fields) or {}
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            told = {"error": f"{type(error).__name__}: {str(error)[-500:]}"}
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
