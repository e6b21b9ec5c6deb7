"""A label of a Resource that a data point has too is renamed, for this point only."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData, ResourceMetrics, ScopeMetrics

from odradek.plugin import label_name
from odradek_otlp import distinct_labels
from odradek_otlp.distinct_labels import DistinctLabels
from odradek_otlp.metrics_bytes import merged

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit

LABELS = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "10.0.0.1",
    "client_source_port": "50000",
    "principal": "User:orders",
    "broker_node_id": "1",
}
KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
Point = tuple[str, dict[str, str]]
"""The name of a metric, and the labels of one of its series."""


def set_attributes(attributes: Any, values: Mapping[str, str]) -> None:
    for key, value in values.items():
        attributes.add(key=key).value.string_value = value


def entry(
    labels: Mapping[str, str], *metrics: tuple[str, str, Sequence[Mapping[str, str]]]
) -> ResourceMetrics:
    """A ResourceMetrics of metrics with their name, kind and the attributes of each point."""
    found = ResourceMetrics()
    set_attributes(found.resource.attributes, labels)
    scope = found.scope_metrics.add()
    for name, kind, points in metrics:
        data = getattr(scope.metrics.add(name=name), kind)
        for attributes in points:
            set_attributes(data.data_points.add().attributes, attributes)
    return found


def push(*entries: ResourceMetrics) -> bytes:
    return MetricsData(resource_metrics=entries).SerializeToString()


def series(data: bytes) -> list[Point]:
    """The series at a destination that lets the Resource overwrite the attributes of points."""
    found = []
    for each in MetricsData.FromString(data).resource_metrics:
        labels = {label_name(a.key): a.value.string_value for a in each.resource.attributes}
        for scope in each.scope_metrics:
            for metric in scope.metrics:
                for point in getattr(metric, str(metric.WhichOneof("data"))).data_points:
                    own = {label_name(a.key): a.value.string_value for a in point.attributes}
                    found.append((metric.name, own | labels))
    return found


def test_a_push_without_collision_is_the_same_object() -> None:
    data = push(entry(LABELS, ("a", "sum", [{"node_id": "node-1"}, {"topic": "client"}])))
    labels = DistinctLabels()

    found = labels.apply(data)

    assert found is data
    assert labels.points == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_point_keeps_its_own_label(kind: str) -> None:
    data = push(entry(LABELS | {"topic": "static"}, ("a", kind, [{"topic": "orders"}, {}])))
    labels = DistinctLabels()

    found = labels.apply(data)

    assert series(found) == [
        ("a", LABELS | {"topic": "orders", "host_topic": "static"}),
        ("a", LABELS | {"topic": "static"}),
    ]
    assert labels.points == 1


@pytest.mark.parametrize(
    ("label", "attribute", "new_name"),
    [
        ("node_id", "node_id", "host_node_id"),  # broker_node_id is there already
        ("node_id", "node.id", "host_node_id"),
        ("group_id", "group_id", "client_group_id"),
        ("team.name", "team_name", "host_team_name"),
        ("1st", "key_1st", "host_key_1st"),
        ("key_1st", "1st", "host_key_1st"),
        ("attribute_le", "le", "host_attribute_le"),
        ("", "", "host_"),
        ("größe", "gr..e", "host_gr__e"),
    ],
)
def test_a_name_is_equal_if_the_labels_are(label: str, attribute: str, new_name: str) -> None:
    data = push(entry(LABELS | {label: "host"}, ("a", "sum", [{attribute: "own"}])))

    ((_, found),) = series(DistinctLabels().apply(data))

    assert found == LABELS | {label_name(attribute): "own", new_name: "host"}


def test_the_kip_s_name_of_the_broker_becomes_the_default_one() -> None:
    labels = {"client_id": "orders", "node_id": "1"}
    data = push(entry(labels, ("a", "sum", [{"node_id": "node-1"}])))

    ((_, found),) = series(DistinctLabels().apply(data))

    assert found == {"client_id": "orders", "node_id": "node-1", "broker_node_id": "1"}


def test_names_collide_if_their_labels_are_equal() -> None:
    chance = random.Random(714)

    def name() -> str:
        return "".join(chance.choices(["a", "b", "_", ".", "1", "key", "é", "le"], k=chance.randint(1, 3)))

    for _ in range(3_000):
        label, attribute = name(), name()
        data = push(entry({label: "host"}, ("m", "sum", [{attribute: "own"}])))

        found = DistinctLabels().apply(data)

        assert (found is not data) == (label_name(label) == label_name(attribute)), (label, attribute)


def test_two_labels_of_a_resource_with_one_name() -> None:
    data = push(entry({"client.id": "own", "client_id": "orders"}, ("a", "sum", [{}])))

    ((_, found),) = series(DistinctLabels().apply(data))

    assert found == {"client_id": "own", "host_client_id": "orders"}


def test_java_pushes_without_labels_of_the_host() -> None:
    """150 ResourceMetrics that repeat the client's own Resource."""
    entries = [entry({"group_id": "g"}, (f"m{number}", "sum", [{"topic": "t"}])) for number in range(150)]
    clean, colliding = (
        push(*entries),
        push(*entries, entry({"group_id": "g"}, ("x", "sum", [{"group_id": "p"}]))),
    )
    labels = DistinctLabels()

    assert labels.apply(clean) is clean
    assert series(labels.apply(colliding))[-1] == ("x", {"group_id": "p", "client_group_id": "g"})


