"""Consumers of several libraries that read the beginning of a topic, and then stop. They commit nothing."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from support.waiting import wait_until

TOPIC = "orders"
RECORDS, READ = 20, 5
SIZE = 60_000
"""Of a record, in bytes. A response has one record, so that a client fetches few in advance."""
GAP_S = 0.05
"""Time between two records."""
SAMPLE = re.compile(r"^odradek_client_(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
LIBRARIES = {"confluent": "confluent-kafka-python", "aiokafka": "unknown", "kafka-python": "kafka-python"}
"""The library as it calls itself, by client id."""

Reader = Callable[[str], contextlib.AbstractContextManager[None]]


def settings(folder: Path, port: int) -> tuple[str, ...]:
    """Of a gateway that measures its clients and shows them to Prometheus."""
    return (
        "gateway.lag=clients",
        "gateway.lag.interval.ms=1000",
        "lag.export.interval.ms=1000",
        f"plugins.prometheus.listener=http://127.0.0.1:{port}",
        f"plugins.prometheus.totals.file={folder / 'totals.db'}",
    )


def fill(bootstrap: str) -> list[float]:
    """Write the records one after the other; return when each was stored, epoch seconds."""
    kafka = pytest.importorskip("kafka")
    stored_s = []
    with contextlib.closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for _ in range(RECORDS):
            producer.send(TOPIC, bytes(SIZE), partition=0).get(30)
            stored_s.append(time.time())
            threading.Event().wait(GAP_S)
    return stored_s


@contextlib.contextmanager
def with_confluent(bootstrap: str) -> Iterator[None]:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "confluent",
            "group.id": "nobody",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": SIZE,
            "queued.min.messages": 1,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    read: list[bytes] = []

    def enough() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.append(message.value())
        return len(read) == READ

    wait_until(enough, "messages for librdkafka")
    try:
        yield
    finally:
        consumer.close()


@contextlib.contextmanager
def with_aiokafka(bootstrap: str) -> Iterator[None]:
    aiokafka = pytest.importorskip("aiokafka")
    has_read, over = threading.Event(), threading.Event()

    async def read() -> None:
        partition = aiokafka.TopicPartition(TOPIC, 0)
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, client_id="aiokafka", max_partition_fetch_bytes=SIZE
        )
        async with consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            for _ in range(READ):
                await anext(consumer)
            has_read.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(read(),))
    thread.start()
    try:
        wait_until(has_read.is_set, "messages for aiokafka")
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def with_kafka_python(bootstrap: str) -> Iterator[None]:
    kafka = pytest.importorskip("kafka")
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id="kafka-python",
        group_id=None,
        max_partition_fetch_bytes=SIZE,
    )
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    read: list[object] = []

    def enough() -> bool:
        read.extend(consumer.poll(200, max_records=1))
        return len(read) >= READ

    wait_until(enough, "messages for kafka-python")
    try:
        yield
    finally:
        consumer.close()


READERS: dict[str, Reader] = {
    "confluent": with_confluent,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
}
"""By client id."""


class LagPage:
    """The lag of clients, as Prometheus is shown it.

    Args:
        port: Of the page.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/metrics"

    def figures(self, client_id: str) -> dict[str, float]:
        """The samples of a client, by name without their beginning."""
        return {name: value for name, labels, value in self.samples() if labels["client_id"] == client_id}

    def library(self, client_id: str) -> str | None:
        """The library of a client."""
        found = {labels["client_id"]: labels for name, labels, _ in self.samples() if name == "library"}
        return found[client_id]["library"] if client_id in found else None

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            text = answer.read().decode()
        for found in SAMPLE.finditer(text):
            yield found["name"], dict(LABEL.findall(found["labels"])), float(found["value"])

    def assert_behind(self, client_id: str, stored_s: list[float]) -> None:
        """A client shows its lag, in records exactly, and in seconds within two of them or a tenth."""
        latest: dict[str, float] = {}

        def is_shown() -> bool:
            latest.update(self.figures(client_id))
            return READ - 1 <= latest.get("position", 0) < RECORDS and "lag_time_seconds" in latest

        wait_until(is_shown, lambda: (client_id, latest))
        position = int(latest["position"])
        assert latest["lag"] == latest["lag_sum"] == RECORDS - position
        true_s = time.time() - stored_s[position]
        assert latest["lag_time_seconds"] == pytest.approx(true_s, abs=2 + true_s / 10), latest
