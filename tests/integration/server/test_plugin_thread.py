"""The thread of a plugin that blocks the event loop, and a host with such a plugin."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from conformance.telemetry_broker import TelemetryBroker
from odradek.hosting.plugin_thread import ENTRY_BYTES, PluginThreads
from odradek.plugin import ClientTelemetryPayload
from odradek.plugin.plugin_stats import PluginStats
from odradek.waiting.clock import SystemClock
from support.hosts import EVERYTHING, running_host
from support.wire_client import WireClient

PATIENCE_S = 10
DATA_BYTES = 100
BLOCKED_S = 0.3
METRICS = b"\x0a\x00"


def payload(number: int) -> ClientTelemetryPayload:
    return ClientTelemetryPayload(number.to_bytes(16), False, bytes(DATA_BYTES))


class Gate:
    """A receiver whose calls wait until the test opens the gate."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.taken: list[int] = []

    def client_receiver(self) -> Gate:
        return self

    def export_metrics(self, _context: object, each: ClientTelemetryPayload) -> None:
        self.entered.set()
        assert self.open.wait(PATIENCE_S)
        self.taken.append(int.from_bytes(each.client_instance_id))


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_pushes_are_taken_in_order_and_counted(gate: Gate) -> None:
    stats = PluginStats("gate")
    threads = PluginThreads(1 << 20, SystemClock())
    offer = threads.displace(gate.export_metrics, stats)
    context = TelemetryBroker().context()
    gate.open.set()

    for number in range(100):
        offer(context, payload(number))
    threads.stop(PATIENCE_S)

    assert gate.taken == list(range(100))
    assert (stats.exported, stats.failed, stats.dropped) == (100, 0, 0)


def test_pushes_without_room_are_dropped_and_counted(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    stats = PluginStats("gate")
    threads = PluginThreads(3 * (DATA_BYTES + ENTRY_BYTES), SystemClock())
    offer = threads.displace(gate.export_metrics, stats)
    context = TelemetryBroker().context()

    offer(context, payload(0))
    assert gate.entered.wait(PATIENCE_S)
    for number in range(1, 6):
        offer(context, payload(number))
    queued = threads.waiting()
    gate.open.set()
    threads.stop(PATIENCE_S)

    assert queued == {"gate": 3}
    assert gate.taken == [0, 1, 2, 3]
    assert (stats.exported, stats.dropped) == (4, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "the queue of plugin gate is full, its pushes are dropped"
    ]


def test_a_plugin_that_never_returns_loses_only_what_it_holds_up(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    stats = PluginStats("gate")
    threads = PluginThreads(1 << 20, SystemClock())
    offer = threads.displace(gate.export_metrics, stats)
    context = TelemetryBroker().context()
    offer(context, payload(0))
    assert gate.entered.wait(PATIENCE_S)
    offer(context, payload(1))

    threads.stop(0.05)

    assert stats.dropped == 1
    assert "plugin gate did not take its pushes before the host stopped" in caplog.text
    gate.open.set()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_an_exception_is_counted_and_the_thread_goes_on(error: BaseException) -> None:
    stats = PluginStats("raising")
    threads = PluginThreads(1 << 20, SystemClock())

    def export(_context: object, _payload: object) -> None:
        raise error

    offer = threads.displace(export, stats)
    for number in range(3):
        offer(TelemetryBroker().context(), payload(number))
    threads.stop(PATIENCE_S)

    assert (stats.exported, stats.failed) == (0, 3)


class BlocksTheLoop(Gate):
    """Blocks the loop in its first call; on its thread it waits at the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def export_metrics(self, _context: object, each: ClientTelemetryPayload) -> None:
        self.calls += 1
        if self.calls == 1:
            time.sleep(BLOCKED_S)
        else:
            super().export_metrics(_context, each)


def test_a_host_serves_its_clients_while_a_receiver_blocks(tmp_path: Path) -> None:
    gate = BlocksTheLoop()
    with (
        running_host(
            tmp_path,
            "plugin.slow.limit=20",
            *EVERYTHING,
            before_start=lambda host: host.receivers.register("gate", gate),
        ) as host,
        WireClient(host.address) as first,
        WireClient(host.address) as second,
    ):
        first.introduce()
        second.introduce()
        codes = [first.push(METRICS), second.push(METRICS)]
        assert gate.entered.wait(PATIENCE_S)
        first.introduce()  # answered while the plugin waits
        taken_meanwhile = list(gate.taken)
        gate.open.set()

    assert codes == [0, 0]
    assert taken_meanwhile == []
    assert len(gate.taken) == 1
