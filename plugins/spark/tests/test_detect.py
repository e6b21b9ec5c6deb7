"""Anomalies: a violation that lasts longer than its rule allows is opened once and closed once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from telemetry_rows import LATENCY, MIDNIGHT_S, SENT, THROTTLE, Told, counted, gauge, ingest

from odradek.findings.troubles import SILENCE
from odradek_spark.jobs.rules import Aggregate, Op, Rule
from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek_spark.jobs.episodes import Detected

pytestmark = pytest.mark.spark
SLOW = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=100.0)
SILENT = Rule(id="silent", metric=SILENCE, op=Op.ABOVE, threshold=3.0)
MANY = [replace(SLOW, id=f"slow-{number}", threshold=float(number)) for number in range(20)]
BUSY = Rule(id="busy", metric=SENT, op=Op.AT_LEAST, threshold=5.0)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def detected(spark: SparkSession, dataset: Dataset, *rules: Rule) -> Detected:
    from odradek_spark.jobs.episodes import run_detect

    found = run_detect(spark, dataset.root, rules or (SLOW,))
    assert found is not None
    return found


def episodes(spark: SparkSession, dataset: Dataset) -> list[tuple[Any, ...]]:
    """``(rule, instance, started, fired, last, state, reason)``, times in seconds."""
    found = load_dataset(spark, dataset.root, "anomalies").selectExpr(
        "rule",
        "client_id",
        f"unix_seconds(started_ts) - {MIDNIGHT_S}",
        f"unix_seconds(fired_ts) - {MIDNIGHT_S}",
        f"unix_seconds(last_ts) - {MIDNIGHT_S}",
        "state",
        "reason",
    )
    return sorted((tuple(row) for row in found.collect()), key=repr)


def slow(*times: float, told: Told | None = None, value: float = 250.0) -> list[Told]:
    """Pushes with a latency above the rule's."""
    return [gauge(replace(told or Told(0), at_s=at_s), value) for at_s in times]


def steps(*intervals: tuple[float, float]) -> list[Told]:
    """Pushes of a sum above the rule's, each step with its start time."""
    return [counted(Told(end), 7.0, begin) for begin, end in intervals]


def busy_until(end_s: int) -> list[Told]:
    """The pushes of a client of its own, above the rule's from 10 seconds on."""
    intervals = ((10.0, 70.0), (70.0, 130.0), (130.0, float(end_s)))
    return [replace(each, client=end_s, client_id=f"until {end_s}") for each in steps(*intervals)]


def test_a_rule_fires_after_180_seconds(spark: SparkSession, dataset: Dataset) -> None:
    ingest(dataset, [push for end_s in (189, 190, 191) for push in busy_until(end_s)], 0)

    found = detected(spark, dataset, BUSY)

    assert ([each["client_id"] for each in found.opened], found.going_on) == (["until 191"], 1)


def test_a_gauge_covers_the_time_since_the_previous_sample(spark: SparkSession, dataset: Dataset) -> None:
    fine = gauge(Told(0), 1.0)
    ingest(dataset, [fine, *slow(30, 60, 90, 120, 150, 180, 181)], 0)

    found = detected(spark, dataset)

    (row,) = found.opened
    assert (row["worst"], row["last"], row["samples"], row["threshold"], row["op"]) == (250, 250, 7, 100, ">")
    assert episodes(spark, dataset) == [("slow", "app", 0, 181, 181, "open", None)]


def test_a_silence_ends_an_episode_and_the_next_starts_again(spark: SparkSession, dataset: Dataset) -> None:
    ingest(dataset, slow(0, 30, 60, 90, 120, 150, 230, 260, 290, 320), 0)

    found = detected(spark, dataset)

    assert (found.opened, found.going_on) == ([], 0)  # 150 s, then 90 s: more than 75 s between them


def test_a_short_silence_ends_no_episode(spark: SparkSession, dataset: Dataset) -> None:
    ingest(dataset, slow(0, 30, 60, 90, 120, 150, 220, 250), 0)

    found = detected(spark, dataset)

    assert len(found.opened) == 1


def test_one_good_sample_ends_an_episode(spark: SparkSession, dataset: Dataset) -> None:
    ingest(dataset, [*slow(0, 30, 60, 90, 120), gauge(Told(150), 3.0), *slow(180, 210, 240, 270, 300)], 0)

    assert detected(spark, dataset).opened == []


