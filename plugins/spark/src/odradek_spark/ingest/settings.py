"""Where ingest reads from and writes to, and how much it takes at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek_spark.source.options import (
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    TELEMETRY_TOPIC,
    OptionError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """From where, to where, and how much at once."""

    bootstrap_servers: str
    dataset: str
    topic: str = TELEMETRY_TOPIC
    source: str = "odradek"
    """``odradek``, or ``kafka`` for Spark's own source, whose jar the session then needs."""
    writer: str = "worker"
    """``worker``, or ``spark`` for points alone by Spark's own writer; see `plain_writer`."""
    checkpoint: str = ""
    """Where Spark keeps what it has planned; by default ``_checkpoints/ingest`` in the dataset."""
    trigger_s: float = 60.0
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    fail_on_data_loss: bool = True
    starting_offsets: str = "earliest"
    client: Mapping[str, str] = field(default_factory=dict)
    """More options of librdkafka: TLS, SASL."""

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            OptionError: It does not.
        """
        if self.source == "kafka" and self.writer == "spark":
            raise OptionError("writer=spark reads by the source odradek")
        if self.source == "kafka" and self.min_bytes_per_trigger:
            raise OptionError(
                "the source kafka knows no sizes: min.bytes.per.trigger is for the source odradek"
            )

    @property
    def checkpoint_location(self) -> str:
        """The checkpoint that counts."""
        return self.checkpoint or f"{self.dataset.rstrip('/')}/_checkpoints/ingest"

    def options(self) -> dict[str, str]:
        """The options of ``format("odradek")``."""
        name = self.dataset.rstrip("/").rpartition("/")[2]
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "topic": self.topic,
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
