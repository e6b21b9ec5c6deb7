"""Jobs that follow a table: the files added since their last run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from spark_dataset import commit_ranges
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest, ingest_batches

from odradek_spark.jobs.compact import run_compact
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.following import joined, news
from odradek_tables.log import live
from odradek_tables.schemas import POINTS, PUSHES, ROLLUP_5M

JOB = "job"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "dataset"))
    made.create()
    made.create([ROLLUP_5M])
    return made


def batch(at_s: float) -> list[Told]:
    return [gauge(Told(at_s), 1.0)]


def test_the_first_run_reads_every_file(dataset: Dataset) -> None:
    end = ingest_batches(dataset, [batch(10), batch(40)])
    dataset.delete(POINTS, "date = '2026-09-22'", {})
    ingest(dataset, batch(70), end)

    found = news(dataset, POINTS, ROLLUP_5M, JOB)

    assert found is not None
    assert (found.after, found.rows) == (None, 1)
    assert found.since == datetime.fromtimestamp(MIDNIGHT_S + 70, UTC)


def test_later_runs_read_new_files(dataset: Dataset) -> None:
    end = ingest(dataset, batch(10), 0)
    first = news(dataset, POINTS, ROLLUP_5M, JOB)
    assert first is not None
    dataset.commit_next(ROLLUP_5M, [], JOB, None, first.version)
    ingest_batches(dataset, [batch(40), batch(70)], end)

    found = news(dataset, POINTS, ROLLUP_5M, JOB)

    assert found is not None
    assert (found.after, found.rows) == (first.version, 2)
    assert found.since == datetime.fromtimestamp(MIDNIGHT_S, UTC) + timedelta(seconds=40)


def test_rows_are_read_where_compaction_put_them(dataset: Dataset) -> None:
    dataset.commit_next(ROLLUP_5M, [], JOB, None, 0)
    ingest(dataset, [*batch(10), *batch(7200)], 0)
    old = live(dataset.existing(POINTS))
    assert run_compact(dataset.root, POINTS) is not None
    for each in old:
        if each.partition["hour"] == "0":
            Path(f"{dataset.uri(POINTS)}/{each.path}").unlink()

    found = news(dataset, POINTS, ROLLUP_5M, JOB)

    assert found is not None
    assert (found.spans, found.rows) == ([(0, 0, 2)], 2)
    assert all(Path(each).exists() for each in found.files)
    assert sum(pq.ParquetFile(each).metadata.num_rows for each in found.files) == 2


def test_spans_that_touch_are_joined() -> None:
    spans = [(0, 5, 7), (1, 0, 2), (0, 0, 5), (0, 9, 10), (0, 6, 8)]

    assert joined(spans) == [(0, 0, 8), (0, 9, 10), (1, 0, 2)]


def test_a_log_that_does_not_reach_back_far_enough_is_reported(dataset: Dataset) -> None:
    dataset.commit_next(ROLLUP_5M, [], JOB, None, 0)
    ingest_batches(dataset, [batch(10), batch(40)])
    dataset.existing(POINTS).create_checkpoint()
    Path(f"{dataset.uri(POINTS)}/_delta_log/{1:020d}.json").unlink()

    with pytest.raises(
        DatasetError, match="version 1 is no longer in the log: the last run of job was too long ago"
    ):
        news(dataset, POINTS, ROLLUP_5M, JOB)


def test_a_first_run_does_not_see_half_a_batch(dataset: Dataset) -> None:
    from odradek_tables.decoder.decode import Decoder
    from odradek_tables.files import write_files

    end = ingest(dataset, batch(10), 0)
    rows = Decoder().decode([batch(40)[0].record(end)]).points
    commit_ranges(dataset, POINTS, write_files(dataset.root, POINTS, rows), {0: (end, end + 1)})
    dataset.commit_next(POINTS, [], "maintenance", None, 1)

    found = news(dataset, POINTS, ROLLUP_5M, JOB)

    assert found is not None
    assert found.rows == 1
    assert found.version == dataset.existing(POINTS).version() - 2


def test_an_empty_table_has_no_new_files(dataset: Dataset) -> None:
    assert news(dataset, PUSHES, ROLLUP_5M, JOB) is None


def test_a_first_run_needs_no_old_log(dataset: Dataset) -> None:
    ingest(dataset, batch(10), 0)
    dataset.commit_next(POINTS, [], "maintenance", None, 1)
    dataset.existing(POINTS).create_checkpoint()
    for number in (0, 1):
        Path(f"{dataset.uri(POINTS)}/_delta_log/{number:020d}.json").unlink()

    found = news(dataset, POINTS, ROLLUP_5M, JOB)

    assert found is not None
    assert found.rows == 1
