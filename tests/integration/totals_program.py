"""A process that delivers a log with totals until it is killed: the child of test_totals_survive_kill.

Usage: ``python -m integration.totals_program FOLDER RECORDS LIFE_S``

With a life above 0 the kernel ends the process after that time, wherever it is.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import Origin, TelemetryRecord
from odradek.temporality import CumulativeForwarder, TotalsSettings
from support.delta_clients import Scene, d, points_of

CLIENTS = 3
BATCH = 5
SECONDS = 10
ANSWER_S = 0.001
"""As long as a commit takes, so that about half of the deaths are between commit and answer."""


def increment(offset: int) -> float:
    """The delta of a record."""
    return float(random.Random(offset).randrange(10))


def record_at(offset: int) -> TelemetryRecord:
    """A record of the log: clients take turns."""
    second = offset * SECONDS
    instance = bytes([offset % CLIENTS]) * 16
    record = Scene().record(
        d(increment(offset), second - CLIENTS * SECONDS, second), at=second, instance=instance
    )
    record.position = Origin("topic", 0, offset)
    return record


class Appending:
    """A destination: a line for each record, with its client and total."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    async def start(self) -> None:
        """Nothing to do."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        for record in batch:
            (point,) = points_of(MetricsData.FromString(record.payload.data))
            client = record.payload.client_instance_id[0]
            os.write(self.file, f"{client} {point.as_double}\n".encode())
        await asyncio.sleep(ANSWER_S)

    async def close(self) -> None:
        os.close(self.file)


async def deliver_all(folder: Path, records: int) -> None:
    """Deliver from the committed offset to the end of the log."""
    forwarder = CumulativeForwarder(
        Appending(folder / "delivered"), TotalsSettings(file=folder / "totals.db")
    )
    await forwarder.start()
    committed = folder / "offset"
    offset = int(committed.read_text()) if committed.exists() else 0
    while offset < records:
        end = min(offset + BATCH, records)
        await forwarder.deliver([record_at(each) for each in range(offset, end)])
        offset = end
        (folder / "next").write_text(str(offset))
        (folder / "next").replace(committed)
    await forwarder.close()


if __name__ == "__main__":
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[3]))  # no handler: SIGALRM ends it as SIGKILL would
    asyncio.run(deliver_all(Path(sys.argv[1]), int(sys.argv[2])))
