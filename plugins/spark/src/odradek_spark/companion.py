"""The pipeline as a process beside a host: its command line and its progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from odradek.plugin import PluginConfig
from odradek.topic import TopicFormat
from odradek_spark.conditions import without_condition
from odradek_spark.jobs.addresses import is_address
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    MAX_INTERVAL_MS,
)
from odradek_spark.tables.folder_names import misread_character
from odradek_spark.tables.levels import BY_CLIENT, CLIENT_METRICS, Levels
from odradek_spark.tables.retention import KEPT_DAYS

TELEMETRY_TOPIC = "__client_telemetry"
LAG_TIMEOUT_S = 3.0
MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``odradek spark run`` with the settings of ``[plugins.spark]``."""

    dataset: str
    topic: str
    topic_format: str
    topic_interval_ms: int
    master: str
    checkpoint: str | None
    """None for the default, inside the dataset."""
    bootstrap_servers: str | None
    """None for the host itself."""
    command_config: Path | None
    rules_file: Path | None
    default_rules: bool
    webhook_url: str | None
    alertmanager_url: str | None
    trigger_interval_ms: int
    maintenance_interval_ms: int
    max_bytes_per_trigger: int
    min_bytes_per_trigger: int
    max_payload_bytes: int
    retention_days: Mapping[str, int]
    """Days to keep, by table."""
    levels: Levels

    def command(self, bootstrap_servers: str) -> list[str]:
        """The program and its arguments."""
        options: dict[str, object] = {
            "--bootstrap-server": self.bootstrap_servers or bootstrap_servers,
            "--dataset": self.dataset,
            "--topic": self.topic,
            "--topic-format": self.topic_format,
            "--topic-interval-ms": self.topic_interval_ms,
            "--master": self.master,
            "--checkpoint": self.checkpoint,
            "--command-config": self.command_config,
            "--rules-file": self.rules_file,
            "--webhook-url": self.webhook_url,
            "--alertmanager-url": self.alertmanager_url,
            "--trigger-interval-ms": self.trigger_interval_ms,
            "--maintenance-interval-ms": self.maintenance_interval_ms,
            "--max-bytes-per-trigger": self.max_bytes_per_trigger,
            "--min-bytes-per-trigger": self.min_bytes_per_trigger,
            "--max-payload-bytes": self.max_payload_bytes,
        }
        given = [part for name, value in options.items() if value is not None for part in (name, str(value))]
        for table, days in self.retention_days.items():
            given += ["--retention-days", f"{table}={days}"]
        if self.levels.client_metrics != CLIENT_METRICS:
            for prefix in self.levels.client_metrics:
                given += ["--rollup-client-metrics", prefix]
        if not self.default_rules:
            given.append("--no-default-rules")
        for label in self.levels.fleet_labels:
            given += ["--rollup-fleet-labels", label]
        return [sys.executable, "-m", "odradek_spark", "run", "--until-stdin-ends", *given]

    @property
    def security_protocol(self) -> str:
        """That of the file of ``command.config``: the host passes the address of such a listener."""
        from odradek_spark.cli.options import properties

        return properties(self.command_config).get("security.protocol", "PLAINTEXT").upper()

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """The last batch, read from the tables, and the number of waiting pushes, read from the topic."""
        from odradek_spark.ingest.status import last_batch

        batch = last_batch(self.dataset)
        if batch is None:
            return {"last batch": "none"}
        ago_s = (datetime.now(UTC) - batch.at).total_seconds()
        told = {"last batch": f"{ago_s:.0f} s ago", "pushes": batch.pushes, "points": batch.points}
        return told | {"lag": self.lag(self.bootstrap_servers or bootstrap_servers)}

    def lag(self, bootstrap_servers: str) -> int | str:
        """The number of records in the topic that are in no table yet, or why it is unknown."""
        from odradek_spark.cli.options import properties
        from odradek_spark.source.offsets import backlog
        from odradek_spark.source.options import ReadOptions
        from odradek_spark.source.topic import TopicError, TopicReader
        from odradek_spark.tables.dataset import Dataset
        from odradek_spark.tables.schemas import PUSHES

        client = {"bootstrap.servers": bootstrap_servers, "log_level": "0"} | properties(self.command_config)
        try:
            with closing(TopicReader(ReadOptions(client=client, topic=self.topic), LAG_TIMEOUT_S)) as reader:
                marks = reader.watermarks(reader.partitions())
        except TopicError as error:
            return f"unknown: {without_condition(str(error))}"
        reached = Dataset(self.dataset).source_offsets(PUSHES, self.topic, list(marks))
        begin = {part: max(first, reached.get(part, first)) for part, (first, _) in marks.items()}
        return backlog(begin, {part: end for part, (_, end) in marks.items()})


