"""A view of a topic that is deleted, truncated, without a leader, or full of other things."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from odradek.client.admin import AdminClient
from odradek.plugin import TelemetryRecord
from odradek.testing import RunningHost
from odradek.topic import encode_headers, record_key
from odradek_console.engine.fleet import Fleet
from odradek_console.view import View, ViewSettings
from support.delta_clients import EPOCH_S, A, B
from support.waiting import wait_until
from support.watched_clients import WatchedClients, level

pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 60
TOPIC = "pushes"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts()


@contextmanager
def opened(host: RunningHost, topic: str = TOPIC) -> Iterator[View]:
    with View(lambda: AdminClient(host.bootstrap), ViewSettings(topic=topic)) as view:
        wait_until(lambda: view.reading().is_caught_up, "the topic is read", PATIENCE_S)
        yield view


class Pushes:
    """Records of the telemetry topic, in a topic that may be deleted."""

    def __init__(self, host: RunningHost) -> None:
        self.host = host
        self.clients = WatchedClients()
        self.begin_s = time.time() - EPOCH_S - 600

    def push(
        self, at: float, instance: bytes = A, partition: int = 0, received_ms: int | None = None
    ) -> None:
        """Write a push."""
        seconds = self.begin_s + at
        record = self.clients.record(
            seconds,
            level("producer.request.rate", 1, seconds),
            instance=instance,
            client_id=instance.decode(),
        )
        headers = dict(encode_headers(record))
        if received_ms is not None:
            headers["received_ms"] = str(received_ms).encode()
        value, key = record.payload.data, record_key(instance)
        self.host.topics.produce(TOPIC, value, key=key, headers=headers, partition=partition)


@pytest.fixture
def pushes(host: RunningHost) -> Pushes:
    host.topics.create(TOPIC, 2)
    return Pushes(host)


def counted(view: View) -> dict[str, int]:
    return {row.client_id: row.pushes for row in view.clients()}


def waits_for(view: View, wanted: dict[str, int]) -> None:
    wait_until(lambda: counted(view) == wanted, f"{wanted}", PATIENCE_S)


NAME_A, NAME_B = A.decode(), B.decode()


def test_a_topic_that_is_deleted_and_created_again(
    host: RunningHost, pushes: Pushes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek_console.reading.topic_reader.PARTITIONS_S", 0.1)
    pushes.push(60)
    pushes.push(120, B, partition=1)
    with opened(host) as view:
        waits_for(view, {NAME_A: 1, NAME_B: 1})
        host.topics.delete(TOPIC)
        wait_until(lambda: TOPIC in view.reading().problem, "the problem", PATIENCE_S)
        host.topics.create(TOPIC, 1)
        pushes.push(180)
        pushes.push(180, B)

        waits_for(view, {NAME_A: 2, NAME_B: 2})
        wait_until(lambda: view.reading().is_caught_up, "the new topic is read", PATIENCE_S)
        assert view.reading().problem == ""


def test_records_that_are_removed_while_they_are_read(host: RunningHost, pushes: Pushes) -> None:
    pushes.push(60)
    with opened(host) as view:
        waits_for(view, {NAME_A: 1})
        fault = host.fault("Fetch", topic=TOPIC, error="LEADER_NOT_AVAILABLE", times=None)
        fault.wait(PATIENCE_S)
        for at in (120, 180, 240):
            pushes.push(at)
        with AdminClient(host.bootstrap) as admin:
            admin.delete_records({(TOPIC, 0): 3})
        fault.remove()

        waits_for(view, {NAME_A: 2})
        wait_until(lambda: not view.reading().problem, "no problem", PATIENCE_S)


def test_a_partition_without_a_leader_for_a_while(host: RunningHost, pushes: Pushes) -> None:
    with opened(host) as view:
        fault = host.fault("Fetch", topic=TOPIC, partition=1, error="LEADER_NOT_AVAILABLE", times=None)
        wait_until(lambda: "LEADER_NOT_AVAILABLE" in view.reading().problem, "the problem", PATIENCE_S)
        pushes.push(60, B, partition=1)
        pushes.push(60, A, partition=0)
        waits_for(view, {NAME_A: 1})
        fault.remove()

        waits_for(view, {NAME_A: 1, NAME_B: 1})
        wait_until(lambda: not view.reading().problem, "no problem", PATIENCE_S)


def test_records_that_are_no_telemetry(host: RunningHost, pushes: Pushes) -> None:
    host.topics.produce(TOPIC, b"an order", key=b"7", headers={"trace": b"\xff"})
    host.topics.produce(TOPIC, b"", key=None)
    pushes.push(60, received_ms=10**15)
    pushes.push(60, received_ms=-1)
    with opened(host) as view:
        pushes.push(120)

        waits_for(view, {NAME_A: 1})
        assert view.reading().counts["malformed_records"] == 4


def test_a_record_that_cannot_be_added_takes_no_other_along(
    host: RunningHost, pushes: Pushes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pushes.push(60)
    pushes.push(120)
    add = Fleet.add

    def failing(fleet: Fleet, record: TelemetryRecord) -> None:
        monkeypatch.setattr(Fleet, "add", add)
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Fleet, "add", failing)
    with opened(host) as view:
        waits_for(view, {NAME_A: 1})

        assert view.reading().counts["failed_records"] == 1
        assert "offset=0" in caplog.text
        assert not view.reading().problem


def test_a_reader_that_fails_connects_again(
    host: RunningHost, pushes: Pushes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(host) as view:
        expire = view.fleet.expire
        monkeypatch.setattr("odradek_console.reading.topic_reader.EXPIRE_S", 0.0)

        def failing(now_ms: int) -> None:
            monkeypatch.setattr(view.fleet, "expire", expire)
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(view.fleet, "expire", failing)
        wait_until(lambda: "a bug" in view.reading().problem, "the problem", PATIENCE_S)
        pushes.push(120)

        waits_for(view, {NAME_A: 1})
        wait_until(lambda: not view.reading().problem, "no problem", PATIENCE_S)
