"""Unmodified clients from pip against the host: each connects, creates a topic, and reads the records it
produced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import EVERYTHING, ThreadedHost, running_host, serving

RECORDS = 10_000


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("data")) as host:
        yield host


def expected_values() -> list[bytes]:
    return [f"record {number}".encode() for number in range(RECORDS)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_kafka_produces_idempotently_and_fetches_back(host: ThreadedHost, codec: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    topic = f"confluent-{codec}"
    client = {"bootstrap.servers": host.bootstrap}
    creator = admin.AdminClient(client)
    creator.create_topics([admin.NewTopic(topic, 1, 1)])[topic].result(10)
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer(client | {"compression.type": codec, "enable.idempotence": True})
    for value in expected_values():
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        producer.poll(0)
    unflushed = producer.flush(20)
    consumer = confluent_kafka.Consumer(client | {"group.id": "readers", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < RECORDS and (messages := consumer.consume(1000, 10)):
        values += [message.value() for message in messages]
    consumer.close()

    assert unflushed == 0
    assert failures == []
    assert values == expected_values()


def test_kafka_python_creates_produces_and_fetches_back(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka")
    admin = kafka.KafkaAdminClient(bootstrap_servers=host.bootstrap)
    admin.create_topics([kafka.admin.NewTopic("kafka-python", 2, 1)])
    admin.close()

    producer = kafka.KafkaProducer(bootstrap_servers=host.bootstrap, linger_ms=5)
    futures = [producer.send("kafka-python", value, partition=1) for value in expected_values()]
    producer.flush(20)
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=host.bootstrap, consumer_timeout_ms=10_000)
    partition = kafka.TopicPartition("kafka-python", 1)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    values = [next(consumer).value for _ in range(RECORDS)]
    end_offset = consumer.end_offsets([partition])[partition]
    consumer.close()

    assert all(future.succeeded() for future in futures)
    assert values == expected_values()
    assert end_offset == RECORDS


def test_aiokafka_creates_produces_and_fetches_back(host: ThreadedHost) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    admin = pytest.importorskip("aiokafka.admin")

    async def round_trip() -> list[bytes]:
        client = admin.AIOKafkaAdminClient(bootstrap_servers=host.bootstrap)
        await client.start()
        await client.create_topics([admin.NewTopic("aiokafka", 1, 1)])
        await client.close()
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=host.bootstrap, enable_idempotence=True
        ) as producer:
            sent = [await producer.send("aiokafka", value, partition=0) for value in expected_values()]
            await asyncio.gather(*sent)
        partition = aiokafka.TopicPartition("aiokafka", 0)
        values: list[bytes] = []
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=host.bootstrap) as consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            while len(values) < RECORDS:
                values.append((await asyncio.wait_for(consumer.getone(), 10)).value)
        return values

    values = asyncio.run(round_trip())

    assert values == expected_values()


@pytest.mark.ci
def test_a_separately_started_producer_appears_with_its_labels(tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    arguments = [argument for override in EVERYTHING for argument in ("--set", override)]

    with serving(tmp_path, "--plugin", "stdout", *arguments) as serve:
        producer = confluent_kafka.Producer({"bootstrap.servers": serve.bootstrap, "client.id": "orders"})
        producer.produce("orders", b"one")
        producer.flush(10)
        row = serve.next_push(lambda row: row["context"]["client_id"] == "orders")
        producer.close()
        status = serve.terminate()

    labels = row["labels"]
    assert labels["client_id"] == "orders"
    assert labels["client_software_name"] == "confluent-kafka-python"
    assert labels["client_software_version"] == row["context"]["client_software_version"]
    assert labels["client_source_address"] == "127.0.0.1"
    assert labels["client_source_port"] == str(row["context"]["client_source_port"])
    assert labels["client_instance_id"] == row["context"]["client_instance_id"]
    assert labels["principal"] == "User:ANONYMOUS"
    assert labels["broker_node_id"] == "1"
    assert row["metrics"] > 0
    assert "org.apache.kafka.producer.connection.creation.total" in row["names"]
    assert status == 0


def test_confluent_kafka_learns_that_there_is_no_authorizer(host: ThreadedHost) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    confluent_kafka = pytest.importorskip("confluent_kafka")
    client = admin.AdminClient({"bootstrap.servers": host.bootstrap})
    one = (admin.ResourceType.TOPIC, "t", admin.ResourcePatternType.LITERAL, "User:a", "*")
    acl = admin.AclBinding(*one, admin.AclOperation.READ, admin.AclPermissionType.ALLOW)
    same = admin.AclBindingFilter(*one, admin.AclOperation.READ, admin.AclPermissionType.ALLOW)

    described = client.describe_acls(same).result(20)
    changes = [*client.create_acls([acl]).values(), *client.delete_acls([same]).values()]

    assert described == []  # the client drops the error, also with Kafka
    for future in changes:
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            future.result(20)
        assert refused.value.args[0].code() == confluent_kafka.KafkaError.SECURITY_DISABLED
