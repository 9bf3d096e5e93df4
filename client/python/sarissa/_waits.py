# SPDX-License-Identifier: BSD-3-Clause
"""Ends of calls that wait."""

from __future__ import annotations

from typing import Callable

from . import _sarissa

SLICE_NS = 10**8


def end_block(end: Callable[[], None], failed: bool) -> None:
    """The end of a with block. failed: an exception passes. It is the one that the program gets, and waits half a
    second at most for the node, which does the rest in its own time."""
    if not failed:
        end()
        return
    try:
        _sarissa.brief(end)
    except Exception:
        pass
