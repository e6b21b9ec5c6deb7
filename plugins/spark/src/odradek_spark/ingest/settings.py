"""The settings of ingest: its source, its destination and the size of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.topic import TopicFormat
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    TELEMETRY_TOPIC,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """The source, the destination and the size of batches."""

    bootstrap_servers: str
    dataset: str
    topic: str = TELEMETRY_TOPIC
    topic_format: TopicFormat = TopicFormat.ODRADEK
    topic_interval_ms: int = DEFAULT_INTERVAL_MS
    """Stands for the push interval in formats that tell none."""
    checkpoint: str = ""
    """Folder for Spark's checkpoint; empty for ``_checkpoints/ingest`` in the dataset."""
    trigger_s: float = 60.0
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    fail_on_data_loss: bool = True
    starting_offsets: str = "earliest"
    client: Mapping[str, str] = field(default_factory=dict)
    """More options of librdkafka: TLS, SASL."""

    @property
    def checkpoint_location(self) -> str:
        return self.checkpoint or f"{self.dataset.rstrip('/')}/_checkpoints/ingest"

    def source_options(self) -> dict[str, str]:
        name = self.dataset.rstrip("/").rpartition("/")[2]
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "kafka.group.id": f"odradek.spark.{name}",
            "subscribe": self.topic,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            **{f"kafka.{key}": value for key, value in self.client.items()},
        }

    def stream_options(self) -> dict[str, str]:
        return {
            "maxBytesPerTrigger": str(self.max_bytes_per_trigger),
            "minBytesPerTrigger": str(self.min_bytes_per_trigger),
            "startingOffsets": self.starting_offsets,
        }

    def sink_options(self) -> dict[str, str]:
        return {
            "path": self.dataset,
            "topicFormat": self.topic_format,
            "topicIntervalMs": str(self.topic_interval_ms),
            "maxPayloadBytes": str(self.max_payload_bytes),
        }
