"""What plugins count with OpenTelemetry's API is at the outlets of the host, under their names."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from odradek.hosting.plugin_manager import HostPluginManager
from odradek.meters import plugin_metrics
from odradek.meters.plugin_metrics import MAX_SERIES, PluginMetrics
from odradek.plugin import Enricher, PluginConfig, hookimpl
from support.hosts import running_host
from support.probes import get, metrics_port

METER = get_meter(f"{__name__}.client")  # as a plugin does it, before there is a host
LOOKUPS = METER.create_counter("lookups", "{lookup}", "Questions to the CMDB")
OPEN = METER.create_up_down_counter("connections")
TIME = METER.create_histogram("cmdb.time", "s")


class Cmdb:
    """A plugin that counts."""

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Enricher | None:
        LOOKUPS.add(2, {"outcome": "found"})
        OPEN.add(3)
        TIME.record(0.2)
        return None


def test_a_plugins_metrics_are_scraped_with_those_of_the_host(tmp_path: Path) -> None:
    manager = HostPluginManager()
    manager.add("cmdb", Cmdb(), "fake", "1.0")

    with running_host(tmp_path, "metrics.listener=http://127.0.0.1:0", plugins=manager) as host:
        _, text = get(metrics_port(host), "/metrics")
        cluster = host.host.broker.cluster_id

    values = {line.split("{")[0]: line for line in text.splitlines() if "{" in line}
    lookups = values["cmdb_lookups_total"]
    assert lookups.endswith("} 2.0")
    for label in ('outcome="found"', 'plugin="cmdb"', f'cluster_name="{cluster}"', 'client"'):
        assert label in lookups
    assert values["cmdb_connections"].endswith("} 3.0")
    assert values["cmdb_time_seconds_count"].endswith("} 1.0")
    assert "odradek_up" in values


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meter]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(plugin_metrics, "provided", lambda: reader)
    yield provider.get_meter("acme.cmdb.client")
    provider.shutdown()


def names(metrics: PluginMetrics) -> list[str]:
    return [metric.name for scope in metrics.collected() for metric in scope.metrics]


@pytest.mark.parametrize(
    ("modules", "name"),
    [
        ({"acme.teams": "teams", "acme.cmdb": "inventory"}, "inventory.lookups"),
        ({"acme": "acme-plugin"}, "acme-plugin.lookups"),
        ({"other": "other"}, "acme.lookups"),
        ({}, "acme.lookups"),
    ],
)
def test_metrics_belong_to_the_plugin_whose_code_made_them(
    meter: Meter, modules: dict[str, str], name: str
) -> None:
    meter.create_counter("lookups").add(1)

    assert names(PluginMetrics(modules, dict)) == [name]


def test_series_of_a_plugin_are_bounded(meter: Meter, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("one", "two"):
        counter = meter.create_counter(name)
        for number in range(MAX_SERIES // 2 + 1):
            counter.add(1, {"client": f"{number:0300}"})

    (scope,) = PluginMetrics({"acme": "acme"}, dict).collected()

    points: list[list[Any]] = [list(metric.data.data_points) for metric in scope.metrics]
    assert [len(each) for each in points] == [MAX_SERIES // 2 + 1, MAX_SERIES // 2 - 1]
    assert {len(str(each.attributes and each.attributes["client"])) for each in points[0]} == {256}
    assert "plugin acme has more than 1000 series" in caplog.text


def test_a_callback_that_hangs_costs_the_plugins_metrics_alone(
    meter: Meter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Event()

    def hanging(_options: CallbackOptions) -> Iterable[Observation]:
        assert gate.wait(60)
        return [Observation(1)]

    meter.create_observable_gauge("stuck", [hanging])
    monkeypatch.setattr(plugin_metrics, "COLLECT_S", 0.01)
    metrics = PluginMetrics({"acme": "acme"}, dict)

    found = [names(metrics), names(metrics)]
    gate.set()
    monkeypatch.setattr(plugin_metrics, "COLLECT_S", 60)
    for thread in threading.enumerate():
        if thread.name == "plugin-metrics":
            thread.join()

    assert found == [[], []]
    assert names(metrics) == ["acme.stuck"]
    assert "a callback takes too long" in caplog.text
