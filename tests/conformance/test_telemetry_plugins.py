"""Calls of receivers and exporters."""

from __future__ import annotations

import pytest

from conformance.telemetry_broker import Recorder, TelemetryBroker, otlp
from odradek.plugin import (
    ClientTelemetryContext,
    ClientTelemetryExporter,
    ClientTelemetryPayload,
    ClientTelemetryReceiver,
)
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.testing.clock import MockClock
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode

DATA = b"test-metrics"


class IntervalRecorder:
    """An exporter that stores every payload."""

    def __init__(self) -> None:
        self.payloads: list[ClientTelemetryPayload] = []
        self.intervals_ms: list[int] = []

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        self.payloads.append(payload)
        self.intervals_ms.append(context.push_interval_ms)


class ReceiverOnly:
    """A provider of a KIP-714 receiver."""

    def __init__(self, receiver: ClientTelemetryReceiver | None) -> None:
        self.receiver = receiver

    def client_receiver(self) -> ClientTelemetryReceiver | None:
        return self.receiver


class ExporterOnly:
    """A provider of a KIP-1217 exporter."""

    def __init__(self, exporter: ClientTelemetryExporter | None) -> None:
        self.exporter = exporter

    def client_telemetry_exporter(self) -> ClientTelemetryExporter | None:
        return self.exporter


class Both(ReceiverOnly, ExporterOnly):
    """A provider of both a receiver and an exporter."""

    def __init__(self, receiver: ClientTelemetryReceiver, exporter: ClientTelemetryExporter) -> None:
        ReceiverOnly.__init__(self, receiver)
        ExporterOnly.__init__(self, exporter)


@pytest.fixture
def plugin() -> ClientMetricsReceiverPlugin:
    return ClientMetricsReceiverPlugin(MockClock())


def export(plugin: ClientMetricsReceiverPlugin, interval_ms: int = 10_000) -> ClientTelemetryPayload:
    payload = ClientTelemetryPayload(bytes(range(16)), False, DATA)
    assert plugin.export(TelemetryBroker().context(), payload, interval_ms)
    return payload


def test_receiver_gets_the_decompressed_payload(plugin: ClientMetricsReceiverPlugin) -> None:
    receiver = Recorder()
    was_empty = plugin.is_empty
    plugin.register("one", ReceiverOnly(receiver))

    payload = export(plugin)

    assert (was_empty, plugin.is_empty) == (True, False)
    assert receiver.payloads == [payload]
    assert (payload.data, payload.content_type) == (DATA, "OTLP")


def test_uncompressed_payload_is_not_copied() -> None:
    broker = TelemetryBroker()
    data = otlp("m")
    told = broker.get()

    broker.push(told, data)

    assert broker.receiver.payloads[0].data is data


def test_exporter_gets_the_push_interval(plugin: ClientMetricsReceiverPlugin) -> None:
    exporter = IntervalRecorder()
    plugin.register("one", ExporterOnly(exporter))

    payload = export(plugin, 10_000)

    assert (exporter.payloads, exporter.intervals_ms) == ([payload], [10_000])


def test_push_interval_is_that_of_the_instance() -> None:
    broker = TelemetryBroker()
    exporter = IntervalRecorder()
    broker.plugin.add_exporter("one", exporter)
    broker.update("sub-1", {"interval.ms": "10000"})
    told = broker.get()

    broker.push(told)

    assert exporter.intervals_ms == [10_000]


def test_receiver_and_exporter_get_the_same_payload(plugin: ClientMetricsReceiverPlugin) -> None:
    receiver, exporter = Recorder(), IntervalRecorder()
    plugin.register("one", ReceiverOnly(receiver))
    plugin.register("two", ExporterOnly(exporter))

    payload = export(plugin, 15_000)

    assert (receiver.payloads, exporter.payloads, exporter.intervals_ms) == ([payload], [payload], [15_000])


def test_provider_of_both_is_only_asked_for_its_exporter(plugin: ClientMetricsReceiverPlugin) -> None:
    receiver, exporter = Recorder(), IntervalRecorder()
    plugin.register("one", Both(receiver, exporter))

    payload = export(plugin, 12_000)

    assert (receiver.payloads, exporter.payloads, exporter.intervals_ms) == ([], [payload], [12_000])


def test_two_of_each_are_called_once_each(plugin: ClientMetricsReceiverPlugin) -> None:
    receivers, exporters = [Recorder(), Recorder()], [IntervalRecorder(), IntervalRecorder()]
    for index in range(2):
        plugin.register(f"exporter-{index}", ExporterOnly(exporters[index]))
        plugin.register(f"receiver-{index}", ReceiverOnly(receivers[index]))

    payload = export(plugin, 20_000)

    assert [receiver.payloads for receiver in receivers] == [[payload], [payload]]
    assert [exporter.intervals_ms for exporter in exporters] == [[20_000], [20_000]]


def test_removed_plugins_leave_the_holder_empty(plugin: ClientMetricsReceiverPlugin) -> None:
    receiver, exporter = Recorder(), IntervalRecorder()
    plugin.add_receiver("one", receiver)
    plugin.add_exporter("two", exporter)

    plugin.remove(receiver)
    plugin.remove(exporter)

    export(plugin)
    assert (plugin.is_empty, receiver.payloads, exporter.payloads) == (True, [], [])


@pytest.mark.parametrize("codec", list(Codec))
def test_round_trip_through_each_codec(codec: Codec) -> None:
    broker = TelemetryBroker(telemetry_max_bytes=10_000)
    data = otlp(*(f"org.apache.kafka.producer.metric.number.{index}" for index in range(5)))
    sent = compress(codec, data)
    told = broker.get()

    code = broker.push(told, sent, codec=codec)

    assert (code, broker.receiver.payloads[0].data) == (ErrorCode.NONE, data)
    assert sent == data if codec is Codec.NONE else len(sent) < len(data)


@pytest.mark.parametrize("provider", [ReceiverOnly(None), ExporterOnly(None)])
def test_provider_without_a_receiver_is_skipped(
    plugin: ClientMetricsReceiverPlugin, provider: ReceiverOnly | ExporterOnly
) -> None:
    added = plugin.register("one", provider)

    assert (added, plugin.is_empty) == (False, True)
