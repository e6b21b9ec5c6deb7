"""Producers and consumers of librdkafka that are as fast as they may."""

from __future__ import annotations

import time
from typing import Protocol

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from support.progress import Progress

MEGABYTE = 1_000_000
VALUE = b"v" * 9_900
"""About ten thousand bytes, with the overhead of a request."""
TOPIC = "t"
CLIENT_ID = "noisy"


class Reachable(Protocol):
    """A host, or a gateway."""

    @property
    def bootstrap(self) -> str: ...


def create_topic(host: Reachable) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name=TOPIC)])


def limit(host: Reachable, entity: ClientQuotaEntity, **values: float | None) -> None:
    """Set quotas, or remove those that are None."""
    with AdminClient(host.bootstrap) as admin:
        admin.alter_client_quotas({entity: values})


def produce(host: Reachable, seconds: float, client_id: str = CLIENT_ID, total: int = 1 << 40) -> Progress:
    """Produce as fast as the host allows, for some time or up to some bytes."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    progress = Progress()

    def delivered(error: object, _message: object) -> None:
        if error is None:  # otherwise it is counted at the end
            progress.arrived(len(VALUE))

    producer = confluent_kafka.Producer({
        "bootstrap.servers": host.bootstrap, "client.id": client_id, "linger.ms": 5,
        "batch.size": 100_000, "queue.buffering.max.kbytes": 1_000,
        "throttle_cb": lambda event: progress.throttled(event.throttle_time),
    })  # fmt: skip
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s and progress.total < total:
        try:
            producer.produce(TOPIC, VALUE, partition=0, on_delivery=delivered)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    progress.end()
    producer.purge()
    producer.poll(0)
    return progress


def consume(
    host: Reachable, seconds: float, client_id: str = CLIENT_ID, total: int = 1 << 40, least: int = -1
) -> Progress:
    """Read one partition from its beginning for some time or up to some bytes; more than the least bytes."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    progress = Progress()
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": host.bootstrap, "client.id": client_id, "group.id": "readers",
        "enable.auto.commit": False, "fetch.message.max.bytes": 200_000, "check.crcs": False,
        "queued.max.messages.kbytes": 2_000,
        "throttle_cb": lambda event: progress.throttled(event.throttle_time),
    })  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    end_s = time.monotonic() + seconds
    while (time.monotonic() < end_s and progress.total < total) or progress.total <= least:
        for message in consumer.consume(100, 0.1):
            assert message.error() is None
            progress.arrived(len(message.value()))
    progress.end()
    consumer.close()
    return progress
