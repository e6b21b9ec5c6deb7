"""Enrichers that wait for another system: a host serves its clients meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.telemetry_broker import DATA
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import ClientTelemetryPayload, Later, PluginConfig, RequestContext, hookimpl
from odradek.telemetry.enrichers import Enrichers
from odradek.testing.host_thread import HostThread
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.hosts import EVERYTHING, running_host
from support.telemetry_records import resource_labels
from support.waiting import wait_until
from support.wire_client import WireClient


class Cmdb:
    """A system that answers when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.threads: set[str] = set()

    def team(self) -> dict[str, str]:
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(60)
        return {"team": "red"}


class Blocking:
    """An enricher that says that it blocks."""

    blocks = True

    def __init__(self, cmdb: Cmdb) -> None:
        self.cmdb = cmdb

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str] | Later:
        return self.cmdb.team()


class Awaiting(Blocking):
    """An enricher that answers with a coroutine."""

    blocks = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str] | Later:
        return Later(self.ask())

    async def ask(self) -> dict[str, str]:
        return self.cmdb.team()  # a bug of the author's: it hurts no client


class Calling(Blocking):
    """An enricher that answers from a thread of its own."""

    blocks = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str] | Later:
        later = Later()
        threading.Thread(target=lambda: later.set(self.cmdb.team()), daemon=True).start()
        return later


class Plugin:
    """The enricher, and a receiver that keeps the labels of each push."""

    def __init__(self, enricher: Blocking) -> None:
        self.enricher = enricher
        self.seen: list[dict[str, str]] = []

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Blocking:
        return self.enricher

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> Plugin:
        return self

    def client_receiver(self) -> Plugin:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.seen.append(resource_labels(payload.data))


@contextmanager
def hosting(tmp_path: Path, plugin: Plugin, *overrides: str) -> Iterator[HostThread]:
    manager = HostPluginManager()
    manager.add("cmdb", plugin, "fake", "1.0")
    with running_host(tmp_path, *EVERYTHING, "plugin.labels.wait.ms=5", *overrides, plugins=manager) as host:
        yield host


def enrichers_of(host: HostThread) -> Enrichers:
    found: Any = host.host
    return found.plugins.enrichers  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [Blocking, Awaiting, Calling])
def test_the_second_push_has_labels_that_came_after_the_first(
    kind: Callable[[Cmdb], Blocking], tmp_path: Path
) -> None:
    cmdb = Cmdb()
    plugin = Plugin(kind(cmdb))

    with hosting(tmp_path, plugin) as host, WireClient(host.address) as client:
        told = client.subscriptions()
        for is_last in (False, True):
            request = PushTelemetryRequest(
                client_instance_id=told.client_instance_id,
                subscription_id=told.subscription_id,
                terminating=is_last,
                metrics=DATA,
            )
            assert client.send(request).error_code == ErrorCode.NONE
            cmdb.gate.set()
            wait_until(lambda: enrichers_of(host).stats()[0].exported, lambda: plugin.seen)

    assert [(each.get("team"), each.get("labels_missing")) for each in plugin.seen] == [
        (None, "cmdb"),
        ("red", None),
    ]
    assert all(name != "MainThread" and "host" not in name for name in cmdb.threads)


@pytest.mark.parametrize("kind", [Blocking, Awaiting])
def test_a_host_stops_though_an_enricher_hangs(
    kind: Callable[[Cmdb], Blocking], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cmdb = Cmdb()
    overrides = "shutdown.timeout.ms=50"
    with hosting(tmp_path, Plugin(kind(cmdb)), overrides) as host, WireClient(host.address) as client:
        assert client.push(DATA) == ErrorCode.NONE
        wait_until(lambda: cmdb.threads, lambda: cmdb.threads)

    assert "the enricher of plugin cmdb did not stop in time, leaving its threads" in caplog.text
    cmdb.gate.set()
