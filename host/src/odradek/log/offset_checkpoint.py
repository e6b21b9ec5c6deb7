"""One offset in a small file beside the segments.

After org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile, which has one file for all
partitions of a directory; here each partition has its own, so that writing costs the same however many
there are, and a partition takes it along when it moves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

LOG_START_OFFSET: Final = "log-start-offset-checkpoint"
"""What DeleteRecords left."""
CLEANER_OFFSET: Final = "cleaner-offset-checkpoint"
"""The first offset that compaction has not seen."""
_VERSION: Final = "0"


def read_offset(directory: Path, name: str) -> int | None:
    """None if there is no such file, or if it makes no sense."""
    try:
        version, offset = (directory / name).read_text().split()
        return int(offset) if version == _VERSION else None
    except (OSError, ValueError):
        return None


def write_offset(directory: Path, name: str, offset: int) -> None:
    """Replace the file in one step.

    Raises:
        OSError: The old one is still there.
    """
    draft = directory / f"{name}.tmp"
    draft.write_text(f"{_VERSION}\n{offset}\n")
    os.replace(draft, directory / name)
