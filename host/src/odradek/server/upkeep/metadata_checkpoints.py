"""Brings what is in the write-ahead log of the metadata file into the file itself, off the loop.

SQLite would do it within a commit, every thousand pages, and wait for the disk twice: measured as a pause of
164 ms on the loop. A passive checkpoint on a thread does not keep anybody from writing meanwhile.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from odradek.clock import Clock, Timer

log = logging.getLogger(__name__)

INTERVAL_MS = 2_000
Offload = Callable[[Callable[[], Any], Callable[[Any], None]], None]


class MetadataCheckpoints:
    """One per host.

    Args:
        path: The metadata file.
        changes: A number that is another one once something was written.
        timer: What waits.
        clock: The time.
        offload: Runs work on a thread and calls back on the loop with its result, or with what it raised.
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
        """Look again after a while, for ever."""
        self.timer.schedule(self.clock.now_ms() + INTERVAL_MS, self.step)

    def step(self) -> None:
        changes = self.changes()
        if changes == self.changes_before:
            self.start()
            return
        self.changes_before = changes
        self.offload(partial(checkpoint, self.path), self.ended)

    def ended(self, result: object) -> None:
        """A checkpoint that failed is done by the next; until then the log is there."""
        if isinstance(result, Exception):
            log.warning("metadata checkpoint failed", extra={"error": str(result)})
        self.start()


def checkpoint(path: Path) -> None:
    """Bring over what can be, without waiting for anybody; over a connection of the calling thread."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("pragma wal_checkpoint(passive)").fetchone()
    finally:
        connection.close()
