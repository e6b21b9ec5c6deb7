"""Label the records of a topic that no host has labeled: a relay or another program wrote them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import EncodedLabels
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.source import Refused
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.labeled_record import labeled_record
from odradek.wire.errors import WireError

MAX_KNOWN: Final = 4_096
"""Clients whose labels are remembered."""


class RecordLabels:
    """The labels for the records of one forwarder, on its thread.

    Enrichers are asked once per client instance and connection, on the loop on which they are always called.

    Args:
        loop: The loop of the enrichers.
        enrichers: Those of the configuration.
        limits: Of a push.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, enrichers: Enrichers, limits: PayloadLimits) -> None:
        self.loop = loop
        self.enrichers = enrichers
        self.limits = limits
        self.known: OrderedDict[tuple[bytes, str], EncodedLabels | None] = OrderedDict()

    async def label(self, records: Sequence[TelemetryRecord]) -> list[Refused]:
        """Label the records that are not labeled; return those that cannot be, with the reasons."""
        refused = []
        for record in records:
            if record.labeled:
                continue
            try:
                ready = labeled_record(record, await self.labels(record), self.limits)
            except WireError as error:
                refused.append(Refused(record, str(error)))
            else:
                record.payload, record.labeled = ready.payload, True
        return refused

    async def labels(self, record: TelemetryRecord) -> EncodedLabels | None:
        """The labels of the client of a record; None without enrichers."""
        key = record.payload.client_instance_id, record.context.connection.connection_id
        if key in self.known:
            self.known.move_to_end(key)
            return self.known[key]
        asking = asyncio.run_coroutine_threadsafe(self.ask(record), self.loop)
        found = self.known[key] = await asyncio.wrap_future(asking)
        if len(self.known) > MAX_KNOWN:
            self.known.popitem(last=False)
        return found

    async def ask(self, record: TelemetryRecord) -> EncodedLabels | None:
        """Ask the enrichers, on their loop."""
        return self.enrichers.labels(record.payload.client_instance_id, record.context, is_own=False)
