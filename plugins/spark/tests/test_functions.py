"""The functions that a user calls: from DataFrames to DataFrames, without a session or tables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from telemetry_rows import LATENCY, MIDNIGHT_S, TOPIC, Told, Value, gauge

import odradek_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)


def records(spark: SparkSession, told: list[Told]) -> DataFrame:
    """Pushes as a source gives them."""
    rows: list[tuple[Any, ...]] = []
    for offset, each in enumerate(told):
        found = each.record(offset)
        at = datetime.fromtimestamp(found.timestamp_ms / 1000, UTC)
        rows.append((found.key, found.value, TOPIC, 0, offset, at, 0, [*found.headers]))
    return spark.createDataFrame(rows, RECORD)


def told(rows: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.select(*names).collect()), key=repr)


def test_a_rollup_of_records(spark: SparkSession) -> None:
    raw = records(
        spark, [gauge(Told(60.0 * each, client=1 + each % 2), float(each), "m") for each in range(100)]
    )

    rows = odradek_spark.rollup(raw, "1 hour", quantiles=[0.5]).selectExpr(
        "unix_seconds(bucket) - 1790035200 AS at", "date", "n", "sum", "last",
        "hll_sketch_estimate(instances) AS instances", "quantiles[0] AS median",
    )  # fmt: skip

    assert told(rows, "at", "date", "n", "sum", "last", "instances") == [
        (0, "2026-09-22", 60, 1770.0, 59.0, 2),
        (3600, "2026-09-22", 40, 3180.0, 99.0, 2),
    ]
    assert [median for (median,) in told(rows, "median")] == pytest.approx([29.5, 79.5], abs=1.0)


def test_a_rollup_by_other_columns(spark: SparkSession) -> None:
    raw = records(spark, [gauge(Told(10.0, client=each), 1.0, "m") for each in (1, 2)])

    rows = odradek_spark.rollup(odradek_spark.points(raw), "1 day", ["client_instance_id"])

    assert "instances" not in rows.columns
    assert [n for (n,) in told(rows, "n")] == [1, 1]


def test_a_day_is_one_of_utc_in_every_time_zone(spark: SparkSession) -> None:
    raw = records(spark, [gauge(Told(10.0), 1.0, "m")])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        rows = told(odradek_spark.rollup(raw), "date")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")

    assert rows == [("2026-09-22",)]


def test_a_rollup_of_a_stream_has_its_own_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "records")
    pushed = [gauge(Told(600.0 * each, client_id=f"app-{each}"), 1.0, "m") for each in range(12)]
    records(spark, pushed[:9]).coalesce(1).write.parquet(source)
    stream = spark.readStream.schema(RECORD).option("maxFilesPerTrigger", 1).parquet(source)
    hours = odradek_spark.rollup(stream)
    options = {
        "path": str(tmp_path / "tables"),
        "table": "fleet_1h",
        "checkpointLocation": str(tmp_path / "c"),
    }

    for more in (None, pushed[9:]):
        if more is not None:
            records(spark, more).coalesce(1).write.mode("append").parquet(source)
        query = hours.writeStream.format("odradek").options(**options).trigger(availableNow=True).start()
        query.awaitTermination()

    from odradek_spark.load import load_dataset

    rows = load_dataset(spark, str(tmp_path / "tables"), "fleet_1h")
    assert told(rows.groupBy("bucket").agg({"n": "sum"}), "sum(n)") == [(6,)]  # the second hour is not over


def test_silent_clients(spark: SparkSession) -> None:
    pushed = [
        *(gauge(Told(30.0 * each, client=1, client_id="lives"), 1.0) for each in range(8)),
        gauge(Told(30.5, client=2, client_id="silent"), 1.0),
        Told(31.0, client=3, client_id="left", terminating=True),
        gauge(Told(32.0, client=4, client_id="again"), 1.0),
        gauge(Told(200.0, client=5, client_id="again"), 1.0),
    ]
    raw = records(spark, sorted(pushed, key=lambda each: each.at_s))

    assert told(odradek_spark.silent(raw), "client_id", "push_interval_ms") == [("silent", 30_000)]
    assert told(odradek_spark.silent(odradek_spark.pushes(raw), 10.0), "client_id") == []


def test_an_inventory_of_records(spark: SparkSession) -> None:
    raw = records(spark, [Told(10.0, version="1"), Told(40.0, version="2"), Told(70.0, version="2")])

    rows = odradek_spark.inventory(raw)

    assert told(rows, "software_version", "pushes") == [("1", 1), ("2", 2)]


def test_the_lag_of_groups(spark: SparkSession) -> None:
    labels = (("group", "g"), ("partition", "3"), ("topic", "t"))
    values = (Value("odradek.group.lag", 7, labels), Value("odradek.group.lag.time", 1.5, labels))
    raw = records(spark, [Told(10.0, (*values, Value(LATENCY, 1.0)), source="lag")])

    rows = odradek_spark.lag(raw).selectExpr("unix_seconds(ts) AS at", "*")

    assert told(rows, "at", "group", "topic", "partition", "lag", "lag_s", "lost") == [
        (MIDNIGHT_S + 10, "g", "t", 3, 7.0, 1.5, None)
    ]


def test_samples_of_rules(spark: SparkSession) -> None:
    from odradek_spark.jobs.rules import Op, Rule

    raw = records(spark, [gauge(Told(30.0 * each), float(each)) for each in range(3)])
    points = odradek_spark.accepted(odradek_spark.points(raw), odradek_spark.pushes(raw))
    rule = Rule(id="high", metric=LATENCY, op=Op.ABOVE, threshold=1.5)

    assert told(odradek_spark.samples(points, [rule]), "rule", "value", "worse") == [
        ("high", 0.0, False),
        ("high", 1.0, False),
        ("high", 2.0, True),
    ]


def test_tables_are_verified(spark: SparkSession) -> None:
    raw = records(spark, [gauge(Told(10.0), 1.0), gauge(Told(20.0), 2.0)])
    points, pushes = odradek_spark.points(raw), odradek_spark.pushes(raw)
    histograms, dead = odradek_spark.histograms(raw), odradek_spark.dead_letter(raw)

    assert odradek_spark.verify(points, histograms, pushes, dead).count() == 0
    one_lost = odradek_spark.verify(points.where("src_offset = 0"), histograms, pushes, dead)
    assert told(one_lost, "what", "src_offset", "expected", "found") == [("points are missing", 1, 1, 0)]
    twice = odradek_spark.verify(points.union(points), histograms, pushes, dead)
    assert {row[0] for row in told(twice, "what")} == {"there twice"}


def test_repeated_pushes_do_not_count(spark: SparkSession) -> None:
    once = gauge(Told(10.0), 1.0)
    raw = records(spark, [once, Told(12.0, raw=once.payload())])

    counting = odradek_spark.counted(odradek_spark.points(raw), odradek_spark.pushes(raw))

    assert told(counting, "src_offset") == [(0,)]
