"""The page of real clients' pushes, as a strict parser reads it."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from odradek.temporality import Kind
from odradek.testing.pushes import RecordedPush, recorded, recorded_clients
from odradek_prometheus.metric_names import escaped_name
from odradek_prometheus.text_format import Format, Page
from support.exposed_clients import Exposed

CLIENTS = recorded_clients()
Sample = tuple[str, Mapping[str, str], float]


@cache
def exposed() -> Exposed:
    """An exposition that has got all recorded pushes."""
    found = Exposed()
    for push in recorded():
        found.deliver(push.record)
    return found


@cache
def samples() -> list[Sample]:
    clients = exposed().exposition.clients()
    now_ms = max(client.received_ms for client in clients)
    text = b"".join(Page(clients, now_ms, Format()).pieces()).decode()
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    ]


def instance_of(push: RecordedPush) -> str:
    """The client instance, as Kafka prints it."""
    return urlsafe_b64encode(push.payload.client_instance_id).decode().rstrip("=")


def of_client(client: str) -> list[Sample]:
    instances = {instance_of(push) for push in recorded(client)}
    return [sample for sample in samples() if sample[1].get("client_instance_id") in instances]


def test_all_clients_are_there() -> None:
    infos = [labels for name, labels, _ in samples() if name == "kafka_client_info"]

    assert {labels["client_instance_id"] for labels in infos} == set(map(instance_of, recorded()))
    assert len({labels["client_software_name"] for labels in infos}) == 3


def test_no_series_is_there_twice() -> None:
    found = Counter((name, tuple(sorted(labels.items()))) for name, labels, _ in samples())

    assert found.most_common(1)[0][1] == 1
    assert not any(client.mapped.hidden for client in exposed().exposition.clients())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_total_is_the_sum_of_all_deltas(client: str) -> None:
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for push in recorded(client):
        for entry in MetricsData.FromString(push.data).resource_metrics:
            for metric in (metric for scope in entry.scope_metrics for metric in scope.metrics):
                for point in metric.sum.data_points:
                    name = escaped_name(metric.name, metric.unit, Kind.COUNTER)
                    expected[instance_of(push), name] += point.as_double or point.as_int

    found = defaultdict[tuple[str, str], float](float)
    for name, labels, value in of_client(client):
        if (labels["client_instance_id"], name) in expected:
            found[labels["client_instance_id"], name] += value

    assert expected
    assert found == pytest.approx(expected, rel=1e-12)


def test_nodes_of_both_libraries_have_the_same_names() -> None:
    nodes = {
        client: {labels["node_id"] for _, labels, _ in of_client(client) if "node_id" in labels}
        for client in ("java-producer", "librdkafka-producer")
    }

    assert nodes["java-producer"] & nodes["librdkafka-producer"]
    assert all(each.removeprefix("-").isdigit() for each in nodes["java-producer"])


def test_the_broker_is_told_beside_the_nodes() -> None:
    infos = [labels for name, labels, _ in of_client("java-consumer") if name == "kafka_client_info"]

    assert infos
    for info in infos:
        assert info["broker_node_id"]
        assert "node_id" not in info
