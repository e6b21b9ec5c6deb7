"""Rules about names and labels of pushed metrics."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from support.conversations import Conversation


def payload(
    name: str = "org.apache.kafka.producer.x", resource: tuple[str, ...] = (), point: tuple[str, ...] = ()
) -> bytes:
    """One gauge with one point."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    for label in resource:
        entry.resource.attributes.add(key=label).value.string_value = "x"
    metric = entry.scope_metrics.add().metrics.add(name=name)
    number = metric.gauge.data_points.add(as_double=1)
    for label in point:
        number.attributes.add(key=label).value.string_value = "x"
    return data.SerializeToString()


def pushed(data: bytes, prefixes: tuple[str, ...] = ("*",)) -> Conversation:
    return Conversation(prefixes=prefixes).handshake(0).push(1, data=data)


@pytest.mark.parametrize(
    "name", ["org.apache.kafka.producer.x", "io.confluent.librdkafka.x_1", "com.example.x"]
)
def test_a_name_with_a_domain_passes(name: str) -> None:
    assert pushed(payload(name)).rule("metric names").verdict == "ok"


@pytest.mark.parametrize(
    "name", ["connections", "org.apache.kafka.Producer", "org.apache.kafka.record-rate", ""]
)
def test_another_name_fails(name: str) -> None:
    assert pushed(payload(name)).verdict("metric names") == ("wrong", name)


def test_a_metric_that_was_not_requested_fails() -> None:
    data = payload("com.example.x")

    assert pushed(data, ("com.",)).rule("requested metrics").verdict == "ok"
    assert pushed(data, ("org.", "net.")).verdict("requested metrics") == ("wrong", "com.example.x")


def test_resource_labels_must_be_those_of_the_kip_or_the_host() -> None:
    assert pushed(payload(resource=("client_rack", "principal"))).verdict("resource labels") == (
        "ok",
        "client_rack",
    )
    assert pushed(payload(resource=("member_id", "group.id"))).verdict("resource labels") == (
        "wrong",
        "group.id (should be group_id), member_id (should be group_member_id)",
    )


def test_a_group_member_must_name_its_group() -> None:
    data = payload("org.apache.kafka.consumer.coordinator.x")

    assert pushed(data).verdict("resource labels") == ("wrong", "a member of a group without group_id")


def test_labels_of_points_have_underscores() -> None:
    assert pushed(payload(point=("node_id", "topic"))).verdict("point labels") == ("ok", "node_id, topic")
    assert pushed(payload(point=("node.id",))).verdict("point labels") == (
        "wrong",
        "node.id (should be node_id)",
    )


@pytest.mark.parametrize("data", [b"", b"\xff\xff"])
def test_a_payload_without_metrics_leaves_the_rules_unseen(data: bytes) -> None:
    report = pushed(data).report()

    verdicts = {row.rule: row.verdict for row in report.rules}
    assert (verdicts["metric names"], verdicts["point labels"]) == ("unseen", "unseen")
    assert (report.metrics_sent, report.metrics) == (0, [])
