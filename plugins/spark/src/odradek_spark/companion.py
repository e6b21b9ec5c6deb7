"""The pipeline as a process beside a host: its command line and its progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from odradek.plugin import PluginConfig
from odradek.topic import TopicFormat
from odradek_spark.conditions import without_condition
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    DEFAULT_TRIGGER_BYTES,
    MAX_INTERVAL_MS,
    TELEMETRY_TOPIC,
)
from odradek_tables.folder_names import misread_character
from odradek_tables.levels import BY_CLIENT, CLIENT_METRICS, Levels
from odradek_tables.retention import KEPT_DAYS

LAG_TIMEOUT_S = 3.0
MOST: Final = 2**63 - 1
NUMBERS: Final = (
    ("topic.interval.ms", DEFAULT_INTERVAL_MS, 1, MAX_INTERVAL_MS),
    ("trigger.interval.ms", 60_000, 100, MOST),
    ("maintenance.interval.ms", 300_000, 1000, MOST),
    ("max.bytes.per.trigger", DEFAULT_TRIGGER_BYTES, 1, MOST),
    ("min.bytes.per.trigger", 0, 0, MOST),
    ("max.payload.bytes", DEFAULT_PAYLOAD_BYTES, 1, MOST),
)
"""Keys with their default, least and largest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``odradek spark run`` with the settings of ``[plugins.spark]``."""

    dataset: str
    topic: str
    bootstrap_servers: str | None
    """None for the host itself."""
    command_config: Path | None
    arguments: Sequence[str]
    """The other options."""

    def command(self, bootstrap_servers: str) -> list[str]:
        """The program and its arguments."""
        options = {
            "--bootstrap-server": self.bootstrap_servers or bootstrap_servers,
            "--dataset": self.dataset,
            "--topic": self.topic,
            "--command-config": self.command_config,
        }
        program = [sys.executable, "-m", "odradek_spark", "run", "--until-stdin-ends"]
        return [*program, *given(options), *self.arguments]

    @property
    def security_protocol(self) -> str:
        """That of the file of ``command.config``: the host passes the address of such a listener."""
        from odradek_spark.cli.options import properties

        return properties(self.command_config).get("security.protocol", "PLAINTEXT").upper()

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """The last batch, read from the tables, and the number of waiting pushes, read from the topic."""
        from odradek_spark.ingest.status import last_batch

        found = last_batch(self.dataset)
        if found is None:
            return {"last batch": "none"}
        at, batch = found
        ago_s = (datetime.now(UTC) - at).total_seconds()
        told = {"last batch": f"{ago_s:.0f} s ago", "pushes": batch.pushes, "points": batch.points}
        return told | {"lag": self.lag(self.bootstrap_servers or bootstrap_servers)}

    def lag(self, bootstrap_servers: str) -> int | str:
        """The number of records in the topic that are in no table yet, or why it is unknown."""
        from odradek_spark.cli.options import properties
        from odradek_spark.source.offsets import backlog
        from odradek_spark.source.options import ReadOptions
        from odradek_spark.source.topic import TopicError, TopicReader
        from odradek_tables.dataset import Dataset
        from odradek_tables.schemas import PUSHES

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
    """Read what the rollups keep."""
    labels = config.texts("rollup.fleet.labels")
    for each in labels:
        if each not in BY_CLIENT:
            raise config.error("rollup.fleet.labels", f"expected {' or '.join(BY_CLIENT)}, found {each!r}")
    metrics = config.texts("rollup.client.metrics", CLIENT_METRICS)
    if not metrics:
        raise config.error("rollup.client.metrics", "expected at least one prefix, found none")
    return Levels(tuple(metrics), tuple(labels))


def read_folder(config: PluginConfig, key: str) -> str | None:
    """Read the path or URI of a folder."""
    path = config.text(key)
    odd = misread_character(path or "")
    if odd is not None:
        raise config.error(key, f"some readers cannot open a folder of that name: choose one without {odd}")
    return path


def given(options: Mapping[str, object]) -> list[str]:
    """Options with values, as arguments."""
    return [part for name, value in options.items() if value is not None for part in (name, str(value))]


def read_pipeline(config: PluginConfig) -> Pipeline | None:
    """Read the table of the configuration; None without a dataset.

    Raises:
        ConfigError: A key has an invalid value.
    """
    dataset, levels = read_folder(config, "dataset"), read_levels(config)
    options: dict[str, object] = {
        "--topic-format": config.choice("topic.format", TopicFormat.ODRADEK, list(TopicFormat)),
        "--master": config.text("master", "local[*]"),
        "--checkpoint": read_folder(config, "checkpoint"),
        "--rules-file": config.file("rules.file"),
    }
    for key, default, least, most in NUMBERS:
        options[f"--{key.replace('.', '-')}"] = config.integer(key, default, least, most)
    arguments = given(options)
    for table, days in KEPT_DAYS.items():
        arguments += ["--retention-days", f"{table}={config.integer(f'retention.days.{table}', days)}"]
    for prefix in levels.client_metrics if levels.client_metrics != CLIENT_METRICS else ():
        arguments += ["--rollup-client-metrics", prefix]
    for label in levels.fleet_labels:
        arguments += ["--rollup-fleet-labels", label]
    if not config.boolean("default.rules", True):
        arguments.append("--no-default-rules")
    found = Pipeline(
        dataset=dataset or "",
        topic=config.text("topic", TELEMETRY_TOPIC) or TELEMETRY_TOPIC,
        bootstrap_servers=config.text("bootstrap.servers"),
        command_config=config.file("command.config"),
        arguments=arguments,
    )
    return found if dataset else None
