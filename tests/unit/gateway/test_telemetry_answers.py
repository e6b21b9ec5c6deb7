"""Telemetry of pairs is answered by the host's dispatcher, as if their clients were connected to the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.client.connection import answer_type
from odradek.gateway.gateway_labels import GatewayLabels
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.metrics.cluster_name import ClusterName
from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.testing.clock import MockClock
from odradek.topic.telemetry_topic import encode_headers
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.header import RequestHeader, read_response_header, request_header
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.types import NIL_UUID
from support.broker import make_broker
from support.telemetry_records import resource_labels

METRICS = bytes.fromhex("0a00")
"""OTLP with one empty ResourceMetrics."""


@dataclass(eq=False)
class Receiver:
    """A receiver of the host."""

    taken: list[tuple[RequestContext, ClientTelemetryPayload]] = field(default_factory=list)

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.taken.append((context, payload))


@dataclass(eq=False)
class HeldSink:
    """A spool that keeps a push later."""

    kept: list[Deferred[bool]] = field(default_factory=list)
    pushes: list[AcceptedPush] = field(default_factory=list)

    def take(self, push: AcceptedPush) -> Deferred[bool]:
        self.pushes.append(push)
        self.kept.append(Deferred())
        return self.kept[-1]


class Gateway:
    """The telemetry of one gateway, without sockets."""

    def __init__(self, **subscriptions: dict[str, str]) -> None:
        self.clock = MockClock()
        self.broker: Broker = make_broker(clock=self.clock)
        self.receiver = Receiver()
        self.broker.telemetry.plugin.add_receiver("test", self.receiver)
        for name, properties in subscriptions.items():
            self.broker.telemetry.update_subscription(name, properties)
        self.answers = TelemetryAnswers(Dispatcher(self.broker, Routes()), self.broker.telemetry)
        self.peer = PairIdentity("10.1.2.3", 40_000, "CLIENTS", 7, software_name="librdkafka")

    def ask(self, request: Any, peer: PairIdentity | None = None) -> list[bytes]:
        """The frames that come back; more may come later."""
        header = RequestHeader(request.API_KEY, 0, 5, "orders")
        written: list[bytes] = []
        self.clock.advance(1)
        self.answers.answer(
            request_header(header, True) + encode(request, 0), peer or self.peer, written.append
        )
        return written

    def response(self, request: Any, peer: PairIdentity | None = None) -> Any:
        """The decoded response."""
        (frame,) = self.ask(request, peer)
        correlation_id, start = read_response_header(frame, 0, True)
        assert correlation_id == 5
        return decode(answer_type(type(request)), 0, frame, start)

    def get(self, instance_id: bytes = NIL_UUID, peer: PairIdentity | None = None) -> Any:
        return self.response(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), peer)

    def push(self, instance_id: bytes, subscription_id: int, peer: PairIdentity | None = None) -> ErrorCode:
        return ErrorCode(self.response(pushed(instance_id, subscription_id), peer).error_code)


def pushed(instance_id: bytes, subscription_id: int) -> PushTelemetryRequest:
    return PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=subscription_id, metrics=METRICS
    )


EVERYTHING = {"metrics": "*", "interval.ms": "1000"}


@pytest.fixture
def gateway() -> Gateway:
    return Gateway(all=EVERYTHING)


def test_a_client_gets_its_subscription_and_pushes(gateway: Gateway) -> None:
    got = gateway.get()

    assert (got.error_code, got.requested_metrics, got.push_interval_ms) == (0, ["*"], 1000)
    assert gateway.push(got.client_instance_id, got.subscription_id) is ErrorCode.NONE
    ((context, _payload),) = gateway.receiver.taken
    connection = context.connection
    assert context.client_id == "orders"
    assert (connection.client_address, connection.client_port) == ("10.1.2.3", 40_000)
    assert (connection.listener_name, connection.node_id) == ("CLIENTS", 7)
    assert (connection.client_software_name, connection.client_software_version) == ("librdkafka", "unknown")


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("client_source_address=10\\.1\\.2\\.3", True),
        ("client_source_address=127.*", False),
        ("client_source_port=40000", True),
        ("client_software_name=librdkafka", True),
        ("client_id=orders", True),
        ("client_id=billing", False),
    ],
)
def test_selectors_see_the_client_side(selector: str, matches: bool) -> None:
    gateway = Gateway(some=EVERYTHING | {"match": selector})

    assert gateway.get().requested_metrics == (["*"] if matches else [])


def test_the_bootstrap_address_has_no_node(gateway: Gateway) -> None:
    peer = PairIdentity("10.0.0.1", 1, "CLIENTS")
    got = gateway.get(peer=peer)

    gateway.push(got.client_instance_id, got.subscription_id, peer)

    assert gateway.receiver.taken[0][0].connection.node_id == -1


@pytest.mark.parametrize("request_type", [GetTelemetrySubscriptionsRequest, PushTelemetryRequest])
def test_before_authentication_the_pair_is_closed(gateway: Gateway, request_type: Any) -> None:
    gateway.peer.awaiting_sasl = True

    assert gateway.ask(request_type()) == [b""]
    assert gateway.broker.telemetry.instances() == []


def test_bytes_that_make_no_sense_close_the_pair(gateway: Gateway) -> None:
    written: list[bytes] = []

    gateway.answers.answer(b"\0\x48\0\0\0\0\0\5\xff\xff\0\x20", gateway.peer, written.append)

    assert written == [b""]


def test_two_gateways_give_a_client_the_same_subscription_id() -> None:
    """In whatever order they heard of the subscriptions, and neither knows the other's clients."""
    a, b = {"metrics": "a,b,c", "interval.ms": "5000"}, {"metrics": "b,d", "match": "client_id=ord.*"}
    first, second = Gateway(a=a, b=b), Gateway(b=b, a=a)

    got = first.get()
    again = second.get(got.client_instance_id)

    assert again.client_instance_id == got.client_instance_id
    assert again.subscription_id == got.subscription_id
    assert again.requested_metrics == got.requested_metrics
    assert second.push(got.client_instance_id, got.subscription_id) is ErrorCode.NONE


