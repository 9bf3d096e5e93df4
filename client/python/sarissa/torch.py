# SPDX-License-Identifier: BSD-3-Clause
"""sarissa.torch: PyTorch on Sarissa. Importing it registers the backend "sarissa" of torch.distributed, for tensors of
the cpu:

    import sarissa.torch
    torch.distributed.init_process_group("sarissa")

Each rank uses the node of its host ($SARISSA_SOCKET, or the default one). This file only names what _torch/ has."""

from __future__ import annotations

import torch.distributed as dist

from ._torch.device import from_device, to_device
from ._torch.averages import LeftBehind
from ._torch.checkpoint import CheckpointTransport
from ._torch.elastic import ElasticGroup, TooFewRanks
from ._torch.errors import CollectiveError, RankDied, RanksDiffer, RanksMissing
from ._torch.hook import HookState, k_of_n_hook
from ._torch.process_group import ProcessGroup, create
from ._torch.state import load, save

__all__ = ["CheckpointTransport", "CollectiveError", "ElasticGroup", "HookState", "LeftBehind", "ProcessGroup",
           "RankDied", "RanksDiffer", "RanksMissing", "TooFewRanks", "from_device", "k_of_n_hook", "load", "save",
           "to_device"]

if "SARISSA" not in dist.Backend._plugins:
    dist.Backend.register_backend("sarissa", create, extended_api=True, devices=["cpu"])
