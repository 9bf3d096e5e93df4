# SPDX-License-Identifier: BSD-3-Clause
"""What sarissa.aio is made of."""

import inspect
from typing import Any, Callable, Type, TypeVar

T = TypeVar("T", bound=Type[Any])


def described_by(like: Type[Any]) -> Callable[[T], T]:
    """For a class whose methods without words of their own do what their namesakes in like do."""
    def describe(kind: T) -> T:
        for name, call in vars(kind).items():
            if inspect.isfunction(call) and call.__doc__ is None and not name.startswith("_"):
                call.__doc__ = getattr(like, name).__doc__
        return kind
    return describe
