"""Consumers from pip that subscribe to every topic leave the telemetry of others alone, unless the host is
set otherwise; by its name each of them reads the topic.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.waiting import wait_until

TELEMETRY = "__client_telemetry"
TIMEOUT_S = 30.0
JOIN_MS = 2_000
QUICK = (
    *EVERYTHING,
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
    "group.consumer.assignment.interval.ms=0",
)
Subscribe = Callable[[ThreadedHost, str | None], set[str]]
"""Subscribes a consumer to a topic, or to every one, and returns the topics that it gets."""


@pytest.fixture(scope="module", params=[True, False], ids=["internal", "ordinary"])
def internal(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def host(internal: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    setting = f"telemetry.topic.internal={str(internal).lower()}"
    with running_host(tmp_path_factory.mktemp("data"), *QUICK, setting) as host:
        admin = pytest.importorskip("confluent_kafka.admin")
        creator = admin.AdminClient({"bootstrap.servers": host.bootstrap})
        creator.create_topics([admin.NewTopic("ordinary", 1, 1)])["ordinary"].result(10)
        yield host


def kafka_python(host: ThreadedHost, topic: str | None) -> set[str]:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(bootstrap_servers=host.bootstrap, group_id=f"kafka-python {topic}")
    consumer.subscribe(**({"pattern": ".*"} if topic is None else {"topics": [topic]}))

    def joined() -> bool:
        # kafka-python 3.0.12 loses its assignment for good when a poll ends in the middle of a join.
        consumer.poll(JOIN_MS)
        return bool(consumer.assignment())

    wait_until(joined, "no partition is assigned")
    found = {partition.topic for partition in consumer.assignment()}
    consumer.close()
    return found


def aio_kafka(host: ThreadedHost, topic: str | None) -> set[str]:
    aiokafka = pytest.importorskip("aiokafka")

    async def subscribed() -> set[str]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=host.bootstrap, group_id=f"aiokafka {topic}")
        consumer.subscribe(**({"pattern": ".*"} if topic is None else {"topics": [topic]}))
        await consumer.start()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not consumer.assignment():
                    await asyncio.sleep(0.05)
            return {partition.topic for partition in consumer.assignment()}
        finally:
            await consumer.stop()

    return asyncio.run(subscribed())


def confluent(host: ThreadedHost, topic: str | None) -> set[str]:
    """The consumer protocol: the host matches the expression."""
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    config = {
        "bootstrap.servers": host.bootstrap,
        "group.id": f"confluent {topic}",
        "group.protocol": "consumer",
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe(["^.*" if topic is None else topic])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(joined, "no partition is assigned")
    found = {partition.topic for partition in consumer.assignment()}
    consumer.close()
    return found


CLIENTS = pytest.mark.parametrize("subscribe", [kafka_python, aio_kafka, confluent])


@CLIENTS
def test_a_pattern_finds_the_topic_only_if_it_is_not_internal(
    host: ThreadedHost, internal: bool, subscribe: Subscribe
) -> None:
    found = subscribe(host, None)

    telemetry = {name for name in found if re.match(TELEMETRY, name)}
    assert found - telemetry == {"ordinary"}
    assert telemetry == (set() if internal else {TELEMETRY, f"{TELEMETRY}_dead_letter"})


@CLIENTS
def test_the_topic_can_be_read_by_its_name(host: ThreadedHost, subscribe: Subscribe) -> None:
    assert subscribe(host, TELEMETRY) == {TELEMETRY}
