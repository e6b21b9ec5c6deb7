"""The options of the sink ``format("odradek")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from odradek.topic import TopicFormat
from odradek_spark.source.options import OptionError, switch, whole
from odradek_tables.decoder.arrow_records import PUSH_COLUMNS
from odradek_tables.decoder.decode import DecoderSettings
from odradek_tables.schemas import BY_NAME, Table

DECODING: Final = ("topicFormat", "topicIntervalMs", "maxPayloadBytes")
KNOWN: Final = {each.lower(): each for each in ("path", "table", "allowNewCheckpoint", *DECODING)}
OF_SPARK: Final = ("checkpointlocation", "queryname")
"""Options of the query that Spark passes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of the sink; their names are case-insensitive."""

    root: str
    table: Table | None = None
    """The table of the rows; None for records of the topic."""
    allow_new_checkpoint: bool = False
    """Whether a query with another checkpoint may continue a table."""
    decoding: DecoderSettings = field(default_factory=DecoderSettings)


def write_options(options: Mapping[str, str], columns: Sequence[str], *, overwrite: bool) -> WriteOptions:
    """Read the options that Spark passes, for rows with some columns.

    Raises:
        OptionError: An option is missing, unknown or invalid, the rows are of no table, or the mode is not
            append.
    """
    if overwrite:
        raise OptionError("the tables only grow: use the mode append")
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in KNOWN and name not in OF_SPARK:
            near = get_close_matches(name, KNOWN, 1, 0)
            raise OptionError(f"option {name}: there is no such option; the nearest is {KNOWN[near[0]]}")
    if not given.get("path"):
        raise OptionError("option path: expected the folder of the tables, found nothing")
    is_records = set(PUSH_COLUMNS) <= set(columns) and "table" not in given
    return WriteOptions(
        root=given["path"],
        table=None if is_records else table_of(given.get("table"), columns),
        allow_new_checkpoint=switch("allowNewCheckpoint", given.get("allownewcheckpoint", "false")),
        decoding=decoding(given),
    )


def table_of(name: str | None, columns: Sequence[str]) -> Table:
    if name is not None and name not in BY_NAME:
        raise OptionError(f"option table: expected one of {', '.join(BY_NAME)}, found {name!r}")
    wanted = [each for each in BY_NAME.values() if set(each.schema.names) == set(columns)]
    if name is None and not wanted:
        raise OptionError(
            "the rows are neither records of the topic, with the columns "
            f"{', '.join(PUSH_COLUMNS)}, nor of a table: set the option table"
        )
    found = wanted[0] if name is None else BY_NAME[name]
    missing = sorted(set(found.schema.names) ^ set(columns))
    if missing:
        raise OptionError(f"option table: rows and {found.name} differ in the columns {', '.join(missing)}")
    return found


def decoding(given: Mapping[str, str]) -> DecoderSettings:
    default = DecoderSettings()
    interval_ms = given.get("topicintervalms", str(default.interval_ms))
    max_bytes = given.get("maxpayloadbytes", str(default.max_payload_bytes))
    name = given.get("topicformat", default.topic_format)
    if name not in list(TopicFormat):
        raise OptionError(f"option topicFormat: expected {', '.join(TopicFormat)}, found {name!r}")
    return DecoderSettings(
        max_payload_bytes=whole("maxPayloadBytes", max_bytes),
        topic_format=TopicFormat(name),
        interval_ms=whole("topicIntervalMs", interval_ms),
    )
