"""The data directory: created on the first start, and used by one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from odradek.log.private_file import FILE_MODE, FOLDER_MODE
from odradek.plugin.config import ConfigError

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"  # LogManager.LOCK_FILE_NAME in Kafka


class UnusableDirectory(ConfigError):
    """A directory that cannot be created or written."""


class DataDir:
    """A directory locked for this process. The lock ends with the process, however the process ends. As a
    context, it abandons the directory if the block fails.

    Args:
        path: The directory.
        key: The configuration key to name in errors.
        file: The name of the file that is locked.

    Raises:
        UnusableDirectory: The directory cannot be created or written.
        ConfigError: Another process uses it.
    """

    def __init__(self, path: Path, key: str = "data.dir", file: str = LOCK_FILE) -> None:
        self.path = path
        self.file = path / file
        try:
            self.created = not path.exists()
            path.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            self.lock = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            self.warn_if_others_read()
        except OSError as error:
            raise UnusableDirectory(key, f"{path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self.lock)
            raise ConfigError(
                key, f"{path} is in use by another process; stop it or choose another directory"
            ) from None

    def warn_if_others_read(self) -> None:
        """Warn if every user can read the directory. Its owner may want that, so the mode stays."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & stat.S_IROTH:
            log.warning(
                "every user of this machine can read a data directory; remove the right: chmod o= DIRECTORY",
                extra={"directory": str(self.path), "mode": f"{mode:04o}"},
            )

    def close(self) -> None:
        """Release the lock."""
        os.close(self.lock)

    def abandon(self) -> None:
        """Release the lock of a start that failed. A directory that it made is removed if it is empty."""
        with suppress(OSError):
            if self.created and [*self.path.iterdir()] == [self.file]:
                self.file.unlink()
                self.path.rmdir()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
