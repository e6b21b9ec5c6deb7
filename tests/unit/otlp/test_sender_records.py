"""The records of an OTLP request: which client they are of, and what is known of it."""

from __future__ import annotations

import base64

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import NotOtlp, Sender, otlp_records
from odradek.otlp.sender_records import MAX_RESOURCES

SENDER = Sender(address="10.0.0.7", port=40_000, principal="User:otlp", security_protocol="SSL")
RAW_ID = bytes(range(16))
ID = base64.urlsafe_b64encode(RAW_ID).decode().rstrip("=")


def entry(metric: str = "load", **attributes: str | int) -> ResourceMetrics:
    pairs = [
        KeyValue(
            key=key.replace("__", "."),
            value=AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value),
        )
        for key, value in attributes.items()
    ]
    gauge = Gauge(data_points=[NumberDataPoint(as_int=7)])
    scope = ScopeMetrics(metrics=[Metric(name=metric, gauge=gauge)])
    return ResourceMetrics(resource=Resource(attributes=pairs), scope_metrics=[scope])


def body_of(*entries: ResourceMetrics) -> bytes:
    return MetricsData(resource_metrics=entries).SerializeToString()


def test_each_resource_is_a_client_instance() -> None:
    entries = (
        entry(
            "m1", service__name="billing", telemetry__sdk__name="opentelemetry", telemetry__sdk__version="1.3"
        ),
        entry("m2", service__name="orders"),
        entry(
            "m3", service__name="billing", telemetry__sdk__name="opentelemetry", telemetry__sdk__version="1.3"
        ),
    )

    billing, orders = otlp_records(body_of(*entries), SENDER, 5, 60_000)

    assert billing.payload.data == body_of(entries[0], entries[2])
    assert orders.payload.data == body_of(entries[1])
    assert (billing.context.client_id, orders.context.client_id) == ("billing", "orders")
    assert billing.payload.client_instance_id != orders.payload.client_instance_id
    assert billing.context.connection.client_software_name == "opentelemetry"
    assert billing.context.connection.client_software_version == "1.3"
    assert orders.context.connection.client_software_name == "unknown"
    assert (billing.labeled, billing.push_interval_ms, billing.context.received_ms) == (False, 60_000, 5)
    assert billing.context.connection.client_address == "10.0.0.7"


def test_equal_resources_are_the_same_client_in_every_request() -> None:
    first, second = (otlp_records(body_of(entry(metric, host="a")), SENDER, 1, 1)[0] for metric in ("x", "y"))

    assert first.payload.client_instance_id == second.payload.client_instance_id


def test_the_instance_id_of_a_kafka_client_is_kept() -> None:
    (record,) = otlp_records(body_of(entry(client_instance_id=ID, client_id="orders")), SENDER, 1, 1)

    assert record.payload.client_instance_id == RAW_ID
    assert record.context.client_id == "orders"


@pytest.mark.parametrize("text", ["short", "x" * 22 + "!", "AAAAAAAAAAAAAAAAAAAAAA", "é" * 22])
def test_another_text_is_not_an_instance_id(text: str) -> None:
    (record,) = otlp_records(body_of(entry(client_instance_id=text)), SENDER, 1, 1)

    assert len(record.payload.client_instance_id) == 16
    assert any(record.payload.client_instance_id)


def test_the_number_of_resources_is_bounded() -> None:
    body = body_of(*(entry(host=str(number)) for number in range(MAX_RESOURCES + 1)))

    with pytest.raises(NotOtlp, match="1000"):
        otlp_records(body, SENDER, 1, 1)


def test_resources_with_the_same_instance_id_are_one_record() -> None:
    entries = entry("m1", client_instance_id=ID, rack="a"), entry("m2", client_instance_id=ID, rack="b")

    (record,) = otlp_records(body_of(*entries), SENDER, 1, 1)

    assert record.payload.data == body_of(*entries)


def test_without_a_connection_the_resource_tells_the_client() -> None:
    forwarded = entry(
        client_source_address="10.1.2.3",
        client_source_port=40_000,
        principal="User:ann",
        kafka__broker__id="7",
    )

    (record,) = otlp_records(body_of(forwarded), Sender(), 1, 1, "kafka")

    connection = record.context.connection
    assert (connection.client_address, connection.client_port) == ("10.1.2.3", 40_000)
    assert (connection.principal, connection.node_id) == ("User:ann", 7)
    assert (record.source, record.labeled) == ("kafka", False)


def test_what_the_connection_tells_wins_over_the_resource() -> None:
    claimed = entry(client_source_address="10.1.2.3", client_source_port="1", principal="User:admin")

    (record,) = otlp_records(body_of(claimed), SENDER, 1, 1)

    connection = record.context.connection
    assert (connection.client_address, connection.client_port) == ("10.0.0.7", 40_000)
    assert connection.principal == "User:otlp"


@pytest.mark.parametrize("text", ["-1", "x", "99999999999", "4294967296", "\u0661", ""])
def test_another_text_is_not_a_broker(text: str) -> None:
    (record,) = otlp_records(body_of(entry(broker_node_id=text)), Sender(), 1, 1)

    assert record.context.connection.node_id == -1
