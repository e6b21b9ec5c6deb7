"""Verification: it succeeds for ingested data, and finds later damage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest_batches

from odradek_tables.dataset import Dataset
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.schemas import POINTS, PUSHES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek_spark.jobs.verify import Report

pytestmark = pytest.mark.spark


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "dataset"))
    batches = [
        [gauge(gauge(Told(60.0 * batch + number, client=number), 1.0), 2.0, "mine") for number in range(4)]
        for batch in range(3)
    ]
    batches[1].append(Told(90.0, raw=b"\xff\xff"))
    batches[2].append(Told(190.0, raw=b""))
    ingest_batches(made, batches)
    return made


def rewritten(dataset: Dataset, table: Table, keep: pa.compute.Expression) -> None:
    """Remove rows from a table."""
    rows = dataset.existing(table).to_pyarrow_table()
    old = live(dataset.existing(table))
    new = write_files(dataset.root, table, rows.filter(keep).cast(table.schema))
    dataset.exchange(table, old, new, data_change=True)


def doubled(dataset: Dataset, table: Table, which: pa.compute.Expression) -> None:
    """Insert rows of a table once more."""
    rows = dataset.existing(table).to_pyarrow_table().filter(which).cast(table.schema)
    dataset.commit_next(table, write_files(dataset.root, table, rows), "somebody", None, 1)


def verified(spark: SparkSession, dataset: Dataset) -> Report:
    from odradek_spark.jobs.verify import run_verify

    return run_verify(spark, dataset.root)


def told(report: Report) -> list[tuple[str, int, int, int]]:
    return [(each.what, each.src_offset, each.expected, each.found) for each in report.faults]


def test_every_ingested_record_is_there_once(spark: SparkSession, dataset: Dataset) -> None:
    report = verified(spark, dataset)

    assert (report.exit_code, report.faults) == (0, [])
    assert report.text().splitlines() == [
        "13 pushes with 24 points, 1 dead letters, 3 batches compared with what ingest recorded",
        "everything is there exactly once",
    ]


def test_a_missing_point_is_found(spark: SparkSession, dataset: Dataset) -> None:
    rewritten(dataset, POINTS, ~((pa.compute.field("src_offset") == 5) & (pa.compute.field("src_idx") == 1)))

    report = verified(spark, dataset)

    assert told(report) == [("points are missing", 5, 2, 1)]
    assert report.exit_code == 1
    assert "points 0-5: points are missing: expected 2, found 1" in report.text()


def test_a_doubled_point_is_found(spark: SparkSession, dataset: Dataset) -> None:
    doubled(dataset, POINTS, (pa.compute.field("src_offset") == 5) & (pa.compute.field("src_idx") == 1))

    assert told(verified(spark, dataset)) == [("there twice", 5, 2, 3)]


def test_a_doubled_push_is_found(spark: SparkSession, dataset: Dataset) -> None:
    doubled(dataset, PUSHES, pa.compute.field("src_offset") == 2)

    assert told(verified(spark, dataset)) == [("there twice", 2, 1, 2)]


def test_a_missing_push_is_found_by_its_points(spark: SparkSession, dataset: Dataset) -> None:
    rewritten(dataset, PUSHES, pa.compute.field("src_offset") != 2)

    assert told(verified(spark, dataset)) == [
        ("points of a push that is not there", 2, 0, 2),
        ("not as many records as the batch had", 0, 4, 3),
    ]


def test_a_push_missing_with_its_points_is_found(spark: SparkSession, dataset: Dataset) -> None:
    for table in (POINTS, PUSHES):
        rewritten(dataset, table, pa.compute.field("src_offset") != 7)

    assert told(verified(spark, dataset)) == [("not as many records as the batch had", 4, 5, 4)]


def test_removed_days_are_not_missed(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_expire

    now = datetime.fromtimestamp(MIDNIGHT_S, UTC) + timedelta(days=8)
    run_expire(dataset.root, now, {"points": 7, "pushes": 30})

    report = verified(spark, dataset)

    assert (report.exit_code, report.pushes, report.batches) == (0, 0, 0)


def test_a_long_list_is_truncated() -> None:
    from odradek_spark.jobs.verify import Fault, Report

    report = Report(1, 1, 0, 1, [Fault("there twice", "points", 0, number, 1, 2) for number in range(25)])

    assert report.text().splitlines()[-1] == "  and 5 more"


@pytest.mark.parametrize("with_push", [False, True])
def test_removed_dead_letters_are_not_missed(spark: SparkSession, tmp_path: Path, with_push: bool) -> None:
    from odradek_spark.jobs.expire import run_expire

    dataset = Dataset(str(tmp_path / "dataset"))
    pushed = [gauge(Told(86_401.0), 1.0)] if with_push else []
    ingest_batches(dataset, [[Told(86_399.0, raw=b"\xff\xff"), *pushed], [gauge(Told(90_000.0), 1.0)]])
    run_expire(dataset.root, datetime.fromtimestamp(MIDNIGHT_S, UTC) + timedelta(days=8))

    report = verified(spark, dataset)

    assert (report.faults, report.pushes, report.dead_letters) == ([], 1 + with_push, 0)


def at(minute: float) -> datetime:
    return datetime.fromtimestamp(MIDNIGHT_S, UTC) + timedelta(minutes=minute)


@pytest.mark.parametrize(
    ("since", "until", "batches", "pushes"),
    [(1.0, 2.0, 1, 4), (1.0, None, 2, 9), (None, 1.0, 1, 4), (9.0, None, 0, 0), (None, -1.0, 0, 0)],
)
def test_a_range_is_verified_alone(
    spark: SparkSession,
    dataset: Dataset,
    since: float | None,
    until: float | None,
    batches: int,
    pushes: int,
) -> None:
    from odradek_spark.jobs.verify import run_verify

    rewritten(dataset, POINTS, ~((pa.compute.field("src_offset") == 5) & (pa.compute.field("src_idx") == 1)))

    window = [None if minute is None else at(minute) for minute in (since, until)]
    report = run_verify(spark, dataset.root, *window)

    assert (report.batches, report.pushes) == (batches, pushes)
    assert told(report) == ([("points are missing", 5, 2, 1)] if since == 1.0 else [])


def test_a_range_reads_only_its_files_and_history(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odradek_spark import load
    from odradek_spark.jobs import verify
    from odradek_tables import log

    made = Dataset(str(tmp_path / "dataset"))
    ingest_batches(made, [[gauge(Told(60.0 * batch), 1.0)] for batch in range(60)])
    read: list[int] = []
    files: list[str] = []

    def version(uri: str, number: int) -> log.Version:
        read.append(number)
        return log.version(uri, number)

    def read_spans(
        session: SparkSession, root: str, table: Table, paths: Sequence[str], spans: Any
    ) -> DataFrame:
        files.extend(paths)
        return load.read_spans(session, root, table, paths, spans)

    monkeypatch.setattr(verify, "version", version)
    monkeypatch.setattr(verify, "read_spans", read_spans)

    report = verify.run_verify(spark, made.root, at(57), at(59))

    assert (report.pushes, report.batches, report.faults) == (2, 2, [])
    assert len(files) == 4  # of points and pushes, two batches each
    assert len(read) < 40  # of 60 commits of each of four tables
