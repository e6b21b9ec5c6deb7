"""A host with scripted forwarders, and numbered pushes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics

from odradek.client.admin import AdminClient
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Forwarder, PluginConfig, Retry, TelemetryRecord, hookimpl
from support.accounts import assert_accounts_balance
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

PATIENCE_S = 15.0
TOPIC = "__client_telemetry"
Behavior = Callable[[Sequence[TelemetryRecord]], object]


@dataclass(eq=False)
class FarSide:
    """A forwarder with a scripted reaction to each batch.

    It keeps what has metrics, unless it is told to keep everything: the host writes a record without metrics
    a second after a client has closed.
    """

    behavior: Behavior = lambda batch: None
    taken: list[TelemetryRecord] = field(default_factory=list)
    calls: int = 0
    everything: bool = False

    async def start(self) -> None:
        """Nothing to prepare."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        self.calls += 1
        answer = self.behavior(batch)
        if asyncio.iscoroutine(answer):
            await answer
        self.taken += [record for record in batch if record.payload.data or self.everything]

    async def close(self) -> None:
        """Nothing to release."""

    @property
    def names(self) -> list[str]:
        return [name_of(record.payload.data) for record in self.taken]


@dataclass(eq=False)
class Plugin:
    forwarders: dict[str, Forwarder]

    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> dict[str, Forwarder]:
        return self.forwarders


def down(batch: Sequence[TelemetryRecord]) -> object:
    raise Retry("down")


def payload(number: int, description: str = "") -> bytes:
    scope = ScopeMetrics(metrics=[Metric(name=f"push.{number}", description=description)])
    return MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])]).SerializeToString()


def name_of(data: bytes) -> str:
    if not data:
        return ""
    return str(MetricsData.FromString(data).resource_metrics[0].scope_metrics[0].metrics[0].name)


FAST = (
    "plugins.fake.batch.max.age.ms=100",
    "plugins.fake.retry.backoff.ms=10",
    "plugins.fake.retry.backoff.max.ms=50",
    "telemetry.lag=none",  # its records have no accounts here
    *EVERYTHING,
)


@contextlib.contextmanager
def hosting(data_dir: Path, *overrides: str, **far_sides: FarSide) -> Iterator[ThreadedHost]:
    """A host with the forwarders ``fake.<name>``; its accounting is balanced at the end."""
    plugins = HostPluginManager()
    plugins.add("fake", Plugin(dict(far_sides)), "fake", "1")
    with running_host(data_dir, *FAST, *overrides, plugins=plugins) as host:
        yield host
        host.call(lambda: assert_accounts_balance(host.host))


@contextlib.contextmanager
def admin_of(host: ThreadedHost) -> Iterator[AdminClient]:
    with AdminClient(host.bootstrap, "test", PATIENCE_S) as admin:
        yield admin


def committed(host: ThreadedHost, group: str) -> int:
    """The offset of partition 0."""
    with admin_of(host) as admin:
        return admin.offset_fetch(group)[TOPIC, 0].offset


def push_all(host: ThreadedHost, numbers: range) -> list[int]:
    """Push each number from its own client instance; return the error codes."""
    with WireClient(host.address) as client:
        client.introduce()
        return [client.push(payload(number)) for number in numbers]


def until(host: ThreadedHost, condition: Callable[[], bool]) -> None:
    """Wait for a condition; the accounting must be balanced at every check."""

    def holds() -> bool:
        host.call(lambda: assert_accounts_balance(host.host))
        return condition()

    wait_until(holds, lambda: [runner.stats() for runner in host.host.forwarders])


def settled_stats(host: ThreadedHost) -> ForwarderStats:
    """The numbers of the first forwarder, once nothing waits for it.

    The destination has a record a moment before the forwarder counts it as delivered.
    """

    runner = host.host.forwarders[0]
    wait_until(lambda: not (runner.stats().queued or runner.stats().in_flight), runner.stats)
    return runner.stats()


def names(numbers: range) -> list[str]:
    return [f"push.{number}" for number in numbers]
