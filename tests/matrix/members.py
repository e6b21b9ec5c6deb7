"""Clients of Python libraries in one process, which obey the lines of its standard input.

| line | what it does |
|---|---|
| ``start NAME key=value ...`` | starts a client; see `Member` for the keys |
| ``set NAME key=value ...`` | changes keys of a running client |
| ``close NAME`` | closes a client as its application would: a producer flushes first |

At the end of the input, all are closed. For each client a line says ``NAME ready`` and ``NAME closed``, or
``NAME failed ERROR``.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka

POLL_S: Final = 0.2
PATIENCE_S: Final = 10
OTHERS: Final = {
    "max.request.size": "message.max.bytes",
    "sasl_username": "sasl_plain_username",
    "sasl_password": "sasl_plain_password",
}
"""Names of settings that libraries have instead of Java's."""


class Member(threading.Thread):
    """A client in a thread of its own.

    Keys: ``kind``, ``role``, ``topic``, ``group``; ``rate`` in records per second, 0 for an idle producer;
    ``size`` of a record in bytes; ``work_ms`` for each record; and with dots, settings as Kafka's Java client
    calls them.
    """

    def __init__(self, name: str, settings: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.client = name
        self.settings = {"rate": "20", "size": "20", "work_ms": "0"} | settings
        self.leaving = threading.Event()

    def run(self) -> None:
        try:
            KINDS[f"{self.settings['kind']} {self.settings['role']}"](self)
        except Exception as error:  # noqa: BLE001
            self.tell(f"failed {error!r}")
        else:
            self.tell("closed")

    def tell(self, state: str) -> None:
        print(self.client, state, flush=True)

    @property
    def topic(self) -> str:
        return self.settings["topic"]

    @property
    def record(self) -> bytes:
        return b"x" * int(self.settings["size"])

    @property
    def pause_s(self) -> float:
        """Before the next record of a producer."""
        rate = float(self.settings["rate"])
        return 1 / rate if rate else POLL_S

    def sends(self) -> bool:
        return float(self.settings["rate"]) > 0

    def work(self) -> None:
        """What the application does with a record."""
        end_s = time.monotonic() + float(self.settings["work_ms"]) / 1_000
        while time.monotonic() < end_s and not self.leaving.wait(min(POLL_S, end_s - time.monotonic())):
            pass

    def config(self, separator: str = ".") -> dict[str, Any]:
        """The settings of the library, with dots or underscores."""
        found = {
            key.replace(".", separator): int(value) if value.isdigit() else value
            for key, value in self.settings.items()
            if "." in key
        }
        if self.settings["role"] == "consumer":
            found[f"auto{separator}offset{separator}reset"] = "earliest"
        return {OTHERS.get(key, key): value for key, value in found.items()}


def librdkafka_consumer(member: Member) -> None:
    config = member.config() | {"group.id": member.settings["group"]}
    config.pop("max.poll.records", None)  # each call takes one
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([member.topic])
    member.tell("ready")
    while not member.leaving.is_set():
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            member.work()
    consumer.close()


def librdkafka_producer(member: Member) -> None:
    producer = confluent_kafka.Producer(member.config())
    member.tell("ready")
    while not member.leaving.wait(member.pause_s):
        if member.sends():
            try:
                producer.produce(member.topic, member.record)
            except BufferError:
                pass
            except confluent_kafka.KafkaException as error:
                if error.args[0].code() != confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
        producer.poll(0)
    producer.flush(PATIENCE_S)


def kafka_python_consumer(member: Member) -> None:
    consumer = kafka.KafkaConsumer(member.topic, group_id=member.settings["group"], **member.config("_"))
    member.tell("ready")
    while not member.leaving.is_set():
        for records in consumer.poll(int(POLL_S * 1_000)).values():
            for _ in records:
                member.work()
    consumer.close()


def kafka_python_producer(member: Member) -> None:
    producer = kafka.KafkaProducer(**member.config("_"))
    member.tell("ready")
    while not member.leaving.wait(member.pause_s):
        if member.sends():
            with contextlib.suppress(kafka.errors.KafkaError):  # the next one may reach the broker
                producer.send(member.topic, member.record)
    producer.flush(PATIENCE_S)
    producer.close(PATIENCE_S)


async def aiokafka_consumes(member: Member) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        member.topic, group_id=member.settings["group"], **member.config("_")
    )
    await consumer.start()
    member.tell("ready")
    while not member.leaving.is_set():
        for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1_000))).values():
            for _ in records:
                if member.settings["work_ms"] != "0":
                    await asyncio.to_thread(member.work)
    await consumer.stop()


async def aiokafka_produces(member: Member) -> None:
    producer = aiokafka.AIOKafkaProducer(**member.config("_"))
    await producer.start()
    member.tell("ready")
    while not member.leaving.is_set():
        await asyncio.sleep(member.pause_s)
        if member.sends():
            with contextlib.suppress(aiokafka.errors.KafkaError):  # the next one may reach the broker
                await producer.send(member.topic, member.record)
    await producer.stop()


KINDS: Final[dict[str, Callable[[Member], None]]] = {
    "librdkafka consumer": librdkafka_consumer,
    "librdkafka producer": librdkafka_producer,
    "kafka-python consumer": kafka_python_consumer,
    "kafka-python producer": kafka_python_producer,
    "aiokafka consumer": lambda member: asyncio.run(aiokafka_consumes(member)),
    "aiokafka producer": lambda member: asyncio.run(aiokafka_produces(member)),
}


def main() -> None:
    """Obey until the input ends."""
    members: dict[str, Member] = {}
    for line in sys.stdin:
        word, name, *settings = line.split()
        given = dict(each.split("=", 1) for each in settings)
        if word == "start":
            members[name] = Member(name, given)
            members[name].start()
        elif word == "set":
            members[name].settings.update(given)
        else:
            members[name].leaving.set()
    for member in members.values():
        member.leaving.set()
    for member in members.values():
        member.join(2 * PATIENCE_S)


if __name__ == "__main__":
    main()
