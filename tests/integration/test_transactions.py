"""Transactions of unmodified clients: commit, abort, fencing, group offsets, kill -9 in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts import LOOPBACK, ServeProcess, ThreadedHost, running_host

confluent_kafka = pytest.importorskip("confluent_kafka")

TIMEOUT_S = 20


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("data")) as host:
        yield host


def producer_of(bootstrap: str, transactional_id: str, **settings: Any) -> Any:
    """A producer with initialized transactions."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **settings}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def produce(producer: Any, topic: str, *values: str) -> None:
    """Produce acknowledged values in the producer's transaction."""
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def values_of(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str]:
    """All values that a consumer reads, from the beginning to the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "isolation.level": isolation,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while (message := consumer.poll(TIMEOUT_S)) is not None and not message.error():
        values.append(message.value().decode())
    consumer.close()
    assert message is not None
    return values


def test_confluent_kafka_commits_and_aborts(host: ThreadedHost) -> None:
    producer = producer_of(host.bootstrap, "confluent")

    for number in range(6):
        producer.begin_transaction()
        produce(producer, "outcomes", f"{number}a", f"{number}b")
        producer.commit_transaction(TIMEOUT_S) if number % 2 else producer.abort_transaction(TIMEOUT_S)

    committed = ["1a", "1b", "3a", "3b", "5a", "5b"]
    assert values_of(host.bootstrap, "outcomes") == committed
    assert len(values_of(host.bootstrap, "outcomes", "read_uncommitted")) == 12


def test_confluent_kafka_does_not_read_open_transactions(host: ThreadedHost) -> None:
    one, two = (producer_of(host.bootstrap, name) for name in ("one", "two"))
    one.begin_transaction()
    produce(one, "open", "from one")
    two.begin_transaction()
    produce(two, "open", "from two")

    two.commit_transaction(TIMEOUT_S)
    while_open = values_of(host.bootstrap, "open")
    one.commit_transaction(TIMEOUT_S)

    assert while_open == []
    assert values_of(host.bootstrap, "open") == ["from one", "from two"]


def test_confluent_kafka_zombie_is_fenced(host: ThreadedHost) -> None:
    zombie = producer_of(host.bootstrap, "zombie")
    zombie.begin_transaction()
    produce(zombie, "fenced", "from the zombie")

    successor = producer_of(host.bootstrap, "zombie")
    successor.begin_transaction()
    produce(successor, "fenced", "from its successor")
    successor.commit_transaction(TIMEOUT_S)

    with pytest.raises(confluent_kafka.KafkaException) as refused:
        zombie.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal()
    assert values_of(host.bootstrap, "fenced") == ["from its successor"]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_confluent_kafka_sends_offsets_with_its_records(host: ThreadedHost, outcome: str) -> None:
    source, target, group = f"source-{outcome}", f"target-{outcome}", f"group-{outcome}"
    plain = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap})
    produce(plain, source, "a", "b", "c")
    settings = {"bootstrap.servers": host.bootstrap, "group.id": group, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    partition = confluent_kafka.TopicPartition(source, 0, 0)
    consumer.assign([partition])
    messages = [consumer.poll(TIMEOUT_S) for _ in range(3)]
    producer = producer_of(host.bootstrap, f"offsets-{outcome}")

    producer.begin_transaction()
    produce(producer, target, *(message.value().decode().upper() for message in messages))
    positions = consumer.position([partition])
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
    getattr(producer, f"{outcome}_transaction")(TIMEOUT_S)

    (committed,) = consumer.committed([partition], TIMEOUT_S)
    consumer.close()
    commits = outcome == "commit"
    assert committed.offset == (3 if commits else confluent_kafka.OFFSET_INVALID)
    assert values_of(host.bootstrap, target) == (["A", "B", "C"] if commits else [])


def test_confluent_kafka_transaction_that_times_out_is_aborted(tmp_path: Path) -> None:
    sweep = "transaction.abort.timed.out.transaction.cleanup.interval.ms=100"
    with running_host(tmp_path, sweep) as host:
        producer = producer_of(host.bootstrap, "slow", **{"transaction.timeout.ms": 1_000})
        producer.begin_transaction()
        produce(producer, "late", "too late")
        plain = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap})
        produce(plain, "late", "plain")

        seen: list[str] = []
        for _ in range(50):
            seen = values_of(host.bootstrap, "late")
            if seen:
                break

        assert seen == ["plain"]
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(TIMEOUT_S)


def test_kafka_python_commits_and_aborts(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=host.bootstrap, transactional_id="kafka-python")
    producer.init_transactions()

    for number in range(4):
        producer.begin_transaction()
        producer.send("of-kafka-python", str(number).encode(), partition=0)
        producer.commit_transaction() if number % 2 else producer.abort_transaction()
    producer.close()

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=host.bootstrap, isolation_level="read_committed", consumer_timeout_ms=2_000
    )
    partition = kafka.TopicPartition("of-kafka-python", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    values = [message.value for message in consumer]
    consumer.close()
    assert values == [b"1", b"3"]


def test_aiokafka_commits_and_aborts(host: ThreadedHost) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def transactions() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=host.bootstrap, transactional_id="aiokafka")
        await producer.start()
        for number in range(4):
            await producer.begin_transaction()
            await producer.send_and_wait("of-aiokafka", str(number).encode(), partition=0)
            await (producer.commit_transaction() if number % 2 else producer.abort_transaction())
        await producer.stop()

    async def consumed() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=host.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        partition = aiokafka.TopicPartition("of-aiokafka", 0)
        await consumer.start()
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        values = [(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value for _ in range(2)]
        await consumer.stop()
        return values

    asyncio.run(transactions())

    assert asyncio.run(consumed()) == [b"1", b"3"]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
@pytest.mark.ci
def test_transactions_survive_kill_9_in_the_middle(tmp_path: Path, outcome: str) -> None:
    arguments = ("--set", f"data.dir={tmp_path / 'data'}", "--set")
    first = ServeProcess(*arguments, f"listeners={LOOPBACK}")
    port = first.ready.rpartition(":")[2].split()[0]
    bootstrap = f"127.0.0.1:{port}"
    producer = producer_of(bootstrap, "survivor", **{"reconnect.backoff.max.ms": 200})
    producer.begin_transaction()
    produce(producer, "kept", "before")
    first.kill()
    second = ServeProcess(*arguments, f"listeners=PLAINTEXT://127.0.0.1:{port}")
    try:
        while_open = values_of(bootstrap, "kept")

        produce(producer, "kept", "after")
        getattr(producer, f"{outcome}_transaction")(TIMEOUT_S)

        assert while_open == []
        assert values_of(bootstrap, "kept") == (["before", "after"] if outcome == "commit" else [])
        assert values_of(bootstrap, "kept", "read_uncommitted") == ["before", "after"]
    finally:
        second.kill()
