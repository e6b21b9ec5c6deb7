"""One port for all nodes of a gateway: the server name in TLS tells which node a client wants."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from contrib.capture.ports import free_range

from odradek.wire.messages.metadata import MetadataRequest
from support.certificates import Files, authority
from support.gateways import GatewayProcess, gateway_of
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

NODE = 1
DOMAIN = "kafka.localhost"
BOOTSTRAP = f"bootstrap.{DOMAIN}"
RECORDS = 500
DELAY = "group.initial.rebalance.delay.ms=0"


@dataclass(frozen=True, slots=True)
class Named:
    """A gateway with a name for each node."""

    process: GatewayProcess
    port: int
    metrics_port: int
    files: Files

    @property
    def bootstrap(self) -> str:
        return f"{BOOTSTRAP}:{self.port}"

    @property
    def context(self) -> ssl.SSLContext:
        """The client's side of TLS, which checks the names."""
        return ssl.create_default_context(cafile=self.files.ca)

    def connected(self, name: str | None) -> WireClient:
        """A client that asks for a server by its name."""
        context = self.context
        context.check_hostname = name is not None
        client = WireClient(("127.0.0.1", self.port))
        try:
            client.socket = context.wrap_socket(client.socket, server_hostname=name)
        except OSError:
            client.socket.close()
            raise
        return client

    def refused(self, reason: str) -> float:
        """How many handshakes were refused."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as answer:
            rows = answer.read().decode().splitlines()
        name = "odradek_gateway_server_names_refused"
        found = [row for row in rows if row.startswith(name) and f'reason="{reason}"' in row]
        return float(found[0].split()[-1]) if found else 0


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("upstream"), f"node.id={NODE}", *EVERYTHING, DELAY) as host:
        yield host


@pytest.fixture(scope="module")
def named(host: ThreadedHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    folder = tmp_path_factory.mktemp("gateway")
    files, port = Files(folder), free_range(2)
    key_store = files.write("gateway.pem", authority().issue("gateway", [f"*.{DOMAIN}"]).both)
    settings = (
        f"listeners=SSL://127.0.0.1:{port}",
        f"advertised.listeners=SSL://{BOOTSTRAP}:{port}",
        f"gateway.node.names=b$(nodeId).{DOMAIN}",
        f"ssl.keystore.location={key_store}",
        f"metrics.listener=http://127.0.0.1:{port + 1}",
        "plugins.stdout.enabled=true",
    )
    with gateway_of(host.bootstrap, folder / "data", *settings) as process:
        yield Named(process, port, port + 1, files)


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names below the domain are this machine, for clients that ask Python; returns the names asked for."""
    original = socket.getaddrinfo
    asked: list[str] = []

    def lookup(host: Any, *more: Any, **options: Any) -> Any:
        if isinstance(host, str) and host.endswith(f".{DOMAIN}"):
            asked.append(host)
            host = "127.0.0.1"
        return original(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return asked


def values() -> list[bytes]:
    return [f"record {number}".encode() for number in range(RECORDS)]


def test_the_ready_line_names_the_nodes(named: Named) -> None:
    assert named.process.ready.endswith(f" nodes=b$(nodeId).{DOMAIN}")


@pytest.mark.parametrize("name", [BOOTSTRAP, f"b{NODE}.{DOMAIN}", f"B{NODE}.Kafka.LOCALHOST"])
def test_the_nodes_are_advertised_by_name(named: Named, name: str) -> None:
    with named.connected(name) as client:
        found = client.send(MetadataRequest(topics=[]), 12)

    assert [(each.node_id, each.host, each.port) for each in found.brokers] == [
        (NODE, f"b{NODE}.{DOMAIN}", named.port)
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (f"b01.{DOMAIN}", "unknown"),
        (f"other.{DOMAIN}", "unknown"),
        (f"b{NODE}.elsewhere.example", "unknown"),
        ("localhost", "unknown"),
        (None, "missing"),
    ],
)
def test_another_name_is_refused_with_an_alert(named: Named, name: str | None, reason: str) -> None:
    before = named.refused(reason)

    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        named.connected(name)

    assert named.refused(reason) == before + 1


def test_a_refused_name_is_logged_with_the_reason(named: Named) -> None:
    with pytest.raises(ssl.SSLError):
        named.connected(f"nowhere.{DOMAIN}")

    wait_until(
        lambda: any("TLS client was refused" in line for line in named.process.errors), "the line in the log"
    )
    lines = [line for line in named.process.errors if "TLS client was refused" in line]
    assert any("no node has the server name" in line or "names no server" in line for line in lines)


def test_kafka_python_reads_back_what_it_produced(named: Named, resolved: list[str]) -> None:
    kafka = pytest.importorskip("kafka")
    client = {
        "bootstrap_servers": named.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": named.context,
    }
    producer = kafka.KafkaProducer(**client)
    for value in values():
        producer.send("kafka-python", value, partition=0)
    producer.flush(20)
    producer.close()
    consumer = kafka.KafkaConsumer(**client, auto_offset_reset="earliest", consumer_timeout_ms=10_000)
    consumer.assign([kafka.TopicPartition("kafka-python", 0)])
    found = [next(consumer).value for _ in range(RECORDS)]
    consumer.close()

    assert found == values()
    assert set(resolved) == {BOOTSTRAP, f"b{NODE}.{DOMAIN}"}


def test_aiokafka_reads_back_with_a_group(named: Named, resolved: list[str]) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    client = {
        "bootstrap_servers": named.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": named.context,
    }

    async def exchange() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**client) as producer:
            for value in values():
                await producer.send("aiokafka", value, partition=0)
        async with aiokafka.AIOKafkaConsumer(
            "aiokafka", **client, auto_offset_reset="earliest", group_id="aio"
        ) as consumer:
            return [(await asyncio.wait_for(anext(consumer), 10)).value for _ in range(RECORDS)]

    assert asyncio.run(exchange()) == values()
    assert set(resolved) == {BOOTSTRAP, f"b{NODE}.{DOMAIN}"}


@pytest.mark.slow
def test_franz_go_produces_and_reads_with_a_group(named: Named, franz_go: str) -> None:
    options = (f"-ca={named.files.ca}", "-address=127.0.0.1")

    done = subprocess.run(
        [franz_go, *options, named.bootstrap, "franz-go", "200", "a-gopher"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.stdout.splitlines() == ["produced=1000", "read=1000"], done.stderr
