"""A gateway measures lag while it leads: it ends its series when it does not, and writes no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.client.admin import AdminClient
from odradek.lag.lag_settings import GatewayLagSettings, LagSettings, Measured
from odradek.plugin.protocols import TelemetryRecord
from odradek.programs.config import HostConfig
from odradek.programs.gateway_lag import GatewayLag
from odradek.telemetry.record_source import RecordSource
from odradek.testing import RunningHost
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import offload_inline
from support.broker import make_broker


class Leadership:
    """What the test says about who leads."""

    def __init__(self) -> None:
        self.leads = False
        self.cluster_id = "c"
        self.running = False

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False


class Scene:
    """The part of a gateway in front of a cluster; time passes when the test says so."""

    def __init__(self, cluster: RunningHost) -> None:
        broker = make_broker()
        self.clock = cast(MockClock, broker.clock)
        self.records: list[TelemetryRecord] = []
        self.leadership = Leadership()
        self.clients: list[AdminClient] = []
        self.bootstrap = cluster.bootstrap
        threads = SimpleNamespace(offload=offload_inline)
        spine: Any = SimpleNamespace(clock=self.clock, timer=self.clock.timer, new_threads=lambda: threads)
        source = RecordSource("lag", broker.telemetry, self.keep)
        config = HostConfig(
            lag=LagSettings(export_interval_ms=10_000),
            gateway_lag=GatewayLagSettings(measured=Measured.GROUPS),
        )
        self.part = GatewayLag(config, spine, source, self.connect, cast(Any, self.leadership))
        self.part.start()

    def connect(self) -> AdminClient:
        self.clients.append(AdminClient(self.bootstrap, timeout_s=5))
        return self.clients[-1]

    def keep(self, record: TelemetryRecord) -> bool:
        self.records.append(record)
        return True

    def written(self) -> tuple[int, int]:
        """Points with a value and ends of series since the last call."""
        points = [
            point
            for record in self.records
            for entry in MetricsData.FromString(record.payload.data).resource_metrics
            for metric in entry.scope_metrics[0].metrics
            for point in metric.gauge.data_points
        ]
        self.records.clear()
        ended = sum(bool(point.flags) for point in points)
        return len(points) - ended, ended

    def rows(self) -> dict[str, float]:
        return {row.name: row.value for row in self.part.metric_rows()}

    @property
    def open_connections(self) -> int:
        return sum(len(each.cluster.connections) for each in self.clients)


@pytest.fixture
def scene(odradek_hosts: Callable[..., RunningHost]) -> Iterator[Scene]:
    cluster = odradek_hosts(telemetry_lag="none")
    cluster.topics.create("orders")
    cluster.topics.produce("orders", b"v")
    cluster.groups.commit("billing", "orders", {0: 0})
    scene = Scene(cluster)
    yield scene
    for each in scene.clients:
        each.close()


def test_nothing_is_asked_while_another_one_leads(scene: Scene) -> None:
    scene.clock.advance(60_000)

    assert scene.leadership.running
    assert scene.written() == (0, 0)
    assert scene.clients == []
    assert scene.rows()["odradek.lag.active"] == 0


def test_the_first_round_comes_as_soon_as_it_leads(scene: Scene) -> None:
    scene.leadership.leads = True
    scene.clock.advance(2_000)
    values, ended = scene.written()

    assert values > 10
    assert ended == 0
    assert scene.rows()["odradek.lag.active"] == 1
    assert scene.rows()["odradek.lag.series"] == values


def test_all_series_end_when_another_one_leads(scene: Scene) -> None:
    scene.leadership.leads = True
    scene.clock.advance(2_000)
    values, _ = scene.written()
    scene.leadership.leads = False
    scene.clock.advance(2_000)

    assert scene.written() == (0, values)
    assert scene.open_connections == 0
    scene.clock.advance(60_000)
    assert scene.written() == (0, 0)

    scene.leadership.leads = True
    scene.clock.advance(2_000)
    assert scene.written() == (values, 0)


def test_a_leader_that_was_stopped_for_a_while_writes_nothing_before_it_looks(scene: Scene) -> None:
    """The round that is due runs before the leadership is looked at."""
    scene.leadership.leads = True
    scene.clock.advance(2_000)
    scene.written()
    scene.leadership.leads = False
    rounds = scene.part.rounds
    assert rounds is not None
    rounds.begin_round()
    scene.clock.advance(500)

    assert scene.written()[0] == 0


def test_after_the_stop_it_writes_nothing_and_has_left(scene: Scene) -> None:
    scene.leadership.leads = True
    scene.clock.advance(2_000)
    scene.written()
    asyncio.run(scene.part.stop())
    scene.clock.advance(60_000)

    assert not scene.leadership.running
    assert scene.written() == (0, 0)
    assert scene.open_connections == 0
