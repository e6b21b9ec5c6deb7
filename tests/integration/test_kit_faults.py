"""Every fault that a host can be told to inject, as a client sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from conformance.telemetry_broker import otlp
from odradek.testing import NothingCame, RunningHost, VirtualClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.data_requests import fetch_request, produce_request
from support.wire_client import WireClient

TOPICS = MetadataRequest(topics=[])


@pytest.fixture
def client(odradek_host: RunningHost) -> Iterator[WireClient]:
    """A connection to the host of the test."""
    with WireClient(odradek_host.address) as client:
        client.introduce()
        yield client


def produce_one(topic: str, acks: int = -1) -> ProduceRequest:
    return produce_request(topic, build_batch([Record(None, b"value")]), acks=acks)


def fetch(topic: str, max_wait_ms: int) -> FetchRequest:
    return fetch_request(topic, max_wait_ms=max_wait_ms)


def test_an_error_is_returned_as_often_as_ordered(odradek_host: RunningHost, client: WireClient) -> None:
    fault = odradek_host.fault("PushTelemetry", error="TELEMETRY_TOO_LARGE", times=2)

    answers = [client.push(otlp("x")) for _ in range(3)]

    assert answers == [ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.NONE]
    assert fault.used == 2
    assert [push.fault for push in odradek_host.telemetry.pushes] == [fault, fault, None]
    assert [push.metrics for push in odradek_host.telemetry.pushes] == [[], [], ["x"]]


def test_an_error_is_put_where_its_api_has_it(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Produce", error=ErrorCode.NOT_ENOUGH_REPLICAS)

    response = client.send(produce_one("t"), 9)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert odradek_host.topics.records("t") == []


def test_an_unknown_subscription_lets_the_client_ask_again_at_once(
    odradek_host: RunningHost, client: WireClient
) -> None:
    odradek_host.subscribe(interval_ms=60_000)
    odradek_host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID")
    instance = client.subscriptions().client_instance_id
    client.push(otlp("x"))
    refused = odradek_host.telemetry.pushes[0].request.client_instance_id

    again = client.subscriptions(refused)

    assert again.error_code == ErrorCode.NONE
    assert client.subscriptions(instance).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_other_clients_are_not_affected(odradek_host: RunningHost) -> None:
    odradek_host.fault("Metadata", client_id="bad-*", drop="before", times=None)

    with WireClient(odradek_host.address, "good") as good, WireClient(odradek_host.address, "bad-1") as bad:
        response = good.send(TOPICS)
        bad.send_bytes(bad.frame(TOPICS, 12))

        assert response.brokers
        assert bad.closed_by_peer()


def test_a_request_can_be_dropped_before_its_effect(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Produce", drop="before")

    client.send_bytes(client.frame(produce_one("t"), 9))

    assert client.closed_by_peer()
    assert odradek_host.topics.records("t") == []


def test_a_request_can_be_dropped_after_its_effect(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Produce", drop="after")

    client.send_bytes(client.frame(produce_one("t"), 9))

    assert client.closed_by_peer()
    assert [record.value for record in odradek_host.topics.records("t")] == [b"value"]


def test_a_dropped_push_is_accepted_but_not_answered(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.fault("PushTelemetry", drop="after")

    with pytest.raises(ConnectionError):
        client.push(otlp("x"))

    (push,) = odradek_host.telemetry.pushes
    assert (push.error, push.metrics) == (None, ["x"])


def test_a_long_poll_is_dropped_when_it_would_be_answered(
    odradek_host: RunningHost, client: WireClient
) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Fetch", drop="after")

    client.send_bytes(client.frame(fetch("t", 50), 11))

    assert client.closed_by_peer()


def test_an_answer_can_be_delayed(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.fault("Metadata", delay_ms=100)
    begin_s = time.monotonic()

    response = client.send(TOPICS)

    assert response.brokers
    assert time.monotonic() - begin_s >= 0.09


def test_a_delayed_answer_waits_for_the_virtual_clock(odradek_hosts: object) -> None:
    clock = VirtualClock()
    host: RunningHost = odradek_hosts(clock=clock)  # type: ignore[operator]
    host.fault("Metadata", delay_ms=3_600_000)
    with WireClient(host.address) as client:
        client.send_bytes(client.frame(TOPICS, 12))
        host.arrivals.wait_for(lambda: len(host.requests) or None, 5, "request")
        assert not next(iter(host.requests)).answered

        clock.advance(3_600_000)

        assert client.answer(TOPICS, 12).brokers


def test_a_delayed_long_poll_is_answered_in_the_end(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Fetch", delay_ms=50)

    response = client.send(fetch("t", 50), 11)

    assert response.responses[0].partitions[0].high_watermark == 0


def test_a_throttle_time_is_returned(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Fetch", throttle_ms=1_234)
    odradek_host.fault("Metadata", throttle_ms=2_345)

    assert client.send(fetch("t", 0), 11).throttle_time_ms == 1_234
    assert client.send(TOPICS).throttle_time_ms == 2_345
    assert client.send(TOPICS).throttle_time_ms == 0


@pytest.mark.parametrize(("garbage", "body"), [(True, b"\xff" * 16), (b"nonsense", b"nonsense")])
def test_garbage_is_sent_in_a_complete_frame(
    odradek_host: RunningHost, client: WireClient, garbage: bool | bytes, body: bytes
) -> None:
    odradek_host.fault("Metadata", garbage=garbage)

    client.send_bytes(client.frame(TOPICS, 12))

    assert client.receive_frame()[5:] == body
    assert client.send(TOPICS).brokers


def test_a_produce_without_acks_can_be_dropped(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.topics.create("t")
    odradek_host.fault("Produce", drop="after")

    client.send_bytes(client.frame(produce_one("t", acks=0), 9))

    assert client.closed_by_peer()


def test_faults_apply_in_the_order_they_were_given(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID")
    odradek_host.fault("PushTelemetry", error="INVALID_RECORD")

    answers = [client.push(otlp("x")) for _ in range(3)]

    assert answers == [117, 87, 0]


@pytest.mark.parametrize(
    ("api", "orders", "complaint"),
    [
        ("PushTelemetri", {"drop": "after"}, "no API 'PushTelemetri': did you mean PushTelemetry[?]"),
        ("PushTelemetry", {}, "no effect given"),
        ("PushTelemetry", {"error": "TOO_LARGE"}, "unknown error code 'TOO_LARGE'"),
        ("PushTelemetry", {"drop": "befor"}, "drop='befor': expected 'before' or 'after'"),
        ("PushTelemetry", {"drop": "after", "times": 0}, "times=0: expected at least 1"),
        ("PushTelemetry", {"delay_ms": -1}, "delay_ms=-1: must not be negative"),
        ("PushTelemetry", {"throttle_ms": -1}, "throttle_ms=-1: must not be negative"),
    ],
)
def test_an_invalid_fault_is_refused(
    odradek_host: RunningHost, api: str, orders: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        odradek_host.fault(api, **orders)  # type: ignore[arg-type]


def test_all_requests_are_logged_with_their_sizes(odradek_host: RunningHost, client: WireClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="absent")])
    frame = client.frame(request, 12)
    client.send_bytes(frame)
    answer = client.receive_frame()

    first, second = odradek_host.requests.wait_for("Metadata", client_id="raw") and odradek_host.requests

    assert (first.api, first.version, first.error) == ("ApiVersions", 3, ErrorCode.NONE)
    assert (second.request_bytes, second.response_bytes) == (len(frame) - 4, len(answer))
    assert second.context.connection.client_software_name == "raw-client"


def test_missing_requests_are_explained(odradek_host: RunningHost, client: WireClient) -> None:
    client.send(TOPICS)

    with pytest.raises(NothingCame) as missed:
        odradek_host.requests.wait_for("Metadata", client_id="raw", count=2, timeout_s=0.01)

    assert "no 2 Metadata of client raw within 0.01 s" in str(missed.value)
    assert "raw (raw-client 1.0): ApiVersions 1, Metadata 1" in str(missed.value)


def test_an_unknown_api_raises_instead_of_returning_no_requests(odradek_host: RunningHost) -> None:
    with pytest.raises(ValueError, match=r"no API 'Produse': did you mean Produce\?"):
        odradek_host.requests.of("Produse")
    with pytest.raises(ValueError, match=r"no API 'Produse': did you mean Produce\?"):
        odradek_host.requests.wait_for("Produse", timeout_s=0)
