"""Verifies on the data that everything is in the tables exactly once.

Every record of the topic is a push or a dead letter, or of OTLP a push for each client; a push has the number
of its data points; a data point is identified by its record and its index in it; and every batch of ingest
recorded what it read. None of these may contradict another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.accepted import PUSH_KEY, SOURCE_KEY
from odradek_spark.jobs.expire import EXPIRED_BEFORE
from odradek_spark.load import load_dataset, read_spans
from odradek_spark.sink.commit import FURTHER
from odradek_tables.dataset import Dataset
from odradek_tables.following import erased_ranges, joined, spans_of
from odradek_tables.log import SOURCE_RANGES, Version, first_version, paths_of, version
from odradek_tables.schemas import DEAD_LETTER, HISTOGRAMS, INGESTED, POINTS, PUSHES, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERIFIED = (PUSHES, DEAD_LETTER, POINTS, HISTOGRAMS)
SHOWN = 20
"""Limit of faults that a report lists one by one."""
TWICE, MISSING, SURPLUS, ORPHAN, LOST = (
    "there twice",
    "points are missing",
    "more points than the push had",
    "points of a push that is not there",
    "not as many records as the batch had",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A contradiction: something is missing or duplicated."""

    what: str
    table: str
    src_partition: int
    src_offset: int
    expected: int
    found: int


@dataclass(slots=True)
class Report:
    pushes: int
    points: int
    dead_letters: int
    batches: int
    """Number of batches that were compared with what ingest recorded."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 if everything is in the tables exactly once, else 1."""
        return int(bool(self.faults))

    def text(self) -> str:
        lines = [
            f"{self.pushes} pushes with {self.points} points, {self.dead_letters} dead letters, "
            f"{self.batches} batches compared with what ingest recorded"
        ]
        if not self.faults:
            return "\n".join([*lines, "everything is there exactly once"])
        lines.append(f"{len(self.faults)} faults")
        lines += [
            f"  {each.table} {each.src_partition}-{each.src_offset}: {each.what}: "
            f"expected {each.expected}, found {each.found}"
            for each in self.faults[:SHOWN]
        ]
        if len(self.faults) > SHOWN:
            lines.append(f"  and {len(self.faults) - SHOWN} more")
        return "\n".join(lines)


def verify(points: DataFrame, histograms: DataFrame, pushes: DataFrame, dead_letter: DataFrame) -> DataFrame:
    """The rows of the tables that contradict each other: something is missing, or there twice.

    Args:
        points: The table ``points``, up to the end of ``pushes``.
        histograms: The table ``histograms``, up to the end of ``pushes``.
        pushes: The table ``pushes``.
        dead_letter: The table ``dead_letter``.

    Returns:
        A row for each record with a contradiction; no rows if there is none:

        * ``what``, ``table`` string: the contradiction and its table.
        * ``src_partition`` int, ``src_offset`` bigint: the record.
        * ``expected``, ``found`` bigint: numbers of rows of the record.
    """
    measured = points.select(*SOURCE_KEY, "src_idx").unionByName(histograms.select(*SOURCE_KEY, "src_idx"))
    per_push = measured.groupBy(*SOURCE_KEY).agg(
        F.count("*").alias("rows"), F.count_distinct("src_idx").alias("found")
    )
    each_push = pushes.select(*PUSH_KEY, "points").distinct()
    joined = each_push.groupBy(*SOURCE_KEY).agg(F.sum("points").alias("expected"))
    told = joined.withColumn("is_push", F.lit(True)).join(per_push, SOURCE_KEY, "full_outer")
    counted = told.withColumn("found", F.coalesce("found", F.lit(0)))
    frames = [
        twice(pushes, "pushes", PUSH_KEY),
        twice(dead_letter, "dead_letter", SOURCE_KEY),
        fault(per_push.where("rows > found"), TWICE, "points", F.col("found"), F.col("rows")),
        fault(counted.where("is_push and found < expected"), MISSING, "points"),
        fault(counted.where("is_push and found > expected"), SURPLUS, "points"),
        fault(counted.where("is_push is null"), ORPHAN, "points", F.lit(0)),
    ]
    return reduce(DataFrame.unionByName, frames)


def twice(rows: DataFrame, table: str, key: Sequence[str]) -> DataFrame:
    counted = rows.groupBy(*key).agg(F.count("*").alias("found")).where("found > 1")
    return fault(counted, TWICE, table, F.lit(1))


def fault(
    rows: DataFrame, what: str, table: str, expected: Column | None = None, found: Column | None = None
) -> DataFrame:
    return rows.select(
        F.lit(what).alias("what"),
        F.lit(table).alias("table"),
        *SOURCE_KEY,
        (F.col("expected") if expected is None else expected).cast("bigint").alias("expected"),
        (F.col("found") if found is None else found).cast("bigint").alias("found"),
    )


def losses(pushes: DataFrame, dead_letter: DataFrame, batches: DataFrame) -> DataFrame:
    """Batches that have fewer or more records than ingest recorded: rows as of `verify`, one for each batch.

    ``dead_letter`` has the records that were erased, too. ``batches`` is of `batch_rows`.
    """
    records = pushes.select(*SOURCE_KEY).unionByName(dead_letter.select(*SOURCE_KEY)).distinct()
    inside = (
        (F.col("src_partition") == F.col("partition"))
        & (F.col("src_offset") >= F.col("start"))
        & (F.col("src_offset") < F.col("end"))
    )
    counted = (
        batches.join(records, inside, "left")
        .groupBy("version", F.col("records").alias("expected"))
        .agg(F.count("src_offset").alias("found"), F.min(F.struct("partition", "start")).alias("first"))
        .where("found <> expected")
        .withColumn("src_partition", F.col("first.partition"))
        .withColumn("src_offset", F.col("first.start"))
    )
    return fault(counted, LOST, "pushes")


