"""Unmodified clients through `odradek gateway` in front of a host."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

from odradek.cli.main import run
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.gateways import GatewayProcess, gateway_of
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

RECORDS = 2_000
NODE = 1


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("upstream"), f"node.id={NODE}", *EVERYTHING) as host:
        yield host


@pytest.fixture(scope="module")
def gateway(host: ThreadedHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("gateway")
    with gateway_of(host.bootstrap, directory, "plugins.stdout.enabled=true") as process:
        yield process


def values() -> list[bytes]:
    return [f"record {number}".encode() for number in range(RECORDS)]


def test_the_ready_line_names_the_upstream(host: ThreadedHost, gateway: GatewayProcess) -> None:
    assert gateway.ready.endswith(f" upstream={host.bootstrap} nodes=0-2")


def test_a_gateway_does_not_say_that_clients_may_do_everything(gateway: GatewayProcess) -> None:
    wait_until(lambda: any(" authorization " in line for line in gateway.errors), "the start is told")
    assert [line.split(" authorization ")[1] for line in gateway.errors if " authorization " in line] == [
        "authorizer=of the brokers: requests and logins pass through"
    ]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_kafka_reads_back_what_it_produced(gateway: GatewayProcess, acks: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    topic, client = f"confluent-{acks}", {"bootstrap.servers": gateway.bootstrap}
    creator = admin.AdminClient(client)
    creator.create_topics([admin.NewTopic(topic, 1, 1)])[topic].result(10)
    producer = confluent_kafka.Producer(client | {"acks": acks, "compression.type": "lz4"})
    for value in values():
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer(client | {"group.id": f"g-{acks}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < RECORDS and (messages := consumer.consume(1000, 10)):
        found += [message.value() for message in messages]
    consumer.close()

    assert found == values()


def test_clients_see_the_ports_of_the_gateway(host: ThreadedHost, gateway: GatewayProcess) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": gateway.bootstrap})

    brokers = client.list_topics(timeout=10).brokers
    described = client.describe_cluster().result(10)

    (port,) = {broker.port for broker in brokers.values()}
    assert port not in (host.address[1], int(gateway.bootstrap.rpartition(":")[2]))
    assert list(brokers) == [NODE]
    assert [(node.id, node.port) for node in described.nodes] == [(NODE, port)]


def test_kafka_python_reads_back_what_it_produced(gateway: GatewayProcess) -> None:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=gateway.bootstrap)
    for value in values():
        producer.send("kafka-python", value, partition=0)
    producer.flush(20)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=gateway.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([kafka.TopicPartition("kafka-python", 0)])
    found = [next(consumer).value for _ in range(RECORDS)]
    consumer.close()

    assert found == values()


def test_aiokafka_reads_back_a_transaction(gateway: GatewayProcess) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def exchange() -> list[bytes]:
        async with (
            aiokafka.AIOKafkaProducer(bootstrap_servers=gateway.bootstrap, transactional_id="t") as producer,
            producer.transaction(),
        ):
            for value in values():
                await producer.send("aiokafka", value, partition=0)
        async with aiokafka.AIOKafkaConsumer(
            "aiokafka",
            bootstrap_servers=gateway.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            group_id="aio",
        ) as consumer:
            return [(await asyncio.wait_for(anext(consumer), 10)).value for _ in range(RECORDS)]

    assert asyncio.run(exchange()) == values()


def test_a_push_reaches_the_gateway_with_the_subscriptions_of_the_cluster(gateway: GatewayProcess) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": gateway.bootstrap, "client.id": "pusher"})
    producer.produce("pushed", b"x")
    producer.flush(10)

    push = gateway.next_push(lambda row: row["context"]["client_id"] == "pusher")
    producer.flush(1)

    context = push["context"]
    assert context["client_software_name"] == "confluent-kafka-python"
    assert context["client_source_address"] == "127.0.0.1"
    assert context["broker_id"] in (-1, NODE)
    assert push["labels"]["principal_source"] == "none"


def test_a_health_check_costs_no_upstream_connection(host: ThreadedHost, gateway: GatewayProcess) -> None:
    before = host.call(lambda: host.host.listeners[0].accepted)

    for data in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xaa",
        b"\0\0",
    ):
        with socket.create_connection(address_of(gateway), 5) as client:
            client.sendall(data)
            if len(data) > 4:
                assert client.recv(1) == b""

    assert host.call(lambda: host.host.listeners[0].accepted) == before


def test_an_apiversions_request_from_the_future_is_answered_here(gateway: GatewayProcess) -> None:
    with socket.create_connection(address_of(gateway), 5) as client:
        client.sendall(struct.pack(">ihhih", 11, 18, 99, 7, -1) + b"\0")

        assert client.recv(100) == struct.pack(">iihihhh", 16, 7, 35, 1, 18, 0, 5)


def test_the_port_of_a_node_that_does_not_exist_closes(host: ThreadedHost, tmp_path: Path) -> None:
    start = free_range(3)
    with gateway_of(host.bootstrap, tmp_path, f"gateway.port.start={start}"):
        answered = []
        for node_id in (NODE, NODE + 1):
            with WireClient(("127.0.0.1", start + node_id)) as client:
                client.send_bytes(client.frame(ApiVersionsRequest(), 0))
                answered.append(not client.closed_by_peer())

    assert answered == [True, False]


def address_of(gateway: GatewayProcess) -> tuple[str, int]:
    host, _, port = gateway.bootstrap.rpartition(":")
    return host, int(port)


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", "gateway", *arguments], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ((), "gateway.upstream: expected host:port[,host:port...], found ''"),
        (
            ("gateway.upstream=nowhere",),
            "gateway.upstream: expected host:port[,host:port...], found 'nowhere'",
        ),
        (("gateway.upstream=h:1", "gateway.nodes=3-1"), "gateway.nodes: "),
        (("gateway.upstream=h:1", "gateway.nodes=x"), "gateway.nodes: expected node ids and ranges"),
        (("gateway.upstream=h:1", "listeners=SASL_PLAINTEXT://127.0.0.1:0"), "SASL passes through a gateway"),
        (
            ("gateway.upstream=h:1", "listeners=PLAINTEXT://h:1100,PLAINTEXT_B://h:1103"),
            "listener.name.plaintext_b.gateway.port.start: PLAINTEXT_B://h:1103 and PLAINTEXT://h:1100 need "
            "the same ports for the nodes 0-2; choose others",
        ),
        (
            (
                "gateway.upstream=h:1",
                "listeners=PLAINTEXT://h:1100,PLAINTEXT_B://h:1200",
                "gateway.port.start=1300",
            ),
            "listener.name.plaintext_b.gateway.port.start: ",
        ),
        (
            ("gateway.upstream=h:1", "gateway.reuse.port=true", "listeners=PLAINTEXT://127.0.0.1:0"),
            "gateway.reuse.port: expected a port for PLAINTEXT://127.0.0.1:0",
        ),
        (
            ("gateway.upstream=h:1", "gateway.connections.max.idle.ms=600000"),
            "gateway.connections.max.idle.ms: expected",
        ),
        (("gateway.upstream=h:1", "gateway.upstream.command.config=/missing"), "/missing"),
        (
            ("gateway.upstream=h:1", "gateway.port.start=65535"),
            "gateway.port.start: 3 node ids from port 65535 on end beyond port 65535",
        ),
        (
            ("gateway.upstream=127.0.0.1:9092",),
            "gateway.upstream: expected brokers of the cluster, but 127.0.0.1:9092 is the address of this "
            "gateway's listener PLAINTEXT",
        ),
    ],
)
def test_a_configuration_that_cannot_work_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: tuple[str, ...], problem: str
) -> None:
    options = [each for value in (f"data.dir={tmp_path}", *settings) for each in ("--set", value)]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("odradek.cli.gateway.log_to_stderr", lambda *_: None)
        status = run(["gateway", *options])

    assert status == 2
    assert problem in capsys.readouterr().err


def test_a_broker_without_a_port_stops_the_start(host: ThreadedHost, tmp_path: Path) -> None:
    settings = (f"data.dir={tmp_path}", "gateway.nodes=5-7", "listeners=PLAINTEXT://127.0.0.1:0")
    options = [each for value in settings for each in ("--set", value)]

    found = start("--upstream", host.bootstrap, *options)

    assert found.returncode == 2
    assert "gateway.nodes: the cluster has brokers with the ids 1, which 5-7 lacks" in found.stderr


def test_a_stop_lets_outstanding_requests_end(host: ThreadedHost, tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    with gateway_of(host.bootstrap, tmp_path) as process:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": process.bootstrap, "enable.idempotence": True}
        )
        for value in values():
            producer.produce("drained", value, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(10) == 0
        status = process.terminate()

    assert status == 0
    assert failures == []
