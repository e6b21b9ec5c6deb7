"""A task of ingest: read a range, decode it, write files and report them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol

import pyarrow as pa

from odradek_spark.decoder.decode import Decoded, Decoder
from odradek_spark.decoder.record import TopicRecord
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.tables.files import Manifest, TableFiles
from odradek_spark.tables.schemas import INGESTED

MANIFEST_SCHEMA = pa.schema([pa.field("kind", pa.string()), pa.field("body", pa.string())])
FILE, RANGE = "file", "range"
Wanted = Callable[[str, pa.RecordBatch], pa.RecordBatch]
"""Selects the rows to write, by table name and decoded rows."""


@dataclass(frozen=True, slots=True)
class RangeReport:
    """The contents of a range."""

    partition: int
    start: int
    end: int
    pushes: int
    points: int
    dead_letters: int
    payload_bytes: int
    lost: int = 0
    """Offsets that retention deleted before they were read."""
    further: int = 0
    """Pushes of records after their first one."""

    def text(self) -> str:
        """The report as a row that Spark carries."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> RangeReport:
        """Read a report that `text` wrote."""
        return cls(**json.loads(text))


class RecordReader(Protocol):
    """The source of the records."""

    lost: int
    """Number of offsets that retention deleted before they were read."""

    def read(self, found: OffsetRange) -> Iterator[list[TopicRecord]]:
        """The records of a range, in chunks."""


def ingest_ranges(
    reader: RecordReader, decoder: Decoder, root: str, found: Sequence[OffsetRange]
) -> pa.RecordBatch:
    """Write the rows of ranges of records as files of a dataset, one for each table and folder.

    Returns:
        Rows of `MANIFEST_SCHEMA`: the files, which are not committed yet, and a report of each range.
    """
    reports = []
    with table_files(root) as files:
        for each in found:
            written, lost = Written(), reader.lost
            written.write(reader.read(each), decoder, files)
            reports.append(written.report(each, reader.lost - lost))
    return manifest_rows(manifests_of(files), reports)


def ingest_records(chunks: Iterable[list[TopicRecord]], decoder: Decoder, root: str) -> pa.RecordBatch:
    """Do the same for records of one partition; the range is taken from their offsets."""
    written = Written()
    manifests = written.files(chunks, decoder, root)
    found = OffsetRange(written.partition, written.first, written.last + 1)
    return manifest_rows(manifests, [written.report(found, 0)])


@contextmanager
def table_files(root: str) -> Iterator[dict[str, TableFiles]]:
    """The files of a task by table: completed at the end of ``with``, deleted after an error."""
    with ExitStack() as writing:
        yield {table.name: writing.enter_context(TableFiles(root, table)) for table in INGESTED}


def manifests_of(files: Mapping[str, TableFiles]) -> list[Manifest]:
    """The completed files."""
    return [each for table in files.values() for each in table.manifests]


def everything(table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


@dataclass(slots=True)
class Written:
    """Totals of what a task has written."""

    pushes: int = 0
    points: int = 0
    dead_letters: int = 0
    payload_bytes: int = 0
    partition: int = -1
    first: int = -1
    last: int = -1
    further: int = 0

    def files(
        self, chunks: Iterable[list[TopicRecord]], decoder: Decoder, root: str, wanted: Wanted = everything
    ) -> list[Manifest]:
        """Decode records and write the rows that ``wanted`` selects."""
        with table_files(root) as files:
            self.write(chunks, decoder, files, wanted)
        return manifests_of(files)

    def write(
        self,
        chunks: Iterable[list[TopicRecord]],
        decoder: Decoder,
        files: Mapping[str, TableFiles],
        wanted: Wanted = everything,
    ) -> None:
        """Decode records, all of one partition, and add the rows that ``wanted`` selects to files."""
        for records in chunks:
            decoded = decoder.decode(records)
            self.count(records, decoded)
            for name, rows in decoded.batches():
                files[name].write(wanted(name, rows))

    def count(self, records: Sequence[TopicRecord], decoded: Decoded) -> None:
        """Count records, all of one partition and in order."""
        self.pushes += decoded.pushes.num_rows
        self.points += sum(decoded.pushes["points"].to_pylist())
        self.dead_letters += decoded.dead_letter.num_rows
        self.further += decoded.further
        self.payload_bytes += sum(len(record.value or b"") for record in records)
        if self.first < 0:
            self.partition, self.first = records[0].partition, records[0].offset
        self.last = records[-1].offset

    def report(self, found: OffsetRange, lost: int) -> RangeReport:
        return RangeReport(
            found.partition,
            found.start,
            found.end,
            self.pushes,
            self.points,
            self.dead_letters,
            self.payload_bytes,
            lost,
            self.further,
        )


def lost_range(found: OffsetRange) -> pa.RecordBatch:
    """The report of a range that retention deleted."""
    return manifest_rows(
        [], [RangeReport(found.partition, found.start, found.end, 0, 0, 0, 0, found.records)]
    )


def manifest_rows(manifests: Sequence[Manifest], reports: Sequence[RangeReport]) -> pa.RecordBatch:
    """The result of a task, as rows that Spark carries to the driver."""
    rows = [(FILE, manifest.text()) for manifest in manifests]
    rows.extend((RANGE, report.text()) for report in reports)
    return pa.RecordBatch.from_pylist([{"kind": kind, "body": body} for kind, body in rows], MANIFEST_SCHEMA)
