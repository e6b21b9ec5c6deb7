"""A client in a process of its own, which a test ends in one way or another."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

TOPIC = "orders"
RECORDS = 20
WORK_S = 2.0
"""The time for some pushes."""


def librdkafka_producer(bootstrap: str, client_id: str) -> Callable[[], Any]:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": client_id})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"value %d" % number)
    producer.flush(20)
    return lambda: producer.flush(20)


def librdkafka_consumer(bootstrap: str, client_id: str) -> Callable[[], Any]:
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": f"of-{client_id}"}
        | {"auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    while not consumer.consume(1, 1):
        pass
    return lambda: consumer.close()


def kafka_python_producer(bootstrap: str, client_id: str) -> Callable[[], Any]:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
    for number in range(RECORDS):
        producer.send(TOPIC, b"value %d" % number)
    producer.flush(20)
    return lambda: producer.close()


def kafka_python_consumer(bootstrap: str, client_id: str) -> Callable[[], Any]:
    import kafka

    consumer = kafka.KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        client_id=client_id,
        group_id=f"of-{client_id}",
        auto_offset_reset="earliest",
    )
    next(consumer)
    return lambda: consumer.close()


KINDS = (librdkafka_producer, librdkafka_consumer, kafka_python_producer, kafka_python_consumer)

if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    close = {each.__name__: each for each in KINDS}[kind](*arguments)
    time.sleep(WORK_S)
    print("works", flush=True)
    sys.stdin.readline()
    close()
