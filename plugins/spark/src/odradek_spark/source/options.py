"""The options of the source ``format("odradek")``: those of Spark's Kafka connector, by the same names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from odradek_spark.conditions import Condition
from odradek_spark.source.offsets import Offsets

EARLIEST, LATEST = -2, -1
"""Stand for the first and the end offset of a partition, in JSON."""
TELEMETRY_TOPIC = "__client_telemetry"
DEFAULT_TRIGGER_BYTES = 1 << 30
"""Approximate bytes of uncompressed payloads in a batch. A batch has a fixed cost of half a second of CPU."""
DEFAULT_PAYLOAD_BYTES = 64 << 20
DEFAULT_INTERVAL_MS, MAX_INTERVAL_MS = 60_000, 2**31 - 1
DURATION = re.compile(r"(\d+) *(ms|s|m|h|d)?")
MS: Final = {None: 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(Condition, ValueError):
    """An option is missing, unknown or invalid; the message names it and what is expected."""

    condition = "ODRADEK_OPTION"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a read begins or ends, before the topic is asked."""

    default: int = EARLIEST
    """`EARLIEST` or `LATEST`, for partitions that are not in ``offsets``."""
    offsets: Mapping[int, int] = field(default_factory=dict)
    """By partition an offset, `EARLIEST` or `LATEST`."""
    timestamps_ms: Mapping[int, int] = field(default_factory=dict)
    """By partition the epoch milliseconds of the first record."""
    timestamp_ms: int | None = None
    """The same for all partitions."""

    def time_of(self, partition: int) -> int | None:
        """The time at which a partition begins or ends; None if that is an offset."""
        return self.timestamp_ms if self.timestamp_ms is not None else self.timestamps_ms.get(partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of the source; their names are case-insensitive."""

    client: Mapping[str, str]
    """Options of librdkafka: ``kafka.*`` without the prefix."""
    topic: str
    starting: Position | None = None
    """None for the default: the end for a stream, the beginning for a batch."""
    ending: Position = Position(LATEST)
    """Of a batch read."""
    fail_without_timestamp: bool = True
    """Whether it is an error if no record is as young as a starting time; otherwise that is the end."""
    fail_on_data_loss: bool = True
    max_offsets: int | None = None
    max_bytes: int = DEFAULT_TRIGGER_BYTES
    min_offsets: int = 0
    min_bytes: int = 0
    max_delay_ms: int = 15 * 60_000
    """Time after which a batch begins although it is below a minimum."""
    min_partitions: int = 0
    max_records_per_partition: int | None = None
    include_headers: bool = True
    group: str = ""
    """Consumer group whose committed offsets show the progress; empty for none."""
    group_prefix: str = "odradek.spark"

    @property
    def group_id(self) -> str:
        """The consumer group, which a consumer needs even if it commits nothing."""
        return self.group or self.group_prefix


def whole(name: str, value: str, least: int = 1) -> int:
    if not value.isdecimal() or int(value) < least:
        raise OptionError(f"option {name}: expected a whole number from {least}, found {value!r}")
    return int(value)


def switch(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise OptionError(f"option {name}: expected true or false, found {value!r}")
    return value.lower() == "true"


def duration_ms(name: str, value: str) -> int:
    found = DURATION.fullmatch(value.strip())
    if found is None:
        raise OptionError(f"option {name}: expected a duration like 30s or 15m, found {value!r}")
    return int(found[1]) * MS[found[2]]


def text(name: str, value: str) -> str:
    return value


def strategy(name: str, value: str) -> bool:
    if value.lower() not in ("error", "latest"):
        raise OptionError(f"option {name}: expected error or latest, found {value!r}")
    return value.lower() == "error"


PARSED: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = {
    "failOnDataLoss": ("fail_on_data_loss", switch),
    "maxOffsetsPerTrigger": ("max_offsets", whole),
    "maxBytesPerTrigger": ("max_bytes", whole),
    "minOffsetsPerTrigger": ("min_offsets", lambda name, value: whole(name, value, 0)),
    "minBytesPerTrigger": ("min_bytes", lambda name, value: whole(name, value, 0)),
    "maxTriggerDelay": ("max_delay_ms", duration_ms),
    "minPartitions": ("min_partitions", whole),
    "maxRecordsPerPartition": ("max_records_per_partition", whole),
    "includeHeaders": ("include_headers", switch),
    "groupIdPrefix": ("group_prefix", text),
    "startingOffsetsByTimestampStrategy": ("fail_without_timestamp", strategy),
}
"""By option, the field and its parser."""
POSITIONS: Final = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
)
KNOWN: Final = {each.lower(): each for each in ("subscribe", *PARSED, *POSITIONS)}
BY_KAFKA = 'use format("kafka") for it, which has Java\'s client; functions and sink take its rows, too'
REFUSED: Final[Mapping[str, str]] = {
    "subscribepattern": "one source reads one topic: use subscribe",
    "assign": 'use subscribe, and where("partition in (...)")',
    "topic": "it is subscribe now",
    "bootstrap.servers": "it is kafka.bootstrap.servers now",
    "rows": "it is gone: the source has the records; use points(df) of odradek_spark, or the sink",
    "dataset": 'it is gone: write with writeStream.format("odradek").option("path", ...)',
    "topicformat": "it is an option of the sink and an argument of points() now",
    "topicintervalms": "it is an option of the sink and an argument of points() now",
    "maxpayloadbytes": "it is an option of the sink and an argument of points() now",
    "group": "it is kafka.group.id now",
    "path": "only the sink has a path: use writeStream",
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "kafka.key.deserializer": "key and value are always bytes",
    "kafka.value.deserializer": "key and value are always bytes",
    "kafka.key.serializer": "key and value are always bytes",
    "kafka.value.serializer": "key and value are always bytes",
    "kafka.interceptor.classes": BY_KAFKA,
    "kafka.sasl.jaas.config": f"use kafka.sasl.username and kafka.sasl.password, or {BY_KAFKA}",
}
"""By option in lower case, the reason and what to do instead."""


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read the options that Spark passes.

    Raises:
        OptionError: An option is missing, unknown or invalid.
    """
    given = {name.lower(): value for name, value in options.items()}
    client = {name.removeprefix("kafka."): given[name] for name in given if name.startswith("kafka.")}
    for name, value in given.items():
        check_name(name, value)
    if not client.get("bootstrap.servers"):
        raise OptionError("option kafka.bootstrap.servers: expected HOST:PORT, found nothing")
    topic = given.get("subscribe", "")
    if not topic or "," in topic:
        raise OptionError(f"option subscribe: expected one topic, found {topic!r}")
    values: dict[str, Any] = {
        name: parse(option, given[option.lower()])
        for option, (name, parse) in PARSED.items()
        if option.lower() in given
    }
    ending = position(given, "ending", topic)
    if ending is not None:
        values["ending"] = ending
    return ReadOptions(
        client={name: value for name, value in client.items() if name != "group.id"},
        topic=topic,
        starting=position(given, "starting", topic),
        group=client.get("group.id", ""),
        **values,
    )


def check_name(name: str, value: str) -> None:
    reason = REFUSED.get(name)
    is_of_java = name.endswith("callback.handler.class") or (
        name.endswith("store.type") and value.upper() == "JKS"
    )
    if reason is None and name.startswith("kafka.") and is_of_java:
        reason = f"only Java has it: {BY_KAFKA}"
    if reason is not None:
        raise OptionError(f"option {name}: {reason}")
    if name not in KNOWN and not name.startswith("kafka."):
        near = get_close_matches(name, KNOWN, 1, 0)
        raise OptionError(f"option {name}: there is no such option; the nearest is {KNOWN[near[0]]}")


def position(given: Mapping[str, str], which: str, topic: str) -> Position | None:
    """The start or the end of a read; None if no option sets it."""
    if f"{which}timestamp" in given:
        return Position(timestamp_ms=whole(f"{which}Timestamp", given[f"{which}timestamp"], 0))
    by_time = given.get(f"{which}offsetsbytimestamp")
    if by_time is not None:
        return Position(timestamps_ms=by_partition(f"{which}OffsetsByTimestamp", by_time, topic))
    value = given.get(f"{which}offsets")
    if value is None:
        return None
    if value.lower() == "latest" or (value.lower() == "earliest" and which == "starting"):
        return Position(LATEST if value.lower() == "latest" else EARLIEST)
    default = EARLIEST if which == "starting" else LATEST
    return Position(default, by_partition(f"{which}Offsets", value, topic))


def by_partition(name: str, value: str, topic: str) -> Offsets:
    """Numbers by partition, from JSON like ``{"topic": {"0": 23}}``."""
    try:
        found = {int(part): int(number) for part, number in json.loads(value)[topic].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        found = {-1: 0}
    if any(part < 0 or number < EARLIEST for part, number in found.items()):
        expected = f'{{"{topic}": {{"0": 23}}}}'
        raise OptionError(f"option {name}: expected JSON like {expected}, found {value!r}")
    return found
