"""A push has the same labels in OTLP, in a topic and in the tables, whichever of the five ways it came."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from contrib.capture.kafka_node import kafka_node
from contrib.capture.ports import answers, free_port
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

import odradek_enrich
import odradek_kafka
import odradek_otlp
from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import Jvm, built_classpath
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.wire.error_code import ErrorCode
from odradek_tables.decoder.decode import Decoder
from odradek_tables.decoder.topic_record import TopicRecord
from support.gateways import gateway_of
from support.hosts import EVERYTHING, running_host
from support.kafka_export import TOPIC, metrics_of, read
from support.otlp_collector import Collector, Exchange, collecting
from support.telemetry_records import resource_labels
from support.waiting import wait_until
from support.wire_client import WireClient

PATIENCE_S = 60
pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
FROM_GATEWAY, PLAIN_OTLP, LABELED = "from_gateway", "plain_otlp", "labeled"
METRIC = "org.apache.kafka.producer.node.request.latency.max"
REPORTER = "odradek.relay.TelemetryExporter"
INSTANCES = {"otlp": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "AAAAAAAAAAAAAAAAAAAAAg"}
LABELS = {
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
    "principal",
    "broker_node_id",
}
SAME = {
    "client_software_name": "pusher",
    "client_software_version": "1.0",
    "client_source_address": "127.0.0.1",
    "principal": "User:ANONYMOUS",
    "team": "payments",
}
"""The labels with a value that does not depend on the way."""
WAYS = {"host", "gateway", "relay", "otlp", "topic"}
"""One client comes by each: its client id is the name of the way."""


class Ends(NamedTuple):
    """The labels of each client, by the name of its way."""

    otlp: dict[str, dict[str, str]]
    topic: dict[str, dict[str, str]]
    tables: dict[str, dict[str, str]]


def push(bootstrap: str, client_id: str) -> None:
    """Push one metric, as a client that was asked for it."""
    host, _, port = bootstrap.rpartition(":")
    with WireClient((host, int(port)), client_id=client_id) as client:
        client.introduce("pusher", "1.0")
        assert client.push(metrics_of(METRIC, 1)) == ErrorCode.NONE


def otlp_of(client_id: str) -> bytes:
    """The metric as a jar that forwards over OTLP sends it: attributes tell the client."""
    found = MetricsData.FromString(metrics_of(METRIC, 1))
    attributes = {
        "client_id": client_id,
        "client_instance_id": INSTANCES[client_id],
        "client_software_name": "pusher",
        "client_software_version": "1.0",
        "client_source_address": "127.0.0.1",
        "client_source_port": "40000",
    }
    for key, text in attributes.items():
        found.resource_metrics[0].resource.attributes.add(key=key).value.string_value = text
    return found.SerializeToString()


def post(port: int) -> None:
    wait_until(lambda: answers(port), "the source does not listen")
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/metrics", otlp_of("otlp"), {"content-type": "application/x-protobuf"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.metrics.push": False})
    producer.produce(PLAIN_OTLP, otlp_of("topic"))
    assert producer.flush(30) == 0


def has_metrics(message: Message) -> bool:
    """Whether it is more than the goodbye of a client."""
    return bool(message.value())


def row_labels(messages: list[Message]) -> dict[str, dict[str, str]]:
    """The labels of the points that the pipeline makes of the records, by client id."""
    records = [
        TopicRecord(0, offset, each.timestamp()[1], each.key(), each.value(), each.headers() or ())
        for offset, each in enumerate(messages)
    ]
    decoded = Decoder().decode(records)
    assert decoded.dead_letter.num_rows == 0
    return {row["client_id"]: json.loads(row["resource"]) for row in decoded.points.to_pylist()}


@pytest.fixture(scope="module")
def ends(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Ends:
    arrived: dict[str, dict[str, str]] = {}

    def keep(exchange: Exchange) -> None:
        for each in MetricsData.FromString(exchange.body()).resource_metrics:
            labels = {pair.key: pair.value.string_value for pair in each.resource.attributes}
            arrived[labels["client_id"]] = labels
        exchange.answer(200)

    plugins = HostPluginManager()
    for name, module in {"enrich": odradek_enrich, "kafka": odradek_kafka, "otlp": odradek_otlp}.items():
        plugins.add(name, module, f"odradek-{name}", "1")
    relay = built_classpath("--relay")
    with ExitStack() as stack:
        collector: Collector = stack.enter_context(collecting())
        collector.mood = keep
        node = stack.enter_context(kafka_node(REPORTER, [], TOOLS_VERSION, jars=[relay]))
        kafka = f"127.0.0.1:{node.port}"
        admin = AdminClient({"bootstrap.servers": kafka, "enable.metrics.push": False})
        topics = (TOPIC, FROM_GATEWAY, PLAIN_OTLP, LABELED)
        for created in admin.create_topics([NewTopic(each, 1) for each in topics]).values():
            created.result(30)
        done = jvm.run(
            "org.apache.kafka.tools.ClientMetricsCommand",
            *("--bootstrap-server", kafka, "--alter", "--name", "all", "--metrics", "*", "--interval", "500"),
        )
        assert done.status == 0, done.said
        gateway = stack.enter_context(
            gateway_of(
                kafka,
                tmp_path_factory.mktemp("gateway"),
                "gateway.nodes=1",
                f"plugins.kafka.bootstrap.servers={kafka}",
                f"plugins.kafka.topic={FROM_GATEWAY}",
                "plugins.enrich.static.team=payments",
            )
        )
        port = free_port()
        host = stack.enter_context(
            running_host(
                tmp_path_factory.mktemp("host"),
                *EVERYTHING,
                f"plugins.kafka.source.bootstrap.servers={kafka}",
                f"plugins.kafka.source.topics={TOPIC},{FROM_GATEWAY},{PLAIN_OTLP}",
                f"plugins.kafka.source.formats.{PLAIN_OTLP}=otlp_proto",
                f"plugins.kafka.bootstrap.servers={kafka}",
                f"plugins.kafka.topic={LABELED}",
                f"plugins.otlp.endpoint={collector.url}",
                f"plugins.otlp.source.http.listener=127.0.0.1:{port}",
                "plugins.enrich.static.team=payments",
                plugins=plugins,
            )
        )
        enter = {
            "host": lambda: push(host.bootstrap, "host"),
            "gateway": lambda: push(gateway.bootstrap, "gateway"),
            "relay": lambda: push(kafka, "relay"),
            "otlp": lambda: post(port),
            "topic": lambda: produce(kafka),
        }
        for way in WAYS:
            enter[way]()
        wait_until(
            lambda: arrived.keys() == WAYS,
            lambda: (sorted(arrived), node.log.read_text()[-2000:]),
            PATIENCE_S,
        )
        exported = read(kafka, LABELED, len(WAYS), has_metrics)
        stored = read(host.bootstrap, "__client_telemetry", len(WAYS), has_metrics)
    in_topic = [resource_labels(message.value() or b"") for message in exported]
    return Ends(arrived, {labels["client_id"]: labels for labels in in_topic}, row_labels(stored))


@pytest.mark.parametrize("end", Ends._fields)
def test_each_way_brings_the_same_labels_to_each_end(ends: Ends, end: str) -> None:
    found = getattr(ends, end)

    assert found.keys() == WAYS
    for way, labels in found.items():
        assert labels.items() >= (SAME | {"client_id": way}).items(), way
        assert labels.keys() >= LABELS, way


def test_the_ends_agree(ends: Ends) -> None:
    assert ends.otlp == ends.topic == ends.tables
