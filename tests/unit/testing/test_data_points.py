"""Payloads as data points."""

from __future__ import annotations

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from odradek.testing.data_points import data_points

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


def make_payload() -> MetricsData:
    """A sum, a gauge and a histogram of one client in a rack."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.add(key="client_rack").value.string_value = "rack-1"
    metrics = resource.scope_metrics.add().metrics
    total = metrics.add(name="sends", unit="1")
    total.sum.aggregation_temporality, total.sum.is_monotonic = DELTA, True
    point = total.sum.data_points.add(as_int=7, time_unix_nano=5_000_000)
    point.attributes.add(key="partition").value.int_value = 3
    metrics.add(name="load").gauge.data_points.add(as_double=0.5)
    metrics.add(name="times").histogram.data_points.add(sum=12.5, count=2)
    metrics.add(name="nothing")
    return data


def test_each_point_has_its_value_and_its_kind() -> None:
    points = list(data_points(make_payload().SerializeToString()))

    assert [(point.metric, point.kind, point.value) for point in points] == [
        ("sends", "sum", 7),
        ("load", "gauge", 0.5),
        ("times", "histogram", 12.5),
    ]


def test_labels_are_those_of_the_client_and_of_the_point() -> None:
    point = next(data_points(make_payload().SerializeToString()))

    assert point.labels == {"client_rack": "rack-1", "partition": 3}
    assert (point.resource, point.attributes) == ({"client_rack": "rack-1"}, {"partition": 3})


def test_a_sum_knows_whether_it_is_a_delta() -> None:
    total, gauge, _ = data_points(make_payload().SerializeToString())

    assert (total.delta, total.monotonic, total.unit, total.time_ms) == (True, True, "1", 5)
    assert (gauge.delta, gauge.monotonic) == (False, False)


def test_lists_and_maps_become_plain_values() -> None:
    data = MetricsData()
    value = data.resource_metrics.add().resource.attributes.add(key="tags").value
    value.array_value.values.add(string_value="a")
    value.array_value.values.add().kvlist_value.values.add(key="b").value.bool_value = True
    data.resource_metrics[0].scope_metrics.add().metrics.add(name="x").gauge.data_points.add(as_int=1)

    (point,) = data_points(data.SerializeToString())

    assert point.labels == {"tags": ["a", {"b": True}]}
