"""Java clients of an Apache Kafka broker without telemetry push to a gateway in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.kafka_node import CLUSTER_ID, kafka_node

from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import Jvm
from support.gateway_workers import workers_of
from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

CLIENT_ID = "java-behind-a-gateway"
NODE = 1
ANSWERS = "odradek_gateway_telemetry_answers_total"
"""Answers to GetTelemetrySubscriptions and to PushTelemetry."""
NO_RECEIVER = ""
"""Without a metrics reporter that takes telemetry, a broker does not offer it."""


SETTINGS = ("gateway.name=edge", "gateway.subscriptions.interval.ms=300", "plugins.stdout.enabled=true")


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """The address of the broker."""
    with kafka_node(reporters=NO_RECEIVER, kafka=TOOLS_VERSION) as node:
        yield f"127.0.0.1:{node.port}"


@pytest.fixture(scope="module")
def gateway(jvm: Jvm, upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with gateway_of(upstream, tmp_path_factory.mktemp("gateway"), "gateway.nodes=1", *SETTINGS) as process:
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


def test_a_java_producer_goes_on_pushing_when_its_worker_is_killed(
    jvm: Jvm, upstream: str, tmp_path: Path
) -> None:
    name = "java-that-moves"
    subscribed = ("subscriptions.all.metrics=*", "subscriptions.all.interval.ms=2000", "gateway.observe=none")
    with (
        ThreadPoolExecutor(1) as threads,
        workers_of(upstream, tmp_path, *SETTINGS, *subscribed) as gateway,
    ):
        arguments = (gateway.process.bootstrap, "moved-to-a-worker", "12", name)
        running = threads.submit(jvm.run, "odradek.TelemetryProducer", *arguments)

        def of_worker(push: dict[str, Any], label: str) -> bool:
            return bool(push["context"]["client_id"] == name and push["labels"]["gateway"] == label)

        first = gateway.process.next_push(lambda push: push["context"]["client_id"] == name, 60)
        label = first["labels"]["gateway"]
        worker = int(label == "edge-1")
        # A Java client that loses its connection while it waits for an answer pushes no more for minutes.
        wait_until(lambda: gateway.values(ANSWERS)[str(worker)] >= 2, lambda: gateway.values(ANSWERS))
        gateway.kill(worker)
        other = "edge" if label == "edge-1" else "edge-1"
        push = gateway.process.next_push(lambda push: of_worker(push, other))
        done = running.result(60)

    assert done.status == 0, done.said
    assert push["context"]["client_instance_id"] == first["context"]["client_instance_id"]
