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
    OptionError,
)

KAFKA = "kafka"
"""Spark's own source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """The source, the destination and the size of batches."""

    bootstrap_servers: str
    dataset: str
    topic: str = TELEMETRY_TOPIC
    topic_format: TopicFormat = TopicFormat.ODRADEK
    topic_interval_ms: int = DEFAULT_INTERVAL_MS
    """Stands for the push interval in formats that tell none."""
    source: str = "odradek"
    """``odradek``, or ``kafka`` for Spark's own source: for logins that exist in Java only."""
    checkpoint: str = ""
    """Folder for Spark's checkpoint; empty for ``_checkpoints/ingest`` in the dataset."""
    trigger_s: float = 60.0
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    fail_on_data_loss: bool = True
    starting_offsets: str = "earliest"
    client: Mapping[str, str] = field(default_factory=dict)
    """More options of librdkafka, with the source ``kafka`` of Java's client: TLS, SASL."""

    def __post_init__(self) -> None:
        """Refuse contradictory settings.

        Raises:
            OptionError: Two settings contradict each other.
        """
        if self.source == KAFKA and self.min_bytes_per_trigger:
            raise OptionError(
                "the source kafka does not support min.bytes.per.trigger: use the source odradek"
            )

    @property
    def checkpoint_location(self) -> str:
        """The folder of the checkpoint."""
        return self.checkpoint or f"{self.dataset.rstrip('/')}/_checkpoints/ingest"

    def options(self) -> dict[str, str]:
        """The options of ``format("odradek")``."""
        name = self.dataset.rstrip("/").rpartition("/")[2]
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "topic": self.topic,
            "topicFormat": self.topic_format,
            "topicIntervalMs": str(self.topic_interval_ms),
            "rows": "manifests",
            "dataset": self.dataset,
            "group": f"odradek.spark.{name}",
            "maxBytesPerTrigger": str(self.max_bytes_per_trigger),
            "minBytesPerTrigger": str(self.min_bytes_per_trigger),
            "maxPayloadBytes": str(self.max_payload_bytes),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "startingOffsets": self.starting_offsets,
            **{f"kafka.{key}": value for key, value in self.client.items()},
        }