def test_scopes_schemas_and_metrics_without_points_stay() -> None:
    whole = entry({"topic": "static"}, ("a", "sum", [{"topic": "orders"}]), ("empty", "gauge", []))
    whole.schema_url = "resource"
    whole.scope_metrics[0].schema_url = "scope"
    whole.scope_metrics[0].scope.name = "library"
    whole.scope_metrics[0].metrics.add(name="nothing")
    whole.scope_metrics[0].metrics[0].sum.is_monotonic = True
    whole.scope_metrics[0].metrics[0].unit = "1"

    found = MetricsData.FromString(DistinctLabels().apply(push(whole)))

    def of(each: ScopeMetrics) -> list[str]:
        return [metric.name for metric in each.metrics]

    assert [
        (e.schema_url, s.schema_url, s.scope.name) for e in found.resource_metrics for s in e.scope_metrics
    ] == [("resource", "scope", "library")] * 2
    assert [of(s) for e in found.resource_metrics for s in e.scope_metrics] == [["a"], ["empty", "nothing"]]
    first = found.resource_metrics[0].scope_metrics[0].metrics[0]
    assert (first.sum.is_monotonic, first.unit) == (True, "1")


def test_a_large_push_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_labels, "MAX_TAKEN_APART_BYTES", 10)
    data = push(entry({"topic": "static"}, ("a", "sum", [{"topic": "orders"}, {}])))

    found = series(DistinctLabels().apply(data))

    assert found == [("a", {"topic": "orders", "host_topic": "static"}), ("a", {"host_topic": "static"})]


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe no protobuf", b"\x0a\x02\x0a\x7f", b"\x0a\x05\x0a\x01\xff\x12\x00"]
)
def test_other_bytes_are_unchanged(data: bytes) -> None:
    assert DistinctLabels().apply(data) == data


def test_each_name_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    labels = DistinctLabels()
    data = push(entry({"topic": "static", "team": "x"}, ("a", "sum", [{"topic": "orders", "team": "y"}])))

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            labels.apply(data)

    found = [(record.__dict__["label"], record.__dict__["new_name"]) for record in caplog.records]
    assert found == [("topic", "host_topic"), ("team", "host_team")]
    assert labels.points == 3


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_labels, "MAX_CLEAN", 10)
    labels = DistinctLabels()

    for number in range(100):
        labels.apply(push(entry({"client_id": str(number)}, ("a", "sum", [{}]))))

    assert 0 < len(labels.clean) <= 10


def test_a_known_length_is_not_looked_into_but_now_and_then() -> None:
    """An attribute of the same length in place of another: no client is known that does this."""
    clean, colliding = (
        push(entry({"topic": "static"}, ("a", "sum", [{key: "x"}]))) for key in ("group", "topic")
    )
    labels = DistinctLabels()
    labels.apply(clean)

    sent = [labels.apply(colliding) is colliding for _ in range(100)]

    assert sent == [True] * 63 + [False] * 37


def test_another_length_is_looked_into_at_once() -> None:
    clean = push(entry({"topic": "static"}, ("a", "sum", [{"group": "x"}])))
    labels = DistinctLabels()
    labels.apply(clean)

    ((_, found),) = series(labels.apply(push(entry({"topic": "static"}, ("a", "sum", [{"topic": "xy"}])))))

    assert found == {"topic": "xy", "host_topic": "static"}


def test_equal_resources_are_written_once_after_it() -> None:
    data = push(entry({"topic": "static"}, ("a", "sum", [{"topic": "orders"}]), ("b", "sum", [{}])))
    labels = DistinctLabels()

    smaller = merged(labels.apply(data) + labels.apply(data))

    assert len(MetricsData.FromString(smaller).resource_metrics) == 2


@pytest.mark.parametrize("table", [{}, {"labels.distinct": False}], ids=["default", "off"])
def test_a_destination_may_keep_them_apart_itself(kit: Kit, table: dict[str, object]) -> None:
    from odradek.plugin import PluginConfig
    from odradek_otlp.otlp_forwarder import OtlpForwarder
    from odradek_otlp.otlp_table import read_settings
    from support.telemetry_records import telemetry_record

    values = {"endpoint": "http://localhost:4318"} | table
    settings = read_settings(PluginConfig("plugins.otlp", values), {})
    assert settings is not None
    forwarder = OtlpForwarder(settings, "test")
    data = push(entry({"topic": "static"}, ("a", "sum", [{"topic": "orders"}])))

    body = forwarder.body_of([telemetry_record(data)])

    expected = {"topic": "static"} if table else {"topic": "orders", "host_topic": "static"}
    assert series(body) == [("a", expected)]
    assert forwarder.renamed_points == (None if table else 1)
