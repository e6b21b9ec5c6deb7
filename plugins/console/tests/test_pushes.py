"""Pushes are read again and decoded."""

from __future__ import annotations

import gzip

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek_console.engine.client_entry import LATEST_PUSHES
from odradek_console.reading.push_points import MOST_POINTS, decoded_push
from odradek_console.view import View
from support.delta_clients import A, B, cumulative, d, gauge, metrics_data, point
from support.watched_clients import WatchedClients, level, ms, total


def pushed(*metrics: Metric, **labels: str) -> bytes:
    return metrics_data(metrics, labels).SerializeToString()


def test_types_temporality_and_labels() -> None:
    found = decoded_push(pushed(d(5, 0, 60, topic="orders"), cumulative(7.5, 0, 60), gauge(0.25), app="x"))

    assert found.resource == (("app", "x"),)
    assert [(each.type, each.temporality, each.labels, each.value, each.text) for each in found.points] == [
        ("sum", "delta", (("topic", "orders"),), 5, "5"),
        ("sum", "cumulative", (), 7.5, "7.5"),
        ("gauge", "", (), 0.25, "0.25"),
    ]
    assert [each.start_ms for each in found.points] == [ms(0), ms(0), 0]
    assert {each.time_ms for each in found.points} == {ms(60)}


def test_a_histogram() -> None:
    metric = Metric(name="h")
    metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
    metric.histogram.data_points.add(
        count=6, sum=31.5, max=20, explicit_bounds=[1, 10], bucket_counts=[2, 3, 1], time_unix_nano=1
    )

    (row,) = decoded_push(pushed(metric)).points

    assert (row.type, row.temporality, row.value) == ("histogram", "delta", None)
    assert row.text == "count 6, sum 31.5, max 20, ≤ 1: 2, ≤ 10: 3, more: 1"


def test_defects_of_libraries_are_visible() -> None:
    found = decoded_push(pushed(Metric(name="null"), gauge(), level("x", 1, 60)))
    empty = gauge()
    empty.gauge.data_points.append(point(None, None, 60))

    assert [(each.metric, each.text) for each in found.points] == [
        ("null", "none"),
        ("org.apache.kafka.x", "1"),
    ]
    assert decoded_push(pushed(empty)).points[0].text == "no value"


def test_a_push_that_is_not_otlp() -> None:
    found = decoded_push(gzip.compress(b"x"))

    assert found.points == ()
    assert found.problem.startswith("It is not OTLP MetricsData. It begins with 1f 8b")


def test_an_empty_push() -> None:
    assert decoded_push(b"") == decoded_push(pushed())


def test_points_have_a_bound() -> None:
    found = decoded_push(pushed(gauge(*range(MOST_POINTS + 5))))

    assert (len(found.points), found.left_out) == (MOST_POINTS, 5)


@pytest.fixture
def view() -> View:
    return View(lambda: pytest.fail("no cluster"), now_ms=lambda: ms(60))


def test_the_latest_places_are_kept(view: View) -> None:
    clients = WatchedClients(view.fleet)
    for second in range(LATEST_PUSHES + 5):
        for instance in (A, B):
            clients.push(second, total("x", 1, second, 0), instance=instance)

    found = view.places("QUFBQUFBQUFBQUFBQUFBQQ")

    assert found is not None
    assert found.offsets.tolist() == [2 * each for each in range(5, LATEST_PUSHES + 5)]
    assert view.places("nobody") is None


def test_places_in_another_topic_replace_those_before(view: View) -> None:
    clients = WatchedClients(view.fleet)
    clients.push(1, total("x", 1, 1, 0))
    record = clients.record(2, total("x", 1, 2, 1))
    assert record.position is not None
    record.position = record.position._replace(topic_id="again", offset=0)
    view.fleet.add(record)

    found = view.places("orders-1")

    assert found is not None
    assert (found.topic_id, found.offsets.tolist()) == ("again", [0])
