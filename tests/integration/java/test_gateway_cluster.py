"""Clients of three Apache Kafka nodes behind a gateway: leaders move, a node dies, and nothing is lost.

The nodes name an address of their own, which must not occur in any byte that a client is sent.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.ports import free_range

from integration.java.console_tools import ConsoleTools
from integration.java.gateway_process import WatchedGateway, gateway_process
from integration.java.jvm import SERVER, Jvm
from integration.java.kafka_cluster import ADDRESS, NODE_RANGES, NODES, KafkaCluster
from integration.java.leaders import leaders, move_leaders
from integration.java.main_server import main_server
from support.certificates import Files, authority
from support.gateways import gateway_of
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
aiokafka = pytest.importorskip("aiokafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
PARTITIONS = 3
RECORDS = 2000
RECORDS_PER_S = 400
"""The load lasts five seconds and more: long enough for a leader to move and a node to die meanwhile."""
TOPICS = ("numbers-of-java", "numbers-of-librdkafka", "numbers-of-aiokafka")
READ_TIMEOUT_S = 150
"""Without a further record, reading ends."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A cluster, the gateway in front of it, and Kafka's tools at the gateway."""

    cluster: KafkaCluster
    gateway: WatchedGateway
    tools: ConsoleTools
    folder: Path


@pytest.fixture(scope="module")
def behind(jvm: Jvm, kafka_nodes: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder, cluster = tmp_path_factory.mktemp("gateway-cluster"), kafka_nodes
    with gateway_process(folder, cluster.bootstrap, NODE_RANGES, ADDRESS) as gateway:
        tools = ConsoleTools(jvm, gateway.bootstrap)
        for topic in TOPICS:
            tools.create_topic(topic, PARTITIONS, "--replication-factor", "3")
        yield Behind(cluster, gateway, tools, folder)


@dataclass(slots=True)
class Load:
    """Clients in threads, each with the numbers of the records that were acknowledged or read."""

    acknowledged: dict[str, list[int]] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    read: dict[str, list[int]] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    failures: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    deadline: float = field(default_factory=lambda: time.monotonic() + READ_TIMEOUT_S)

    def start(self, client: Callable[[], None]) -> None:
        def run() -> None:
            try:
                client()
            except Exception as error:  # noqa: BLE001  the thread would end in silence
                self.failures.append(f"{client}: {error!r}")

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def take(self, topic: str, numbers: Iterable[int]) -> None:
        """Add numbers that were read. The deadline moves on with each."""
        for number in numbers:
            self.read[topic].append(number)
            self.deadline = time.monotonic() + READ_TIMEOUT_S

    def is_read(self, topic: str) -> bool:
        return (
            len(set(self.read[topic])) >= RECORDS or time.monotonic() > self.deadline or bool(self.failures)
        )


def produce_with_java(behind: Behind, load: Load) -> None:
    """The tool's own setting is not to retry."""
    file = behind.folder / "producer.properties"
    file.write_text("retries=2147483647\nenable.idempotence=true\nlinger.ms=5\n")
    limits = ("--max-messages", str(RECORDS), "--throughput", str(RECORDS_PER_S))
    options = ("--topic", TOPICS[0], *limits, "--command-config", str(file))
    with behind.tools.started("kafka-verifiable-producer", *options) as producer:
        assert producer.stdout is not None
        for line in producer.stdout:
            said = json.loads(line)
            if said["name"] == "producer_send_success":
                load.acknowledged[TOPICS[0]].append(int(said["value"]))
            elif said["name"] == "producer_send_error":
                load.failures.append(line)


def produce_with_librdkafka(behind: Behind, load: Load) -> None:
    topic = TOPICS[1]

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            load.failures.append(f"librdkafka: {error}")
        else:
            load.acknowledged[topic].append(int(message.value()))

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": behind.gateway.bootstrap, "enable.idempotence": True, "linger.ms": 5}
    )
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=delivered)
        producer.poll(1 / RECORDS_PER_S)
    assert producer.flush(READ_TIMEOUT_S) == 0


def produce_with_aiokafka(behind: Behind, load: Load) -> None:
    topic = TOPICS[2]

    async def produce() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=behind.gateway.bootstrap, enable_idempotence=True, acks="all", linger_ms=5
        )
        await producer.start()
        sent = []
        for number in range(RECORDS):
            sent.append(await producer.send(topic, b"%d" % number, partition=number % PARTITIONS))
            await asyncio.sleep(1 / RECORDS_PER_S)
        for number, future in enumerate(sent):
            await future
            load.acknowledged[topic].append(number)
        await producer.stop()

    asyncio.run(produce())


def read_with_java(behind: Behind, load: Load, topic: str) -> None:
    silence = ("--timeout-ms", str(1000 * READ_TIMEOUT_S))
    with behind.tools.started(
        "kafka-console-consumer", "--topic", topic, "--from-beginning", *silence
    ) as consumer:
        assert consumer.stdout is not None
        for line in consumer.stdout:
            load.take(topic, [int(line)])
            if load.is_read(topic):
                break


