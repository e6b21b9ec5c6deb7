"""A disk that fails: calls of `os` on files below a directory raise."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from errno import EIO
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

WITH_DESCRIPTOR: Final = ("pwritev", "pwrite", "pread", "fsync")
WITH_PATH: Final = (
    "open", "rename", "replace", "truncate", "unlink", "rmdir", "mkdir", "stat", "utime", "scandir",
    "listdir", "statvfs",
)  # fmt: skip
CALLS: Final = (*WITH_DESCRIPTOR, *WITH_PATH)


class FailingDisk:
    """Replaces functions of `os` until the test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken: dict[Path, tuple[int, frozenset[str]]] = {}
        self.failed: list[str] = []
        """The calls that raised, by name."""
        self.spared = 0
        """How many calls still succeed before the first failure."""
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name)))

    def fail(self, directory: Path, *calls: str, number: int = EIO) -> None:
        """Let these calls, or all, raise from now on; ``number`` is the errno."""
        self.broken[directory] = (number, frozenset(calls or CALLS))

    def recover(self) -> None:
        """Let all calls work again."""
        self.broken.clear()

    def wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *args: Any, **options: Any) -> Any:
            for directory, (number, calls) in self.broken.items():
                if name in calls and Path(path_of(target)).is_relative_to(directory):
                    if self.spared:
                        self.spared -= 1
                        continue
                    self.failed.append(name)
                    raise OSError(number, os.strerror(number), path_of(target))
            return real(target, *args, **options)

        return call


def path_of(target: Any) -> str:
    """The path of an open descriptor, or the path itself."""
    return str(Path(f"/proc/self/fd/{target}").readlink()) if isinstance(target, int) else os.fspath(target)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    """No call fails yet."""
    return FailingDisk(monkeypatch)


class Killed(BaseException):
    """The process ends here; no exception handler may run."""


def kill_at(operation: int, calls: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end at the call of this number, counted from 0 over these functions of `os`."""
    counter = count()

    def killing(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if next(counter) >= operation:
                raise Killed
            return real(*args, **kwargs)

        return wrapped

    for name in calls:
        monkeypatch.setattr(os, name, killing(getattr(os, name)))
