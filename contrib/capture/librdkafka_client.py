"""A librdkafka client that runs until its standard input ends, and then closes in an orderly way.

Usage: librdkafka_client.py BOOTSTRAP TOPIC CLIENT_ID KIND, where KIND is producer or consumer.
"""

from __future__ import annotations

import sys
import threading

from confluent_kafka import Consumer, Producer

PAUSE_S = 0.05


def main(bootstrap: str, topic: str, client_id: str, kind: str) -> None:
    config = {"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 4}
    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
    if kind == "producer":
        produce(Producer(config), topic, ended)
    else:
        group = {"group.id": f"{client_id}-group", "group.instance.id": "first", "client.rack": "rack-1"}
        consume(Consumer(config | group | {"auto.offset.reset": "earliest"}), topic, ended)


def wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def produce(producer: Producer, topic: str, ended: threading.Event) -> None:
    while not ended.wait(PAUSE_S):
        producer.produce(topic, b"value")
        producer.poll(0)
    producer.flush(5)
    producer.close()


def consume(consumer: Consumer, topic: str, ended: threading.Event) -> None:
    consumer.subscribe([topic])
    while not ended.is_set():
        consumer.poll(PAUSE_S)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