def noted_batches(pushes: Iterable[Version], dead_letter: Iterable[Version], kept_from: str) -> list[Version]:
    """The batches that ingest recorded in the two tables, and that have no expired day."""
    gone = {each.info.get(SOURCE_RANGES) for each in dead_letter if not is_kept(each, kept_from)}
    return [
        each
        for each in pushes
        if SOURCE_RANGES in each.info and is_kept(each, kept_from) and each.info[SOURCE_RANGES] not in gone
    ]


def records_of(found: Version) -> int:
    """The number of records of a batch that have rows."""
    return int(found.info["pushes"]) - int(found.info.get(FURTHER, 0)) + int(found.info["deadLetters"])


def is_kept(found: Version, kept_from: str) -> bool:
    return all(file.partition["date"] >= kept_from for file in found.added)


def latest_versions(dataset: Dataset, table: Table, since_ms: float = 0) -> Iterator[Version]:
    """The versions in the log of a table that were committed since a time, the latest first."""
    uri = dataset.uri(table)
    for number in range(dataset.existing(table).version(), first_version(uri) - 1, -1):
        found = version(uri, number)
        if float(found.info.get("timestamp", since_ms)) < since_ms:
            return
        yield found


def kept_from(dataset: Dataset, since_ms: float = 0) -> str:
    """The first day that every table still has; empty if nothing has expired since a time."""
    return max(expired_before(dataset, table, since_ms) for table in INGESTED)


def expired_before(dataset: Dataset, table: Table, since_ms: float = 0) -> str:
    """The first day that a table still has; empty if nothing has expired since a time."""
    found = (each.info.get(EXPIRED_BEFORE) for each in latest_versions(dataset, table, since_ms))
    return next((str(day) for day in found if day is not None), "")


def run_verify(
    spark: SparkSession, root: str, since: datetime | None = None, until: datetime | None = None
) -> Report:
    """Verify a dataset, or the batches with pushes received in a time range; times have a time zone.

    Of a range, only the files of its batches are read, and the history since them.

    Raises:
        DatasetError: Nothing has been ingested.
    """
    dataset = Dataset(root)
    dataset.existing(PUSHES)
    is_range = since is not None or until is not None
    chosen = list(batches_between(dataset, since, until) if is_range else latest_versions(dataset, PUSHES))
    since_ms = min((float(each.info.get("timestamp", 0)) for each in chosen), default=float("inf"))
    day = kept_from(dataset, since_ms if is_range else 0)
    dead_letter = latest_versions(dataset, DEAD_LETTER, since_ms if is_range else 0) if day else ()
    batches = noted_batches(chosen, dead_letter, day)
    if is_range:
        frames = [rows_of(spark, dataset, table, chosen) for table in VERIFIED]
    else:
        frames = [load_dataset(spark, root, table.name) for table in VERIFIED]
    pushes, dead, points, histograms = (each.where(F.col("date") >= day) for each in frames)
    if not is_range:
        points, histograms = (as_far_as(pushes, each) for each in (points, histograms))
    found = verify(points, histograms, pushes, dead)
    if batches:
        records = dead.select(*SOURCE_KEY).unionByName(erased_records(spark, dataset))
        found = found.unionByName(losses(pushes, records, batch_rows(spark, batches)))
    faults = [Fault(**row.asDict()) for row in found.collect()]
    faults.sort(key=lambda each: (each.table, each.src_partition, each.src_offset, each.what))
    return Report(pushes.count(), points.count() + histograms.count(), dead.count(), len(batches), faults)


def batches_between(dataset: Dataset, since: datetime | None, until: datetime | None) -> Iterator[Version]:
    """The batches with pushes that were received in a time range, from the history of ``pushes``."""
    for each in latest_versions(dataset, PUSHES):
        first, last = received(each) or (None, None)
        if since is not None and last is not None and last < since:
            return
        is_late = until is not None and first is not None and first >= until
        if SOURCE_RANGES in each.info and not is_late:
            yield each


def received(found: Version) -> tuple[datetime, datetime] | None:
    """The earliest and the latest receive time of a batch's pushes; None without any."""
    if SOURCE_RANGES not in found.info:
        return None
    begins = [each.recv_min for each in found.added if each.recv_min is not None]
    ends = [each.recv_max for each in found.added if each.recv_max is not None]
    return (min(begins), max(ends)) if begins and ends else None


def rows_of(spark: SparkSession, dataset: Dataset, table: Table, batches: Sequence[Version]) -> DataFrame:
    """The rows of a table that some batches have, from the files that may have them."""
    spans = joined(span for each in batches for span in spans_of(each))
    return read_spans(spark, dataset.root, table, paths_of(dataset.existing(table), spans), spans)


def as_far_as(pushes: DataFrame, rows: DataFrame) -> DataFrame:
    """The rows up to the end of ``pushes``, which excludes a batch that is being committed."""
    ends = pushes.groupBy("src_partition").agg(F.max("src_offset").alias("last_offset"))
    return rows.join(F.broadcast(ends), "src_partition").where("src_offset <= last_offset")


def erased_records(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The records that were erased on request: ``src_partition`` int, ``src_offset`` bigint."""
    rows = spark.createDataFrame(erased_ranges(dataset), "src_partition int, start bigint, end bigint")
    return rows.select("src_partition", F.explode(F.sequence("start", F.col("end") - 1)).alias("src_offset"))


def batch_rows(spark: SparkSession, batches: Sequence[Version]) -> DataFrame:
    rows = [(each.number, *span, records_of(each)) for each in batches for span in spans_of(each)]
    columns = "version bigint, partition int, start bigint, end bigint, records bigint"
    return spark.createDataFrame(rows, columns)
