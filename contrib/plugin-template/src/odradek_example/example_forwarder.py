"""A forwarder, which gets batches of pushes in its own thread and event loop."""

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
        """Prepare for the first batch. Called once."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Deliver a batch, and return when the destination, here the file, has all of it.

        Raises:
            Retry: The file cannot be written now; the host delivers the batch again.
        """
        lines = "".join(line(record) for record in batch)
        try:
            await asyncio.to_thread(self.append, lines)
        except OSError as error:
            raise Retry(str(error)) from error

    def append(self, lines: str) -> None:
        """Append lines to the file. This blocks, so it is called in a thread."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lines)

    async def close(self) -> None:
        """Release resources. Called once when the host stops; the file already has all delivered batches."""


def line(record: TelemetryRecord) -> str:
    """A push as a line of JSON: the client, the time, and the payload in base64."""
    row = {
        "client_id": record.context.client_id,
        "received_ms": record.context.received_ms,
        "terminating": record.payload.terminating,
        "data": base64.b64encode(record.payload.data).decode(),
    }
    return json.dumps(row) + "\n"
