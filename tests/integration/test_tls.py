"""SSL and SASL_SSL listeners with unmodified clients, and clients that are refused."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.net.listener import Listener
from odradek.security.scram import ScramMechanism
from support.certificates import Files
from support.client_sockets import closed_sockets
from support.hosts import EVERYTHING, ThreadedHost, running_host, serving
from support.waiting import wait_until

LISTENERS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0,SSL_MUTUAL://localhost:0,SSL_ELSEWHERE://localhost:0,"
    "SSL_EXPIRED://localhost:0,SASL_SSL://localhost:0,SASL_PLAINTEXT://localhost:0"
)
MUTUAL = (
    "listener.name.ssl_mutual.ssl.client.auth=required",
    "listener.name.ssl_mutual.ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/U",
)
USER, PASSWORD = "alice", "alice-secret"


@dataclass(frozen=True, slots=True)
class TlsHost:
    """A host with all kinds of listeners."""

    thread: ThreadedHost
    files: Files

    def listener(self, name: str) -> Listener:
        return next(each for each in self.thread.host.listeners if each.address.name == name)

    def address(self, name: str, host: str = "localhost") -> str:
        return f"{host}:{self.listener(name).bound_port}"

    def principals(self, name: str) -> set[str]:
        """The principals of the open connections."""
        return self.thread.call(lambda: {each.context.principal for each in self.listener(name).channels})


@contextlib.contextmanager
def tls_host(folder: Path) -> Iterator[TlsHost]:
    """Run a host with all kinds of listeners and one user."""
    files = Files(folder)
    elsewhere = f"listener.name.ssl_elsewhere.ssl.keystore.location={files.elsewhere}"
    expired = f"listener.name.ssl_expired.ssl.keystore.location={files.expired}"
    more = (elsewhere, expired, "group.initial.rebalance.delay.ms=0")
    with running_host(folder / "data", LISTENERS, *files.settings, *MUTUAL, *more) as thread:
        with AdminClient(thread.bootstrap) as admin:
            credential = new_credential(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD, 4096, b"salt")
            admin.alter_user_scram_credentials(upsertions=[credential])
        yield TlsHost(thread, files)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsHost]:
    with tls_host(tmp_path_factory.mktemp("tls")) as started:
        yield started


def librdkafka(host: TlsHost, name: str, **more: str) -> dict[str, Any]:
    """Settings of a librdkafka client for a listener."""
    found = {
        "bootstrap.servers": host.address(name),
        "security.protocol": name.removesuffix("_MUTUAL"),
        "ssl.ca.location": host.files.ca,
    }
    if name == "SSL_MUTUAL":
        found |= {"ssl.certificate.location": host.files.client, "ssl.key.location": host.files.client}
    if name == "SASL_SSL":
        found |= {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": USER, "sasl.password": PASSWORD}
    return found | more


def python_client(host: TlsHost, name: str) -> dict[str, Any]:
    """Settings of a kafka-python client for a listener."""
    found: dict[str, Any] = {
        "bootstrap_servers": host.address(name),
        "security_protocol": name.removesuffix("_MUTUAL"),
        "ssl_cafile": host.files.ca,
    }
    if name == "SSL_MUTUAL":
        found |= {"ssl_certfile": host.files.client, "ssl_keyfile": host.files.client}
    if name == "SASL_SSL":
        found |= {
            "sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": USER, "sasl_plain_password": PASSWORD
        }  # fmt: skip
    return found


NAMES = pytest.mark.parametrize("name", ["SSL", "SSL_MUTUAL", "SASL_SSL"])


@NAMES
def test_librdkafka_produces_and_consumes_large_records(host: TlsHost, name: str) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    client, topic = librdkafka(host, name), f"librdkafka-{name}"
    values = [bytes([number]) * 900_000 for number in range(20)]

    producer = kafka.Producer(client)
    for value in values:
        producer.produce(topic, value)
    unsent = producer.flush(20)
    consumer = kafka.Consumer(client | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([kafka.TopicPartition(topic, 0, 0)])
    found = [consumer.poll(10).value() for _ in values]
    principals = host.principals(name)
    consumer.close()

    assert unsent == 0
    assert found == values
    wanted = {"SSL": "User:ANONYMOUS", "SSL_MUTUAL": "User:ALICE", "SASL_SSL": "User:alice"}
    assert wanted[name] in principals  # another connection may be authenticating


@NAMES
def test_kafka_python_produces(host: TlsHost, name: str) -> None:
    kafka = pytest.importorskip("kafka")

    producer = kafka.KafkaProducer(**python_client(host, name))
    sent = producer.send(f"kafka-python-{name}", b"value").get(10)
    producer.close()

    assert sent.offset == 0


@NAMES
def test_aiokafka_produces(host: TlsHost, name: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    client = python_client(host, name)
    context = ssl.create_default_context(cafile=client.pop("ssl_cafile"))
    if "ssl_certfile" in client:
        context.load_cert_chain(client.pop("ssl_certfile"), client.pop("ssl_keyfile"))

    async def produce() -> int:
        producer = aiokafka.AIOKafkaProducer(**client, ssl_context=context)
        await producer.start()
        try:
            sent = await producer.send_and_wait(f"aiokafka-{name}", b"value")
        finally:
            await producer.stop()
        return int(sent.offset)

    assert asyncio.run(produce()) == 0


def refusal(host: TlsHost, name: str, why: str, **more: str) -> list[str]:
    """The errors that a librdkafka client reports, until one contains a text."""
    kafka = pytest.importorskip("confluent_kafka")
    errors: list[str] = []
    client = kafka.Producer(
        librdkafka(host, name, **more)
        | {"error_cb": lambda error: errors.append(str(error)), "log_level": 0, "reconnect.backoff.ms": 50}
    )

    def reported() -> bool:
        client.poll(0.1)
        return any(why in error for error in errors)

    wait_until(reported, lambda: errors)
    return errors


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("SSL", {"ssl.ca.location": "other_ca"}, "certificate verify failed"),
        ("SSL", {"security.protocol": "PLAINTEXT"}, "brokers are down"),
        ("SSL_MUTUAL", {"ssl.certificate.location": "", "ssl.key.location": ""}, "certificate required"),
        ("SSL_MUTUAL", {"ssl.certificate.location": "stranger", "ssl.key.location": "stranger"},
         "unknown ca"),
        ("SSL_MUTUAL", {"ssl.certificate.location": "expired_client", "ssl.key.location": "expired_client"},
         "certificate expired"),
        ("SASL_SSL", {"sasl.password": "wrong"}, "Authentication failed"),
    ],
    ids=["unknown-ca", "plaintext", "no-certificate", "certificate-of-another-ca",
         "expired-certificate", "wrong-password"],
)  # fmt: skip
def test_librdkafka_is_refused_with_the_reason(
    host: TlsHost, name: str, more: dict[str, str], why: str
) -> None:
    files = {
        key: getattr(host.files, value) if "location" in key and value else value
        for key, value in more.items()
    }
    before = host.listener(name).counts.failed

    errors = refusal(host, name, why, **files)

    assert why in " ".join(errors)
    if "ssl.ca.location" not in more:  # the client leaves without a word
        wait_until(lambda: host.listener(name).counts.failed > before, "no failure is counted")


@pytest.mark.parametrize("name", ["SSL_ELSEWHERE", "SSL_EXPIRED"])
def test_a_certificate_for_another_name_or_time_is_refused_by_the_client(host: TlsHost, name: str) -> None:
    why = "certificate verify failed"

    assert why in " ".join(refusal(host, name, why, **{"security.protocol": "SSL"}))


UNKNOWN_CA = "unable to get local issuer certificate"
WRONG_NAME = "Hostname mismatch, certificate is not valid for 'localhost'"
REFUSED = pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("SSL", {"ssl_cafile": "other_ca"}, UNKNOWN_CA),
        ("SSL_ELSEWHERE", {"security_protocol": "SSL"}, WRONG_NAME),
        ("SASL_SSL", {"sasl_plain_password": "wrong"}, "Authentication failed"),
    ],
    ids=["unknown-ca", "another-name", "wrong-password"],
)


def changed_client(host: TlsHost, name: str, more: dict[str, str]) -> dict[str, Any]:
    """Settings of a kafka-python client, of which some are wrong."""
    found = python_client(host, name) | more
    if "ssl_cafile" in more:
        found["ssl_cafile"] = getattr(host.files, more["ssl_cafile"])
    return found


@REFUSED
def test_kafka_python_is_refused_and_logs_the_reason(
    host: TlsHost, caplog: pytest.LogCaptureFixture, name: str, more: dict[str, str], why: str
) -> None:
    kafka = pytest.importorskip("kafka")

    def is_logged() -> bool:
        """An attempt on a busy machine may end before the host refuses it."""
        with pytest.raises(kafka.errors.KafkaError), closed_sockets():
            kafka.KafkaProducer(
                **changed_client(host, name, more), bootstrap_timeout_ms=300, reconnect_backoff_ms=1_000
            )
        return any(why in each.getMessage() for each in caplog.records if each.name.startswith("kafka."))

    wait_until(is_logged, lambda: caplog.messages)


@REFUSED
def test_aiokafka_is_refused_and_logs_the_reason(
    host: TlsHost, caplog: pytest.LogCaptureFixture, name: str, more: dict[str, str], why: str
) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    client = changed_client(host, name, more)
    context = ssl.create_default_context(cafile=client.pop("ssl_cafile"))

    async def start() -> None:
        producer = aiokafka.AIOKafkaProducer(**client, ssl_context=context)
        try:
            await producer.start()
        finally:
            await producer.stop()
            await asyncio.sleep(0.1)  # aiokafka does not wait for the transports that it closed

    with pytest.raises(aiokafka.errors.KafkaConnectionError):
        asyncio.run(start())

    assert any(why in each.getMessage() for each in caplog.records if each.name.startswith("aiokafka"))


def test_a_failed_handshake_is_a_sampled_log_line_and_a_metric(
    host: TlsHost, caplog: pytest.LogCaptureFixture
) -> None:
    listener = host.listener("SSL")
    before = listener.counts.failed
    assert listener.handshakes is not None
    caplog.set_level(logging.INFO)
    listener.handshakes.failed_log.ends_ms = 0

    for _ in range(5):
        with socket.create_connection(("localhost", listener.bound_port), 5) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                while plain.recv(100):
                    pass

    # a client of another test may still try
    wait_until(lambda: listener.counts.failed >= before + 5, "fewer than five failures")
    refused = [each for each in caplog.records if "TLS client was refused" in each.message]
    lines = [each for each in refused if vars(each)["listener"] == "SSL"]
    assert len(lines) == 1
    assert lines[0].levelname == "INFO"
    rows = {row.name: row.value for row in host.thread.call(lambda: list(host.thread.host.metric_rows()))
            if row.attributes.get("listener") == "SSL"}  # fmt: skip
    assert rows["kafka.server.socket.server.metrics.failed.authentication"] >= before + 5
    assert 300 < rows["odradek.certificate.expiry"] < 366


def test_tls_on_a_plaintext_listener_is_named_in_the_log(
    host: TlsHost, caplog: pytest.LogCaptureFixture
) -> None:
    listener = host.listener("PLAINTEXT")
    listener.refused_log.ends_ms = 0
    caplog.set_level(logging.INFO)

    with (
        socket.create_connection(("127.0.0.1", listener.bound_port), 5) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    assert any("TLS on a listener without TLS" in each.message for each in caplog.records)


def silent(host: TlsHost, name: str, count: int) -> list[socket.socket]:
    """Connections that send nothing."""
    return [socket.create_connection(("localhost", host.listener(name).bound_port), 5) for _ in range(count)]


def test_connections_that_do_not_speak_are_bounded_in_number_and_time(tmp_path: Path) -> None:
    limits = ("connections.unauthenticated.max=3", "connections.unauthenticated.max.ms=1500")
    files = Files(tmp_path)
    with running_host(tmp_path / "data", LISTENERS, *files.settings, *limits) as thread:
        host = TlsHost(thread, files)
        listener = host.listener("SSL")
        unauthenticated = listener.unauthenticated
        assert unauthenticated is not None
        strangers = silent(host, "SSL", 5)
        wait_until(lambda: listener.counts.failed == 2, lambda: listener.counts)
        assert len(unauthenticated) == 3
        assert [each.recv(1) for each in strangers[:2]] == [b"", b""]
        wait_until(lambda: len(unauthenticated) == 0, "silent connections stay")
        assert unauthenticated.closed == 5
        for each in strangers:
            each.close()
        counts = thread.host.broker.connection_quotas.counts
        wait_until(lambda: thread.call(lambda: not counts), lambda: counts)


def test_a_stop_does_not_wait_for_handshakes(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with running_host(tmp_path / "data", LISTENERS, *files.settings) as thread:
        host = TlsHost(thread, files)
        strangers = silent(host, "SSL", 3)
        wait_until(lambda: len(host.listener("SSL").connecting) == 3, "not three handshakes")
        begun = time.monotonic()

    assert time.monotonic() - begun < 3
    for each in strangers:
        each.close()


@pytest.mark.ci
def test_the_labels_of_a_push_contain_the_subject(tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    files = Files(tmp_path)
    settings = [
        "listeners=SSL://localhost:0", *files.settings, "ssl.client.auth=required", *EVERYTHING
    ]  # fmt: skip

    arguments = [part for each in settings for part in ("--set", each)]
    with serving(tmp_path / "data", *arguments, "--plugin", "stdout", "--plugin", "enrich") as serve:
        producer = kafka.Producer(
            {
                "bootstrap.servers": serve.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": files.ca,
                "ssl.certificate.location": files.client,
                "ssl.key.location": files.client,
            }
        )
        producer.produce("topic", b"value")
        producer.flush(10)
        row = serve.next_push(lambda row: True)

    assert row["context"]["principal"] == "User:CN=alice"
