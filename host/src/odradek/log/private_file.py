"""Files and folders that only their owner can read: they hold the records of clients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def write_private(path: Path, data: bytes | bytearray) -> None:
    """Write a file, or replace its content.

    Raises:
        OSError: The file may have a part of the content.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
