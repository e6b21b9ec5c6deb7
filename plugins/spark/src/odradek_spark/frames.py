"""DataFrames of a table's rows from a DataFrame of the topic's records: `format("odradek")` or `"kafka"`.

Read with Spark's Kafka connector, the records need the option ``includeHeaders=true``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from odradek.topic import TopicFormat
from odradek_tables.decoder.arrow_records import PUSH_COLUMNS, grouped
from odradek_tables.decoder.decode import DecoderSettings, lasting_decoder
from odradek_tables.schemas import BY_NAME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULT = DecoderSettings()


def rows_of(
    records: DataFrame,
    table: str,
    topic_format: str = TopicFormat.ODRADEK,
    topic_interval_ms: int = DEFAULT.interval_ms,
    max_payload_bytes: int = DEFAULT.max_payload_bytes,
) -> DataFrame:
    """The rows of a table that records decode to.

    Args:
        records: Records of the topic, a batch or a stream.
        table: ``points``, ``histograms``, ``pushes`` or ``dead_letter``.
        topic_format: The format of the topic: ``odradek``, ``otlp_proto`` or ``otlp_json``.
        topic_interval_ms: Stands for the push interval in formats that tell none.
        max_payload_bytes: Larger payloads become dead letters.

    Returns:
        The columns of `odradek_tables.schemas`.
    """
    settings = DecoderSettings(
        max_payload_bytes=max_payload_bytes,
        topic_format=TopicFormat(topic_format),
        interval_ms=topic_interval_ms,
    )
    schema = BY_NAME[table].schema

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = lasting_decoder(settings)
        for group in grouped(batches):
            yield dict(decoder.decode(group).batches())[table].cast(schema)  # the JVM reads no dictionaries

    return records.select(*PUSH_COLUMNS).mapInArrow(decode, from_arrow_schema(schema))


def points(records: DataFrame, **options: object) -> DataFrame:
    """Data points of records: a row for each gauge and sum. Options as `rows_of`."""
    return rows_of(records, "points", **options)  # type: ignore[arg-type]


def histograms(records: DataFrame, **options: object) -> DataFrame:
    """Histograms and summaries of records. Options as `rows_of`."""
    return rows_of(records, "histograms", **options)  # type: ignore[arg-type]


def pushes(records: DataFrame, **options: object) -> DataFrame:
    """Pushes of records: a row for each, with the client's identity. Options as `rows_of`."""
    return rows_of(records, "pushes", **options)  # type: ignore[arg-type]


def dead_letter(records: DataFrame, **options: object) -> DataFrame:
    """Records that cannot be decoded, with the reason. Options as `rows_of`."""
    return rows_of(records, "dead_letter", **options)  # type: ignore[arg-type]
