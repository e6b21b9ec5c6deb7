from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from conformance.telemetry_broker import Recorder, TelemetryBroker
from odradek.plugin import ClientTelemetryContext, ClientTelemetryPayload, ConfigError, RequestContext
from odradek.plugin.plugin_stats import PluginStats, described
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.testing.clock import MockClock

PAYLOAD = ClientTelemetryPayload(bytes(range(16)), False, b"data")


class Acting:
    """A receiver or exporter with prepared behavior."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act
        self.calls = 0

    def export_metrics(
        self, context: RequestContext | ClientTelemetryContext, payload: ClientTelemetryPayload
    ) -> None:
        self.calls += 1
        self.act()


def failing() -> object:
    raise RuntimeError("no room")


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def plugin(clock: MockClock) -> ClientMetricsReceiverPlugin:
    return ClientMetricsReceiverPlugin(clock, slow_ms=5)


def export(plugin: ClientMetricsReceiverPlugin, stop_at_failure: bool = False) -> bool:
    return plugin.export(TelemetryBroker().context(), PAYLOAD, 1000, stop_at_failure)


def test_other_plugins_get_the_push_when_one_raises(plugin: ClientMetricsReceiverPlugin) -> None:
    before, after, exporter = Recorder(), Recorder(), Recorder()
    plugin.add_exporter("exporter", exporter)
    plugin.add_receiver("before", before)
    plugin.add_receiver("broken", Acting(failing))
    plugin.add_receiver("after", after)

    taken = export(plugin)

    assert not taken
    assert [recorder.payloads for recorder in (before, after, exporter)] == [[PAYLOAD]] * 3


class Waiting:
    """A receiver that the host would have to await."""

    async def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        raise AssertionError("the host does not await")

    def client_receiver(self) -> object:
        return self


class WaitingExporter(Waiting):
    def client_telemetry_exporter(self) -> object:
        return self


@pytest.mark.parametrize(
    ("provider", "source"),
    [(Waiting(), "client_receiver"), (WaitingExporter(), "client_telemetry_exporter")],
)
def test_a_receiver_that_is_a_coroutine_function_is_refused(
    plugin: ClientMetricsReceiverPlugin, provider: Any, source: str
) -> None:
    with pytest.raises(ConfigError, match=r"export_metrics \(.*\) is an async function") as caught:
        plugin.register("later", provider)

    assert str(caught.value).startswith(f"plugins.later: {source} returned {type(provider).__name__}: ")
    assert plugin.is_empty


def test_first_failure_ends_the_chain_if_requested(plugin: ClientMetricsReceiverPlugin) -> None:
    before, after, exporter = Recorder(), Recorder(), Recorder()
    plugin.add_exporter("exporter", exporter)
    plugin.add_receiver("before", before)
    plugin.add_receiver("broken", Acting(failing))
    plugin.add_receiver("after", after)

    taken = export(plugin, stop_at_failure=True)

    assert not taken
    assert [len(recorder.payloads) for recorder in (before, after, exporter)] == [1, 0, 0]


def leave() -> object:
    sys.exit(3)


def stumble() -> object:
    return [][1]


def stop() -> object:
    raise StopIteration


@pytest.mark.parametrize("act", [leave, stumble, stop])
def test_exceptions_of_a_plugin_are_contained(
    plugin: ClientMetricsReceiverPlugin, act: Callable[[], object]
) -> None:
    plugin.add_receiver("broken", Acting(act))

    taken = export(plugin)

    assert (taken, plugin.stats()[0].failed) == (False, 1)


class Displaced:
    """Stands for the thread of a plugin: takes what the plugin itself would have got."""

    def __init__(self) -> None:
        self.taken: list[ClientTelemetryPayload] = []
        self.names: list[str] = []

    def displace(self, export: object, stats: PluginStats) -> Callable[[Any, ClientTelemetryPayload], None]:
        self.names.append(stats.name)
        return lambda _, payload: self.taken.append(payload)


@pytest.mark.parametrize(
    "add", [ClientMetricsReceiverPlugin.add_receiver, ClientMetricsReceiverPlugin.add_exporter]
)
@pytest.mark.parametrize(("call_ms", "calls_on_the_loop"), [(10_000, 1), (50, 1), (20, 3), (6, 9)])
def test_a_plugin_that_keeps_blocking_the_loop_is_moved_off_it(
    clock: MockClock,
    add: Callable[..., None],
    call_ms: int,
    calls_on_the_loop: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    threads = Displaced()
    plugin = ClientMetricsReceiverPlugin(clock, slow_ms=5, slow_limit=10, displace=threads.displace)
    blocking, other = Acting(lambda: clock.advance(call_ms)), Acting(lambda: None)
    add(plugin, "blocking", blocking)
    add(plugin, "other", other)

    for _ in range(20):
        assert export(plugin)

    assert (blocking.calls, other.calls) == (calls_on_the_loop, 20)
    assert threads.names == ["blocking"]
    assert len(threads.taken) == 20 - calls_on_the_loop
    blocking_stats, other_stats, thread_stats = plugin.stats()
    assert (blocking_stats.exported, blocking_stats.slow) == (calls_on_the_loop, calls_on_the_loop)
    assert (thread_stats.name, thread_stats.exported) == ("blocking", 0)
    assert other_stats.slow == 0
    assert "plugin blocking blocks the event loop too often: its export_metrics runs" in caplog.text


def test_all_plugins_can_be_moved_off_the_loop_before_they_are_called(clock: MockClock) -> None:
    threads = Displaced()
    plugin = ClientMetricsReceiverPlugin(clock, slow_ms=5, slow_limit=10, displace=threads.displace)
    receiver, exporter = Acting(lambda: clock.advance(10_000)), Acting(lambda: clock.advance(10_000))
    plugin.add_receiver("receiver", receiver)
    plugin.add_exporter("exporter", exporter)
    plugin.displace_all()
    plugin.displace_all()

    assert export(plugin)

    assert (receiver.calls, exporter.calls, len(threads.taken)) == (0, 0, 2)
    assert threads.names == ["receiver", "exporter"]


def test_slow_calls_minutes_apart_leave_a_plugin_on_the_loop(clock: MockClock) -> None:
    threads = Displaced()
    plugin = ClientMetricsReceiverPlugin(clock, slow_ms=5, slow_limit=10, displace=threads.displace)
    plugin.add_receiver("sometimes", Acting(lambda: clock.advance(40)))

    for _ in range(20):
        export(plugin)
        clock.advance(60_000)

    assert threads.names == []
    assert plugin.stats()[0].slow == 20


@pytest.mark.parametrize("slow_limit", [0, 1_000_000])
def test_a_limit_of_zero_or_out_of_reach_leaves_a_plugin_on_the_loop(
    clock: MockClock, slow_limit: int
) -> None:
    threads = Displaced()
    plugin = ClientMetricsReceiverPlugin(clock, slow_ms=5, slow_limit=slow_limit, displace=threads.displace)
    plugin.add_receiver("blocking", Acting(lambda: clock.advance(10_000)))

    for _ in range(20):
        export(plugin)

    assert threads.names == []


def test_slow_calls_are_logged_by_plugin_and_hook_once_a_minute(
    plugin: ClientMetricsReceiverPlugin, clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.add_receiver("blocking", Acting(lambda: clock.advance(10_012)))

    for _ in range(13):
        export(plugin)

    assert [record.getMessage() for record in caplog.records] == [
        "plugin blocking blocked the event loop for 10012 ms in export_metrics "
        f"({__file__}:{Acting.export_metrics.__code__.co_firstlineno}); no client was served meanwhile"
    ] * 3
    assert [(vars(record)["slow"], vars(record)["unlogged"]) for record in caplog.records] == [
        (1, 0),
        (7, 5),
        (13, 5),
    ]


def test_a_plugin_on_its_thread_can_be_removed(clock: MockClock) -> None:
    threads = Displaced()
    plugin = ClientMetricsReceiverPlugin(clock, slow_ms=5, slow_limit=1, displace=threads.displace)
    blocking = Acting(lambda: clock.advance(50))
    plugin.add_receiver("blocking", blocking)
    export(plugin)

    plugin.remove(blocking)

    export(plugin)
    assert plugin.is_empty
    assert threads.taken == []


def test_interrupt_is_not_treated_as_a_plugin_failure(plugin: ClientMetricsReceiverPlugin) -> None:
    def interrupt() -> object:
        raise KeyboardInterrupt

    plugin.add_receiver("innocent", Acting(interrupt))

    with pytest.raises(KeyboardInterrupt):
        export(plugin)

    assert plugin.stats()[0].failed == 0


def test_each_plugin_has_statistics(plugin: ClientMetricsReceiverPlugin) -> None:
    plugin.add_receiver("broken", Acting(failing))
    plugin.add_receiver("fine", Acting(lambda: None))
    plugin.add_exporter("fine", Acting(lambda: None))

    for _ in range(3):
        export(plugin)

    rows = [
        (stats.name, stats.exported, stats.failed, stats.slow, stats.last_error) for stats in plugin.stats()
    ]
    assert rows == [("broken", 0, 3, 0, "RuntimeError: no room"), ("fine", 6, 0, 0, None)]


def test_only_the_slow_plugin_is_counted(plugin: ClientMetricsReceiverPlugin, clock: MockClock) -> None:
    plugin.add_receiver("quick", Acting(lambda: clock.advance(5)))
    plugin.add_receiver("slow", Acting(lambda: clock.advance(6)))
    plugin.add_receiver("late", Acting(lambda: None))

    export(plugin)

    assert [(stats.name, stats.slow) for stats in plugin.stats()] == [("quick", 0), ("slow", 1), ("late", 0)]


def test_failing_plugin_is_logged_once_a_minute(
    plugin: ClientMetricsReceiverPlugin, clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.add_receiver("broken", Acting(failing))
    caplog.set_level(logging.ERROR)

    for _ in range(150):
        export(plugin)
        clock.advance(1000)

    assert len(caplog.records) == 3
    assert [vars(record)["unlogged"] for record in caplog.records] == [0, 59, 59]
    assert plugin.stats()[0].failed == 150


def test_plugin_may_remove_itself_during_a_call(plugin: ClientMetricsReceiverPlugin) -> None:
    leaving = Acting(lambda: plugin.remove(leaving))
    staying = Acting(lambda: None)
    plugin.add_receiver("leaving", leaving)
    plugin.add_receiver("staying", staying)

    for _ in range(2):
        export(plugin)

    assert (leaving.calls, staying.calls) == (1, 2)


def test_removing_an_unknown_plugin_changes_nothing(plugin: ClientMetricsReceiverPlugin) -> None:
    plugin.add_receiver("fine", Recorder())

    plugin.remove(Recorder())

    assert not plugin.is_empty


def test_exception_that_cannot_be_printed_is_reported_by_its_type() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert [described(error) for error in (MuteError(), ValueError(), ValueError("x" * 500))] == [
        "MuteError",
        "ValueError",
        f"ValueError: {'x' * 188}",
    ]


def test_plugin_that_never_failed_has_no_error() -> None:
    stats = PluginStats("one")

    assert (stats.exported, stats.failed, stats.slow, stats.last_error) == (0, 0, 0, None)
