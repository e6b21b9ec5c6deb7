"""The options of the topic's reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from odradek.topic import TopicFormat

TELEMETRY_TOPIC = "__client_telemetry"
DEFAULT_TRIGGER_BYTES = 1 << 30
"""Approximate bytes of uncompressed payloads in a batch. A batch has a fixed cost of half a second of CPU."""
DEFAULT_PAYLOAD_BYTES = 64 << 20
DEFAULT_INTERVAL_MS, MAX_INTERVAL_MS = 60_000, 2**31 - 1
TASK_BYTES = 128 << 20
"""Approximate bytes of uncompressed payloads in a task; about 13 MB in the topic."""
GROUP_BYTES = 16 << 20
"""Ranges of several partitions share a task up to so many bytes: they are decoded in a tenth of a second."""


class OptionError(ValueError):
    """An option is missing or invalid; the message names it."""


class Rows(StrEnum):
    """The kind of rows that the source returns."""

    POINTS = "points"
    """Data points, with the columns of the table."""
    RECORDS = "records"
    """Undecoded records of the topic."""
    MANIFESTS = "manifests"
    """The files that each task wrote into a dataset; used by ingest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of ``format("odradek")``; their names are case-insensitive."""

    client: Mapping[str, str]
    """Options of librdkafka: ``kafka.*`` without the prefix, and ``bootstrap.servers``."""
    topic: str = TELEMETRY_TOPIC
    topic_format: TopicFormat = TopicFormat.ODRADEK
    topic_interval_ms: int = DEFAULT_INTERVAL_MS
    """Stands for the push interval in formats that tell none."""
    starting_offsets: str = "earliest"
    """``earliest`` or ``latest``: the start of a query without checkpoint and dataset."""
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    """Wait until this many bytes are available, except with ``AvailableNow``."""
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    """Larger payloads become dead letters."""
    fail_on_data_loss: bool = True
    """Whether it is an error if retention deleted records before they were read."""
    rows: Rows = Rows.POINTS
    dataset: str = ""
    """The dataset to write files into, for `Rows.MANIFESTS`."""
    group: str = field(default="")
    """Consumer group whose committed offsets show the progress; empty for none."""

    @property
    def group_id(self) -> str:
        """The consumer group, which a consumer needs even if it commits nothing."""
        return self.group or "odradek.spark"


KEYS = {
    "topic": "topic",
    "topicformat": "topic_format",
    "topicintervalms": "topic_interval_ms",
    "startingoffsets": "starting_offsets",
    "maxbytespertrigger": "max_bytes_per_trigger",
    "minbytespertrigger": "min_bytes_per_trigger",
    "maxpayloadbytes": "max_payload_bytes",
    "failondataloss": "fail_on_data_loss",
    "rows": "rows",
    "dataset": "dataset",
    "group": "group",
}
WHOLE = ("maxbytespertrigger", "minbytespertrigger", "maxpayloadbytes", "topicintervalms")
IGNORED = ("path",)
"""Options that Spark adds."""


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options that Spark passes.

    Raises:
        OptionError: An option is missing, unknown or invalid.
    """
    client: dict[str, str] = {}
    values: dict[str, object] = {}
    for name, value in options.items():
        key = name.lower()
        if key.startswith("kafka."):
            client[key.removeprefix("kafka.")] = value
        elif key == "bootstrap.servers":
            client[key] = value
        elif key in KEYS:
            values[KEYS[key]] = checked(key, value)
        elif key not in IGNORED:
            raise OptionError(f"unknown option {name!r}; known are {', '.join(sorted(KEYS))} and kafka.*")
    if not client.get("bootstrap.servers"):
        raise OptionError("the option bootstrap.servers is missing")
    found = SourceOptions(client=client, **values)  # type: ignore[arg-type]
    if found.rows is Rows.MANIFESTS and not found.dataset:
        raise OptionError("the option dataset is missing: rows=manifests writes files")
    return found


def checked(key: str, value: str) -> object:
    """Convert a value to the type of its option."""
    try:
        if key in WHOLE:
            return int(value)
        if key == "rows":
            return Rows(value)
        if key == "topicformat":
            return TopicFormat(value)
    except ValueError as error:
        raise OptionError(f"option {key}: {error}") from error
    if key == "failondataloss":
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option {key}: expected true or false, found {value!r}")
        return value.lower() == "true"
    if key == "startingoffsets" and value not in ("earliest", "latest"):
        raise OptionError(f"option {key}: expected earliest or latest, found {value!r}")
    return value
