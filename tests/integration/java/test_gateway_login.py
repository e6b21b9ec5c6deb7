"""Clients log in to three Apache Kafka nodes through a gateway, with TLS on both of its sides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.java.kafka_cluster import NODE_RANGES, REAUTHENTICATION_MS, KafkaCluster
from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from support.certificates import Files
from support.gateways import GatewayProcess, gateway_of
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
SUBSCRIPTION = ("subscriptions.all.metrics=org.apache.kafka.", "subscriptions.all.interval.ms=300")


@pytest.fixture(scope="module")
def gateway(kafka_nodes: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("login")
    files = Files(folder)
    users = [
        new_credential(name, ScramMechanism.SCRAM_SHA_512, "secret", 4096, b"salt")
        for name in ("alice", "gateway")
    ]
    with AdminClient(kafka_nodes.bootstrap) as admin:
        admin.alter_user_scram_credentials(upsertions=users)
    own = files.write(
        "own.properties",
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
        "sasl.mechanism=SCRAM-SHA-512\nsasl.username=gateway\nsasl.password=secret\n",
    )
    settings = (
        "listeners=SSL://localhost:0",
        f"gateway.nodes={NODE_RANGES}",
        f"gateway.upstream.command.config={own}",
        "plugins.stdout.enabled=true",
        *SUBSCRIPTION,
        *files.settings,
    )
    with gateway_of(kafka_nodes.secure_bootstrap, folder / "gateway", *settings) as process:
        yield process


def client(gateway: GatewayProcess, folder: Path, mechanism: str, password: str = "secret") -> dict[str, Any]:
    return {
        "bootstrap.servers": gateway.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": Files(folder).ca,
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "client.id": mechanism,
    }


def test_a_client_reads_back_what_it_produced_and_logs_in_again(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    mechanism = "SCRAM-SHA-512"
    errors: list[str] = []
    config = client(gateway, tmp_path, mechanism) | {"error_cb": lambda error: errors.append(error.str())}
    producer = confluent_kafka.Producer(config | {"enable.idempotence": True})
    topic, count = f"login-{mechanism}", 0
    deadline = time.monotonic() + 2.5 * REAUTHENTICATION_MS / 1000
    while time.monotonic() < deadline:
        producer.produce(topic, b"%d" % count)
        count += 1
        assert producer.flush(20) == 0
        time.sleep(0.02)
    push = gateway.next_push(lambda row: row["context"]["client_id"] == mechanism)
    consumer = confluent_kafka.Consumer(config | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[int] = []
    while len(values) < count and (message := consumer.poll(20)) is not None:
        assert message.error() is None, message.error()
        values.append(int(message.value()))
    consumer.close()

    assert sorted(values) == list(range(count))
    assert (push["context"]["principal"], push["labels"]["principal_source"]) == ("User:alice", "sasl")
    assert not any("uthentication" in error for error in errors), errors


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_refused_by_the_node(
    gateway: GatewayProcess, tmp_path: Path, mechanism: str
) -> None:
    errors: list[str] = []
    config = client(gateway, tmp_path, mechanism, "wrong")
    producer = confluent_kafka.Producer(config | {"error_cb": lambda error: errors.append(error.str())})

    wait_until(
        lambda: producer.poll(0.1) >= 0 and any("uthentication failed" in error for error in errors),
        lambda: errors,
    )
