"""Certificates are renewed while librdkafka produces and consumes: no connection and no record is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration.test_certificate_reload import serves
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.security.private_ca import LOOPBACK
from support.certificates import Files, authority
from support.hosts import running_host
from support.waiting import wait_until

pytestmark = pytest.mark.ci

RENEWALS = 5
TOPIC = "load"
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0",
    "ssl.reload.interval.ms=50",
    "group.initial.rebalance.delay.ms=0",
)


@dataclass(slots=True)
class Load:
    """A producer and a member of a group, each in a thread of its own until the load is stopped."""

    client: dict[str, Any]
    sent: list[int] = field(default_factory=list)
    """Numbers that the host has acknowledged."""
    read: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    all_sent: threading.Event = field(default_factory=threading.Event)
    """The producer has ended: nothing is added to `sent`."""

    def has_read(self, count: int) -> bool:
        return len(self.read) >= count

    def note(self, error: object) -> None:
        self.errors.append(str(error))

    def produce(self) -> None:
        kafka = pytest.importorskip("confluent_kafka")

        def delivered(error: object, message: Any) -> None:
            if error is None:
                self.sent.append(int(message.value()))
            else:
                self.note(error)

        producer = kafka.Producer(
            self.client | {"client.id": "producer", "linger.ms": 1, "error_cb": self.note, "retries": 0}
        )
        number = 0
        try:
            while not self.stopped.wait(0.002):
                producer.produce(TOPIC, str(number), on_delivery=delivered)
                producer.poll(0)
                number += 1
            if left := producer.flush(10):
                self.note(f"{left} records are not acknowledged")
        finally:
            self.all_sent.set()

    def consume(self) -> None:
        kafka = pytest.importorskip("confluent_kafka")
        consumer = kafka.Consumer(
            self.client
            | {
                "client.id": "consumer",
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "error_cb": self.note,
            }
        )
        consumer.subscribe([TOPIC])
        while not self.all_sent.is_set() or (self.read != self.sent and not self.errors):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read.append(int(message.value()))
            elif message is not None:
                self.note(message.error())
        consumer.close()


def running(*targets: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=each) for each in targets]
    for each in threads:
        each.start()
    return threads


def test_clients_do_not_notice_that_the_certificate_is_renewed(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with running_host(tmp_path / "data", *SETTINGS, *files.settings) as host:
        listener = host.host.listeners[1]
        port = listener.bound_port
        with AdminClient(host.bootstrap) as admin:
            admin.create_topics([NewTopic(name=TOPIC, partitions=1)])
        load = Load(
            {
                "bootstrap.servers": f"localhost:{port}",
                "security.protocol": "SSL",
                "ssl.ca.location": files.ca,
            }
        )
        threads = running(load.produce, load.consume)
        try:
            wait_until(partial(load.has_read, 50), "fewer than 50 records were read")
            before, failed = host.call(lambda: set(listener.channels)), listener.counts.failed
            for _ in range(RENEWALS):
                renewed = authority().issue("localhost", LOOPBACK)
                at = len(load.read)
                files.write("server.pem", renewed.both)
                wait_until(partial(serves, port, renewed), "the new certificate is not served")
                wait_until(partial(load.has_read, at + 20), "the load stopped")
            after = host.call(lambda: set(listener.channels))
        finally:
            load.stopped.set()
            for each in threads:
                each.join(20)

    assert load.errors == []
    assert load.read == load.sent == list(range(len(load.sent)))
    assert len(before) >= 2
    assert before <= after  # the same connections
    assert listener.counts.failed == failed
