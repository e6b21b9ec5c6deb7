"""The client of the benches of records: librdkafka, or raw members of a share group (`share_client`). It is
controlled by lines on standard input.

The first line is the server's port; the client connects, makes its preparing requests, and answers ``ready``.
``go`` runs the load and is answered by ``done``; ``report`` is answered by its counts, as JSON. The client
ends when standard input closes, or when the load takes longer than `PATIENCE_S`.

Usage: ``python -m bench.record_client produce|fetch|share SETTINGS_AS_JSON``
"""

from __future__ import annotations

import json
import signal
import sys
import time
from itertools import cycle, islice
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench import loads
from bench.share_client import ShareFetch

PATIENCE_S = 120
STATISTICS_MS = 100
WARM_UP_RECORDS = 100
WAIT_S = 20.0
COMMON = {"enable.metrics.push": False, "statistics.interval.ms": STATISTICS_MS}


class Work(Protocol):
    records: int
    bytes: int
    """Of keys and values."""
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


class Produce:
    """Send ``records`` records to the partitions of a topic, and wait until all are acknowledged."""

    def __init__(self, port: int, settings: dict[str, Any]) -> None:
        self.topic, self.records, self.bytes = settings["topic"], settings["records"], 0
        self.partitions = range(settings.get("partitions", 1))
        self.problems: list[str] = []
        self.content = loads.records(settings["lengths"], settings.get("seed", 1))
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
        self.create_topic()
        self.sent_before = self.end_before = 0
        if settings.get("warm", True):
            self.send(WARM_UP_RECORDS)
            self.sent_before = self.settled_requests()
            self.end_before = self.end_offset()
            self.bytes = 0

    def create_topic(self) -> None:
        """Create the topic, unless it exists."""
        wanted = NewTopic(self.topic, num_partitions=len(self.partitions), replication_factor=1)
        admin = AdminClient(COMMON | self.address)  # its end would end the request
        created = admin.create_topics([wanted])[self.topic]
        error = created.exception(WAIT_S)
        if error is not None and error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise error

    def delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.problems.append(str(error))

    def send(self, records: int) -> None:
        producer, topic = self.producer, self.topic
        for key, value, headers in islice(cycle(self.content), records):
            self.bytes += len(value) + len(key or b"")
            while True:
                try:
                    producer.produce(topic, value, key, headers=headers)
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
            places = [TopicPartition(self.topic, number) for number in self.partitions]
            return sum(int(consumer.get_watermark_offsets(each, timeout=WAIT_S)[1]) for each in places)
        finally:
            consumer.close()


class Fetch:
    """Read ``records`` records from the beginning of a topic, ``passes`` times."""

    def __init__(self, port: int, settings: dict[str, Any]) -> None:
        self.topic, self.bytes, self.passes = settings["topic"], 0, settings.get("passes", 1)
        self.partitions = range(settings.get("partitions", 1))
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
        self.consumer.get_watermark_offsets(TopicPartition(self.topic, 0), timeout=WAIT_S)

    def run(self) -> None:
        for _ in range(self.passes):
            self.consumer.assign([TopicPartition(self.topic, number, 0) for number in self.partitions])
            left = self.of_a_pass
            while left:
                messages = self.consumer.consume(min(left, 10_000), timeout=0.05)
                left -= len(messages)
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    self.bytes += len(message) + len(message.key() or b"")

    def requests(self) -> int:
        seen = self.statistics.seen
        self.consumer.unassign()
        while self.statistics.seen < seen + 2:
            self.consumer.poll(0.02)
        return self.statistics.requests


WORK: dict[str, type[Produce | Fetch | ShareFetch]] = {
    "produce": Produce,
    "fetch": Fetch,
    "share": ShareFetch,
}


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
        "bytes": work.bytes,
        "requests": work.requests(),
        "seconds": seconds,
        "problems": work.problems,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