def test_an_episode_continues_over_runs_and_is_closed_once(spark: SparkSession, dataset: Dataset) -> None:
    end = ingest(dataset, slow(0, 30, 60, 90, 120, 150, 180, 210), 0)
    first = detected(spark, dataset)
    end = ingest(dataset, slow(240, 270, 300, told=Told(0), value=900.0), end)
    second = detected(spark, dataset)
    end = ingest(dataset, [gauge(Told(330), 3.0)], end)
    third = detected(spark, dataset)
    ingest(dataset, [gauge(Told(360), 3.0)], end)

    fourth = detected(spark, dataset)

    outcomes = [
        (len(each.opened), len(each.closed), each.going_on) for each in (first, second, third, fourth)
    ]
    assert outcomes == [(1, 0, 1), (0, 0, 1), (0, 1, 0), (0, 0, 0)]
    assert third.closed[0]["worst"] == 900.0
    assert third.closed[0]["samples"] == 11
    assert episodes(spark, dataset) == [("slow", "app", 0, 210, 300, "closed", "recovered")]


def test_pushes_of_other_clients_close_the_episode_of_a_silent_one(
    spark: SparkSession, dataset: Dataset
) -> None:
    end = ingest(dataset, slow(0, 30, 60, 90, 120, 150, 180, 210), 0)
    detected(spark, dataset)
    end = ingest(dataset, [gauge(Told(280, client=2), 1.0)], end)
    early = detected(spark, dataset)
    ingest(dataset, [gauge(Told(290, client=2), 1.0)], end)

    late = detected(spark, dataset)

    assert (early.going_on, late.going_on) == (1, 0)
    assert episodes(spark, dataset) == [("slow", "app", 0, 210, 210, "closed", "silent")]


