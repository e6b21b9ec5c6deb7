"""Commits a batch of ingest: one commit per table, ``pushes`` last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow import fs

from odradek_spark.source.task import FILE, RangeReport
from odradek_spark.tables.dataset import Dataset, DatasetError, Ranges
from odradek_spark.tables.files import Manifest, file_system
from odradek_spark.tables.schemas import INGESTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOPPED = ": java.lang.InterruptedException"
"""A line of Py4J's error after the thread of a query was interrupted."""
SOURCE_RANGES = "sourceRanges"
"""Key in the history of a table: by partition, the first offset of a batch and its end offset (last + 1)."""
FURTHER = "furtherPushes"
"""Key in the history of a table: the pushes of records after their first one, if there are any."""


class Interrupted(Exception):
    """The query was stopped; the message is the text by which Spark recognizes that.

    Spark matches a regular expression that takes some hundred bytes of stack per character. On the JVM's
    stack trace in Py4J's own message it would overflow the stack.
    """


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """The function for ``foreachBatch``. It holds no connection: Spark Connect sends it to the server."""

    root: str
    topic: str
    has_gaps: bool = False
    """Whether ranges are known only from their records, so that there may be gaps between them."""

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Commit the files that the tasks of a batch wrote.

        Raises:
            DatasetError: Another ingester writes to this dataset, or the workers wrote to another place.
            Interrupted: The query was stopped.
        """
        found = collected(rows)
        manifests = [Manifest.parse(body) for kind, body in found if kind == FILE]
        reports = [RangeReport.parse(body) for kind, body in found if kind != FILE]
        if reports:
            dataset = Dataset(self.root)
            check_written(dataset, manifests)
            covered = spanned(dataset, self.topic, reports) if self.has_gaps else None
            commit_batch(dataset, self.topic, manifests, reports, batch_id, covered)


def collected(rows: DataFrame) -> list[tuple[str, str]]:
    """The rows that the tasks returned: kind and body.

    Raises:
        Interrupted: The query was stopped.
    """
    try:
        return [(row.kind, row.body) for row in rows.select("kind", "body").collect()]
    except Py4JJavaError as error:
        if STOPPED not in str(error).splitlines():
            raise
        raise Interrupted(
            f"py4j.protocol.Py4JJavaError: An error occurred while calling collect\n{STOPPED}"
        ) from None


def commit_batch(
    dataset: Dataset,
    topic: str,
    manifests: list[Manifest],
    reports: list[RangeReport],
    batch_id: int,
    covered: Ranges | None = None,
) -> None:
    """Commit a batch to all tables, except those that already have it.

    Args:
        dataset: The dataset.
        topic: The topic of the records.
        manifests: The files of the tasks.
        reports: The reports of the tasks.
        batch_id: The number of the batch, for the history.
        covered: The ranges that the commit covers; None for those of the reports.
    """
    covered = joined(reports) if covered is None else covered
    info = {
        "batch": batch_id,
        "sourceOffsets": {part: stop for part, (_, stop) in covered.items()},
        SOURCE_RANGES: covered,
        "pushes": sum(each.pushes for each in reports),
        "points": sum(each.points for each in reports),
        "deadLetters": sum(each.dead_letters for each in reports),
        "lost": sum(each.lost for each in reports),
        "payloadBytes": sum(each.payload_bytes for each in reports),
    }
    if further := sum(each.further for each in reports):
        info[FURTHER] = further
    for table in INGESTED:
        files = [manifest for manifest in manifests if manifest.table == table.name]
        dataset.commit_ranges(table, files, topic, covered, info)


def check_written(dataset: Dataset, manifests: Iterable[Manifest]) -> None:
    """Check that the files are in the dataset: a local path may be another disk on each worker.

    Raises:
        DatasetError: A file is not there.
    """
    system, base = file_system(dataset.root)
    for found in system.get_file_info([f"{base}/{each.table}/{each.path}" for each in manifests]):
        if found.type is not fs.FileType.File:
            raise DatasetError(
                f"{found.path}: a worker wrote this file, but the driver does not see it. Use a dataset that "
                "driver and workers share: a shared folder, or a URI"
            )


def joined(reports: Iterable[RangeReport]) -> Ranges:
    """Join the adjacent pieces of each partition into one range."""
    covered: dict[int, tuple[int, int]] = {}
    for each in sorted(reports, key=lambda report: (report.partition, report.start)):
        start, stop = covered.get(each.partition, (each.start, each.start))
        if each.start != stop:
            raise ValueError(f"partition {each.partition}: offsets {stop} to {each.start - 1} are missing")
        covered[each.partition] = start, each.end
    return covered


def spanned(dataset: Dataset, topic: str, reports: Iterable[RangeReport]) -> Ranges:
    """The ranges of a batch, beginning where the tables end: offsets in between have no records."""
    seen: dict[int, tuple[int, int]] = {}
    for each in reports:
        start, stop = seen.get(each.partition, (each.start, each.end))
        seen[each.partition] = min(start, each.start), max(stop, each.end)
    done = dataset.source_offsets(INGESTED[-1], topic, list(seen))
    return {part: (min(start, done.get(part, 0)), stop) for part, (start, stop) in seen.items()}
