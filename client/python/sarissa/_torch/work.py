# SPDX-License-Identifier: BSD-3-Clause
"""Work: what an operation of the process group returns. The channel's thread ends it; any thread waits for it. The
reducer of DistributedDataParallel, which is C++, takes the future of it. It does not know what the operation does."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Callable, List, Optional

import torch
from torch.distributed import Work as TorchWork


def value_or_error(ended: Any) -> Any:
    """An exception that a callback of a future raises is an error for C++ as well; set_exception() makes none."""
    value = ended.value()
    if isinstance(value, BaseException):
        raise value
    return value


class Work(TorchWork):
    """results: the tensors of the operation, which are the value of its future."""

    def __init__(self, results: List[Any], what: str) -> None:
        super().__init__()
        self._results, self._what = results, what
        self.late: Optional[Callable[[float], BaseException]] = None  # what a wait raises whose time is over
        self._ended = threading.Event()
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()
        self._future: Any = None
        self._shown: Any = None
        self.source = -1  # of a message

    def end(self, error: Optional[BaseException] = None) -> None:
        """Once."""
        with self._lock:
            self._error = error
            self._ended.set()
            future = self._future
        if future is not None:
            self._tell(future)

    def _tell(self, future: Any) -> None:
        future.set_result(self._results if self._error is None else self._error)

    def wait(self, timeout: Any = timedelta(0)) -> bool:
        """Until the end, or so long: an error of the operation is raised."""
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout) / 1e3
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise self._late(seconds)
        if self._error is not None:
            raise self._error
        return True

    def _late(self, seconds: float) -> BaseException:
        if self.late is not None:
            return self.late(seconds)
        return TimeoutError(f"{self._what}: not done within {seconds:g} s")

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def result(self) -> List[Any]:
        self.wait()
        return self._results

    def source_rank(self) -> int:
        return self.source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """A torch.futures.Future of the list of tensors."""
        with self._lock:
            if self._shown is None:
                self._future = torch.futures.Future()
                self._shown = self._future.then(value_or_error)
                ended = self._ended.is_set()
            else:
                ended = False
        if ended:
            self._tell(self._future)
        return self._shown


class Works(TorchWork):
    """Several as one."""

    def __init__(self, works: List[Work]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Any = timedelta(0)) -> bool:
        """The first error is raised when all have ended."""
        errors = []
        for work in self._works:
            try:
                work.wait(timeout)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def get_future(self) -> Any:
        """Of the list of all tensors."""
        return torch.futures.collect_all([work.get_future() for work in self._works]).then(
            lambda ended: [tensor for one in ended.wait() for tensor in one.wait()])
