"""The settings of ingest: its source, its destination and the size of its batches.

Every host with ``[plugins.spark]`` reads them, so nothing here imports Spark or the libraries of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odradek.plugin import PluginConfig
from odradek.settings import FILE, LONG, TEXT, Choice, Special, Whole, declare
from odradek.topic import TopicFormat
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    MAX_INTERVAL_MS,
    TELEMETRY_TOPIC,
)
from odradek_tables.folder_names import misread_character


def read_folder(config: PluginConfig, key: str) -> str:
    """Read the path or URI of a folder.

    Raises:
        ConfigError: Some readers of tables misread its name.
    """
    path = config.text(key) or ""
    odd = misread_character(path)
    if odd is not None:
        raise config.error(key, f"some readers cannot open a folder of that name: choose one without {odd}")
    return path


def read_root(config: PluginConfig, key: str) -> str:
    """Read the path or URI of a dataset; a path becomes absolute: workers have other folders."""
    path = read_folder(config, key)
    return path if "://" in path or not path else str(Path(path).absolute())


ROOT: Final = Special(shape="path or URI", metavar="DIRECTORY|URI", read=read_root)
FOLDER: Final = Special(shape="path or URI", metavar="DIRECTORY|URI", read=read_folder)
SERVERS: Final = Special(shape="`HOST:PORT[,...]`", metavar="HOST:PORT[,...]", read=PluginConfig.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """The source, the destination and the size of batches."""

    # fmt: off
    bootstrap_servers: str = declare(
        "bootstrap.servers", SERVERS, "", "The cluster of the topic.", unset="the host's first listener",
        option="--bootstrap-server",
    )
    dataset: str = declare(
        "dataset", ROOT, "",
        "Root folder of the tables: a path, s3://, gs:// or abfss://, without `#`, `?`, `%`, `*`, brackets, "
        "backslashes and control characters, which some readers misread.",
        unset="none: the pipeline does not run",
    )
    topic: str = declare("topic", TEXT, TELEMETRY_TOPIC, "The telemetry topic.")
    topic_format: TopicFormat = declare(
        "topic.format", Choice({each.value: each for each in TopicFormat}), TopicFormat.ODRADEK,
        "Format of its records; `otlp_*`: plain OTLP, as an OpenTelemetry collector writes it.",
        page="#a-topic-with-otlp",
    )
    topic_interval_ms: int = declare(
        "topic.interval.ms", Whole(LONG, 1, MAX_INTERVAL_MS), DEFAULT_INTERVAL_MS,
        "Time between the exports of a client, which OTLP does not tell: repetitions and silence are judged "
        "by it.", unit="ms",
    )
    max_payload_bytes: int = declare(
        "max.payload.bytes", Whole(LONG, 1), DEFAULT_PAYLOAD_BYTES,
        "Limit of a decompressed push; larger pushes become dead letters.", unit="bytes",
    )
    checkpoint: str = declare(
        "checkpoint", FOLDER, "",
        "Folder in which Spark stores its progress; needed if the dataset is in an object store.",
        unset="in the dataset", page="#in-an-object-store",
    )
    max_bytes_per_trigger: int = declare(
        "max.bytes.per.trigger", Whole(LONG, 1), DEFAULT_TRIGGER_BYTES,
        "Approximate size of a batch, in uncompressed payloads.", unit="bytes",
    )
    min_bytes_per_trigger: int = declare(
        "min.bytes.per.trigger", Whole(LONG), 0,
        "Wait until this many bytes are available: fewer and larger files, but later. Not with `--once`.",
        unit="bytes",
    )
    trigger_ms: int = declare(
        "trigger.interval.ms", Whole(LONG, 100), 60_000, "Time between the starts of two batches.", unit="ms",
    )
    command_config: Path | None = declare(
        "command.config", FILE, None,
        "Properties file with more options of librdkafka: `security.protocol`, `sasl.*`, `ssl.*`. Needed if "
        "the listener has TLS or logins: secrets stay off the command line.", unset="none",
    )
    master: str = declare(
        "master", TEXT, "local[*]",
        "Master of Spark: `local[CORES]`, `spark://HOST:PORT`, `yarn`, `k8s://...`; not with spark-submit.",
    )
    # fmt: on
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
