"""The view `v_totals`: delta sums as running totals, an hour at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from telemetry_rows import MIDNIGHT_S, SENT, Told, Value, counted, gauge, ingest

from odradek_tables.dataset import Dataset
from odradek_tables.schemas import ROLLUP_1H

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ERRORS = "org.apache.kafka.producer.record.error.total"
TOTALS = "SELECT bucket, client_instance_id, name, step, cumulative FROM v_totals"


def test_both_engines_add_up_the_deltas_of_each_instance(spark: SparkSession, tmp_path: Path) -> None:
    from odradek_spark.jobs.rollup import run_rollup
    from odradek_spark.views import register_views
    from odradek_tables.query.reader import Reader

    dataset = Dataset(str(tmp_path / "dataset"))
    ingest(
        dataset, [counted(Told(30), 5, 0), gauge(Told(40), 99.0), counted(Told(50), 9, 0, "cumulative")], 0
    )
    run_rollup(spark, dataset.root, ROLLUP_1H)
    late = [
        counted(Told(60, version="4.1.0"), 2, 30),  # another version: the total continues
        counted(Told(3700), 3, 3600),
        counted(Told(3800, client=2), 100, 3700),
        counted(Told(3900, client=2), float("nan"), 3800, name=ERRORS),
        counted(Told(90_000), 0.5, 89_000),
    ]
    ingest(dataset, late, 3)
    run_rollup(spark, dataset.root, ROLLUP_1H)  # parts of an hour that has parts

    register_views(spark, dataset.root)
    by_spark = spark.sql(TOTALS).collect()
    by_duckdb = Reader(dataset.root).ask(TOTALS).to_pylist()
    second_hour = datetime.fromtimestamp(MIDNIGHT_S + 3_700, UTC)
    since = Reader(dataset.root, since=second_hour).ask(TOTALS).to_pylist()
    within = Reader(dataset.root, since=second_hour, until=second_hour + timedelta(hours=1))

    first, second = sorted({row["client_instance_id"] for row in by_spark})
    expected = [
        (0, first, SENT, 7.0, 7.0),
        (1, first, SENT, 3.0, 10.0),
        (1, second, SENT, 100.0, 100.0),
        (1, second, ERRORS, 0.0, 0.0),
        (25, first, SENT, 0.5, 10.5),
    ]
    assert sorted(total(row) for row in by_spark) == sorted(expected)
    assert sorted(total(row) for row in by_duckdb) == sorted(expected)
    begun = [(1, first, SENT, 3.0, 3.0), *expected[2:4], (25, first, SENT, 0.5, 3.5)]
    assert sorted(total(row) for row in since) == sorted(begun)
    assert sorted(total(row) for row in within.ask(TOTALS).to_pylist()) == sorted(begun[:3])


CONSUMED = "org.apache.kafka.consumer.fetch.manager.bytes.consumed.total"


def consumed(at_s: float, of_topics: dict[str, float], client: int = 1) -> Told:
    """The push of a consumer: the delta of all its topics, and that of each."""
    every = Value(CONSUMED, sum(of_topics.values()), (), "delta", at_s - 30)
    each = [
        Value(CONSUMED, value, (("topic", name),), "delta", at_s - 30) for name, value in of_topics.items()
    ]
    return Told(at_s, (every, *each), client)


def test_a_metric_on_two_levels_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    from odradek_spark.jobs.rollup import run_rollup
    from odradek_spark.views import register_views
    from odradek_tables.query.questions import Window, top
    from odradek_tables.query.reader import Reader

    dataset = Dataset(str(tmp_path / "dataset"))
    unlabeled = counted(Told(50, client=2), 7.0, 20, name=CONSUMED)  # a client with one level
    pushes = [consumed(30, {"a": 10.0, "b": 5.0}), unlabeled, consumed(60, {"a": 1.0})]
    ingest(dataset, [*pushes, counted(Told(70), 4.0, 40)], 0)
    run_rollup(spark, dataset.root, ROLLUP_1H)
    register_views(spark, dataset.root)
    by_name = "SELECT name, sum(step) AS total FROM v_totals GROUP BY name ORDER BY name"
    by_topic = f"SELECT topic, sum(step) AS total FROM v_totals WHERE name = '{CONSUMED}' GROUP BY topic"

    reader = Reader(dataset.root)
    sums = [
        {row["name"]: row["total"] for row in rows}
        for rows in (spark.sql(by_name).collect(), reader.ask(by_name).to_pylist())
    ]
    topics = {row["topic"]: row["total"] for row in reader.ask(by_topic).to_pylist()}
    by_client = top(reader, CONSUMED, Window(), "client_id", "sum").to_pylist()
    top_topics = top(reader, CONSUMED, Window(), "topic", "sum").to_pylist()

    assert sums == [{CONSUMED: 23.0, SENT: 4.0}] * 2
    assert topics == {"a": 11.0, "b": 5.0, None: 7.0}
    assert [(row["client_id"], row["value"]) for row in by_client] == [("app", 23.0)]
    assert [(row["topic"], row["value"]) for row in top_topics] == [("a", 11.0), ("b", 5.0)]


def total(row: Any) -> tuple[int, str, str, float, float]:
    """A row with its bucket in hours after midnight; the session's times are UTC."""
    hour = (row["bucket"].replace(tzinfo=UTC).timestamp() - MIDNIGHT_S) // 3600
    return int(hour), row["client_instance_id"], row["name"], row["step"], row["cumulative"]
