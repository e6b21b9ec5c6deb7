"""Clients that push at chosen seconds, and the series that Prometheus gets of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.plugin import Origin, TelemetryRecord
from odradek.temporality import CumulativeForwarder, Engine, TotalsSettings
from odradek_prometheus.client_series import Ended, MappedSeries
from odradek_prometheus.exposition import Exposition, ExpositionSettings, Update
from support.delta_clients import TOPIC, A, Scene, Store, ms


class MemoryStore:
    """A `odradek.temporality.TotalsStore` that is as durable as the test."""

    name = "memory"
    parts = 1

    def __init__(self) -> None:
        self.store = Store()

    def open(self) -> None:
        """Nothing to open."""

    def part_of(self, position: Origin | None) -> int:
        return 0

    def load(self, engine: Engine, part: int) -> None:
        self.store.load(engine)

    def commit(self, engine: Engine, part: int) -> None:
        self.store.commit(engine.take_changes())

    def close(self) -> None:
        """Nothing to close."""


class NoDestination:
    """A forwarder that delivers nothing."""

    async def start(self) -> None:
        """Nothing to start."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Nothing to deliver."""

    async def close(self) -> None:
        """Nothing to close."""


class Exposed:
    """An exposition, the log that it reads, and its store.

    Args:
        settings: Of the exposition.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = ExpositionSettings(**settings)
        self.store = MemoryStore()
        self.scene = Scene()
        self.exposition, self.forwarder = self.opened(0)

    def opened(self, at: float) -> tuple[Exposition, CumulativeForwarder]:
        exposition = Exposition(self.settings)
        forwarder = exposition.wrap(NoDestination(), TotalsSettings(file=Path("unused")))
        forwarder.store_in(self.store)
        exposition.load(ms(at))
        return exposition, forwarder

    def restart(self, at: float) -> None:
        """Continue with what was committed."""
        self.exposition, self.forwarder = self.opened(at)

    def record(
        self, *metrics: Metric, context: dict[str, Any] | None = None, **facts: Any
    ) -> TelemetryRecord:
        """The next record of the log. ``context`` has fields of the request and of its connection."""
        if not metrics and "data" not in facts:
            facts["data"] = b""
        record = self.scene.record(*metrics, **facts)
        record.position = Origin(TOPIC, 0, self.scene.next_offset)
        self.scene.next_offset += 1
        changes = dict(context or {})
        if "client_id" in changes:
            record.context = dataclasses.replace(record.context, client_id=changes.pop("client_id"))
        connection = dataclasses.replace(record.context.connection, **changes)
        record.context = dataclasses.replace(record.context, connection=connection)
        return record

    def deliver(self, *batch: TelemetryRecord) -> Update:
        self.forwarder.committed(batch)
        return self.exposition.update(batch)

    def push(self, *metrics: Metric, **facts: Any) -> Update:
        """Push, and commit."""
        return self.deliver(self.record(*metrics, **facts))

    def expire(self, at: float) -> list[Ended]:
        return self.exposition.expire(ms(at))

    def series(self, instance: bytes = A) -> list[MappedSeries]:
        client = self.exposition.client(instance)
        return list(client.series()) if client else []

    def values(self, instance: bytes = A) -> dict[str, float]:
        """The values by name."""
        return {each.family.name: each.value for each in self.series(instance)}

    def labels(self, instance: bytes = A) -> dict[str, str]:
        """The labels of the first series."""
        return dict(self.series(instance)[0].labels)


def names(ended: Sequence[Ended]) -> list[str]:
    return [each.family.name for each in ended]
