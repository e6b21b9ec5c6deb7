"""The data directory: created on the first start, and used by one process at a time."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from odradek.plugin.config import ConfigError

LOCK_FILE = ".lock"  # LogManager.LOCK_FILE_NAME in Kafka


class UnusableDirectory(ConfigError):
    """A directory that cannot be created or written."""


class DataDir:
    """A directory locked for this process. The lock ends with the process, however the process ends. As a
    context, it abandons the directory if the block fails.

    Args:
        path: The directory.
        key: The configuration key to name in errors.

    Raises:
        UnusableDirectory: The directory cannot be created or written.
        ConfigError: Another process uses it.
    """

    def __init__(self, path: Path, key: str = "data.dir") -> None:
        self.path = path
        try:
            self.created = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnusableDirectory(key, f"{path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self.lock)
            raise ConfigError(
                key, f"{path} is in use by another process; stop it or choose another directory"
            ) from None

    def close(self) -> None:
        """Release the lock."""
        os.close(self.lock)

    def abandon(self) -> None:
        """Release the lock of a start that failed. A directory that it made is removed if it is empty."""
        file = self.path / LOCK_FILE
        with suppress(OSError):
            if self.created and [*self.path.iterdir()] == [file]:
                file.unlink()
                self.path.rmdir()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
