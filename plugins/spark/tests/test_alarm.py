"""From a push to an anomaly: the default rules on a simulated incident, silences, ratios and hysteresis."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from telemetry_rows import LATENCY, MIDNIGHT_S, Told, counted, gauge, ingest

from odradek.findings.troubles import PRODUCER, SILENCE
from odradek.plugin import LAG_SOURCE
from odradek_spark.jobs.rules import Op, Rule, default_rules
from odradek_tables.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek_spark.jobs.episodes import Detected

pytestmark = pytest.mark.spark
THROTTLED = PRODUCER + "produce.throttle.time.avg"
SILENCES = [each for each in default_rules() if each.metric == SILENCE]
SENDS, RETRIES = PRODUCER + "record.send.total", PRODUCER + "record.retry.total"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(MIDNIGHT_S + seconds, UTC)


def detected(
    spark: SparkSession, dataset: Dataset, *rules: Rule, at: datetime | None = None
) -> Detected | None:
    from odradek_spark.jobs.episodes import run_detect

    return run_detect(spark, dataset.root, rules or default_rules(), at)


def told(found: Detected | None) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """``(rule, client id)`` of what was opened, and ``(rule, reason)`` of what was closed."""
    assert found is not None
    opened = sorted((each["rule"], each["client_id"]) for each in found.opened)
    return opened, sorted((each["rule"], each["reason"]) for each in found.closed)


def test_an_incident_is_found_within_two_batches(spark: SparkSession, dataset: Dataset) -> None:
    fine = [gauge(Told(t + 1, client=2, client_id="fine"), 0.0, THROTTLED) for t in range(0, 450, 30)]
    orders = Told(0, client_id="orders", resource=(("client_rack", "rack-1"), ("group_id", "readers")))
    bad = [gauge(replace(orders, at_s=t), 0.0 if t == 0 else 40.0, THROTTLED) for t in range(0, 450, 30)]
    pushes = [push for pair in zip(bad, fine, strict=True) for push in pair]

    end = ingest(dataset, pushes[:10], 0)
    quiet = detected(spark, dataset)
    end = ingest(dataset, pushes[10:], end)
    loud = detected(spark, dataset)

    assert told(quiet) == ([], [])
    assert told(loud) == ([("throttled-produce", "orders")], [])
    assert loud is not None
    (row,) = loud.opened
    assert (row["client_address"], row["software_name"]) == ("127.0.0.1", "apache-kafka-java")
    assert row["principal"]
    assert (row["client_rack"], row["group_id"]) == ("rack-1", "readers")
    ended = detected(spark, dataset, at=at(450) + timedelta(minutes=30))  # nobody pushes
    assert told(ended)[1] == [("throttled-produce", "no-pushes")]


def test_an_episode_goes_on_until_the_clearing_threshold(spark: SparkSession, dataset: Dataset) -> None:
    rule = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=100.0, clear=50.0, for_s=60.0)
    values = [101, 60, 60, 60, 60, 101, 101, 101, 101, 60, 60, 49]
    end = ingest(dataset, [gauge(Told(30.0 * n), value) for n, value in enumerate(values[:5])], 0)
    early = detected(spark, dataset, rule)
    ingest(dataset, [gauge(Told(30.0 * n), value) for n, value in enumerate(values) if n >= 5], end)

    late = detected(spark, dataset, rule)

    assert told(early) == ([], [])  # only one sample was beyond the threshold
    assert told(late) == ([("slow", "app")], [("slow", "recovered")])
    assert late is not None
    (row,) = late.opened
    assert (row["started_ts"], row["last_ts"], row["samples"]) == (at(120), at(300), 6)


def test_increases_over_a_window_are_compared_as_a_ratio(spark: SparkSession, dataset: Dataset) -> None:
    rule = Rule(id="retries", metric=RETRIES, op=Op.ABOVE, threshold=0.1, per=SENDS, over_s=60.0, for_s=0.0)

    def push(n: int, retries: float, client: int, kind: str) -> Told:
        begin = 30.0 * (n - 1)
        sends = 100.0 if kind == "delta" else 100.0 * n
        told = Told(30.0 * n, client=client, client_id=f"{kind}-{client}")
        return counted(counted(told, sends, begin, kind, SENDS), retries, begin, kind, RETRIES)

    pushes = [
        push(n, retries, client, kind)
        for n in range(1, 5)
        for client, kind, retries in (
            (1, "delta", 30.0 if n == 3 else 0.0),
            (2, "cumulative", 30.0 if n >= 3 else 0.0),
            (3, "delta", 12.0 if n == 3 else 0.0),  # 12 of 100, but 12 of 200 in a minute
        )
    ]
    ingest(dataset, pushes, 0)

    found = detected(spark, dataset, rule)

    assert told(found)[0] == [("retries", "cumulative-2"), ("retries", "delta-1")]
    assert found is not None
    assert {each["worst"] for each in found.opened} == {0.15}


def test_a_client_that_stops_without_a_goodbye_is_silent(spark: SparkSession, dataset: Dataset) -> None:
    def alive(*times: float) -> list[Told]:
        return [gauge(Told(t, client=9, client_id="alive"), 1.0) for t in times]

    last = [
        gauge(Told(0, client=1, client_id="lost"), 1.0),
        gauge(Told(0, client=2, client_id="left", terminating=True), 1.0),
        gauge(Told(0, client=3, client_id="waits"), 600.0, THROTTLED),
        gauge(Told(0, client=4, client_id="restarted"), 1.0),
        gauge(Told(20, client=5, client_id="restarted"), 1.0),
        gauge(Told(0, client=6, client_id="a group", source=LAG_SOURCE), 1.0),
    ]
    again = [gauge(Told(t, client=5, client_id="restarted"), 1.0) for t in range(50, 200, 30)]
    end = ingest(dataset, [*last, *alive(*range(1, 120, 30))], 0)
    early = detected(spark, dataset)
    end = ingest(dataset, [*alive(121, 151, 181), *again], end)
    late = detected(spark, dataset)
    ingest(dataset, [gauge(Told(190, client=1, client_id="lost"), 1.0), *alive(211)], end)
    back = detected(spark, dataset)

    assert told(early) == ([], [])
    assert told(late) == ([("silent", "lost")], [])
    assert told(back) == ([], [("silent", "recovered")])


def test_a_host_that_was_down_makes_no_client_silent(spark: SparkSession, dataset: Dataset) -> None:
    clients = [Told(0, client=n, client_id=f"c{n}") for n in range(1, 6)]
    end = ingest(dataset, [gauge(replace(each, at_s=t), 1.0) for t in (0, 30) for each in clients], 0)
    detected(spark, dataset, *SILENCES)
    ingest(dataset, [gauge(replace(clients[0], at_s=630), 1.0)], end)

    assert told(detected(spark, dataset, *SILENCES)) == ([], [])


def test_a_throttled_client_may_be_silent_for_longer(spark: SparkSession, dataset: Dataset) -> None:
    rule = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=100.0, for_s=180.0)
    times = (0.0, 100.0, 200.0)
    waiting = [gauge(gauge(Told(t, client_id="waits"), 250.0), 600.0, THROTTLED) for t in times]
    other = [gauge(Told(t + 1, client=2, client_id="quick"), 250.0) for t in times]
    ingest(dataset, [push for pair in zip(waiting, other, strict=True) for push in pair], 0)

    assert told(detected(spark, dataset, rule))[0] == [("slow", "waits")]


def test_what_a_host_has_observed_of_a_client_is_told_once(spark: SparkSession, dataset: Dataset) -> None:
    slow = PRODUCER + "node.request.latency.max"
    own = [gauge(Told(t), 9_000.0, slow, node_id="node-1") for t in range(0, 420, 30)]
    seen = [replace(each, client=2, observed=True) for each in own if each.at_s < 120]
    other = [gauge(Told(t, client=3, client_id="other"), 1.0) for t in range(0, 420, 30)]
    ingest(dataset, sorted([*own, *seen, *other], key=lambda each: each.at_s), 0)

    found = detected(spark, dataset)

    assert told(found)[0] == [("slow-produce-requests", "app")]
