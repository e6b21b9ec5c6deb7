"""What a reader of the topic can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

TELEMETRY_TOPIC = "__client_telemetry"
DEFAULT_TRIGGER_BYTES = 1 << 30
"""About what a batch reads, of payloads that are not compressed: a batch costs half a second of CPU."""
DEFAULT_PAYLOAD_BYTES = 64 << 20
TASK_BYTES = 128 << 20
"""About what one task reads, of payloads that are not compressed; some 13 MB in the topic."""


class OptionError(ValueError):
    """An option that is missing or makes no sense; the message names it."""


class Rows(StrEnum):
    """What the rows of the source are."""

    POINTS = "points"
    """Data points, with the columns of the table."""
    RECORDS = "records"
    """Records as they are in the topic."""
    MANIFESTS = "manifests"
    """The files that each task wrote into a dataset; what ingest reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of ``format("odradek")``; keys in any case."""

    client: Mapping[str, str]
    """Options of librdkafka: ``kafka.*`` without the prefix, and ``bootstrap.servers``."""
    topic: str = TELEMETRY_TOPIC
    starting_offsets: str = "earliest"
    """``earliest`` or ``latest``: where a query begins that has no checkpoint and no dataset."""
    max_bytes_per_trigger: int = DEFAULT_TRIGGER_BYTES
    min_bytes_per_trigger: int = 0
    """A trigger with less to read waits, unless it is ``AvailableNow``."""
    max_payload_bytes: int = DEFAULT_PAYLOAD_BYTES
    """Larger payloads are dead letters."""
    fail_on_data_loss: bool = True
    """Whether offsets that retention deleted before they were read are an error."""
    rows: Rows = Rows.POINTS
    dataset: str = ""
    """Where the files go, for `Rows.MANIFESTS`."""
    group: str = field(default="")
    """Consumer group under which progress is shown; none shows none."""

    @property
    def group_id(self) -> str:
        """A consumer needs a name, also where it commits nothing."""
        return self.group or "odradek.spark"


KEYS = {
    "topic": "topic",
    "startingoffsets": "starting_offsets",
    "maxbytespertrigger": "max_bytes_per_trigger",
    "minbytespertrigger": "min_bytes_per_trigger",
    "maxpayloadbytes": "max_payload_bytes",
    "failondataloss": "fail_on_data_loss",
    "rows": "rows",
    "dataset": "dataset",
    "group": "group",
}
WHOLE = ("maxbytespertrigger", "minbytespertrigger", "maxpayloadbytes")
IGNORED = ("path",)
"""Spark puts it there."""


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """The options as Spark hands them over.

    Raises:
        OptionError: One is missing, unknown or makes no sense.
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
    """A value in its type."""
    try:
        if key in WHOLE:
            return int(value)
        if key == "rows":
            return Rows(value)
    except ValueError as error:
        raise OptionError(f"option {key}: {error}") from error
    if key == "failondataloss":
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option {key}: expected true or false, found {value!r}")
        return value.lower() == "true"
    if key == "startingoffsets" and value not in ("earliest", "latest"):
        raise OptionError(f"option {key}: expected earliest or latest, found {value!r}")
    return value