def read_with_librdkafka(behind: Behind, load: Load, topic: str) -> None:
    """A consumer group of its own."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": behind.gateway.bootstrap,
            "group.id": f"librdkafka-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    while not load.is_read(topic):
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                load.take(topic, [int(message.value())])
    consumer.close()


def read_with_aiokafka(behind: Behind, load: Load, topic: str) -> None:
    async def read() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=behind.gateway.bootstrap,
            group_id=f"aiokafka-{topic}",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        while not load.is_read(topic):
            for messages in (await consumer.getmany(timeout_ms=200)).values():
                load.take(topic, (int(message.value) for message in messages))
        await consumer.stop()

    asyncio.run(read())


def test_admin_tools_reach_the_nodes_that_they_name(behind: Behind) -> None:
    host, _, port = behind.gateway.bootstrap.partition(":")
    ports = {node: str(int(port) + place) for place, node in enumerate(NODES, start=1)}

    endpoints = behind.tools.succeed("kafka-broker-api-versions")
    sizes = behind.tools.succeed("kafka-log-dirs", "--describe", "--broker-list", "2,103")
    broker = ("--entity-type", "brokers", "--entity-name", "103")
    behind.tools.succeed("kafka-configs", "--alter", *broker, "--add-config", "log.cleaner.threads=2")

    named = {line.split()[0] for line in endpoints if "(id: " in line}
    assert named == {f"{host}:{port}" for port in ports.values()}
    assert [row["broker"] for row in json.loads(sizes[-1])["brokers"]] == [2, 103]
    # asked of the broker itself: its configuration names its listeners, and passes a gateway as it is
    direct = ConsoleTools(behind.tools.jvm, behind.cluster.bootstrap)
    assert any(
        "log.cleaner.threads=2" in line for line in direct.succeed("kafka-configs", "--describe", *broker)
    )


def test_java_clients_reach_each_node_by_its_name(behind: Behind) -> None:
    files, port, domain = Files(behind.folder), free_range(1), "kafka.localhost"
    names = {node: f"b{node}.{domain}" for node in NODES}
    hosts = behind.folder / "hosts"
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in [f"bootstrap.{domain}", *names.values()]))
    settings = (
        f"listeners=SSL://127.0.0.1:{port}",
        f"advertised.listeners=SSL://bootstrap.{domain}:{port}",
        f"gateway.node.names=b$(nodeId).{domain}",
        f"ssl.keystore.location={files.write('named.pem', authority().issue('named', [f'*.{domain}']).both)}",
    )
    text = f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
    config = ("--command-config", files.write("named.properties", text))
    topic, sent = "by-name", [str(number) for number in range(300)]
    places = ",".join(map(str, NODES))
    behind.tools.succeed("kafka-topics", "--create", "--topic", topic, "--replica-assignment", places)
    resolving = behind.tools.jvm.resolving(hosts)
    with (
        gateway_of(behind.cluster.bootstrap, behind.folder / "named", *settings),
        main_server(resolving.command(SERVER)) as server,
    ):
        tools = ConsoleTools(Jvm(resolving.classpath, server), f"bootstrap.{domain}:{port}")

        endpoints = tools.succeed("kafka-broker-api-versions", *config)
        tools.produce_lines(topic, sent, *config, "--producer-property", "partitioner.ignore.keys=true")
        found = tools.consume_lines(topic, len(sent), "--from-beginning", *config)

    assert {line.split()[0] for line in endpoints if "(id: " in line} == {
        f"{name}:{port}" for name in names.values()
    }
    assert sorted(found) == sorted(sent)


def test_nothing_is_lost_and_no_address_leaks_while_leaders_move_and_a_node_dies(behind: Behind) -> None:
    load = Load()
    load.start(lambda: produce_with_java(behind, load))
    load.start(lambda: produce_with_librdkafka(behind, load))
    load.start(lambda: produce_with_aiokafka(behind, load))
    load.start(lambda: read_with_java(behind, load, TOPICS[0]))
    load.start(lambda: read_with_librdkafka(behind, load, TOPICS[1]))
    load.start(lambda: read_with_aiokafka(behind, load, TOPICS[2]))
    wait_until(
        lambda: load.failures or all(load.acknowledged[topic] for topic in TOPICS[:2]),
        "the load has begun",
        READ_TIMEOUT_S,
    )
    for node in (103, 2):
        move_leaders(behind.tools, behind.folder, TOPICS, PARTITIONS, to=node)
    behind.cluster.kill(2)
    try:
        load.join()
        check(behind, load)
    finally:
        behind.cluster.start(2)
        behind.cluster.wait(2)


def check(behind: Behind, load: Load) -> None:
    """Every record was acknowledged, stored and read, and no address of a node was sent."""
    assert load.failures == []
    every = list(range(RECORDS))
    assert {topic: sorted(numbers) for topic, numbers in load.acknowledged.items()} == dict.fromkeys(
        TOPICS, every
    )
    assert {topic: sorted(set(numbers)) for topic, numbers in load.read.items()} == dict.fromkeys(
        TOPICS, every
    )
    lines = behind.tools.succeed(
        "kafka-get-offsets",
        "--topic-partitions",
        ",".join(f"{t}:{p}" for t in TOPICS for p in range(PARTITIONS)),
    )
    ends: dict[str, int] = {}
    for line in lines:
        topic, _, end = line.split(":")
        ends[topic] = ends.get(topic, 0) + int(end)
    assert ends == dict.fromkeys(TOPICS, RECORDS), "nothing is doubled"
    assert set(leaders(behind.tools, TOPICS[0])) <= {1, 103}
    seen = behind.gateway.stopped()
    assert seen.secrets == 0
    assert seen.advertised > 50
    assert seen.sent_bytes > 100_000
    assert "Traceback" not in behind.gateway.log
    assert "ERROR" not in behind.gateway.log
