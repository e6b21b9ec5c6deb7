"""Metrics that this project writes, read by OpenTelemetry's messages."""

from __future__ import annotations

import pytest

from odradek.otlp.metrics_writer import Window
from odradek.testing.data_points import data_points


@pytest.mark.parametrize("value", [0, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 63) - 1, 1 << 70, 0.5])
def test_a_sum_of_any_size_is_written(value: float) -> None:
    """Hostile clients claim offsets whose differences, and their sums, are beyond 64 bits."""
    window = Window(0, 1)

    window.sum("read", "{record}", {(("topic", "orders"),): value})

    (point,) = data_points(window.payload((), "scope"))
    assert point.value == pytest.approx(value)
