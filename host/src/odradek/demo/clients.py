"""The clients of ``odradek demo``."""

from __future__ import annotations

import math
import threading
import time
from typing import Any, Final

from odradek.demo.security import GROUP, SLOW_GROUP, TOPIC, DemoSecurity

SETTLE_S: Final = 5
"""How long the end waits for records and data points on their way."""
WORK_S: Final = 0.1
"""Time that the slow consumer works on a record."""


class Clients:
    """An unmodified librdkafka producer and consumer, each in its own thread.

    Args:
        kafka: The module confluent_kafka.
        security: How they log in, or None.
        with_slow_consumer: Add a consumer whose application is slower than the records.
    """

    def __init__(self, kafka: Any, security: DemoSecurity | None, *, with_slow_consumer: bool) -> None:
        self.kafka = kafka
        self.security = security
        self.bootstrap = ""
        self.produced = 0
        self.consumed = 0
        self.ended = threading.Event()
        self.read_until_s = math.inf
        self.producing = threading.Thread(target=self.produce, name="produce", daemon=True)
        self.threads = [self.producing, threading.Thread(target=self.consume, name="consume", daemon=True)]
        if with_slow_consumer:
            self.threads.append(threading.Thread(target=self.consume_slowly, name="slow", daemon=True))

    def start(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Close them, the consumer when it has read the rest; each sends its terminating push."""
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=10)

    def status(self) -> str:
        consumed = self.consumed  # read first: the producer may be ahead, the consumer may not
        return f"{self.produced} records produced, {consumed} read"

    def settings(self, role: str) -> dict[str, object]:
        user = f"demo-{role}"
        login = {} if self.security is None else self.security.client_settings(user)
        return {"bootstrap.servers": self.bootstrap, "client.id": user, "log_level": 2} | login

    def produce(self) -> None:
        producer = self.kafka.Producer(
            self.settings("producer") | {"linger.ms": 5, "enable.idempotence": True}
        )
        while not self.ended.is_set():
            self.produced += 1
            producer.produce(TOPIC, value=b"x" * 100)
            producer.poll(0)
            time.sleep(0.005)
        producer.flush(5)
        producer.close()

    def consumer(self, role: str, group: str) -> Any:
        """A consumer that begins at the first record."""
        consumer = self.kafka.Consumer(
            self.settings(role)
            | {"group.id": group, "auto.commit.interval.ms": 1_000, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([TOPIC])
        return consumer

    def consume(self) -> None:
        consumer = self.consumer("consumer", GROUP)
        while not self.ended.is_set() or self.unread():
            message = consumer.poll(0.2)
            self.consumed += message is not None and message.error() is None
        consumer.close()

    def consume_slowly(self) -> None:
        """Read less than is produced."""
        consumer = self.consumer("slow-consumer", SLOW_GROUP)
        while not self.ended.wait(WORK_S):
            consumer.poll(0)
        consumer.close()

    def unread(self) -> bool:
        """Whether records of the producer that ended may still come, for a limited time."""
        if self.producing.is_alive():
            self.read_until_s = time.monotonic() + SETTLE_S
            return True
        return self.consumed < self.produced and time.monotonic() < self.read_until_s
