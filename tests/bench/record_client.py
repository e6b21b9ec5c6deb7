"""The client of the produce and fetch benches: librdkafka, controlled by lines on standard input.

The first line is the server's port; the client connects, makes its preparing requests, and answers ``ready``.
``go`` runs the load and is answered by ``done``; ``report`` is answered by its counts, as JSON. The client
ends when standard input closes, or when the load takes longer than `PATIENCE_S`.

Usage: ``python -m bench.record_client produce|fetch SETTINGS_AS_JSON``
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from itertools import cycle, islice
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

PATIENCE_S = 120
STATISTICS_MS = 100
WARM_UP_RECORDS = 100
PARTITION = 0
PATTERN = bytes(range(256))
WAIT_S = 20.0
COMMON = {"enable.metrics.push": False, "statistics.interval.ms": STATISTICS_MS}


class Work(Protocol):
    records: int
    size: int
    problems: list[str]

    def run(self) -> None: ...

    def requests(self) -> int: ...


class Statistics:
    """The number of requests of one kind, as librdkafka counts them."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.requests = 0
        self.seen = 0

    def __call__(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self.requests = sum(broker["req"].get(self.api, 0) for broker in brokers)
        self.seen += 1


def varied(size: int) -> list[tuple[bytes, bytes]]:
    """Keys and values as applications write them: lengths are log-normal around ``size``."""
    chance, longest = random.Random(size), PATTERN * 8
    lengths = [int(size * chance.lognormvariate(0, 1)) for _ in range(1_009)]
    return [(b"key-%d" % number, longest[:length]) for number, length in enumerate(lengths)]


class Produce:
    """Send ``records`` values of ``size`` bytes to partition 0, and wait until all are acknowledged."""

    def __init__(self, port: int, settings: dict[str, Any]) -> None:
        self.topic, self.records, self.size = settings["topic"], settings["records"], settings["size"]
        self.problems: list[str] = []
        value = (PATTERN * (self.size // 256 + 1))[: self.size]
        self.content = varied(self.size) if settings.get("varied") else [(None, value)]
        self.statistics = Statistics("Produce")
        self.address = {"bootstrap.servers": f"127.0.0.1:{port}"} | settings.get("security", {})
        self.producer = Producer(
            COMMON
            | self.address
            | {
                "acks": "all",
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self.delivered,
                "stats_cb": self.statistics,
                "queue.buffering.max.messages": 200_000,
            }
            | settings["client"]
        )
        self.sent_before = self.end_before = 0
        if settings.get("warm", True):
            self.send(WARM_UP_RECORDS)
            self.sent_before = self.settled_requests()
            self.end_before = self.end_offset()

    def delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.problems.append(str(error))

    def send(self, records: int) -> None:
        producer, topic = self.producer, self.topic
        for key, value in islice(cycle(self.content), records):
            while True:
                try:
                    producer.produce(topic, value, key, partition=PARTITION)
                except BufferError:
                    producer.poll(0.005)
                else:
                    break
        if producer.flush(WAIT_S):
            self.problems.append("records that were not acknowledged in time")

    def run(self) -> None:
        self.send(self.records)

    def settled_requests(self) -> int:
        """Produce requests so far, from statistics that are newer than the last request."""
        seen = self.statistics.seen
        while self.statistics.seen < seen + 2:
            self.producer.poll(0.02)
        return self.statistics.requests

    def requests(self) -> int:
        stored = self.end_offset() - self.end_before
        if stored != self.records:
            self.problems.append(f"{stored} of {self.records} records are in the log")
        return self.settled_requests() - self.sent_before

    def end_offset(self) -> int:
        consumer = Consumer(self.address | {"group.id": "bench", "enable.metrics.push": False})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(self.topic, PARTITION), timeout=WAIT_S)
            return int(end)
        finally:
            consumer.close()


class Fetch:
    """Read partition 0 from offset 0 on, ``passes`` times ``records`` values of ``size`` bytes."""

    def __init__(self, port: int, settings: dict[str, Any]) -> None:
        self.topic, self.size, self.passes = settings["topic"], settings["size"], settings["passes"]
        self.of_a_pass = settings["records"]
        self.records = self.of_a_pass * self.passes
        self.problems: list[str] = []
        self.statistics = Statistics("Fetch")
        self.consumer = Consumer(
            COMMON
            | settings.get("security", {})
            | {
                "bootstrap.servers": f"127.0.0.1:{port}",
                "group.id": "bench",
                "enable.auto.commit": False,
                # the end of a pass leaves a waiting fetch, which delays the first of the next pass
                "fetch.wait.max.ms": 5,
                "fetch.queue.backoff.ms": 5,
                "stats_cb": self.statistics,
            }
            | settings["client"]
        )
        self.consumer.get_watermark_offsets(TopicPartition(self.topic, PARTITION), timeout=WAIT_S)

    def run(self) -> None:
        for _ in range(self.passes):
            self.consumer.assign([TopicPartition(self.topic, PARTITION, 0)])
            left = self.of_a_pass
            while left:
                messages = self.consumer.consume(min(left, 10_000), timeout=0.05)
                left -= len(messages)
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
            if len(message) != self.size:
                self.problems.append(f"a value of {len(message)} bytes")

    def requests(self) -> int:
        seen = self.statistics.seen
        self.consumer.unassign()
        while self.statistics.seen < seen + 2:
            self.consumer.poll(0.02)
        return self.statistics.requests


WORK: dict[str, type[Produce | Fetch]] = {"produce": Produce, "fetch": Fetch}


def main() -> None:
    signal.alarm(PATIENCE_S)
    mode, settings = sys.argv[1], json.loads(sys.argv[2])
    work: Work = WORK[mode](int(sys.stdin.readline()), settings)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    begin = time.perf_counter()
    work.run()
    seconds = time.perf_counter() - begin
    print("done", flush=True)
    sys.stdin.readline()
    report = {
        "records": work.records,
        "bytes": work.records * work.size,
        "requests": work.requests(),
        "seconds": seconds,
        "problems": work.problems,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
