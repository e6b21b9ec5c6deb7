"""The pipeline as a process beside a host: its command line and its progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from odradek.plugin import PluginConfig
from odradek.settings import read_settings
from odradek.settings.options import arguments
from odradek_spark.conditions import without_condition
from odradek_spark.pipeline_settings import PipelineSettings, Retention

LAG_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``odradek spark run`` with the settings of ``[plugins.spark]``."""

    settings: PipelineSettings
    arguments: Sequence[str]

    def command(self, bootstrap_servers: str) -> list[str]:
        host = () if self.settings.bootstrap_servers else ("--bootstrap-server", bootstrap_servers)
        program = [sys.executable, "-m", "odradek_spark", "run", "--until-stdin-ends"]
        return [*program, *self.arguments, *host]  # last: the key may be there with an empty text

    @property
    def security_protocol(self) -> str:
        """That of the file of ``command.config``: the host passes the address of such a listener."""
        from odradek_spark.cli.options import properties

        return properties(self.settings.command_config).get("security.protocol", "PLAINTEXT").upper()

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """The last batch, read from the tables, and the number of waiting pushes, read from the topic."""
        from odradek_spark.ingest.progress import last_batch

        found = last_batch(self.settings.dataset)
        if found is None:
            return {"last batch": "none"}
        at, batch = found
        ago_s = (datetime.now(UTC) - at).total_seconds()
        told = {"last batch": f"{ago_s:.0f} s ago", "pushes": batch.pushes, "points": batch.points}
        return told | {"lag": self.lag(self.settings.bootstrap_servers or bootstrap_servers)}

    def lag(self, bootstrap_servers: str) -> int | str:
        """The number of records in the topic that are in no table yet, or why it is unknown."""
        from odradek_spark.cli.options import properties
        from odradek_spark.source.offsets import backlog
        from odradek_spark.source.options import ReadOptions
        from odradek_spark.source.topic import TopicError, TopicReader
        from odradek_tables.dataset import Dataset
        from odradek_tables.schemas import PUSHES

        client = {"bootstrap.servers": bootstrap_servers, "log_level": "0"} | properties(
            self.settings.command_config
        )
        try:
            with closing(
                TopicReader(ReadOptions(client=client, topic=self.settings.topic), LAG_TIMEOUT_S)
            ) as reader:
                marks = reader.watermarks(reader.partitions())
        except TopicError as error:
            return f"unknown: {without_condition(str(error))}"
        reached = Dataset(self.settings.dataset).source_offsets(PUSHES, self.settings.topic, list(marks))
        begin = {part: max(first, reached.get(part, first)) for part, (first, _) in marks.items()}
        return backlog(begin, {part: end for part, (_, end) in marks.items()})


def read_pipeline(config: PluginConfig) -> Pipeline | None:
    """Read the table of the configuration; None without a dataset.

    Raises:
        ConfigError: A key has an invalid value.
    """
    settings, retention = read_settings(PipelineSettings, config), read_settings(Retention, config)
    if not settings.dataset:
        return None
    found = arguments(PipelineSettings, config)
    for table, days in asdict(retention).items():
        found += ["--retention-days", f"{table}={days}"]
    return Pipeline(settings=settings, arguments=found)
