"""The rules of the matrix are the shipped ones, with every time divided."""

from __future__ import annotations

import re

import pytest
from contrib.grafana.promql import INTERVAL_S
from contrib.grafana.rules import alert_rules

from matrix.hurry import DURATION, FACTOR, hurried


@pytest.mark.parametrize(
    ("rule", "shorter"),
    [
        ("increase(x[10m]) > 3", "increase(x[60s]) > 3"),
        ("max_over_time(y[5m:1m])", "max_over_time(y[30s:6s])"),
        ("z offset 1h", "z offset 360s"),
        ("for: 3m\n", "for: 18s\n"),
        ("rate(x[5s])", "rate(x[1s])"),
        (
            "increase(io_odradek_observed_client_lost_total[2m])\n",
            "increase(io_odradek_observed_client_lost_total[2m])\n",
        ),
    ],
)
def test_a_time_is_divided(rule: str, shorter: str) -> None:
    assert hurried(rule) == shorter


def test_nothing_else_of_the_shipped_rules_changes() -> None:
    shipped = alert_rules(INTERVAL_S)

    times = DURATION.findall(shipped)

    assert FACTOR > 1
    assert len(times) == len(re.findall(r"\[\d+\w|:\d+\w\]|for: |offset \d", shipped))
    assert DURATION.sub("", hurried(shipped)) == DURATION.sub("", shipped)
