"""Pushes as a test sees them, and the explanation if they do not come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from conformance.telemetry_broker import otlp
from odradek.testing import NothingCame, RunningHost, VirtualClock
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.wire_client import WireClient


@pytest.fixture
def client(odradek_host: RunningHost) -> Iterator[WireClient]:
    with WireClient(odradek_host.address, "me") as client:
        client.introduce("my-client", "1.2")
        yield client


def test_the_telemetry_apis_are_offered(client: WireClient) -> None:
    response = client.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)

    assert {71, 72} <= {row.api_key for row in response.api_keys}


def test_a_subscription_selects_metrics(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.subscribe(["org.a.", "org.b."], interval_ms=250, match={"client_id": "m."})
    odradek_host.subscribe("org.c.", match={"client_id": "another"}, name="others")

    told = client.subscriptions()

    assert told.requested_metrics == ["org.a.", "org.b."]
    assert told.push_interval_ms == 250


def test_a_subscription_can_be_replaced_and_removed(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.subscribe("org.a.")
    odradek_host.subscribe("org.b.")
    replaced = client.subscriptions()
    odradek_host.unsubscribe()

    ended = client.subscriptions()

    assert replaced.requested_metrics == ["org.b."]
    assert ended.requested_metrics == []


def of_cluster(host: RunningHost) -> bytes:
    """The push of `org.x` as it is stored: with the name of the cluster."""
    data = MetricsData.FromString(otlp("org.x"))
    label = data.resource_metrics[0].resource.attributes.add(key="cluster.name")
    label.value.string_value = host.host.broker.cluster_id
    return data.SerializeToString()


def test_a_subscription_must_be_valid(odradek_host: RunningHost) -> None:
    with pytest.raises(ApiError) as refused:
        odradek_host.subscribe("org.", interval_ms=99)

    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_an_unknown_selector_is_refused_with_the_nearest_name(odradek_host: RunningHost) -> None:
    with pytest.raises(ValueError, match=r"unknown selector 'clientid': did you mean client_id\?"):
        odradek_host.subscribe(match={"clientid": "me"})


def test_a_push_is_decoded_and_its_payload_kept(odradek_host: RunningHost, client: WireClient) -> None:
    sent = compress(Codec.ZSTD, otlp("org.x"))

    client.push(sent, Codec.ZSTD)

    (point,) = odradek_host.telemetry.wait_for("org.x", client_id="me")
    (push,) = odradek_host.telemetry.pushes
    assert (point.metric, push.points) == ("org.x", [point])
    assert (push.request.metrics, push.data) == (sent, of_cluster(odradek_host))
    assert push.context.connection.client_software_name == "my-client"
    assert (push.client_id, push.error, push.terminating, push.number) == ("me", ErrorCode.NONE, False, 1)


def test_labels_of_enrichers_are_seen(odradek_hosts: Callable[..., RunningHost]) -> None:
    pytest.importorskip("odradek_enrich")
    host = odradek_hosts(plugins={"enrich": {}})
    with WireClient(host.address, "me") as client:
        client.introduce()
        client.push(otlp("org.x"))

    (point,) = host.telemetry.wait_for("org.x")

    assert point.labels["client_id"] == "me"


def test_a_payload_decompressed_by_a_worker_is_an_ordinary_push(
    odradek_hosts: Callable[..., RunningHost],
) -> None:
    host = odradek_hosts(payload_workers=1, telemetry_inline_bytes=0)
    with WireClient(host.address, "me") as client:
        client.introduce()
        client.push(otlp("org.x"))

    (push,) = host.telemetry.pushes

    assert (push.error, push.metrics) == (ErrorCode.NONE, ["org.x"])


@pytest.mark.parametrize("clock", [None, VirtualClock()], ids=["system", "virtual"])
def test_a_push_stored_in_the_log_is_seen_too(
    odradek_hosts: Callable[..., RunningHost], clock: VirtualClock | None
) -> None:
    host = odradek_hosts(clock=clock, telemetry_durability="log")
    with WireClient(host.address, "me") as client:
        client.introduce()
        client.push(otlp("org.x"))

    (point,) = host.telemetry.wait_for("org.x")

    assert point.metric == "org.x"
    assert [record.value for record in host.topics.records("__client_telemetry")] == [of_cluster(host)]


def test_refused_and_empty_pushes_are_recorded_too(odradek_host: RunningHost, client: WireClient) -> None:
    client.push(b"not otlp")
    client.push(b"")

    refused = odradek_host.telemetry.wait_for_push(error="INVALID_RECORD")
    empty = odradek_host.telemetry.wait_for_push(after=refused)

    assert (refused.points, empty.points) == ([], [])


@pytest.mark.parametrize("policy", ["client-safe", "kafka"])
def test_null_metrics_close_the_connection_only_under_the_kafka_policy(
    odradek_hosts: Callable[..., RunningHost], policy: str
) -> None:
    host = odradek_hosts(telemetry_error_policy=policy)
    with WireClient(host.address, "me") as client:
        client.introduce()
        told = client.subscriptions()
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id, subscription_id=told.subscription_id, metrics=None
        )

        client.send_bytes(client.frame(request, 0))

        if policy == "kafka":
            assert client.closed_by_peer()
        else:
            assert client.answer(request, 0).error_code == ErrorCode.NONE


def test_waiting_ends_as_soon_as_the_data_comes(odradek_host: RunningHost, client: WireClient) -> None:
    pushing = threading.Timer(0.05, client.push, [otlp("org.late")])
    pushing.start()

    points = odradek_host.telemetry.wait_for("org.late", timeout_s=10)

    pushing.join()
    assert len(points) == 1


def test_a_missing_metric_is_explained(odradek_host: RunningHost, client: WireClient) -> None:
    odradek_host.subscribe("org.", match={"client_id": "m."})
    odradek_host.fault("Fetch", drop="before", optional=True)
    client.push(otlp("org.near", "org.far"))

    with pytest.raises(NothingCame) as missed:
        odradek_host.telemetry.wait_for("org.neer", client_id="me", timeout_s=0.01)

    size = len(otlp("org.near", "org.far"))
    assert str(missed.value).splitlines() == [
        "no data point of metric org.neer of client me within 0.01 s",
        "subscriptions:",
        "  test: metrics=org. interval.ms=100 match={'client_id': 'm.'}",
        "clients:",
        "  me (my-client 1.2): ApiVersions 1, GetTelemetrySubscriptions 1, PushTelemetry 1",
        "pushes: 1",
        f"  me: NONE, {size} bytes, 2 metrics",
        "received metrics:",
        "  org.far",
        "  org.near",
        "faults:",
        "  Fetch drop=before (0 of 1)",
    ]


def test_a_late_subscription_is_explained(odradek_host: RunningHost, client: WireClient) -> None:
    client.subscriptions()
    odradek_host.subscribe("org.")

    with pytest.raises(NothingCame) as missed:
        odradek_host.telemetry.wait_for("org.x", timeout_s=0)

    told = "  me got an empty subscription and asks again after 300 s: subscribe before it starts"
    assert told in str(missed.value).splitlines()


def test_a_test_without_a_subscription_gets_an_explanation(odradek_host: RunningHost) -> None:
    with pytest.raises(NothingCame) as missed:
        odradek_host.telemetry.wait_for_push(terminating=True, timeout_s=0)

    assert str(missed.value).splitlines() == [
        "no terminating push answered NONE of client (any) within 0 s",
        "subscriptions: none, so clients have nothing to push",
        f"clients: none has connected to {odradek_host.bootstrap}",
        "pushes: 0",
    ]
