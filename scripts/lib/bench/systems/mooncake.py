# SPDX-License-Identifier: BSD-3-Clause
"""Mooncake Store's side of a measurement: a store client per node, the master with its HTTP metadata server on node 0,
over TCP, from PyPI's build without CUDA.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation off-loads for large
objects; objects lie in their giver's segment before the time, gets go into registered memory without a copy, and
connections are kept. It has puts and gets only: what is written around them is in bench/peers/gets.py, with the tunings."""

import subprocess
import time

from lib import engines
from lib.bench.systems.peer import START_S
from lib.bench.systems.ranks import Ranks, environment
from lib.cluster import network, process
from lib.shell import Failure, run

PORTS = (50051, 8080, 9003)  # of the master, its metadata server, its statistics; for tuning hand 100 more
SEGMENT_LEAST = 64 << 20


class Mooncake(Ranks):
    system, module, program = "mooncake", "mooncake.store", "mooncake_rank.py"
    is_peer = True
    one_way = ("gather", "p2p")
    first_gathered = 1
    settings = {"MC_TCP_ENABLE_CONNECTION_POOL": "1", "MC_STORE_CLIENT_METRIC": "0", "MC_TE_METRIC": "0",
                "GLOG_minloglevel": "1"}
    master = None

    def __enter__(self):
        super().__enter__()
        try:
            self.start_master()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        super().__exit__()
        if self.master:
            process.end_all([self.master.pid], grace_s=1.0)
            self.master.wait()

    def ports(self):
        """Both tunings may run on the same links."""
        return [port + 100 * (self.tuning == "hand") for port in PORTS]

    def in_node(self, node):
        return ["ip", "netns", "exec", network.node_netns(self.config["name"], node)]

    def start_master(self):
        rpc, metadata, statistics = self.ports()
        package = run(engines.python(), "-c", "import mooncake; print(mooncake.__path__[0])").strip()
        argv = [*self.in_node(0), f"{package}/mooncake_master", f"-rpc_port={rpc}",
                "-enable_http_metadata_server=true", f"-http_metadata_server_port={metadata}",
                f"-metrics_port={statistics}", "-enable_metric_reporting=false", "-logtostderr=true"]
        with open(self.directory / "log.master", "wb") as log:
            self.master = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                           start_new_session=True, env=environment(**self.settings))
        until = time.monotonic() + START_S
        while not all(self.listens(port) for port in (rpc, metadata)):
            if self.master.poll() is not None or time.monotonic() > until:
                raise Failure(f"mooncake cannot run here: its master does not start: {self.trouble()[-200:]}")
            time.sleep(0.05)

    def listens(self, port):
        return bool(run(*self.in_node(0), "ss", "-Hltn", f"sport = :{port}").strip())

    def can_go_on(self):
        return super().can_go_on() and 4 * self.size <= self.segment

    def start_ranks(self):
        self.segment = max(SEGMENT_LEAST, 4 * self.size)
        super().start_ranks()

    def arguments(self, rank):
        head, (rpc, metadata, _) = network.node_ip(0), self.ports()
        return [self.tuning, network.node_ip(rank), f"{head}:{rpc}", f"http://{head}:{metadata}/metadata", self.segment]
