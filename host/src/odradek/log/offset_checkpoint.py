"""One offset in a small file next to the segments.

After org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile. Kafka has one file for all
partitions of a directory; here each partition has its own. The cost of writing it does not depend on the
number of partitions, and it moves with its partition.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from odradek.log.private_file import write_private

LOG_START_OFFSET: Final = "log-start-offset-checkpoint"
"""The log start offset set by DeleteRecords."""
CLEANER_OFFSET: Final = "cleaner-offset-checkpoint"
"""The first offset that has not been compacted."""
_VERSION: Final = "0"


def read_offset(directory: Path, name: str) -> int | None:
    """The offset in a file; None if the file is missing or has no offset.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        version, offset = (directory / name).read_text().split()
        return int(offset) if version == _VERSION else None
    except (FileNotFoundError, ValueError):
        return None


def write_offset(directory: Path, name: str, offset: int) -> None:
    """Replace the file atomically.

    Raises:
        OSError: The old file is still there.
    """
    draft = directory / f"{name}.tmp"
    write_private(draft, f"{_VERSION}\n{offset}\n".encode())
    os.replace(draft, directory / name)
