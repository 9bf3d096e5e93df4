# SPDX-License-Identifier: BSD-3-Clause
"""Messages: send and recv of a process group. Message number N with tag T of rank A for rank B is an object, which B
deletes. process_group.py calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .channel import Channel


class Messages:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
