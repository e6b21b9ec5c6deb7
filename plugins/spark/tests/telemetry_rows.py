"""Rows of pushes for the tests of jobs: what one client instance pushed at one time, and a dataset of
pushes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin import (
    ClientTelemetryPayload,
    Origin,
    TelemetryRecord,
)
from odradek.testing import request_context
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek_spark.sink.commit import Batch, commit
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts, Decoder
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.files import write_files
from odradek_tables.schemas import INGESTED

MIDNIGHT_S = 1_790_035_200
"""2026-09-22T00:00:00Z."""
TOPIC = "__client_telemetry"
LATENCY = "org.apache.kafka.producer.request.latency.avg"
THROTTLE = "org.apache.kafka.producer.produce.throttle.time.max"
SENT = "org.apache.kafka.producer.record.send.total"


@dataclass(frozen=True, slots=True)
class Value:
    """One data point."""

    name: str
    value: float | int | None
    labels: tuple[tuple[str, str], ...] = ()
    sum: str = ""
    """``delta`` or ``cumulative``; otherwise a gauge."""
    start_s: float | None = None
    """The start time, on the clock of `Told`."""


def resource(labels: tuple[tuple[str, str], ...]) -> Resource:
    """A Resource with these attributes."""
    made = Resource()
    for key, text in labels:
        made.attributes.add(key=key).value.string_value = text
    return made


@dataclass(frozen=True, slots=True)
class Told:
    """One push."""

    at_s: float
    """Seconds after midnight at which the host received it."""
    values: tuple[Value, ...] = ()
    client: int = 1
    client_id: str = "app"
    version: str = "4.0.0"
    interval_ms: int = 30_000
    terminating: bool = False
    clock_s: float = 0.0
    """The offset of the client's clock."""
    resource: tuple[tuple[str, str], ...] = ()
    """Attributes of the Resource."""
    raw: bytes | None = field(default=None)
    """These bytes instead of values."""
    source: str | None = None
    """The plugin that brought it to its first host."""
    origin: Origin | None = None
    """The position at which the first host stored it."""
    observed: bool = False
    """Whether a host made it of what it saw."""
    facts: tuple[tuple[str, Any], ...] = ()
    """More facts about the connection: ``principal``, ``client_address``, ``node_id``."""

    def payload(self) -> bytes:
        """The payload of the client."""
        if self.raw is not None:
            return self.raw
        data = MetricsData()
        metrics = data.resource_metrics.add(resource=resource(self.resource)).scope_metrics.add().metrics
        for each in self.values:
            metric = metrics.add(name=each.name)
            if each.sum:
                metric.sum.aggregation_temporality = 1 if each.sum == "delta" else 2  # type: ignore[assignment]
                metric.sum.is_monotonic = True
            point = (metric.sum if each.sum else metric.gauge).data_points.add()
            point.time_unix_nano = nanoseconds(self.at_s + self.clock_s)
            if each.start_s is not None:
                point.start_time_unix_nano = nanoseconds(each.start_s + self.clock_s)
            if isinstance(each.value, int):
                point.as_int = each.value
            elif each.value is not None:
                point.as_double = each.value
            for key, text in each.labels:
                point.attributes.add(key=key).value.string_value = text
        return data.SerializeToString()

    def record(self, offset: int, partition: int = 0) -> TopicRecord:
        """The record that a host writes."""
        received_ms = round((MIDNIGHT_S + self.at_s) * 1000)
        context = request_context(
            client_id=self.client_id,
            received_ms=received_ms,
            client_software_name="apache-kafka-java",
            client_software_version=self.version,
            **dict(self.facts),
        )
        instance = bytes([self.client]) * 16 if self.client < 256 else self.client.to_bytes(16, "big")
        payload = ClientTelemetryPayload(instance, self.terminating, self.payload())
        record = TelemetryRecord(context, self.interval_ms, payload, subscription_id=7, codec=4)
        record.source, record.origin, record.observed = self.source, self.origin, self.observed
        return TopicRecord(
            partition, offset, received_ms, record_key(instance), self.payload(), encode_headers(record)
        )


def nanoseconds(at_s: float) -> int:
    return round((MIDNIGHT_S + at_s) * 1000) * 1_000_000


def gauge(told: Told, value: float, name: str = LATENCY, **labels: str) -> Told:
    """The push with one more gauge."""
    return replace(told, values=(*told.values, Value(name, value, tuple(sorted(labels.items())))))


def counted(told: Told, value: float, since_s: float, kind: str = "delta", name: str = SENT) -> Told:
    """The push with one more sum."""
    return replace(told, values=(*told.values, Value(name, value, (), kind, since_s)))


def ingest(
    dataset: Dataset,
    pushes: Sequence[Told],
    start: int,
    partition: int = 0,
    decoder: Decoder | None = None,
    topic: str = TOPIC,
) -> int:
    """Ingest pushes as one batch, at offsets from ``start`` on.

    Returns:
        The offset after the last.
    """
    dataset.create()
    records = [each.record(start + index, partition) for index, each in enumerate(pushes)]
    decoded = (decoder or Decoder()).decode(records)
    rows = dict(decoded.batches())
    manifests = [each for table in INGESTED for each in write_files(dataset.root, table, rows[table.name])]
    end = start + len(records)
    counts = Counts(
        decoded.pushes.num_rows,
        sum(decoded.pushes["points"].to_pylist()),
        decoded.dead_letter.num_rows,
        decoded.further,
        sum(len(each.value or b"") for each in records),
    )
    batch = Batch(
        query_id=None,
        number=start,
        topic=topic,
        manifests=manifests,
        ranges={partition: (start, end)},
        counts=counts,
        allow_new_checkpoint=True,
    )
    commit(dataset, batch)
    return end


def ingest_batches(dataset: Dataset, batches: Iterable[Sequence[Told]], start: int = 0) -> int:
    """Ingest pushes, batch by batch."""
    for batch in batches:
        start = ingest(dataset, batch, start)
    return start
