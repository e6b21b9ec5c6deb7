"""The data that a query or a job reads grow with the range or with new data, never with the table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from duckdb_profile import rows_into
from telemetry_rows import LATENCY, MIDNIGHT_S, Told, gauge, ingest_batches

from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.query import questions
from odradek_tables.query.questions import Who, Window
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import POINTS, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS, CLIENTS, HOUR_S = 12, 8, 3600
MIDNIGHT = datetime.fromtimestamp(MIDNIGHT_S, UTC)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Half a day: each hour is a batch of one push of each client, and of one repeated push."""
    made = Dataset(str(tmp_path_factory.mktemp("linear") / "dataset"))
    batches = []
    for hour in range(HOURS):
        pushes = [
            gauge(Told(hour * HOUR_S + client, client=client, client_id=f"app-{client}"), 1.0 * client)
            for client in range(1, CLIENTS + 1)
        ]
        batches.append([*pushes, Told(hour * HOUR_S + 20.0, raw=pushes[0].payload(), client_id="app-1")])
    ingest_batches(made, batches)
    return made


def at(hour: float) -> datetime:
    return MIDNIGHT + timedelta(hours=hour)


def test_points_are_counted_without_sorting_all_pushes(dataset: Dataset) -> None:
    reader = Reader(dataset.root)

    counting = reader.ask("SELECT count(*) AS n FROM v_points")["n"][0].as_py()
    sorted_rows = rows_into(reader, "SELECT count(*) FROM v_points", "WINDOW")

    assert counting == HOURS * CLIENTS
    assert sorted_rows == 2 * HOURS  # a repeated push and the one that it repeats


def test_a_question_about_a_client_compares_its_pushes_only(dataset: Dataset) -> None:
    reader = Reader(dataset.root)
    clause, values = questions.points_of(Who(client_id="app-2"), Window())

    found = questions.client(reader, Who(client_id="app-2"), Window()).to_pylist()
    hashed = rows_into(reader, f"{clause} SELECT count(*) FROM counting", "HASH_GROUP_BY", values)

    assert [(row["name"], row["points"]) for row in found] == [(LATENCY, HOURS)]
    assert hashed <= 3 * HOURS  # of HOURS * (CLIENTS + 1) pushes


@pytest.mark.parametrize(
    ("since", "until", "hours"), [(4.0, 6.0, 2), (4.5, None, 7), (None, 3.0, 3), (None, None, HOURS)]
)
def test_files_outside_the_time_are_not_read(
    dataset: Dataset, since: float | None, until: float | None, hours: int
) -> None:
    window = [None if hour is None else at(hour) for hour in (since, until)]

    reader = Reader(dataset.root, *window)

    assert len(reader.paths(POINTS, *window)) == hours
    asked = reader.ask("SELECT count(*) AS n FROM points")["n"][0].as_py()
    between = [hour for hour in range(HOURS) if (since or 0) <= hour < (until or HOURS)]
    assert asked == len(between) * (CLIENTS + 1)
    assert reader.ask("SELECT count(*) AS n FROM v_points")["n"][0].as_py() == len(between) * CLIENTS


def test_a_push_repeated_at_the_begin_of_the_time_counts_once(tmp_path: Path) -> None:
    made = Dataset(str(tmp_path / "dataset"))
    first = gauge(Told(HOUR_S - 10.0), 1.0)
    ingest_batches(made, [[first], [Told(HOUR_S + 10.0, raw=first.payload())]])

    reader = Reader(made.root, at(1) - timedelta(seconds=15))

    assert reader.ask("SELECT count(*) AS n FROM points")["n"][0].as_py() == 2
    assert reader.ask("SELECT count(*) AS n FROM v_points")["n"][0].as_py() == 1


@pytest.mark.spark
def test_spark_loads_only_the_files_of_the_time(spark: SparkSession, dataset: Dataset) -> None:
    frame = load_dataset(spark, dataset.root, PUSHES.name, since=at(4), until=at(6))

    assert len(frame.inputFiles()) == 2
    assert frame.count() == 2 * (CLIENTS + 1)


@pytest.mark.spark
def test_no_pushes_pass_through_the_driver(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.accepted import accepted

    points, pushes = (load_dataset(spark, dataset.root, name) for name in ("points", "pushes"))
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # as if the tables were large
    try:
        counting = accepted(points, pushes)
        plan = counting._jdf.queryExecution().executedPlan().toString()
        rows = counting.collect()
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before or "")

    assert "BroadcastExchange" not in plan
    assert len(rows) == HOURS * CLIENTS
    assert {row["push_interval_ms"] for row in rows} == {30_000}
