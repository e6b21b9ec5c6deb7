"""Recorded pushes of real clients, labeled by the host and merged by odradek-otlp."""

from __future__ import annotations

from collections import Counter

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.telemetry.payload import label
from odradek.testing.pushes import RecordedPush, recorded, recorded_clients
from odradek_otlp.metrics_bytes import filtered, merged
from support import attribute_loop

PUSHES = [push for client in recorded_clients() for push in recorded(client)[1:3]]
"""The first push of each client contains little yet."""
LABELS = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders-producer-7",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "10.20.30.40",
    "client_source_port": "53211",
    "principal": "User:orders",
    "broker_node_id": "1",
}


def named(push: RecordedPush) -> str:
    return f"{push.client}-{push.context.correlation_id}"


def labeled(push: RecordedPush) -> bytes:
    return label(push.data, encode_labels(LABELS), PayloadLimits())


def places(data: bytes) -> Counter[tuple[str, bytes, bytes]]:
    """The labels, scope and metric of each data point."""
    return Counter(
        (
            str(sorted((each.key, each.value.string_value) for each in entry.resource.attributes)),
            scope.scope.SerializeToString(),
            metric.SerializeToString(),
        )
        for entry in MetricsData.FromString(data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    )


@pytest.mark.parametrize("push", PUSHES, ids=named)
def test_no_metric_and_no_label_is_lost(push: RecordedPush) -> None:
    slowly = attribute_loop.label(push.data, LABELS)

    smaller = merged(labeled(push) * 3)

    assert places(smaller) == Counter({place: 3 * count for place, count in places(slowly).items()})
    assert len(MetricsData.FromString(smaller).resource_metrics) == 1


@pytest.mark.parametrize("push", PUSHES, ids=named)
def test_a_filter_keeps_whole_metrics(push: RecordedPush) -> None:
    data = labeled(push)
    prefix = b"org.apache.kafka.producer.connection."

    kept = filtered(data, (prefix,))

    assert places(kept) == Counter(
        {place: count for place, count in places(data).items() if prefix in place[2][: len(prefix) + 3]}
    )


def test_a_java_push_is_a_third_of_its_size_with_labels_on_each_metric() -> None:
    java = [push for push in PUSHES if push.client == "java-producer"]

    slowly = sum(len(attribute_loop.label(push.data, LABELS)) for push in java)
    one_by_one = sum(len(merged(labeled(push))) for push in java)
    together = len(merged(b"".join(labeled(push) for push in java)))

    assert slowly >= 3 * one_by_one >= 3 * together
