"""A forwarder: given batches of pushes, on a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from pathlib import Path

from odradek.plugin import Retry, TelemetryRecord


class ExampleForwarder:
    """Appends each push to a file, as a line of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def start(self) -> None:
        """Called once, before the first batch."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Return when the far side, here the file, has the whole batch.

        Raises:
            Retry: It cannot take it now; the host comes again with it.
        """
        lines = "".join(line(record) for record in batch)
        try:
            await asyncio.to_thread(self.append, lines)
        except OSError as error:
            raise Retry(str(error)) from error

    def append(self, lines: str) -> None:
        """Blocks, so it is called on a thread."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lines)

    async def close(self) -> None:
        """Called once, when the host stops. All that `deliver` returned for is in the file already."""


def line(record: TelemetryRecord) -> str:
    """A push as JSON: who, when, and its bytes in base64."""
    row = {
        "client_id": record.context.client_id,
        "received_ms": record.context.received_ms,
        "terminating": record.payload.terminating,
        "data": base64.b64encode(record.payload.data).decode(),
    }
    return json.dumps(row) + "\n"
