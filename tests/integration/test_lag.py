"""The lag of a running host's groups: in the telemetry topic with the defaults, and after a crash."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.testing import RunningHost, VirtualClock
from odradek.testing.data_points import DataPoint, data_points
from odradek.topic import decode_record

TELEMETRY = "__client_telemetry"
ROUND_MS = 31_000


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    host = odradek_hosts(telemetry_durability="log", clock=VirtualClock())
    host.topics.create("orders", partitions=2)
    return host


def newest(host: RunningHost, metric: str) -> DataPoint:
    """The last point that was written of a metric."""
    found = [
        point
        for stored in host.topics.records(TELEMETRY)
        if (record := decode_record(stored.key, stored.value, stored.headers)).source == "lag"
        for point in data_points(record.payload.data)
        if point.metric == metric
    ]
    return found[-1]


def test_lag_in_records_and_seconds(host: RunningHost) -> None:
    host.groups.commit("billing", "orders", {0: 0})
    host.clock.advance(ROUND_MS)
    for _ in range(5):
        host.topics.produce("orders", b"v", partition=0)
    for _ in range(10):
        host.clock.advance(ROUND_MS)

    lag, time = newest(host, "odradek.group.lag"), newest(host, "odradek.group.lag.time")

    assert (lag.value, lag.unit, lag.kind) == (5, "{record}", "gauge")
    assert lag.attributes == {"group": "billing", "topic": "orders", "partition": "0"}
    assert lag.resource["cluster.name"] == host.host.broker.cluster_id
    assert time.value == pytest.approx(300, rel=0.1)


def test_after_a_crash_the_age_comes_from_the_log(host: RunningHost) -> None:
    host.groups.commit("billing", "orders", {1: 0})
    host.topics.produce("orders", b"v", partition=1)
    host.clock.advance(600_000)
    host.kill()
    host.restart()
    host.clock.advance(ROUND_MS)

    assert newest(host, "odradek.group.lag").value == 1
    assert newest(host, "odradek.group.lag.time").value == pytest.approx(631, rel=0.1)


def test_no_lag_is_measured_where_it_is_off(odradek_hosts: Callable[..., RunningHost]) -> None:
    host = odradek_hosts(telemetry_durability="log", telemetry_lag="none", clock=VirtualClock())
    host.topics.create("orders")
    host.groups.commit("billing", "orders", {0: 0})
    host.clock.advance(10 * ROUND_MS)

    assert host.topics.records(TELEMETRY) == []
