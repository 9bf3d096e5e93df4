# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of the process group. They are RuntimeErrors, as those of the other backends of torch.distributed
are, so that programs which catch those go on. Raised by channel.py and its parts; sarissa.torch names them."""

from __future__ import annotations

from typing import Sequence

from torch.distributed import DistBackendError


class CollectiveError(DistBackendError):
    """An operation of the process group has failed. The text names the operation, and the rank where there is one."""


class RankDied(CollectiveError):
    """A rank of the group has died, with its process or its node. All operations of the group fail from now on."""

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class RanksDiffer(CollectiveError):
    """Ranks call different operations, or one operation with different shapes, types or roots. The text has both."""


class RanksMissing(CollectiveError, TimeoutError):
    """The time is over, and these ranks have not come."""

    def __init__(self, text: str, ranks: Sequence[int]) -> None:
        super().__init__(text)
        self.ranks = list(ranks)
