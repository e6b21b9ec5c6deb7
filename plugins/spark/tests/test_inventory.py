"""The inventory of client instances over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest

from odradek.plugin import LAG_SOURCE
from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.log import live
from odradek_tables.schemas import CLIENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DAY_S = 86_400


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
    assert (done.pushes, done.files) == (4, 0)
    assert rows(spark, dataset) == [
        ("app", "3.9", 10, 70, 40, 2, 2, False),
        ("app", "3.9", 100, None, 100, 1, 1, False),
        ("app", "4.0", 70, 100, 70, 1, 1, False),
    ]


def test_a_run_continues_where_the_last_one_ended(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [gauge(Told(10), 1.0), gauge(Told(11, client=2, client_id="b"), 1.0)], 0)
    run_inventory(spark, dataset.root)
    of_group = gauge(Told(40, client=3, source=LAG_SOURCE), 5.0)
    end = ingest(dataset, [gauge(gauge(Told(40, source="relay"), 1.0), 2.0, "mine"), of_group], end)
    run_inventory(spark, dataset.root)
    ingest(dataset, [gauge(Told(70, version="5", terminating=True), 1.0)], end)

    last = run_inventory(spark, dataset.root)

    assert last is not None
    assert (last.files, last.rows) == (1, 1)
    assert rows(spark, dataset) == [
        ("app", "4.0.0", 10, 70, 40, 2, 3, False),
        ("app", "5", 70, None, 70, 1, 1, True),
        ("b", "4.0.0", 11, None, 11, 1, 1, False),
    ]
    ways = load_dataset(spark, dataset.root, "clients").select(
        "software_version", "source", "ways", "broker_id"
    )
    assert sorted((tuple(row) for row in ways.collect()), key=repr) == [
        ("4.0.0", "relay", "pushed,relay", 1),
        ("4.0.0", None, "pushed", 1),
        ("5", None, "pushed", 1),
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


def test_rows_of_silent_instances_are_not_rewritten(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end, rewritten = 0, []
    for day in range(6):
        fleeting = [
            gauge(Told(day * DAY_S + number, client=10 * day + number), 1.0) for number in range(1, 9)
        ]
        steady = [gauge(Told(day * DAY_S + 100, client=200), 1.0)]
        end = ingest(dataset, [*fleeting, *steady], end)
        done = run_inventory(spark, dataset.root)
        assert done is not None
        rewritten.append(done.rows)

    found = load_dataset(spark, dataset.root, "clients").collect()
    assert rewritten[-1] == rewritten[-2] <= 2 * 8 + 1  # the instances of two days, not of six
    assert len(found) == 6 * 8 + 1
    ended = [row for row in found if row["valid_to"] is not None]
    assert len(ended) == 4 * 8
    assert all(row["valid_to"] == row["last_seen"] for row in ended)
    assert [(row["pushes"], row["valid_to"]) for row in found if row["pushes"] > 1] == [(6, None)]


def test_an_instance_that_returns_begins_a_row(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [gauge(Told(10), 1.0)], 0)
    run_inventory(spark, dataset.root)
    end = ingest(dataset, [gauge(Told(3 * DAY_S, client=2, client_id="b"), 1.0)], end)
    run_inventory(spark, dataset.root)
    ingest(dataset, [gauge(Told(3 * DAY_S + 5), 1.0)], end)

    run_inventory(spark, dataset.root)

    assert [row[:5] for row in rows(spark, dataset)] == [
        ("app", "4.0.0", 10, 10, 10),
        ("app", "4.0.0", 3 * DAY_S + 5, None, 3 * DAY_S + 5),
        ("b", "4.0.0", 3 * DAY_S, None, 3 * DAY_S),
    ]


def test_settled_rows_expire(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_expire
    from odradek_spark.jobs.inventory import run_inventory

    end = ingest(dataset, [gauge(Told(10), 1.0)], 0)
    run_inventory(spark, dataset.root)
    ingest(dataset, [gauge(Told(3 * DAY_S, client=2, client_id="b"), 1.0)], end)
    run_inventory(spark, dataset.root)
    third = datetime.fromtimestamp(MIDNIGHT_S + 3 * DAY_S, UTC)

    kept = run_expire(dataset.root, third, {"clients": 3})
    gone = run_expire(dataset.root, third, {"clients": 2})
    run_expire(dataset.root, third + timedelta(days=400), {"clients": 2})

    assert kept == []
    assert [(each.table, each.rows) for each in gone] == [("clients", 1)]
    assert [row[0] for row in rows(spark, dataset)] == ["b"]


def test_files_of_earlier_versions_are_settled_too(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import APP_ID, inventory, run_inventory
    from odradek_spark.jobs.writing import write_frame
    from odradek_tables.following import news
    from odradek_tables.schemas import PUSHES

    end = ingest(dataset, [gauge(Told(10, client=number), 1.0) for number in range(1, 20)], 0)
    dataset.create([CLIENTS])
    found = news(dataset, PUSHES, CLIENTS, APP_ID)
    assert found is not None
    known = load_dataset(spark, dataset.root, "clients")
    written = write_frame(
        inventory(load_dataset(spark, dataset.root, "pushes"), known), dataset.root, CLIENTS
    )
    dataset.commit_next(CLIENTS, written, APP_ID, None, found.version)
    end = ingest(dataset, [gauge(Told(3 * DAY_S, client=200), 1.0)], end)

    done = run_inventory(spark, dataset.root)

    assert done is not None
    assert done.rows == 19
    found_rows = rows(spark, dataset)
    assert [row[3] for row in found_rows if row[2] == 10] == [10] * 19
    assert len(found_rows) == 20
