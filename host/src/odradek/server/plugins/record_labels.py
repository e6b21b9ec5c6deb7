"""Label the records of a topic that no host has labeled, on the threads of forwarders."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final

from odradek.plugin.labeled_payload import PayloadLimits
from odradek.plugin.labels import EncodedLabels
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.source import Refused
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.record_labels import labeled_record
from odradek.wire.errors import WireError

MAX_KNOWN: Final = 16_384
"""Clients whose labels are remembered."""


class RecordLabels:
    """The labels of the configured enrichers, which are asked once per client instance and connection.

    Any thread may call it. Enrichers are called one at a time, as on the loop of a host.
    """

    def __init__(self, enrichers: Enrichers, limits: PayloadLimits) -> None:
        self.enrichers = enrichers
        self.limits = limits
        self.lock = Lock()
        self.known: OrderedDict[tuple[bytes, str], EncodedLabels | None] = OrderedDict()

    def label(self, records: Sequence[TelemetryRecord]) -> list[Refused]:
        """Label the records that are not labeled; return those that cannot be, with the reasons."""
        refused = []
        for record in records:
            if record.labeled:
                continue
            try:
                ready = labeled_record(record, self.labels(record), self.limits)
            except WireError as error:
                refused.append(Refused(record, str(error)))
            else:
                record.payload, record.labeled = ready.payload, ready.labeled
        return refused

    def labels(self, record: TelemetryRecord) -> EncodedLabels | None:
        """The labels of the client of a record; None without enrichers."""
        instance_id = record.payload.client_instance_id
        key = instance_id, record.context.connection.connection_id
        with self.lock:
            if key in self.known:
                self.known.move_to_end(key)
                return self.known[key]
            found = self.known[key] = self.enrichers.labels(instance_id, record.context)
            if len(self.known) > MAX_KNOWN:
                self.known.popitem(last=False)
            return found
