"""Checkpoint the write-ahead log of the metadata file, off the loop.

SQLite would do this within a commit, every thousand pages, and wait for the disk twice: a measured pause of
164 ms on the loop. A passive checkpoint on a thread does not block writers.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Offload

log = logging.getLogger(__name__)

INTERVAL_MS = 2_000


class MetadataCheckpoints:
    """One per host.

    Args:
        path: The metadata file.
        changes: Returns a number that grows with every write.
        timer: Schedules the checkpoints.
        clock: The host's clock.
        offload: Runs work on a thread and calls back on the loop with its result or its exception.
    """

    def __init__(
        self, path: Path, changes: Callable[[], int], timer: Timer, clock: Clock, offload: Offload
    ) -> None:
        self.path = path
        self.changes = changes
        self.timer = timer
        self.clock = clock
        self.offload = offload
        self.changes_before = changes()

    def start(self) -> None:
        """Schedule the next look; each look schedules another."""
        self.timer.schedule(self.clock.monotonic_ms() + INTERVAL_MS, self.step)

    def step(self) -> None:
        changes = self.changes()
        if changes == self.changes_before:
            self.start()
            return
        self.changes_before = changes
        self.offload(partial(checkpoint, self.path), self.ended)

    def ended(self, result: object) -> None:
        """Log a failure: the next checkpoint covers it, and until then the write-ahead log has the data."""
        if isinstance(result, Exception):
            log.warning("metadata checkpoint failed, trying again", extra={"error": str(result)})
        self.start()


def checkpoint(path: Path) -> None:
    """Checkpoint as many pages as possible without blocking; uses a connection of the calling thread."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("pragma wal_checkpoint(passive)").fetchone()
    finally:
        connection.close()
