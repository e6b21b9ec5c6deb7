"""What a task of the sink has written: files that are not committed yet, and their contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from odradek_spark.conditions import Condition
from odradek_spark.sink.write_options import WriteOptions
from odradek_tables.decoder.arrow_records import grouped
from odradek_tables.decoder.decode import Counts, Decoded, Decoder, lasting_decoder
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.files import Manifest, TableFiles
from odradek_tables.schemas import INGESTED

Wanted = Callable[[str, pa.RecordBatch], pa.RecordBatch]
"""Selects the rows to write, by table name and decoded rows."""


class SeveralTopics(Condition, ValueError):
    """A table has records of one topic, since a partition and an offset identify them."""

    condition = "ODRADEK_SEVERAL_TOPICS"


@dataclass(slots=True)
class Written(WriterCommitMessage):
    """The result of a task, which Spark brings to the driver."""

    query_id: str | None = None
    """None for a batch write."""
    topic: str | None = None
    """None for rows of a table, or without records."""
    manifests: list[Manifest] = field(default_factory=list)
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By partition of the topic: the first offset and the last one plus 1."""
    counts: Counts = field(default_factory=Counts)

    def count(self, records: Iterable[TopicRecord], decoded: Decoded) -> None:
        for each in records:
            low, high = self.ranges.get(each.partition, (each.offset, each.offset))
            self.ranges[each.partition] = min(low, each.offset), max(high, each.offset + 1)
        self.counts += Counts(
            decoded.pushes.num_rows,
            sum(decoded.pushes["points"].to_pylist()),
            decoded.dead_letter.num_rows,
            decoded.further,
            sum(len(each.value or b"") for each in records),
        )


def everything(table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def write_records(
    chunks: Iterable[list[TopicRecord]],
    decoder: Decoder,
    root: str,
    written: Written,
    wanted: Wanted = everything,
) -> None:
    """Decode records into files of all tables, with the rows that ``wanted`` selects."""
    with ExitStack() as writing:  # completes the files, or deletes them after an error
        files = {table.name: writing.enter_context(TableFiles(root, table)) for table in INGESTED}
        for records in chunks:
            decoded = decoder.decode(records)
            written.count(records, decoded)
            for name, rows in decoded.batches():
                files[name].write(wanted(name, rows))
    written.manifests += [each for table in files.values() for each in table.manifests]


def write_batches(batches: Iterator[pa.RecordBatch], options: WriteOptions, written: Written) -> None:
    """Write the Arrow batches of a task.

    Raises:
        OSError: The store is full, or the tables are not writable.
        SeveralTopics: The records are of several topics.
    """
    if options.table is None:
        decoder = lasting_decoder(options.decoding)
        write_records(grouped(of_one_topic(batches, written)), decoder, options.root, written)
    else:
        with TableFiles(options.root, options.table) as files:
            for batch in batches:
                rows = pa.Table.from_batches([batch]).select(options.table.schema.names)
                files.write(rows.cast(options.table.schema))
        written.manifests += files.manifests


def of_one_topic(batches: Iterator[pa.RecordBatch], written: Written) -> Iterator[pa.RecordBatch]:
    """The batches, whose topic is noted."""
    for batch in batches:
        for topic in batch["topic"].unique().to_pylist():
            written.topic = one_topic(written.topic, topic)
        yield batch


def one_topic(known: str | None, found: str | None) -> str | None:
    if known is not None and found is not None and known != found:
        raise SeveralTopics(
            f"the records are of the topics {known} and {found}: write each into its own tables"
        )
    return found if known is None else known
