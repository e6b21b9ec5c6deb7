"""Label the records of a topic that no host has labeled: a relay or another program wrote them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.source import Refused
from odradek.telemetry.client_labels import Labels
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.labeled_record import labeled_record
from odradek.wire.errors import WireError


class RecordLabels:
    """The labels for the records of one forwarder, on its thread. Enrichers are asked on their own loop.

    Args:
        loop: The loop of the enrichers.
        enrichers: Those of the configuration.
        limits: Of a push.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, enrichers: Enrichers, limits: PayloadLimits) -> None:
        self.loop = loop
        self.enrichers = enrichers
        self.limits = limits

    async def label(self, records: Sequence[TelemetryRecord]) -> list[Refused]:
        """Label the records that are not labeled; return those that cannot be, with the reasons."""
        unlabeled = [record for record in records if not record.labeled]
        refused = []
        found = await labels_of(unlabeled, self.enrichers, self.loop) if unlabeled else []
        for record, labels in zip(unlabeled, found, strict=True):
            try:
                ready = labeled_record(record, labels, self.limits)
            except WireError as error:
                refused.append(Refused(record, str(error)))
            else:
                record.payload, record.labeled = ready.payload, True
        return refused


async def labels_of(
    records: Sequence[TelemetryRecord], enrichers: Enrichers, loop: asyncio.AbstractEventLoop
) -> list[Labels]:
    """The labels of records, which are asked for on another loop.

    Args:
        records: Those that have their labels get None.
        enrichers: They are asked.
        loop: Their loop.

    Raises:
        RuntimeError: Their loop has ended.
    """
    answer: asyncio.Future[list[Labels]] = asyncio.get_running_loop().create_future()

    def reply(found: list[Labels]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop that asked has ended
            answer.get_loop().call_soon_threadsafe(take, found)

    def take(found: list[Labels]) -> None:
        if not answer.done():
            answer.set_result(found)

    loop.call_soon_threadsafe(enrichers.of_records, records, reply)
    return await answer