def read_levels(config: PluginConfig) -> Levels:
    """Read what the rollups keep.

    Raises:
        ConfigError: A label is not one of `BY_CLIENT`, or there are no metrics.
    """
    labels = config.texts("rollup.fleet.labels")
    for each in labels:
        if each not in BY_CLIENT:
            raise config.error("rollup.fleet.labels", f"expected {' or '.join(BY_CLIENT)}, found {each!r}")
    metrics = config.texts("rollup.client.metrics", CLIENT_METRICS)
    if not metrics:
        raise config.error("rollup.client.metrics", "expected at least one prefix, found none")
    return Levels(tuple(metrics), tuple(labels))


def read_address(config: PluginConfig, key: str) -> str | None:
    """Read an http or https URL.

    Raises:
        ConfigError: The value is something else.
    """
    url = config.text(key)
    if url is not None and not is_address(url):
        raise config.error(key, "expected an http or https URL")
    return url


def read_folder(config: PluginConfig, key: str) -> str | None:
    """Read the path or URI of a folder.

    Raises:
        ConfigError: It has a character that some readers of paths misread.
    """
    path = config.text(key)
    odd = misread_character(path or "")
    if odd is not None:
        raise config.error(key, f"some readers cannot open a folder of that name: choose one without {odd}")
    return path


def read_pipeline(config: PluginConfig) -> Pipeline | None:
    """Read the table of the configuration; None without a dataset.

    Raises:
        ConfigError: A key has an invalid value.
    """
    dataset = read_folder(config, "dataset")
    found = Pipeline(
        dataset=dataset or "",
        topic=config.text("topic", TELEMETRY_TOPIC) or TELEMETRY_TOPIC,
        topic_format=config.choice("topic.format", TopicFormat.ODRADEK, list(TopicFormat)),
        topic_interval_ms=config.integer(
            "topic.interval.ms", DEFAULT_INTERVAL_MS, least=1, most=MAX_INTERVAL_MS
        ),
        master=config.text("master", "local[*]") or "local[*]",
        checkpoint=read_folder(config, "checkpoint"),
        bootstrap_servers=config.text("bootstrap.servers"),
        command_config=config.file("command.config"),
        rules_file=config.file("rules.file"),
        default_rules=config.boolean("default.rules", True),
        webhook_url=read_address(config, "webhook.url"),
        alertmanager_url=read_address(config, "alertmanager.url"),
        trigger_interval_ms=config.integer("trigger.interval.ms", 60_000, least=100),
        maintenance_interval_ms=config.integer("maintenance.interval.ms", 300_000, least=1000),
        max_bytes_per_trigger=config.integer("max.bytes.per.trigger", DEFAULT_TRIGGER_BYTES, least=1),
        min_bytes_per_trigger=config.integer("min.bytes.per.trigger", 0),
        max_payload_bytes=config.integer("max.payload.bytes", DEFAULT_PAYLOAD_BYTES, least=1),
        retention_days={
            table: config.integer(f"retention.days.{table}", days) for table, days in KEPT_DAYS.items()
        },
        levels=read_levels(config),
    )
    return found if dataset else None
