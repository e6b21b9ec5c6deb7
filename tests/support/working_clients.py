"""Clients of librdkafka that work until the test ends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pytest

POLL_S: Final = 0.2
PAUSE_S: Final = 0.05
SLOW_S: Final = 0.1
"""How long the application of a slow consumer works between two polls."""


def configuration(bootstrap: str, client_id: str, **more: Any) -> dict[str, Any]:
    """The configuration of a client that prints nothing."""
    return {"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0, **more}


@contextmanager
def working_clients(
    bootstrap: str,
    topic: str,
    *,
    producers: Iterable[str] = (),
    consumers: Iterable[str] = (),
    slow: Iterable[str] = (),
) -> Iterator[None]:
    """Run clients, each in a thread, until the body ends.

    Args:
        bootstrap: The bootstrap servers.
        topic: The topic that they write and read.
        producers: Client ids. They send a record every few milliseconds.
        consumers: Client ids. Each is alone in the group of its name.
        slow: Client ids of consumers whose application is busy nearly all the time.
    """
    kafka = pytest.importorskip("confluent_kafka")
    stopped = threading.Event()

    def produce(client_id: str) -> None:
        producer = kafka.Producer(configuration(bootstrap, client_id, **{"linger.ms": 5}))
        while not stopped.is_set():
            producer.produce(topic, client_id.encode() * 20)
            producer.poll(0)
            stopped.wait(PAUSE_S)
        producer.flush(10)

    def consume(client_id: str, is_slow: bool) -> None:
        consumer = kafka.Consumer(configuration(bootstrap, client_id, **{"group.id": client_id}))
        with ExitStack() as closing:
            closing.callback(consumer.close)
            consumer.subscribe([topic])
            while not stopped.is_set():
                consumer.poll(0.0 if is_slow else POLL_S)
                if is_slow:
                    time.sleep(SLOW_S)

    threads = [threading.Thread(target=produce, args=(each,)) for each in producers]
    threads += [threading.Thread(target=consume, args=(each, False)) for each in consumers]
    threads += [threading.Thread(target=consume, args=(each, True)) for each in slow]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stopped.set()
        for each in threads:
            each.join()
