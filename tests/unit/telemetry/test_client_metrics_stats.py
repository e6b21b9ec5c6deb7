from __future__ import annotations

import math
import random

from conformance.telemetry_broker import TelemetryBroker
from odradek.metrics.avg import Avg
from odradek.metrics.meter import Meter
from odradek.metrics.metric import DECLARED
from odradek.metrics.rate import Rate
from odradek.telemetry.client_metrics_stats import ClientMetricsStats, ExportTimes
from odradek.wire.uuid_text import uuid_text
from support.max_stat import Max

START_MS = 1_700_000_000_000
ID = bytes(range(16))


def same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def test_export_times_equal_three_statistics() -> None:
    together, meter, avg, most = ExportTimes(), Meter(), Avg(), Max()
    chance = random.Random(3)
    now_ms = START_MS
    differences = []

    for _ in range(300):
        now_ms += chance.choice((0, 5, 1000, 29_000, 30_000, 61_000))
        if chance.random() < 0.7:
            value = float(chance.randrange(100))
            together.record(value, now_ms)
            meter.record(now_ms)
            avg.record(value, now_ms)
            most.record(value, now_ms)
        found = (Rate(together).measure(now_ms), together.average_ms(now_ms), together.max_ms(now_ms))
        expected = (meter.rate(now_ms), avg.measure(now_ms), most.measure(now_ms))
        if not all(map(same, found, expected)):
            differences.append((found, expected))

    assert (differences, together.total) == ([], meter.total)


def test_all_metrics_have_kafkas_names() -> None:
    stats = ClientMetricsStats()
    stats.register(ID)

    rows = list(stats.rows(1, START_MS))

    prefix = "kafka.server.client.metrics."
    assert {(row.name.removeprefix(prefix).replace(".", "-"), DECLARED[row.name].kind) for row in rows} == {
        ("instance-count", "gauge"),
        ("unknown-subscription-request-rate", "gauge"),
        ("unknown-subscription-request-count", "counter"),
        ("throttle-rate", "gauge"),
        ("throttle-count", "counter"),
        ("plugin-export-rate", "gauge"),
        ("plugin-export-count", "counter"),
        ("plugin-export-time-avg", "gauge"),
        ("plugin-export-time-max", "gauge"),
        ("plugin-error-rate", "gauge"),
        ("plugin-error-count", "counter"),
    }
    assert [row.attributes for row in rows] == [{}] * 3 + [{"client_instance_id": uuid_text(ID)}] * 8


def test_metrics_are_registered_once() -> None:
    stats = ClientMetricsStats()
    first = stats.register(ID)
    first.record_throttle(START_MS)

    registered = list(stats.rows(1, START_MS))

    second = stats.register(ID)

    assert second is first
    assert list(stats.rows(1, START_MS)) == registered


def test_recording_to_unregistered_metrics_is_harmless() -> None:
    stats = ClientMetricsStats()
    gone = stats.register(ID)
    stats.unregister(ID)

    gone.record_error(START_MS)

    assert len(list(stats.rows(0, START_MS))) == 3


def test_export_time_is_measured_in_milliseconds() -> None:
    broker = TelemetryBroker()

    class Waiting:
        def export_metrics(self, context: object, payload: object) -> None:
            broker.clock.advance(40)

    broker.plugin.add_receiver("waiting", Waiting())
    told = broker.get()

    broker.push(told)

    assert broker.export_times(told) == (40.0, 40.0)
    assert broker.metric("plugin-export-rate", told) == 1 / 30
