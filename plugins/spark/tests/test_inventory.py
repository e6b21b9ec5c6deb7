"""The inventory of client instances over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.load import load_dataset
from odradek_spark.tables.log import live
from odradek_spark.tables.schemas import CLIENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def rows(spark: SparkSession, dataset: Dataset) -> list[tuple[object, ...]]:
    """``(client id, version, valid from, valid to, last seen, pushes, points, terminated)`` in seconds."""
    found = load_dataset(spark, dataset.root, "clients").selectExpr(
        "client_id",
        "software_version",
        f"unix_seconds(valid_from) - {MIDNIGHT_S}",
        f"unix_seconds(valid_to) - {MIDNIGHT_S}",
        f"unix_seconds(last_seen) - {MIDNIGHT_S}",
        "pushes",
        "points",
        "terminated",
    )
    return sorted((tuple(row) for row in found.collect()), key=repr)


def test_an_instance_is_one_row_until_its_metadata_change(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    told = [
        gauge(Told(10, version="3.9"), 1.0),
        gauge(Told(40, version="3.9"), 1.0),
        gauge(Told(70, version="4.0"), 1.0),
        gauge(Told(100, version="3.9"), 1.0),
    ]
    ingest(dataset, told, 0)

    done = run_inventory(spark, dataset.root)

    assert done is not None
    assert (done.pushes, done.buckets) == (4, 1)
    assert rows(spark, dataset) == [
        ("app", "3.9", 10, 70, 40, 2, 2, False),
        ("app", "3.9", 100, None, 100, 1, 1, False),
        ("app", "4.0", 70, 100, 70, 1, 1, False),
    ]


def test_a_run_continues_where_the_last_one_ended(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [gauge(Told(10), 1.0), gauge(Told(11, client=2, client_id="b"), 1.0)], 0)
    run_inventory(spark, dataset.root)
    end = ingest(dataset, [gauge(gauge(Told(40), 1.0), 2.0, "mine")], end)
    run_inventory(spark, dataset.root)
    ingest(dataset, [gauge(Told(70, version="5", terminating=True), 1.0)], end)

    last = run_inventory(spark, dataset.root)

    assert last is not None
    assert last.buckets == 1
    assert rows(spark, dataset) == [
        ("app", "4.0.0", 10, 70, 40, 2, 3, False),
        ("app", "5", 70, None, 70, 1, 1, True),
        ("b", "4.0.0", 11, None, 11, 1, 1, False),
    ]
    assert run_inventory(spark, dataset.root) is None


def test_only_the_files_of_pushing_instances_are_rewritten(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [gauge(Told(10.0, client=number), 1.0) for number in range(1, 30)], 0)
    run_inventory(spark, dataset.root)
    before = {each.path for each in live(dataset.existing(CLIENTS))}
    ingest(dataset, [gauge(Told(50.0, client=3), 1.0)], end)

    run_inventory(spark, dataset.root)

    after = {each.path for each in live(dataset.existing(CLIENTS))}
    assert len(before - after) == len(after - before) == 1
    assert len(rows(spark, dataset)) == 29


@pytest.mark.parametrize("farewell_first", [False, True])
def test_a_terminating_push_in_the_same_millisecond_is_the_last(
    spark: SparkSession, dataset: Dataset, farewell_first: bool
) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    told = [Told(10, terminating=terminating) for terminating in (farewell_first, not farewell_first)]
    ingest(dataset, told, 0)

    run_inventory(spark, dataset.root)

    assert rows(spark, dataset) == [("app", "4.0.0", 10, None, 10, 2, 0, True)]


def test_changes_back_and_forth_are_recorded_in_order(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [Told(10, version="a"), Told(10, version="b"), Told(20, version="a")], 0)
    run_inventory(spark, dataset.root)
    ingest(dataset, [Told(30, version="a", terminating=True), Told(40, version="a")], end)

    run_inventory(spark, dataset.root)

    assert rows(spark, dataset) == [
        ("app", "a", 10, 10, 10, 1, 0, False),
        ("app", "a", 20, None, 40, 3, 0, False),
        ("app", "b", 10, 20, 10, 1, 0, False),
    ]
