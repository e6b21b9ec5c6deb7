"""SASL_PLAINTEXT listeners with unmodified clients: authenticated clients are labeled, and others do no
harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.resources import NewTopic
from odradek.client.sasl import SaslLogin
from odradek.client.users import new_credential
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.security.scram import ScramMechanism
from odradek.wire.messages.alter_user_scram_credentials import ScramCredentialDeletion
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.batches import batch_of
from support.client_sockets import closed_sockets
from support.data_requests import produce_request
from support.hosts import EVERYTHING, ServeProcess, ThreadedHost, running_host, serving
from support.limited_clients import limit
from support.waiting import wait_until
from support.wire_client import WireClient

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ENABLED = f"sasl.enabled.mechanisms={','.join(MECHANISMS)}"
USER, PASSWORD = "alice", "alice, her = secret"


def add_user(bootstrap: str) -> None:
    with AdminClient(bootstrap) as admin:
        for mechanism in ScramMechanism:
            credential = new_credential(USER, mechanism, PASSWORD, 4096, b"salt of alice")
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("sasl") / "data", LISTENERS, ENABLED) as started:
        add_user(started.bootstrap)
        yield started


def guarded_address(host: ThreadedHost) -> tuple[str, int]:
    return "127.0.0.1", host.host.listeners[1].bound_port


def guarded(host: ThreadedHost) -> str:
    return "{}:{}".format(*guarded_address(host))


def librdkafka(bootstrap: str, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_produces_and_consumes(host: ThreadedHost, mechanism: str) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    client, topic = librdkafka(guarded(host), mechanism), f"librdkafka-{mechanism}"

    producer = kafka.Producer(client)
    producer.produce(topic, b"value")
    unsent = producer.flush(10)
    consumer = kafka.Consumer(client | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([kafka.TopicPartition(topic, 0, 0)])
    message = consumer.poll(10)
    consumer.close()

    assert unsent == 0
    assert message.value() == b"value"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces(host: ThreadedHost, mechanism: str) -> None:
    kafka = pytest.importorskip("kafka")

    producer = kafka.KafkaProducer(
        bootstrap_servers=guarded(host),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
    )
    sent = producer.send(f"kafka-python-{mechanism}", b"value").get(10)
    producer.close()

    assert sent.offset == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_produces(host: ThreadedHost, mechanism: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def produce() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=guarded(host),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
        )
        await producer.start()
        try:
            sent = await producer.send_and_wait(f"aiokafka-{mechanism}", b"value")
        finally:
            await producer.stop()
        return int(sent.offset)

    offset = asyncio.run(produce())

    assert offset == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_own_client_authenticates(host: ThreadedHost, mechanism: str) -> None:
    login = SaslLogin(mechanism, USER, PASSWORD)

    with AdminClient(guarded(host), login=login) as admin:
        users = admin.describe_user_scram_credentials()

    assert users == {USER: {1: 4096, 2: 4096}}


@pytest.mark.ci
def test_the_labels_of_a_push_contain_the_principal(tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    settings = [part for each in (LISTENERS, ENABLED, *EVERYTHING) for part in ("--set", each)]

    with serving(tmp_path / "data", *settings, "--plugin", "stdout", "--plugin", "enrich") as serve:
        add_user(serve.bootstrap)
        producer = kafka.Producer(librdkafka(second_listener(serve), "SCRAM-SHA-256"))
        producer.produce("topic", b"value")
        producer.flush(10)
        row = serve.next_push(lambda row: True)
        del producer

    assert row["context"]["principal"] == "User:alice"


def second_listener(serve: ServeProcess) -> str:
    """``host:port`` of the SASL listener."""
    return serve.ready.split("SASL_PLAINTEXT://")[1].split(" ")[0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_reports_a_wrong_password(host: ThreadedHost, mechanism: str) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    said: list[str] = []

    producer = kafka.Producer(
        librdkafka(guarded(host), mechanism, "wrong")
        | {"error_cb": lambda error: said.append(error.str()), "reconnect.backoff.ms": 1_000}
    )
    with AdminClient(guarded(host), login=SaslLogin(mechanism, USER, PASSWORD)) as other:
        for _ in range(100):
            producer.poll(0.1)
            if said:
                break
        undisturbed = other.describe_cluster()

    assert "authentication fail" in said[0].lower()
    assert len(undisturbed.nodes) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_reports_a_wrong_password(host: ThreadedHost, mechanism: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def start() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=guarded(host),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=USER,
            sasl_plain_password="wrong",
        )
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.KafkaError):
        asyncio.run(start())


def test_kafka_python_reports_a_wrong_password(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka")
    failed = host.host.listeners[1].counts.failed

    def is_refused() -> bool:
        """An attempt on a busy machine may end before the host refuses it."""
        with closed_sockets(), pytest.raises(kafka.errors.KafkaError):
            kafka.KafkaProducer(
                bootstrap_servers=guarded(host),
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-256",
                sasl_plain_username=USER,
                sasl_plain_password="wrong",
                bootstrap_timeout_ms=1_000,
            )
        return host.host.listeners[1].counts.failed > failed

    wait_until(is_refused, "no failed authentication is counted")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_own_client_reports_a_wrong_password(host: ThreadedHost, mechanism: str) -> None:
    login = SaslLogin(mechanism, USER, "wrong")

    with AdminClient(guarded(host), login=login) as admin, pytest.raises(RequestFailed) as failure:
        admin.describe_cluster()

    assert "user alice: SASL_AUTHENTICATION_FAILED: Authentication failed" in str(failure.value)


def test_sasl_is_required_on_its_listener_and_refused_on_others(host: ThreadedHost) -> None:
    with AdminClient(guarded(host)) as admin, pytest.raises(ClientError) as failure:
        admin.describe_cluster()
    assert str(failure.value) == (
        f"{guarded(host)}: the broker closed the connection; if its listener requires a login, set "
        "security.protocol, sasl.mechanism and sasl.jaas.config"
    )
    with (
        AdminClient(host.bootstrap, login=SaslLogin("PLAIN", USER, PASSWORD)) as admin,
        pytest.raises(RequestFailed, match="ILLEGAL_SASL_STATE"),
    ):
        admin.describe_cluster()


def test_a_large_request_before_authentication_closes(host: ThreadedHost) -> None:
    with WireClient(guarded_address(host)) as client:
        client.introduce()

        client.send_bytes(struct.pack(">i", 524_289) + b"x")

        assert client.closed_by_peer()


def test_requests_after_a_wrong_password_are_not_answered(host: ThreadedHost) -> None:
    with WireClient(guarded_address(host)) as client:
        client.send(SaslHandshakeRequest(mechanism="PLAIN"))
        login = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")

        client.send_bytes(client.frame(login, 2))
        client.send_bytes(client.frame(MetadataRequest(), 12))
        client.correlation_id -= 1
        response = client.answer(login, 2)

        assert response.error_message == "Authentication failed: Invalid username or password"
        assert client.closed_by_peer()


def test_requests_sent_before_the_answer_are_answered_after_it(host: ThreadedHost) -> None:
    with WireClient(guarded_address(host)) as client:
        client.send(SaslHandshakeRequest(mechanism="PLAIN"))
        login = SaslAuthenticateRequest(auth_bytes=f"\0{USER}\0{PASSWORD}".encode())
        metadata = MetadataRequest(topics=[])

        client.send_bytes(client.frame(login, 2) + client.frame(metadata, 12))
        client.correlation_id -= 1
        authenticated = client.answer(login, 2)
        client.correlation_id += 1
        response = client.answer(metadata, 12)

    assert authenticated.error_code == 0
    assert len(response.brokers) == 1


def test_a_deleted_user_keeps_its_connection_and_cannot_open_another(host: ThreadedHost) -> None:
    with AdminClient(host.bootstrap) as admin:
        credential = new_credential("bob", ScramMechanism.SCRAM_SHA_256, "x", 4096, b"salt")
        admin.alter_user_scram_credentials(upsertions=[credential])
        login = SaslLogin("SCRAM-SHA-256", "bob", "x")
        with AdminClient(guarded(host), login=login) as bob, AdminClient(guarded(host), login=login) as late:
            bob.describe_cluster()
            admin.alter_user_scram_credentials([ScramCredentialDeletion(name="bob", mechanism=1)])

            still = bob.describe_cluster()
            with pytest.raises(RequestFailed, match="SASL_AUTHENTICATION_FAILED"):
                late.describe_cluster()

    assert len(still.nodes) == 1


def test_a_user_quota_applies_to_the_authenticated_user(host: ThreadedHost) -> None:
    topic, entity = "of-users", ClientQuotaEntity(user=USER)
    batch = batch_of(b"x" * 20_000, timestamp_ms=int(time.time() * 1000))
    request = produce_request(topic, batch, acks=1)
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name=topic)])

    limit(host, entity, producer_byte_rate=1_000)
    with (
        Connection(*host.address) as anonymous,
        Connection(*guarded_address(host), login=SaslLogin("SCRAM-SHA-256", USER, PASSWORD)) as alice,
    ):
        responses = [each.send(request, most_version=12) for each in (alice, anonymous)]
    limit(host, entity, producer_byte_rate=None)

    assert [response.responses[0].partition_responses[0].error_code for response in responses] == [0, 0]
    assert responses[0].throttle_time_ms > 0
    assert responses[1].throttle_time_ms == 0


def test_authentications_are_counted_by_listener(host: ThreadedHost) -> None:
    def counted() -> dict[str, float]:
        return {
            row.name: row.value for row in host.host.metric_rows() if row.name.endswith(".authentication")
        }

    before = host.call(counted)
    for password in (PASSWORD, "wrong", "wrong"):
        login = SaslLogin("PLAIN", USER, password)
        with contextlib.suppress(RequestFailed), AdminClient(guarded(host), login=login) as admin:
            admin.describe_cluster()
    after = host.call(counted)

    assert {name: after[name] - before[name] for name in after} == {
        "kafka.server.socket.server.metrics.successful.authentication": 1,
        "kafka.server.socket.server.metrics.failed.authentication": 2,
    }


def test_a_client_that_disconnects_before_authentication_leaves_nothing_behind(host: ThreadedHost) -> None:
    def waiting() -> int:
        return len(host.host.broker.authenticators)

    with WireClient(guarded_address(host)) as client:
        client.introduce()
        there = host.call(waiting)

    assert there == 1
    wait_until(lambda: host.call(waiting) == 0, "its authenticator is left")


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">i", 1) + b"x", b"\x16\x03\x01\x02\x00\x01\x00"]
)
def test_bytes_that_are_not_a_request_close(host: ThreadedHost, data: bytes) -> None:
    with socket.create_connection(guarded_address(host), 10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

        assert connection.recv(100) == b""
