from __future__ import annotations

import pytest

from odradek.metrics import registry
from odradek.metrics.avg import Avg
from odradek.metrics.registry import MeasuredMetric, Metrics
from odradek.metrics.sensor import MetricName
from odradek.metrics.windowed_sum import WindowedSum

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def test_a_sensor_is_created_once() -> None:
    metrics = Metrics()

    first = metrics.sensor("s", NOW_MS, expiry_ms=HOUR_MS)

    assert metrics.sensor("s", NOW_MS + 1) is first
    assert metrics.sensor("other", NOW_MS) is not first


def test_only_sensors_idle_for_longer_than_their_time_expire() -> None:
    metrics = Metrics()
    for name in ("idle", "busy", "edge"):
        sensor = metrics.sensor(name, NOW_MS, expiry_ms=HOUR_MS)
        metrics.add(sensor, MetricName(name, "g"), Avg(), NOW_MS)
    metrics.sensor("lasting", NOW_MS)
    metrics.sensors["busy"].record(1, NOW_MS + 2000)
    metrics.sensors["edge"].record(1, NOW_MS + 1)

    expired = metrics.expire(NOW_MS + HOUR_MS + 1)

    assert expired == 1
    assert list(metrics.sensors) == ["busy", "edge"]
    assert [name.name for name in metrics.metrics] == ["busy", "edge"]
    assert metrics.find("lasting") is not None


def test_a_removed_sensor_is_marked_and_its_name_is_free() -> None:
    metrics = Metrics()
    sensor = metrics.sensor("s", NOW_MS)
    metrics.add(sensor, MetricName("m", "g"), Avg(), NOW_MS)

    metrics.remove("s")
    metrics.remove("s")

    assert sensor.removed
    assert not metrics.add(sensor, MetricName("m", "g"), Avg(), NOW_MS)
    assert metrics.sensor("s", NOW_MS) is not sensor


def test_too_many_names_evict_idle_sensors() -> None:
    metrics = Metrics(max_sensors=100)
    busy = metrics.sensor("busy", NOW_MS, expiry_ms=HOUR_MS)

    for number in range(10_000):
        name = f"client-{number}"
        sensor = metrics.sensor(name, NOW_MS + number, expiry_ms=HOUR_MS)
        metrics.add(sensor, MetricName(name, "g"), Avg(), NOW_MS + number)
        busy.record(1, NOW_MS + number)

    assert len(metrics.sensors) == 100
    assert len(metrics.metrics) == 99
    assert metrics.find("busy") is busy


def test_evicted_sensors_leave_nothing_behind() -> None:
    metrics = Metrics(max_sensors=1000)

    for number in range(10_000):
        metrics.sensor(str(number), NOW_MS + number, expiry_ms=HOUR_MS)

    assert len(metrics.sensors) == len(metrics.ring) == 1000


def test_long_names_evict_idle_sensors_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_NAME_CHARS", 1000)
    metrics = Metrics()

    for number in range(100):
        metrics.sensor(f"{number:0100}", NOW_MS + number, expiry_ms=HOUR_MS)
    metrics.sensor("x" * 2000, NOW_MS, expiry_ms=HOUR_MS)
    metrics.sensor("x" * 100, NOW_MS, expiry_ms=HOUR_MS)

    assert list(metrics.sensors) == ["x" * 100]
    assert metrics.name_chars == 100


def test_a_sweep_can_be_done_in_parts() -> None:
    metrics = Metrics()
    for number in range(10):
        metrics.sensor(str(number), NOW_MS + (number % 2) * HOUR_MS, expiry_ms=HOUR_MS)

    expired = [metrics.expire(NOW_MS + HOUR_MS + 1, 4) for _ in range(3)]

    assert sum(expired) == 5
    assert max(expired) <= 4
    assert [name for name in metrics.sensors if int(name) % 2 == 0] == []


def test_permanent_sensors_are_not_counted() -> None:
    metrics = Metrics(max_sensors=1)
    metrics.sensor("a", NOW_MS)
    metrics.sensor("b", NOW_MS)

    metrics.sensor("c", NOW_MS, expiry_ms=HOUR_MS)

    assert len(metrics.lasting) == 2
    assert list(metrics.sensors) == ["c"]


def test_all_metrics_are_measured_under_their_names() -> None:
    metrics = Metrics()
    sensor = metrics.sensor("s", NOW_MS)
    for kind in (WindowedSum, Avg):
        name = MetricName.of(kind.__name__, "g", {"user": "u"})
        metrics.add(sensor, name, kind(), NOW_MS)
    sensor.record(4, NOW_MS)
    sensor.record(8, NOW_MS)

    rows = list(metrics.measured(NOW_MS))

    tags = (("user", "u"),)
    assert rows == [
        MeasuredMetric(MetricName("WindowedSum", "g", tags), 12),
        MeasuredMetric(MetricName("Avg", "g", tags), 6),
    ]
