"""A program for any version of confluent-kafka: produce with each codec, read back with both group protocols.

Usage: librdkafka_program.py BOOTSTRAP CLIENT_ID. Prints a JSON object: the number of acknowledged records,
and the number that each protocol's group read.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import confluent_kafka
from confluent_kafka import admin

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 1_000
DEADLINE_S = 30


def value(number: int) -> str:
    """Text that compresses well."""
    return f"record {number} " * 10


def produce(bootstrap: str, client_id: str, codec: str) -> int:
    """Produce; return the number of acknowledged records."""
    acknowledged = 0

    def report(error: Any, _message: Any) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 50,
        }
    )
    for number in range(RECORDS):
        producer.produce(f"{client_id}-{codec}", value(number), partition=0, on_delivery=report)
    producer.flush(DEADLINE_S)
    return acknowledged


def read_all(bootstrap: str, client_id: str, protocol: str) -> int:
    """Consume in a group; return the number of records: all of them, in order in each topic."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": f"{client_id}-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([f"{client_id}-{codec}" for codec in CODECS])
    seen: dict[str, int] = {}
    deadline = time.monotonic() + DEADLINE_S
    while sum(seen.values()) < RECORDS * len(CODECS) and time.monotonic() < deadline:
        for message in consumer.consume(500, 0.2):
            number = seen.get(message.topic(), 0)
            if message.error() is None and message.value() == value(number).encode():
                seen[message.topic()] = number + 1
    consumer.close()
    return sum(seen.values())


def main(bootstrap: str, client_id: str) -> None:
    creator = admin.AdminClient({"bootstrap.servers": bootstrap})
    topics = [admin.NewTopic(f"{client_id}-{codec}", 1, 1) for codec in CODECS]
    for future in creator.create_topics(topics).values():
        future.result(DEADLINE_S)
    found = {
        "acknowledged": sum(produce(bootstrap, client_id, codec) for codec in CODECS),
        "classic": read_all(bootstrap, client_id, "classic"),
        "consumer": read_all(bootstrap, client_id, "consumer"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
