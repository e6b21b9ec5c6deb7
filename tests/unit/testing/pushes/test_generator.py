"""Generated payloads."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.testing.pushes import metrics_data
from odradek.testing.pushes.generator import POINTS


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert metrics_data(metrics=3) == metrics_data(metrics=3)


def test_metrics_points_and_labels_have_the_requested_numbers() -> None:
    data = MetricsData.FromString(
        metrics_data(metrics=4, points=3, kinds=tuple(POINTS), point_labels=2, resource_labels=5)
    )

    (entry,) = data.resource_metrics
    metrics = entry.scope_metrics[0].metrics
    kinds = [str(metric.WhichOneof("data")) for metric in metrics]
    assert kinds == ["gauge", "sum", "histogram", "exponential_histogram"]
    for metric, kind in zip(metrics, kinds, strict=True):
        assert [len(point.attributes) for point in getattr(metric, kind).data_points] == [2, 2, 2]
    assert len(entry.resource.attributes) == 5


def test_each_metric_can_have_a_resource_as_in_java() -> None:
    data = MetricsData.FromString(metrics_data(metrics=4, resource_per_metric=True))

    assert [len(entry.scope_metrics[0].metrics) for entry in data.resource_metrics] == [1, 1, 1, 1]


@pytest.mark.parametrize("metrics", [0, 1, 50])
@pytest.mark.parametrize("least_bytes", [0, 1, 10_000, 1_000_000])
def test_a_payload_has_the_requested_size(metrics: int, least_bytes: int) -> None:
    plain, padded = metrics_data(metrics=metrics), metrics_data(metrics=metrics, least_bytes=least_bytes)

    assert max(len(plain), least_bytes) <= len(padded) <= max(len(plain), least_bytes) + 20
    MetricsData.FromString(padded)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of metric 'counter'"):
        metrics_data(kinds=["counter"])