def test_data_read_again_do_not_fire_again(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.accepted import accepted
    from odradek_spark.jobs.detect import detect

    end = ingest(dataset, [*slow(0, 30, 60, 90, 120, 150, 180, 210, 240), gauge(Told(270), 3.0)], 0)
    detected(spark, dataset)
    ingest(dataset, slow(60, 90, 120, 150, 180, 210, told=Told(0), value=600.0), end)
    late = detected(spark, dataset)

    known = load_dataset(spark, dataset.root, "anomalies")
    points = accepted(
        load_dataset(spark, dataset.root, "points"), load_dataset(spark, dataset.root, "pushes")
    )
    again = detect(points, [SLOW], known, datetime.fromtimestamp(MIDNIGHT_S + 270, UTC))

    assert (late.opened, late.closed) == ([], [])
    assert again.count() == 0
    assert episodes(spark, dataset) == [("slow", "app", 0, 210, 240, "closed", "recovered")]


def test_clients_labels_and_rules_are_independent(spark: SparkSession, dataset: Dataset) -> None:
    fast = Rule(id="fast", metric=LATENCY, op=Op.BELOW, threshold=10.0, attrs={"topic": "b"})
    times = range(0, 240, 30)
    bad = [gauge(gauge(Told(at_s), 300.0, topic="a"), 5.0, topic="b") for at_s in times]
    good = [gauge(Told(at_s + 1, client=2, client_id="good"), 50.0) for at_s in times]
    ingest(dataset, [push for pair in zip(bad, good, strict=True) for push in pair], 0)

    found = detected(spark, dataset, SLOW, fast)

    assert {(each["rule"], each["attrs"], each["worst"]) for each in found.opened} == {
        ("slow", '{"topic":"a"}', 300.0),
        ("fast", '{"topic":"b"}', 5.0),
    }


def test_a_rule_can_combine_the_series_of_an_instance(spark: SparkSession, dataset: Dataset) -> None:
    total = replace(SLOW, id="total", agg=Aggregate.SUM)
    ingest(
        dataset,
        [gauge(gauge(Told(at_s), 60.0, topic="a"), 60.0, topic="b") for at_s in range(0, 240, 30)],
        0,
    )

    found = detected(spark, dataset, SLOW, total)

    assert [(each["rule"], each["attrs"], each["last"]) for each in found.opened] == [("total", None, 120.0)]


def test_a_wrong_clock_hides_no_anomaly(spark: SparkSession, dataset: Dataset) -> None:
    behind = Told(0, clock_s=-600.0)
    end = ingest(dataset, slow(1000, 1030, 1060, 1090, told=behind), 0)
    detected(spark, dataset)
    ingest(dataset, slow(1120, 1150, 1180, 1210, told=behind), end)

    found = detected(spark, dataset)

    assert (len(found.opened), found.going_on) == (1, 1)


def test_values_that_are_not_numbers_are_no_samples(spark: SparkSession, dataset: Dataset) -> None:
    ingest(dataset, slow(*range(0, 240, 30), value=float("nan")), 0)

    assert detected(spark, dataset).opened == []


def test_an_impossible_throttle_time_hides_no_anomaly(spark: SparkSession, dataset: Dataset) -> None:
    waits_ms = (float("inf"), -float("inf"), 1e300)
    clients = [Told(0, client=number, client_id=f"{wait_ms}") for number, wait_ms in enumerate(waits_ms, 1)]
    told = [
        gauge(each, wait_ms, THROTTLE)
        for client, wait_ms in zip(clients, waits_ms, strict=True)
        for each in slow(*range(0, 240, 30), told=client)
    ]
    ingest(dataset, told, 0)

    found = detected(spark, dataset, SLOW, SILENT).opened

    assert sorted((each["rule"], each["client_id"]) for each in found) == sorted(
        ("slow", each.client_id) for each in clients
    )


def test_more_rules_make_no_larger_plan(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.accepted import accepted
    from odradek_spark.jobs.detect import samples

    ingest(dataset, slow(0, 30), 0)
    points = accepted(
        load_dataset(spark, dataset.root, "points"), load_dataset(spark, dataset.root, "pushes")
    )

    plans = [
        samples(points, rules)._jdf.queryExecution().executedPlan() for rules in ([SLOW], [SLOW, BUSY, *MANY])
    ]

    one, many = (str(each.toString()).count("Exchange") for each in plans)
    assert one == many > 0


def test_a_sample_does_not_cover_time_before_the_previous_one(spark: SparkSession, dataset: Dataset) -> None:
    since_start = [gauge(Told(60), 3.0), *steps((-600.0, 90.0), (-600.0, 120.0))]
    fine = counted(Told(61), 1.0, 0)
    ingest(dataset, [since_start[0], fine, *since_start[1:]], 0)

    found = detected(spark, dataset, BUSY)

    assert (found.opened, found.going_on) == ([], 0)  # at 61 s it was good: 59 s


@pytest.mark.parametrize(("end_s", "fired"), [(190.0, 0), (191.0, 1)])
@pytest.mark.parametrize("clock_s", [-7_200.0, 7_200.0])
def test_a_clock_that_is_hours_off_makes_no_step_longer(
    spark: SparkSession, dataset: Dataset, clock_s: float, end_s: float, fired: int
) -> None:
    told = [replace(each, clock_s=clock_s) for each in steps((10.0, 70.0), (70.0, 130.0), (130.0, end_s))]
    ingest(dataset, told, 0)

    assert len(detected(spark, dataset, BUSY).opened) == fired


def test_an_episode_of_a_removed_rule_is_unchanged(spark: SparkSession, dataset: Dataset) -> None:
    end = ingest(dataset, slow(*range(0, 240, 30)), 0)
    detected(spark, dataset, SLOW)
    end = ingest(dataset, slow(240), end)

    gone = detected(spark, dataset, BUSY)
    ingest(dataset, slow(310), end)
    later = detected(spark, dataset, BUSY)

    (row,) = load_dataset(spark, dataset.root, "anomalies").collect()
    assert (gone.opened, gone.closed, gone.going_on) == ([], [], 1)
    assert (row.op, row.threshold, row.worst) == (">", 100.0, 250.0)
    assert [each["reason"] for each in later.closed] == ["silent"]


def test_pushes_removed_before_detection_cause_no_error(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_expire

    end = ingest(dataset, slow(0, 30), 0)
    detected(spark, dataset)
    end = ingest(dataset, slow(60, 90), end)
    run_expire(dataset.root, datetime.fromtimestamp(MIDNIGHT_S, UTC) + timedelta(days=9))

    nothing = detected(spark, dataset)
    ingest(dataset, slow(*range(864_000, 864_240, 30)), end)

    assert (nothing.opened, nothing.closed) == ([], [])
    assert len(detected(spark, dataset).opened) == 1
