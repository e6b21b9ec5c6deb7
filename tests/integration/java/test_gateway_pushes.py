"""Java clients of an Apache Kafka broker without telemetry push to a gateway in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from contrib.capture.kafka_node import CLUSTER_ID, kafka_node

from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import Jvm
from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

CLIENT_ID = "java-behind-a-gateway"
NODE = 1
NO_RECEIVER = ""
"""Without a metrics reporter that takes telemetry, a broker does not offer it."""


@pytest.fixture(scope="module")
def gateway(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    settings = (
        "gateway.name=edge",
        "gateway.nodes=1",
        "gateway.subscriptions.interval.ms=300",
        "plugins.stdout.enabled=true",
    )
    with (
        kafka_node(reporters=NO_RECEIVER, kafka=TOOLS_VERSION) as node,
        gateway_of(f"127.0.0.1:{node.port}", tmp_path_factory.mktemp("gateway"), *settings) as process,
    ):
        yield process


def requested(gateway: GatewayProcess) -> list[str]:
    host, _, port = gateway.bootstrap.rpartition(":")
    with WireClient((host, int(port)), client_id=CLIENT_ID) as client:
        client.introduce()
        return list(client.subscriptions().requested_metrics)


def test_a_java_producer_pushes_what_the_tool_of_the_cluster_asks_for(
    jvm: Jvm, gateway: GatewayProcess
) -> None:
    wanted = f"interval.ms=500,metrics=[org.apache.kafka.producer.],match=[client_id={CLIENT_ID}]"
    alter = ("--client-metrics", CLIENT_ID, "--alter", "--add-config", wanted)
    subscribed = jvm.run("kafka.admin.ConfigCommand", "--bootstrap-server", gateway.bootstrap, *alter)
    assert subscribed.status == 0, subscribed.said
    wait_until(lambda: requested(gateway) == ["org.apache.kafka.producer."], lambda: requested(gateway))

    done = jvm.run("odradek.TelemetryProducer", gateway.bootstrap, "behind-a-gateway", "2", CLIENT_ID)

    assert done.status == 0, done.said
    printed = dict(line.split("=", 1) for line in done.out.splitlines())
    assert int(printed["acknowledged"]) > 0

    def last(push: dict[str, Any]) -> bool:
        return bool(push["context"]["client_id"] == CLIENT_ID and push["context"]["terminating"])

    push = gateway.next_push(last)
    context, labels = push["context"], push["labels"]
    assert context["client_instance_id"] == printed["client.instance.id"]
    assert context["client_software_name"] == "apache-kafka-java"
    assert context["client_source_address"] == "127.0.0.1"
    assert context["broker_id"] in (NODE, -1)
    assert (labels["gateway"], labels["cluster_id"]) == ("edge", CLUSTER_ID)
    assert all(name.startswith("org.apache.kafka.producer.") for name in push["names"])