def test_a_push_with_an_id_of_another_gateway_is_accepted_without_a_get(gateway: Gateway) -> None:
    got = Gateway(all=EVERYTHING).get()

    assert gateway.push(got.client_instance_id, got.subscription_id) is ErrorCode.NONE


def test_a_change_of_subscriptions_is_found_by_the_next_push(gateway: Gateway) -> None:
    got = gateway.get()
    gateway.broker.telemetry.update_subscription("all", {"metrics": "org.apache.kafka.producer."})

    assert gateway.push(got.client_instance_id, got.subscription_id) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    ((_, kept),) = gateway.receiver.taken
    assert kept.refused == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = gateway.get(got.client_instance_id)
    assert again.requested_metrics == ["org.apache.kafka.producer."]
    gateway.clock.advance(again.push_interval_ms)
    assert gateway.push(got.client_instance_id, again.subscription_id) is ErrorCode.NONE


def test_silence_empties_subscriptions_and_its_end_restores_them(gateway: Gateway) -> None:
    got = gateway.get()

    gateway.answers.silence(True)

    assert gateway.push(got.client_instance_id, got.subscription_id) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert gateway.get(got.client_instance_id).requested_metrics == []
    assert gateway.get().requested_metrics == []
    assert gateway.receiver.taken == []
    gateway.answers.silence(False)
    back = gateway.get(got.client_instance_id)
    assert (back.requested_metrics, back.subscription_id) == (["*"], got.subscription_id)


def test_an_answer_may_come_later(gateway: Gateway) -> None:
    sink = gateway.broker.sink = HeldSink()
    got = gateway.get()
    written = gateway.ask(pushed(got.client_instance_id, got.subscription_id))
    before = list(written)

    sink.kept[0].complete(True)

    assert before == []
    assert len(written) == 1
    assert gateway.answers.asking[id(gateway.peer)].waiting == set()


def test_a_spool_that_keeps_nothing_throttles_the_client(gateway: Gateway) -> None:
    sink = gateway.broker.sink = HeldSink()
    got = gateway.get()
    written = gateway.ask(pushed(got.client_instance_id, got.subscription_id))

    sink.kept[0].complete(False)

    assert int.from_bytes(written[0][9:11]) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert gateway.receiver.taken == []


def test_a_pair_that_has_closed_gets_no_answer_and_its_instance_is_forgotten(gateway: Gateway) -> None:
    sink = gateway.broker.sink = HeldSink()
    got = gateway.get()
    written = gateway.ask(pushed(got.client_instance_id, got.subscription_id))

    gateway.answers.closed(gateway.peer, in_order=True)
    sink.kept[0].complete(True)

    assert written == []
    assert gateway.answers.asking == {}
    assert gateway.broker.telemetry.instances() == []


def test_closing_a_pair_that_never_asked_does_nothing(gateway: Gateway) -> None:
    gateway.answers.closed(gateway.peer, in_order=True)

    assert gateway.answers.asking == {}


def test_a_receiver_that_raises_does_not_disturb_the_client(gateway: Gateway) -> None:
    class Broken:
        def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
            raise RuntimeError("broken")

    gateway.broker.telemetry.plugin.add_receiver("broken", Broken())
    got = gateway.get()

    assert gateway.push(got.client_instance_id, got.subscription_id) is ErrorCode.NONE


def test_a_bug_closes_the_pair_that_asked(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(gateway.answers.dispatcher, "answer", fail)

    assert gateway.ask(GetTelemetrySubscriptionsRequest()) == [b""]


def test_the_principal_that_was_learned_is_a_label_and_a_header(gateway: Gateway) -> None:
    labels = GatewayLabels("edge-1", ClusterName())
    gateway.broker.telemetry.enrichers.register("gateway", labels)
    sink = gateway.broker.sink = HeldSink()
    gateway.peer.principal, gateway.peer.principal_source = "User:alice", "sasl"
    labels.cluster.cluster_id = "the-cluster"
    got = gateway.get()

    gateway.ask(pushed(got.client_instance_id, got.subscription_id))

    record = sink.pushes[0].record()
    assert resource_labels(record.payload.data) == {
        "gateway": "edge-1",
        "cluster_id": "the-cluster",
        "broker_node_id": "7",
        "principal": "User:alice",
        "principal_source": "sasl",
    }
    headers = dict(encode_headers(record))
    assert headers["principal"] == b"User:alice"
    assert headers["client_source_address"] == b"10.1.2.3"
    assert headers["broker_id"] == b"7"


def test_answers_are_counted_by_api_and_error(gateway: Gateway) -> None:
    got = gateway.get()
    gateway.push(got.client_instance_id, got.subscription_id)
    gateway.push(got.client_instance_id, got.subscription_id)
    gateway.peer.awaiting_sasl = True
    gateway.ask(GetTelemetrySubscriptionsRequest())

    counts = {
        (row.attributes["api"], row.attributes["error"]): row.value for row in gateway.answers.metric_rows()
    }

    assert counts == {
        ("GetTelemetrySubscriptions", "NONE"): 1,
        ("PushTelemetry", "NONE"): 1,
        ("PushTelemetry", "THROTTLING_QUOTA_EXCEEDED"): 1,
        ("GetTelemetrySubscriptions", "CLOSED"): 1,
    }
