"""Tests of a Kafka client with a real broker in a fixture: it starts in milliseconds without Docker or a JVM.

Run it: ``pytest examples/03_test_a_client.py`` (needs ``odradek[demo,test]``). Takes a few seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from odradek.testing import RunningHost

CREATED = "org.apache.kafka.producer.connection.creation.total"


@contextmanager
def application(host: RunningHost) -> Iterator[Producer]:
    """The client under test, which produces a record and pushes its metrics while it runs."""
    producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 4})
    producer.produce("orders", b"one order")
    producer.flush(10)
    yield producer


def test_it_produces(odradek_host: RunningHost) -> None:
    with application(odradek_host):
        assert [record.value for record in odradek_host.topics.records("orders")] == [b"one order"]


def test_it_pushes_what_it_is_asked_for(odradek_host: RunningHost) -> None:
    odradek_host.subscribe("org.apache.kafka.producer.connection.", interval_ms=100)

    with application(odradek_host):
        (point,) = odradek_host.telemetry.wait_for(CREATED, client_id="my-app")

    assert point.kind == "sum"


def test_it_goes_on_pushing_after_a_push_was_too_large(odradek_host: RunningHost) -> None:
    odradek_host.subscribe(interval_ms=100)
    odradek_host.fault("PushTelemetry", error="TELEMETRY_TOO_LARGE")

    with application(odradek_host):
        refused = odradek_host.telemetry.wait_for_push(error="TELEMETRY_TOO_LARGE")
        odradek_host.telemetry.wait_for(CREATED, after=refused)


def test_it_produces_again_when_the_broker_drops_it(odradek_host: RunningHost) -> None:
    lost = odradek_host.fault("Produce", drop="before")

    with application(odradek_host):
        assert lost.used == 1
        assert len(odradek_host.topics.records("orders")) == 1


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-v", "-p", "no:cacheprovider"]))
