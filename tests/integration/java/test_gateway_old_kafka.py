"""A gateway adds telemetry to a Kafka from before KIP-714, and its clients find all that they find there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contrib.capture.kafka_node import CLUSTER_ID, KafkaNode, kafka_node

from integration.java.jvm import Jvm, built_classpath
from integration.test_real_clients import (  # noqa: F401  pytest finds what is imported
    test_aiokafka_creates_produces_and_fetches_back,
    test_kafka_python_creates_produces_and_fetches_back,
)
from integration.test_transactions import (  # noqa: F401
    test_aiokafka_commits_and_aborts,
    test_confluent_kafka_zombie_is_fenced,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until
from support.wire_client import WireClient

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
VERSION = "3.6.2"
"""The last minor version without the telemetry APIs."""
TELEMETRY = {71: (0, 0), 72: (0, 0)}
SUBSCRIPTION = ("subscriptions.all.metrics=org.apache.kafka.", "subscriptions.all.interval.ms=300")


@pytest.fixture(scope="module")
def node() -> Iterator[KafkaNode]:
    built_classpath("--broker", VERSION)
    with kafka_node(reporters="", kafka=VERSION) as node:
        yield node


@pytest.fixture(scope="module")
def host(node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The gateway in front of the node: the suites of clients call it the host."""
    settings = ("gateway.nodes=1", "gateway.name=edge", "plugins.stdout.enabled=true", *SUBSCRIPTION)
    folder = tmp_path_factory.mktemp("gateway")
    with gateway_of(f"127.0.0.1:{node.port}", folder, *settings) as process:
        yield process


def offered(address: tuple[str, int]) -> dict[int, tuple[int, int]]:
    """The first and last version of each API."""
    with WireClient(address) as client:
        response = client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


def test_telemetry_is_all_that_is_added_to_the_offered_apis(node: KafkaNode, host: GatewayProcess) -> None:
    address, _, port = host.bootstrap.rpartition(":")

    assert offered((address, int(port))) == offered(("127.0.0.1", node.port)) | TELEMETRY


def test_the_log_says_once_that_the_cluster_has_no_subscriptions(host: GatewayProcess) -> None:
    def said() -> list[str]:
        return [line for line in host.errors if "the cluster cannot list client metrics" in line]

    wait_until(said, lambda: host.errors)
    assert len(said()) == 1


def test_a_java_producer_pushes(jvm: Jvm, host: GatewayProcess) -> None:
    done = jvm.run("odradek.TelemetryProducer", host.bootstrap, "pushed-by-java", "2", "java")

    assert done.status == 0, done.said
    printed = dict(line.split("=", 1) for line in done.out.splitlines())
    assert int(printed["acknowledged"]) > 0
    push = host.next_push(lambda row: row["context"]["client_id"] == "java" and row["context"]["terminating"])
    assert push["context"]["client_instance_id"] == printed["client.instance.id"]
    assert push["context"]["client_software_name"] == "apache-kafka-java"
    assert (push["labels"]["gateway"], push["labels"]["cluster_id"]) == ("edge", CLUSTER_ID)


def test_librdkafka_pushes(host: GatewayProcess) -> None:
    config = {"bootstrap.servers": host.bootstrap, "client.id": "librdkafka", "compression.type": "zstd"}
    producer = confluent_kafka.Producer(config | {"enable.idempotence": True})
    producer.produce("pushed-by-librdkafka", b"value")
    assert producer.flush(20) == 0

    push = host.next_push(lambda row: row["context"]["client_id"] == "librdkafka")

    producer.flush(1)
    assert push["context"]["client_software_name"] == "confluent-kafka-python"
    assert push["labels"]["cluster_id"] == CLUSTER_ID
