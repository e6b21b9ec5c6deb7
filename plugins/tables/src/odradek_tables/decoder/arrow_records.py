"""Records of the topic in Arrow batches, as Spark's Kafka connector and ``format("odradek")`` have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from odradek_tables.decoder.topic_record import Header, TopicRecord

GROUP_BYTES: Final = 16 << 20
"""Approximate size of the records that are decoded together: a decoder has a fixed cost for each group."""
PUSH_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""Columns of the topic's records that decoding needs."""
US_PER_MS: Final = 1_000


def topic_records(batch: pa.RecordBatch) -> list[TopicRecord]:
    micros = batch["timestamp"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    return [
        TopicRecord(partition, offset, at // US_PER_MS, key, value, headers)
        for partition, offset, at, key, value, headers in zip(
            batch["partition"].to_pylist(),
            batch["offset"].to_pylist(),
            micros,
            batch["key"].to_pylist(),
            batch["value"].to_pylist(),
            headers_of(batch["headers"]),
            strict=True,
        )
    ]


def headers_of(column: pa.ListArray) -> Iterator[list[Header]]:
    """The headers of each record, without a dictionary for each: that would cost as much as decoding."""
    fields = column.flatten()
    pairs = list(zip(fields.field(0).to_pylist(), fields.field(1).to_pylist(), strict=True))
    begin = 0
    for length in column.value_lengths().fill_null(0).to_pylist():
        yield pairs[begin : begin + length]
        begin += length


def grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[list[TopicRecord]]:
    """The records of batches in groups of about `GROUP_BYTES`."""
    group: list[TopicRecord] = []
    held = 0
    for batch in batches:
        group += topic_records(batch)
        held += batch["value"].nbytes
        if held >= GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group
