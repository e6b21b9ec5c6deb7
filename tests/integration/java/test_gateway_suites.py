"""The suites of clients, unchanged, through two gateways in front of three Apache Kafka nodes.

They are the tests of `every_gateway_suite` that take the least time for what they cover.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from integration.java.balanced_gateways import BalancedGateways
from integration.java.every_gateway_suite import host, logs, serve  # noqa: F401  fixtures
from integration.test_client_matrix import (  # noqa: F401  pytest finds what is imported
    test_franz_go_produces_reads_with_a_group_and_pushes,
    test_librdkafka_2_5_3_compresses_joins_groups_and_pushes,
    test_librdkafka_compresses_joins_groups_and_pushes,
)
from integration.test_consumer_protocol import (  # noqa: F401
    test_two_members_share_the_partitions_and_one_takes_over,
)
from integration.test_real_clients import (  # noqa: F401
    test_aiokafka_creates_produces_and_fetches_back,
    test_kafka_python_creates_produces_and_fetches_back,
)
from integration.test_transactions import (  # noqa: F401
    test_aiokafka_commits_and_aborts,
    test_confluent_kafka_sends_offsets_with_its_records,
    test_confluent_kafka_zombie_is_fenced,
)
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
PATIENCE_S = 90
LARGE_BYTES = 5_000_000
"""More than a gateway holds of a response."""


def create(bootstrap: str, topic: str, **config: str) -> None:
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([admin.NewTopic(topic, 1, 3, config=config)])[topic].result(20)


def produce(bootstrap: str, topic: str, *values: bytes, **config: object) -> None:
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True} | config)
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert failures == []


@contextmanager
def consumer_of(bootstrap: str, topic: str, **settings: object) -> Iterator[Any]:
    """A consumer of a group of its own."""
    config = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(config | {"topic.metadata.refresh.interval.ms": 1_000} | settings)
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[bytes]:
    """The next values; librdkafka reports a topic that is missing for a while as a message, too."""
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value())
    return found


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_large_records_pass(gateways: BalancedGateways, codec: str) -> None:
    topic = f"large-{codec}"
    values = [random.Random(number).randbytes(LARGE_BYTES) for number in range(4)]
    create(gateways.bootstrap, topic, **{"max.message.bytes": "10000000"})

    produce(
        gateways.bootstrap, topic, *values, **{"message.max.bytes": 10_000_000, "compression.type": codec}
    )

    with consumer_of(gateways.bootstrap, topic) as consumer:
        assert read(consumer, len(values)) == values


def test_a_consumer_goes_on_when_a_topic_is_created_again(gateways: BalancedGateways) -> None:
    topic, client = "again", admin.AdminClient({"bootstrap.servers": gateways.bootstrap})
    create(gateways.bootstrap, topic)
    produce(gateways.bootstrap, topic, b"first")
    with consumer_of(gateways.bootstrap, topic, **{"enable.auto.commit": False}) as consumer:

        def is_forgotten() -> bool:
            consumer.poll(0.2)
            return not consumer.assignment()

        assert read(consumer, 1) == [b"first"]
        client.delete_topics([topic])[topic].result(20)
        # A consumer that misses the deletion would continue after the first record of the new topic.
        wait_until(is_forgotten, "the consumer keeps the partition of the deleted topic", PATIENCE_S)
        create(gateways.bootstrap, topic)
        produce(gateways.bootstrap, topic, b"second", b"third")

        assert read(consumer, 2) == [b"second", b"third"]
