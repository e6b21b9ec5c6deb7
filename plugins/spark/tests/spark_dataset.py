"""Datasets made without Spark: records decoded, written and committed in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_payloads import RECEIVED_MS, topic_record

from odradek_spark.sink.commit import Batch, commit
from odradek_spark.sink.written import Written, write_records
from odradek_tables.dataset import Dataset, Ranges
from odradek_tables.decoder.decode import Counts, Decoder
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.files import Manifest
from odradek_tables.schemas import Table

TOPIC = "__client_telemetry"
LATENCY = "org.apache.kafka.producer.request.latency.max"
THROTTLE = "org.apache.kafka.producer.produce.throttle.time.max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push with one gauge."""

    client: int
    value: float
    at_s: float = 0.0
    """Milliseconds after `RECEIVED_MS`."""
    name: str = LATENCY


def record(push: Push, offset: int) -> TopicRecord:
    """The push as the host writes it."""
    at_ms = RECEIVED_MS + round(push.at_s * 1000)
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name=push.name)
    metric.gauge.data_points.add(as_double=push.value, time_unix_nano=at_ms * 1_000_000)
    return topic_record(data.SerializeToString(), offset, 0, push.client, at_ms)


def ingested(root: str, pushes: Sequence[Push]) -> Dataset:
    """A dataset with these pushes, as one batch."""
    dataset = Dataset(root)
    dataset.create()
    records = [record(push, offset) for offset, push in enumerate(pushes)]
    written = Written(None, TOPIC)
    write_records([records], Decoder(), root, written)
    commit(dataset, Batch.of([written], 0))
    return dataset


def commit_ranges(
    dataset: Dataset, table: Table, files: Sequence[Manifest], ranges: Ranges, topic: str = TOPIC
) -> bool:
    """Commit files with the rows of ranges of the topic to one table."""
    batch = Batch(
        query_id=None,
        number=0,
        topic=topic,
        manifests=files,
        ranges=ranges,
        counts=Counts(1, 1),
        allow_new_checkpoint=True,
    )
    return commit(dataset, batch, [table])
