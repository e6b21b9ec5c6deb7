"""A host and an Apache Kafka node with the same listeners, certificates and users."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from contrib.capture.kafka_node import kafka_node
from contrib.capture.ports import free_port

from bench.frames import API_VERSIONS_V3, ask
from bench.harness import UnavailableError
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.client.users import new_credential
from odradek.security.private_ca import LOOPBACK, RSA
from odradek.security.scram import ScramMechanism
from support.certificates import Files, authority, client
from support.hosts import ServeProcess

ODRADEK, KAFKA = "odradek", "Apache Kafka"
PLAIN, TLS, TLS_RSA, TLS_MUTUAL = "PLAINTEXT", "SSL", "SSL_RSA", "SSL_MUTUAL"
SASL, SASL_TLS = "SASL_PLAINTEXT", "SASL_SSL"
LISTENERS: Final = (PLAIN, TLS, TLS_RSA, TLS_MUTUAL, SASL, SASL_TLS)
USER, PASSWORD = "alice", "secret"
SCRAM: Final = ScramMechanism.SCRAM_SHA_256
MECHANISMS: Final = "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN"
ONE_ADDRESS: Final = ("max.authentication.rate.per.ip=1000000", "connections.unauthenticated.max=10000")
"""For many clients of one address, which the defaults take for an attack."""
LOGIN_MODULES: Final = "org.apache.kafka.common.security"
SERVER_JVM: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-XX:-UseDynamicNumberOfCompilerThreads",
)
"""Kafka's own options of its script, and compiler threads that do not end: their CPU time would be lost."""


Process = TypeVar("Process", bound=ServeProcess)


@dataclass(frozen=True, slots=True)
class Secured:
    """A server with all the listeners."""

    name: str
    pid: int
    ports: dict[str, int]

    def prepare(self, topics: Iterable[str]) -> None:
        """Add the user, and create topics."""
        with AdminClient(f"127.0.0.1:{self.ports[PLAIN]}") as admin:
            credential = new_credential(USER, SCRAM, PASSWORD, 4096, b"salt of a bench")
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}
            admin.create_topics([NewTopic(name=name, partitions=1, replication_factor=1) for name in topics])


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Let processes that are started here run on one core."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def rsa_key_store(files: Files) -> str:
    """The path of a key store with an RSA key."""
    return files.write("rsa.pem", authority().issue("localhost", LOOPBACK, kind=RSA).both)


def common_settings(files: Files) -> list[str]:
    """The settings that both servers have."""
    return [
        *files.settings,
        "ssl.keystore.type=PEM",
        "ssl.truststore.type=PEM",
        f"listener.name.ssl_rsa.ssl.keystore.location={rsa_key_store(files)}",
        "listener.name.ssl_mutual.ssl.client.auth=required",
    ]


@contextmanager
def odradek(folder: Path, core: int | None, *more: str) -> Iterator[Secured]:
    """``odradek serve`` for clients of one address, with some more settings."""
    with served(folder, core, ServeProcess, *ONE_ADDRESS, *more) as (server, _):
        yield server


@contextmanager
def served(
    folder: Path, core: int | None, process: type[Process], *more: str
) -> Iterator[tuple[Secured, Process]]:
    """``odradek serve`` with some more settings, as a process of some kind."""
    settings = (
        "listeners=" + ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        f"data.dir={folder / 'data'}", *common_settings(Files(folder)), "subscriptions.bench.metrics=*",
        MECHANISMS, *more,
    )  # fmt: skip
    with pinned(core):
        serve = process(*(part for each in settings for part in ("--set", each)))
    try:
        addresses = serve.ready.split("listeners=")[1].split(" ")[0].split(",")
        ports = {each.split("://")[0]: int(each.rpartition(":")[2]) for each in addresses}
        yield Secured(ODRADEK, serve.process.pid, ports), serve
    finally:
        serve.terminate()


@contextmanager
def apache_kafka(folder: Path, core: int | None) -> Iterator[Secured]:
    """One KRaft node with a receiver of telemetry that does nothing.

    Raises:
        UnavailableError: It does not start.
    """
    ports = {name: free_port() for name in LISTENERS[1:]}
    rest = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    kinds = ",".join(f"{name}:{protocol_of(name)}" for name in (*LISTENERS, "CONTROLLER"))
    overrides = [
        f"listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{rest}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},{rest}",
        f"listener.security.protocol.map={kinds}",
        "inter.broker.listener.name=PLAINTEXT",
        "telemetry.max.bytes=1048576",
        MECHANISMS,
        *common_settings(Files(folder)),
    ]
    for name in (SASL.lower(), SASL_TLS.lower()):
        jaas = f"{LOGIN_MODULES}.scram.ScramLoginModule required;"
        overrides.append(f"listener.name.{name}.scram-sha-256.sasl.jaas.config={jaas}")
        jaas = f'{LOGIN_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        overrides.append(f"listener.name.{name}.plain.sasl.jaas.config={jaas}")
    with ExitStack() as stack:
        try:
            with pinned(core):
                node = stack.enter_context(kafka_node(overrides=overrides, options=SERVER_JVM))
        except (SystemExit, OSError) as reason:
            raise UnavailableError(str(reason)) from None
        yield Secured(KAFKA, node.pid, {PLAIN: node.port} | ports)


def protocol_of(listener: str) -> str:
    """The security protocol of a listener."""
    if listener == "CONTROLLER":
        return PLAIN
    return TLS if listener.startswith("SSL") else listener


@contextmanager
def servers(
    folder: Path, core: int | None, *more: str, kafka: bool, topics: Iterable[str] = ()
) -> Iterator[list[Secured]]:
    """The host, with some more settings, and Apache Kafka if it is wanted; both with the user and some
    topics.
    """
    with ExitStack() as stack:
        found = [stack.enter_context(odradek(folder, core, *more))]
        if kafka:
            found.append(stack.enter_context(apache_kafka(folder, core)))
        for each in found:
            each.prepare(topics)
        yield found


def contexts(folder: Path) -> dict[str, ssl.SSLContext | None]:
    """The TLS of a client, by listener."""
    found: dict[str, ssl.SSLContext | None] = {PLAIN: None, SASL: None}
    for name in (TLS, TLS_RSA, TLS_MUTUAL, SASL_TLS):
        context = ssl.create_default_context(cadata=authority().issued.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if name == TLS_MUTUAL:
            file = folder / "bench-client.pem"
            file.write_text(client().both)
            context.load_cert_chain(file)
        found[name] = context
    return found


def connected(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """A connection that has sent a first request, so that the server has finished its handshake."""
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found = plain if context is None else context.wrap_socket(plain, server_hostname="127.0.0.1")
    ask(found, API_VERSIONS_V3)
    return found
