"""The keys of ``[plugins.spark]``, from which the options of ``odradek spark run`` are made, too.

Every host with the table reads them, so nothing here imports Spark or the libraries of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, Final

from odradek.plugin import PluginConfig
from odradek.settings import FILE, INT, LONG, TEXT, Choice, Flag, Items, Special, Whole, declare
from odradek.topic import TopicFormat
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    MAX_INTERVAL_MS,
    TELEMETRY_TOPIC,
)
from odradek_tables.folder_names import misread_character
from odradek_tables.levels import BY_CLIENT, CLIENT_METRICS
from odradek_tables.retention import KEPT_DAYS


def read_folder(config: PluginConfig, key: str) -> str | None:
    """Read the path or URI of a folder.

    Raises:
        ConfigError: Some readers of tables misread its name.
    """
    path = config.text(key)
    odd = misread_character(path or "")
    if odd is not None:
        raise config.error(key, f"some readers cannot open a folder of that name: choose one without {odd}")
    return path


SERVERS: Final = Special(shape="`HOST:PORT[,...]`", read=PluginConfig.text)
FOLDER: Final = Special(shape="path or URI of a folder", read=read_folder)
Retention: Final[Any] = make_dataclass(
    "Retention",
    [
        (
            table,
            int,
            declare(
                f"retention.days.{table}", Whole(INT), days, f"Retention of the table `{table}`.", unit="days"
            ),
        )
        for table, days in KEPT_DAYS.items()
    ],
    frozen=True,
    kw_only=True,
)
"""The days that each table keeps. The command has one option for all: ``--retention-days TABLE=DAYS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """The pipeline beside a host."""

    # fmt: off
    dataset: str | None = declare(
        "dataset", FOLDER, None,
        "Root folder of the tables: a path, s3://, gs:// or abfss://, without `#`, `?`, `%`, `*`, brackets, "
        "backslashes and control characters, which some readers misread.",
        unset="none: the pipeline does not run",
    )
    bootstrap_servers: str | None = declare(
        "bootstrap.servers", SERVERS, None, "The cluster of the topic.", unset="the host's first listener",
        option="--bootstrap-server",
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
    command_config: Path | None = declare(
        "command.config", FILE, None,
        "Properties file with more options of librdkafka: `security.protocol`, `sasl.*`, `ssl.*`. Needed if "
        "the listener has TLS or logins: secrets stay off the command line.", unset="none",
    )
    checkpoint: str | None = declare(
        "checkpoint", FOLDER, None,
        "Folder in which Spark stores its progress; needed if the dataset is in an object store.",
        unset="in the dataset", page="#in-an-object-store",
    )
    master: str = declare(
        "master", TEXT, "local[*]",
        "Master of Spark: `local[CORES]`, `spark://HOST:PORT`, `yarn`, `k8s://...`; not with spark-submit.",
    )
    trigger_interval_ms: int = declare(
        "trigger.interval.ms", Whole(LONG, 100), 60_000, "Time between the starts of two batches.", unit="ms",
    )
    maintenance_interval_ms: int = declare(
        "maintenance.interval.ms", Whole(LONG, 1000), 300_000,
        "Time between two updates of rollups and inventory, and two compactions of past hours.", unit="ms",
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
    max_payload_bytes: int = declare(
        "max.payload.bytes", Whole(LONG, 1), DEFAULT_PAYLOAD_BYTES,
        "Limit of a decompressed push; larger pushes become dead letters.", unit="bytes",
    )
    rules_file: Path | None = declare(
        "rules.file", FILE, None,
        "TOML file with more rules for anomalies. A rule with the id of a default rule replaces it.",
        unset="none", page="#anomalies",
    )
    default_rules: bool = declare(
        "default.rules", Flag(), True, "Detect the troubles that the documentation lists.",
        page="#anomalies",
    )
    rollup_client_metrics: Sequence[str] = declare(
        "rollup.client.metrics", Items(least=1), CLIENT_METRICS,
        "Prefixes of the metrics that `rollup_1h` keeps by client; `*` for all.",
        unset="the standard metrics of KIP-714, and those of errors, retries, rebalances, lag and volume",
        page="#levels-of-the-rollups",
    )
    rollup_fleet_labels: Sequence[str] = declare(
        "rollup.fleet.labels", Items(BY_CLIENT), (),
        "Labels that the rollups of the fleet keep, which grow with the number of their values: `client_id`, "
        "`group_id`.", unset="none",
    )
    # fmt: on
