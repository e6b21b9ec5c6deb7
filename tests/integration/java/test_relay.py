"""The relay hands pushes that Apache Kafka's brokers receive to a topic, and a host reads them from there."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient, NewTopic
from contrib.capture.kafka_node import CLUSTER_ID, KafkaNode, kafka_node

import odradek_enrich
import odradek_kafka
from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import Jvm, built_classpath
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import TelemetryRecord
from odradek.topic import decode_record, encode_headers
from odradek.wire.error_code import ErrorCode
from odradek.wire.uuid_text import uuid_text
from support.hosts import running_host
from support.kafka_export import TOPIC, read
from support.spooling import FarSide, Plugin, name_of, payload
from support.telemetry_records import resource_labels
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
OLDEST = "3.7.0"
"""The first version with the telemetry APIs."""
SOURCE = "plugins.kafka.source"
INVALID = {
    "odradek.relay.topics=a": "unknown key odradek.relay.topics",
    "odradek.relay.topic=a/b": "a/b",
    "odradek.relay.queue.max.bytes=lots": "lots",
    "odradek.relay.producer.acks=some": "some",
    "odradek.relay.producer.enable.metrics.push=true": "the relay sets it",
    "inter.broker.listener.name=INSIDE": "the broker has no listener INSIDE",
}
"""Settings with parts of the messages."""
CLOSE_MAX_S = 5
CLIENTS = "(java|by-hand|odradek-relay.*)"
"""Those that may push. The tool itself is not one of them."""
METRICS_TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
NODE = 1


class Node(NamedTuple):
    """A running node. Clients of the tests are asked for all metrics every half second, as is the relay."""

    node: KafkaNode

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    @property
    def log(self) -> str:
        return self.node.log.read_text()

    def push(self, *numbers: int) -> list[int]:
        """Push each number as a client instance of its own; return the error codes."""
        with WireClient(("127.0.0.1", self.node.port), client_id="by-hand") as client:
            client.introduce("pusher", "1.0")
            return [client.push(payload(number)) for number in numbers]


@pytest.fixture(scope="module")
def relay() -> str:
    """The path of the jar."""
    return built_classpath("--relay")


@pytest.fixture(scope="module")
def newest(jvm: Jvm, relay: str) -> Iterator[Node]:
    """The topic is on the cluster of the broker itself, which is the default."""
    overrides = ["telemetry.max.bytes=1048576", "num.partitions=3"]
    reporter = "odradek.relay.TelemetryExporter"
    with kafka_node(reporter, overrides, TOOLS_VERSION, jars=[relay]) as node:
        subscribe(jvm, node)
        yield Node(node)


@pytest.fixture(scope="module")
def oldest(jvm: Jvm, relay: str) -> Iterator[Node]:
    """Without the topic, and with room for two pushes."""
    built_classpath("--broker", OLDEST)
    overrides = [
        "telemetry.max.bytes=1048576",
        "auto.create.topics.enable=false",
        "odradek.relay.bootstrap.servers=127.0.0.1:{port}",
        "odradek.relay.queue.max.records=2",
        "odradek.relay.push.interval.ms=500",
        "odradek.relay.producer.max.block.ms=1000",
    ]
    with kafka_node("odradek.relay.TelemetryReceiver", overrides, OLDEST, jars=[relay]) as node:
        subscribe(jvm, node)
        yield Node(node)


def subscribe(jvm: Jvm, node: KafkaNode) -> None:
    wanted = ("--metrics", "*", "--interval", "500", "--match", f"client_id={CLIENTS}")
    done = jvm.run(
        METRICS_TOOL, "--bootstrap-server", f"127.0.0.1:{node.port}", "--alter", "--name", "all", *wanted
    )
    assert done.status == 0, done.said


@pytest.fixture(scope="module")
def printed(jvm: Jvm, relay: str) -> dict[str, str]:
    """What ``RelayCheck`` prints."""
    tests = Path(relay).parent / "test-classes"
    own = Jvm(os.pathsep.join([jvm.classpath, relay, str(tests)]))
    done = own.run("odradek.relay.RelayCheck", *INVALID)
    assert done.status == 0, done.said
    return dict(line.split("=", 1) for line in done.out.splitlines())


def record_of(message: Message) -> TelemetryRecord:
    return decode_record(message.key(), message.value(), message.headers() or ())


def test_a_record_is_what_a_host_writes(printed: dict[str, str]) -> None:
    headers = {
        name.removeprefix("header."): base64.b64decode(value)
        for name, value in printed.items()
        if name.startswith("header.")
    }

    record = decode_record(printed["key"].encode(), base64.b64decode(printed["value"]), headers.items())

    assert record.payload.client_instance_id == bytes(range(16))
    assert (record.payload.data, record.payload.terminating) == (b"\n\0", True)
    assert (record.labeled, record.source, record.push_interval_ms) == (False, "relay", 5000)
    connection = record.context.connection
    assert (connection.client_address, connection.client_port) == ("10.1.2.3", 40000)
    assert (connection.principal, connection.listener_name) == ("User:alice", "EDGE")
    assert (connection.node_id, connection.cluster_id) == (7, "a-cluster")
    assert list(headers.items()) == encode_headers(record), "the headers of a host, in their order"
    assert int(printed["partition"]) == zlib.crc32(bytes(range(16))) % 11
    assert int(printed["timestamp"]) == record.context.received_ms


def test_faults_leave_no_exception_and_every_push_is_counted(printed: dict[str, str]) -> None:
    assert [printed[f"full.{name}"] for name in ("Received", "Delivered", "Waiting")] == ["7", "0", "3"]
    assert dropped(printed, "full") == {"queue.full": 2, "content.type": 1, "failed": 1}
    assert int(printed["full.closed.s"]) <= CLOSE_MAX_S


def test_a_producer_that_cannot_go_on_is_replaced(printed: dict[str, str]) -> None:
    """The first producer refuses a record, and then fails for good."""
    assert dropped(printed, "refused") == {"too.large": 1, "delivery": 1}
    assert (printed["refused.Delivered"], printed["refused.producers"]) == ("2", "2")
    assert printed["refused.security.protocol"] == "SSL"


def test_a_relay_with_an_invalid_configuration_drops_all_pushes(printed: dict[str, str]) -> None:
    assert printed["idle.Received"] == "7"
    assert dropped(printed, "idle") == {"not.configured": 7}


def test_an_invalid_setting_is_named(printed: dict[str, str]) -> None:
    for setting, problem in INVALID.items():
        assert problem in printed[f"problem.{setting.partition('=')[0]}"]


def test_the_default_cluster_is_that_of_the_listener_between_brokers(printed: dict[str, str]) -> None:
    assert (printed["own"], printed["default"]) == ("SSL://[::1]:9095", "PLAINTEXT://localhost:9092")


def dropped(printed: dict[str, str], name: str) -> dict[str, int]:
    """The pushes that were dropped, by reason."""
    start = f"{name}.Dropped."
    counts = {key.removeprefix(start): int(count) for key, count in printed.items() if key.startswith(start)}
    return {reason: count for reason, count in counts.items() if count}


def test_pushes_reach_a_host_that_reads_the_topic(jvm: Jvm, newest: Node, tmp_path: Path) -> None:
    """The relay's own producer does not push, and the labels are those of the host."""
    done = jvm.run("odradek.TelemetryProducer", newest.bootstrap, "any", "1.5", "java")
    assert done.status == 0, done.said
    sent = dict(line.split("=", 1) for line in done.out.splitlines())
    assert newest.push(1) == [ErrorCode.NONE]

    far_side = FarSide()
    plugins = HostPluginManager()
    plugins.add("kafka", odradek_kafka, "odradek-kafka", "1")
    plugins.add("enrich", odradek_enrich, "odradek-enrich", "1")
    plugins.add("fake", Plugin({"all": far_side}), "fake", "1")
    source = f"{SOURCE}.bootstrap.servers={newest.bootstrap}"
    quick = "plugins.fake.batch.max.age.ms=100"
    with running_host(tmp_path, source, quick, "plugins.enrich.static.team=payments", plugins=plugins):

        def ended() -> list[TelemetryRecord]:
            return [record for record in far_side.taken if record.payload.terminating]

        wait_until(lambda: ended() and len(far_side.names) > 1, lambda: (far_side.names, newest.log[-3000:]))
        by_hand = wait_until(
            lambda: [each for each in far_side.taken if each.context.client_id == "by-hand"],
            lambda: far_side.names,
        )

    (last,) = ended()
    assert uuid_text(last.payload.client_instance_id) == sent["client.instance.id"]
    assert {each.context.client_id for each in far_side.taken} == {"java", "by-hand"}
    assert (last.source, last.labeled, last.push_interval_ms) == ("relay", True, 500)
    assert last.origin is not None
    connection = last.context.connection
    assert (connection.client_software_name, connection.principal) == ("apache-kafka-java", "User:ANONYMOUS")
    assert (connection.listener_name, connection.node_id) == ("PLAINTEXT", NODE)
    assert (
        resource_labels(last.payload.data).items()
        >= {
            "client_id": "java",
            "broker_node_id": str(NODE),
            "cluster_id": CLUSTER_ID,
            "team": "payments",
        }.items()
    )
    assert name_of(by_hand[0].payload.data) == "push.1"


def test_clients_of_the_oldest_broker_are_answered_while_the_topic_is_missing(oldest: Node) -> None:
    assert oldest.push(1, 2, 3) == [ErrorCode.NONE] * 3
    for expected in ("because of queue.full", "Cannot write client telemetry to the topic"):
        wait_until(lambda text=expected: text in oldest.log, lambda: oldest.log[-3000:])  # type: ignore[misc]

    admin = AdminClient({"bootstrap.servers": oldest.bootstrap, "enable.metrics.push": False})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)

    first, second = map(record_of, read(oldest.bootstrap, TOPIC, 2))
    assert [name_of(each.payload.data) for each in (first, second)] == ["push.1", "push.2"]
    assert (first.source, first.labeled, first.push_interval_ms) == ("relay", False, 500)
    connection = first.context.connection
    assert (connection.client_software_name, connection.cluster_id) == ("pusher", CLUSTER_ID)
    assert (connection.client_address, connection.node_id) == ("127.0.0.1", NODE)
    assert connection.client_port > 0

    assert oldest.push(4) == [ErrorCode.NONE]
    read(oldest.bootstrap, TOPIC, 1, lambda message: name_of(message.value() or b"") == "push.4")
