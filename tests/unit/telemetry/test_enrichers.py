from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from conformance.telemetry_broker import DATA, DEFAULT_PROPERTIES, TelemetryBroker
from odradek.otlp.labels import EncodedLabels
from odradek.plugin import ConfigError, RequestContext
from odradek.telemetry.client_labels import ClientLabels
from odradek.telemetry.enrichers import SAMPLE, try_enricher
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.error_code import ErrorCode


class Labeling:
    """An enricher that counts its calls."""

    def __init__(self, answer: Callable[[RequestContext], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[bytes, str]] = []

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        self.asked.append((client_instance_id, context.connection.connection_id))
        return cast(Mapping[str, str], self.answer(context))


def constant(**labels: object) -> Labeling:
    return Labeling(lambda _: labels)


def labels_of(data: bytes) -> dict[str, str]:
    (entry,) = MetricsData.FromString(data).resource_metrics
    return {attribute.key: attribute.value.string_value for attribute in entry.resource.attributes}


def now(labels: object) -> EncodedLabels:
    """Labels that do not come later."""
    assert isinstance(labels, EncodedLabels)
    return labels


def test_labels_reach_the_receivers() -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("one", Labeling(lambda context: {"client_id": str(context.client_id)}))
    told = broker.get()

    broker.push(told)

    assert labels_of(broker.receiver.payloads[0].data) == {"client_id": "producer-1"}


def test_the_cluster_is_a_label_of_its_clients_and_of_no_others() -> None:
    enrichers = TelemetryBroker().enrichers
    relayed = replace(SAMPLE, connection=replace(SAMPLE.connection, cluster_id="far"))
    nameless = enrichers.labels(ClientLabels(), b"A" * 16, SAMPLE)
    enrichers.cluster.cluster_id = "near"

    found = [
        enrichers.labels(ClientLabels(is_own=is_own), b"A" * 16, context)
        for context, is_own in ((SAMPLE, True), (SAMPLE, False), (relayed, True), (relayed, False))
    ]

    assert nameless is None
    names = [each and now(each).encoded.rpartition(b"\n")[2] for each in found]
    assert names == [b"\x04near", None, b"\x03far", b"\x03far"]


def test_a_push_has_the_name_of_the_cluster_unless_an_enricher_knows_another() -> None:
    broker = TelemetryBroker()
    broker.enrichers.cluster.given, broker.enrichers.cluster.cluster_id = "east", "the-id"
    told = broker.get()
    broker.push(told)
    broker.enrichers.register("one", constant(**{"cluster.name": "west"}))
    broker.push(broker.get(connection_id="another"), connection_id="another")

    assert [labels_of(each.data) for each in broker.receiver.payloads] == [
        {"cluster.name": "east"},
        {"cluster.name": "west"},
    ]


def test_of_two_enrichers_the_later_one_wins() -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("one", constant(team="a", rack="r"))
    broker.enrichers.register("two", constant(team="b"))
    told = broker.get()

    broker.push(told)

    assert labels_of(broker.receiver.payloads[0].data) == {"team": "b", "rack": "r"}


def test_enricher_is_asked_once_per_instance_and_connection() -> None:
    broker = TelemetryBroker()
    enricher = constant(team="a")
    broker.enrichers.register("one", enricher)
    told, other = broker.get(), broker.get()

    for connection_id in ("conn-1", "conn-1", "conn-2", "conn-1", "conn-2"):
        broker.push(told, connection_id=connection_id)
        broker.clock.time_ms += 300_000
    broker.push(other, connection_id="conn-1")

    assert enricher.asked == [
        (told.client_instance_id, "conn-1"),
        (told.client_instance_id, "conn-2"),
        (other.client_instance_id, "conn-1"),
    ]


def test_labels_survive_a_change_of_subscriptions() -> None:
    broker = TelemetryBroker()
    enricher = constant(team="a")
    broker.enrichers.register("one", enricher)
    told = broker.get()
    broker.push(told, connection_id="conn-1")
    broker.update("sub-1", DEFAULT_PROPERTIES)
    again = broker.get(told.client_instance_id)

    code = broker.push(again, connection_id="conn-1")

    assert (code, len(enricher.asked)) == (ErrorCode.NONE, 1)


def raising(_: RequestContext) -> object:
    raise RuntimeError("directory is down")


@pytest.mark.parametrize(
    "answer",
    [raising, lambda _: {"team": 7}, lambda _: {b"team": "x"}, lambda _: None, lambda _: {"team": "\ud800"}],
    ids=["raises", "number", "bytes", "none", "surrogate"],
)
def test_a_failing_or_invalid_enricher_is_left_out(answer: Callable[[RequestContext], Any]) -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("broken", Labeling(answer))
    broker.enrichers.register("fine", constant(team="a"))
    told = broker.get()

    code = broker.push(told)

    labels = {"team": "a", "labels_missing": "broken"}
    assert (code, labels_of(broker.receiver.payloads[0].data)) == (ErrorCode.NONE, labels)
    assert [(stats.name, stats.exported, stats.failed) for stats in broker.enrichers.stats()] == [
        ("broken", 0, 1),
        ("fine", 1, 0),
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"team": 7}, "labels returned int for 'team', expected a string"),
        ({"team": None}, "labels returned NoneType for 'team', expected a string"),
        ({b"team": "x"}, "labels returned bytes as a name, expected a string"),
        (None, "labels returned NoneType, expected a mapping of strings"),
        (["team"], "labels returned list, expected a mapping of strings"),
        (
            {"team": "\ud800"},
            "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed",
        ),
    ],
)
def test_labels_that_are_no_text_are_found_before_the_first_push(answer: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        try_enricher("paint", Labeling(lambda _: answer))

    line = Labeling.labels.__code__.co_firstlineno
    assert str(caught.value) == f"plugins.paint: {problem} ({__file__}:{line})"


def test_an_enricher_that_does_not_know_the_sample_client_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try_enricher("paint", Labeling(raising))

    (record,) = caplog.records
    assert record.getMessage().startswith(
        f"plugin paint cannot label a sample client: RuntimeError: directory is down ({__file__}:"
    )


def test_slow_enricher_is_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    broker = TelemetryBroker()

    def slowly(_: RequestContext) -> dict[str, str]:
        broker.clock.advance(6)
        return {}

    broker.enrichers.register("slow", Labeling(slowly))
    told = broker.get()

    broker.push(told)

    assert [stats.slow for stats in broker.enrichers.stats()] == [1]
    place = f"({__file__}:{Labeling.labels.__code__.co_firstlineno})"
    assert f"plugin slow blocked the event loop for 6 ms in labels {place}; no client" in caplog.text


def test_without_labels_the_payload_is_unchanged() -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("silent", constant())
    told = broker.get()

    broker.push(told)

    assert broker.receiver.payloads[0].data is DATA


def test_clients_with_the_same_label_names_share_them() -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("one", constant(team="a", rack="r"))

    first, second = (
        now(broker.enrichers.labels(ClientLabels(), bytes([index]) * 16, broker.context()))
        for index in range(2)
    )

    assert first.keys is second.keys


def test_labels_of_many_connections_are_bounded() -> None:
    broker = TelemetryBroker()
    broker.enrichers.register("one", constant(team="a"))
    told = broker.get()

    for _ in range(50):
        broker.push(told)
        broker.clock.time_ms += 300_000

    assert 0 < len(broker.known(told).other_labels or {}) <= 8


def test_kafka_policy_labels_otlp_and_passes_on_other_bytes() -> None:
    broker = TelemetryBroker(ErrorPolicy.KAFKA)
    broker.enrichers.register("one", constant(team="a"))
    told = broker.get()
    broker.push(told)
    broker.clock.time_ms += 300_000

    broker.push(told, b"test-data")

    assert labels_of(broker.receiver.payloads[0].data) == {"team": "a"}
    assert broker.receiver.payloads[1].data == b"test-data"
