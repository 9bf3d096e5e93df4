# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's side of a measurement: torch.distributed with gloo, one rank per node, over TCP, from PyPI.

Fair to it: links of its own of the same shape, without our XDP programs and with segmentation off-loads for large
objects; one thread of torch's own per rank; its ranks sleep while they wait. It has each operation in one way."""

from lib.bench.systems.ranks import Ranks
from lib.cluster import network

PORT = 29500


class TorchGloo(Ranks):
    system, module, program = "torch-gloo", "torch.distributed", "torch_rank.py"
    one_way = Ranks.operations
    settings = {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}

    def arguments(self, rank):
        return [f"{network.node_ip(0)}:{PORT}"]
