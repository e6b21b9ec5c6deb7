"""A process that writes a log to a receiver until it is killed.

Usage: ``python -m integration.remote_write_program URL FOLDER RECORDS FIRST_S LIFE_S``

With a life above 0 the kernel ends the process after that time, wherever it is. The log is the same in each
life: clients take turns, a record each second, up to FIRST_S.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

from odradek.plugin import Origin, PluginConfig, TelemetryRecord
from odradek_prometheus import odradek_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from support.delta_clients import EPOCH_S, Scene, d

CLIENTS = 5
BATCH = 10


def increment(offset: int) -> float:
    """The delta of a record."""
    return float(random.Random(offset).randrange(10))


def total(client: int, records: int) -> float:
    """The sum of a client's deltas."""
    return sum(increment(offset) for offset in range(client, records, CLIENTS))


def record_at(offset: int, first_s: float) -> TelemetryRecord:
    """A record of the log."""
    second = first_s - EPOCH_S + offset
    labels = {"client_id": f"client-{offset % CLIENTS}"}
    record = Scene().record(
        d(increment(offset), second - CLIENTS, second),
        at=second,
        instance=bytes([offset % CLIENTS]) * 16,
        labels=labels,
    )
    record.context.client_id = labels["client_id"]
    record.position = Origin("topic", 0, offset)
    return record


def forwarder_to(url: str, folder: Path) -> RemoteWriteForwarder:
    table = {"remote_write.url": url, "remote_write.totals.file": str(folder / "totals.db")}
    found = odradek_forwarder(PluginConfig("plugins.prometheus", table))
    assert isinstance(found, dict)
    forwarder = found["remote_write"]
    assert isinstance(forwarder, RemoteWriteForwarder)
    return forwarder


async def deliver_all(url: str, folder: Path, records: int, first_s: float) -> None:
    """Deliver from the committed offset to the end of the log."""
    forwarder = forwarder_to(url, folder)
    await forwarder.start()
    committed = folder / "offset"
    offset = int(committed.read_text()) if committed.exists() else 0
    while offset < records:
        end = min(offset + BATCH, records)
        await forwarder.deliver([record_at(each, first_s) for each in range(offset, end)])
        offset = end
        (folder / "next").write_text(str(offset))
        (folder / "next").replace(committed)
    await forwarder.close()


if __name__ == "__main__":
    # No handler: SIGALRM ends it as SIGKILL would. The life begins after the imports.
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[5]))
    asyncio.run(deliver_all(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
