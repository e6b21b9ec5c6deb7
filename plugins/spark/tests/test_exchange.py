"""Replaced files: commits that replace files by others, and the history of the log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_payloads import RECEIVED_MS, TIME_NS, topic_record

from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import Manifest, write_files
from odradek_tables.log import LogGone, first_version, live, version
from odradek_tables.schemas import POINTS


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "dataset"))
    made.create()
    return made


def written(dataset: Dataset, offset: int = 0) -> list[Manifest]:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="a")
    metric.gauge.data_points.add(time_unix_nano=TIME_NS, as_double=1.5)
    rows = Decoder().decode([topic_record(data.SerializeToString(), offset)]).points
    return write_files(dataset.root, POINTS, rows)


def paths(dataset: Dataset) -> set[str]:
    return {each.path for each in live(dataset.existing(POINTS))}


def test_files_are_replaced_in_one_commit(dataset: Dataset) -> None:
    dataset.commit_next(POINTS, written(dataset), "ingest", None, 0)
    dataset.commit_next(POINTS, written(dataset, 1), "ingest", 0, 1)
    before = live(dataset.existing(POINTS))
    (new,) = written(dataset, 2)

    done = dataset.exchange(POINTS, before, [new], data_change=False)

    assert done
    assert paths(dataset) == {new.path}
    assert len(before) == 2


def test_removed_files_cannot_be_replaced_again(dataset: Dataset) -> None:
    dataset.commit_next(POINTS, written(dataset), "ingest", None, 0)
    before = live(dataset.existing(POINTS))
    rivals = [written(dataset, 2) for _ in range(5)]

    with ThreadPoolExecutor(5) as pool:
        outcomes = list(
            pool.map(lambda new: dataset.exchange(POINTS, before, new, data_change=False), rivals)
        )

    assert sorted(outcomes) == [False] * 4 + [True]
    assert len(paths(dataset)) == 1


def test_ingest_continues_while_files_are_replaced(dataset: Dataset) -> None:
    dataset.commit_next(POINTS, written(dataset), "start", None, 0)
    before = live(dataset.existing(POINTS))

    with ThreadPoolExecutor(4) as pool:
        ingesting = [
            pool.submit(dataset.commit_next, POINTS, written(dataset, number), f"app-{number}", None, 0)
            for number in range(6)
        ]
        replaced = pool.submit(
            dataset.exchange, POINTS, before, written(dataset, 9), data_change=False
        ).result()

    assert replaced
    assert all(each.result() for each in ingesting)
    assert len(paths(dataset)) == 7


def test_of_runs_that_started_at_the_same_version_one_commits(dataset: Dataset) -> None:
    runs = [written(dataset, number) for number in range(5)]

    with ThreadPoolExecutor(5) as pool:
        outcomes = list(pool.map(lambda new: dataset.commit_next(POINTS, new, "job", None, 7), runs))

    assert sorted(outcomes) == [False] * 4 + [True]
    assert dataset.commit_next(POINTS, [], "job", 7, 9)
    assert not dataset.commit_next(POINTS, [], "job", 7, 10)


def test_the_log_lists_the_added_files_of_each_version(dataset: Dataset) -> None:
    dataset.commit_next(POINTS, written(dataset), "ingest", None, 3, {"pushes": 1})
    dataset.exchange(POINTS, live(dataset.existing(POINTS)), written(dataset), data_change=False)

    made, ingested, exchanged = (version(dataset.uri(POINTS), number) for number in range(3))

    (file,) = ingested.added
    assert (made.added, exchanged.added) == ((), ())
    assert (ingested.numbers, ingested.info["pushes"], file.rows) == ({"ingest": 3}, "1", 1)
    assert file.recv_min is not None
    assert file.recv_min.timestamp() * 1000 == RECEIVED_MS


def test_a_version_missing_from_the_log_is_named(dataset: Dataset) -> None:
    assert first_version(dataset.uri(POINTS)) == 0

    with pytest.raises(LogGone, match="version 1 is no longer in the log"):
        version(dataset.uri(POINTS), 1)
