"""What the logs of a host ask their owner to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from odradek.log.partition_log import PartitionLog
from odradek.log.replica_move import ReplicaMove
from odradek.wire.api_error import ApiError


class LogWork:
    """Does it at once, but begins no moves; a host's `BackgroundWork` blocks nobody."""

    def flush(self, asking: PartitionLog, wait_ms: int) -> None:
        """Flush a log within a time, as its configuration requires."""
        if asking.must_flush:
            with suppress(ApiError):  # the append has succeeded; whoever waits for the flush gets the error
                asking.flush()

    def move(self, move: ReplicaMove, ended: Callable[[object], None]) -> None:
        """Run the steps of a move, then call ``ended`` with the outcome."""

    def remove(self, folder: Path) -> None:
        """Delete a folder that is no longer used. The next start deletes what could not be deleted."""
        shutil.rmtree(folder, ignore_errors=True)
