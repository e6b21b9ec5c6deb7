"""A host that stops, crashes and comes back in the middle of a test."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable

import pytest

import odradek.testing
from conformance.telemetry_broker import otlp
from odradek.testing import RunningHost, VirtualClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.data_requests import fetch_request, produce_request
from support.wire_client import WireClient


def produce(host: RunningHost, value: bytes) -> None:
    """Produce a record to partition 0 of the topic ``t``."""
    with WireClient(host.address) as client:
        response = client.send(produce_request("t", build_batch([Record(None, value)])), 9)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def values(host: RunningHost) -> list[bytes | None]:
    return [record.value for record in host.topics.records("t")]


@pytest.mark.parametrize("outage", [RunningHost.stop, RunningHost.kill, lambda host: None])
def test_a_host_comes_back_on_its_port_with_its_data(
    odradek_host: RunningHost, outage: Callable[[RunningHost], None]
) -> None:
    odradek_host.topics.create("t")
    odradek_host.subscribe("org.")
    address = odradek_host.address
    produce(odradek_host, b"before")

    outage(odradek_host)
    odradek_host.restart()
    produce(odradek_host, b"after")

    assert odradek_host.address == address
    assert values(odradek_host) == [b"before", b"after"]
    assert "test" in odradek_host.host.telemetry.subscriptions.by_name


def test_a_killed_host_logs_nothing(odradek_host: RunningHost, caplog: pytest.LogCaptureFixture) -> None:
    odradek_host.topics.create("t")
    produce(odradek_host, b"one")

    odradek_host.kill()
    odradek_host.restart()

    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert logging.getLogger("odradek").isEnabledFor(logging.WARNING)


def test_a_stopped_host_refuses_connections_and_keeps_its_port(odradek_host: RunningHost) -> None:
    odradek_host.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(odradek_host.address)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(odradek_host.address)


def test_a_stop_answers_a_waiting_request_and_a_kill_does_not(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t")
    fetch = fetch_request("t", max_wait_ms=60_000)
    with WireClient(odradek_host.address) as waits:
        waits.send_bytes(waits.frame(fetch, 11))
        odradek_host.arrivals.wait_for(lambda: odradek_host.requests.of("Fetch") or None, 5, "fetch")
        odradek_host.stop()
        assert waits.answer(fetch, 11).error_code == ErrorCode.NONE

    odradek_host.restart()
    odradek_host.forget()
    with WireClient(odradek_host.address) as waits:
        waits.send_bytes(waits.frame(fetch, 11))
        odradek_host.arrivals.wait_for(lambda: odradek_host.requests.of("Fetch") or None, 5, "fetch")
        odradek_host.kill()
        assert waits.closed_by_peer()


def test_a_killed_host_saves_nothing_more(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t")
    produce(odradek_host, b"acknowledged")
    closed: list[bool] = []
    storage = odradek_host.host.ground.storage
    close = storage.close

    def watched(in_time: Callable[[], bool]) -> None:
        closed.append(in_time())
        close(in_time)

    storage.close = watched  # type: ignore[method-assign,assignment]

    odradek_host.kill()
    odradek_host.restart()

    assert closed == [False]
    assert values(odradek_host) == [b"acknowledged"]


def test_requests_pushes_and_faults_outlive_a_restart(odradek_host: RunningHost) -> None:
    fault = odradek_host.fault("PushTelemetry", error="TELEMETRY_TOO_LARGE", times=2)
    answers = []
    for _ in range(2):
        with WireClient(odradek_host.address, "me") as client:
            client.introduce()
            answers.append(client.push(otlp("org.x")))
        odradek_host.restart()

    assert answers == [ErrorCode.TELEMETRY_TOO_LARGE] * 2
    assert fault.used == len(odradek_host.requests.of("PushTelemetry")) == 2
    assert [push.number for push in odradek_host.telemetry.pushes] == [1, 2]


def test_a_virtual_clock_goes_on_after_a_restart(odradek_hosts: Callable[..., RunningHost]) -> None:
    host = odradek_hosts(clock=VirtualClock())
    before_ms = host.clock.now_ms()
    host.clock.advance(1_000)

    host.restart()
    with WireClient(host.address) as client:
        client.send(MetadataRequest(topics=[]))
        host.clock.advance(3_600_000)

        assert client.closed_by_peer()  # idle for an hour
    assert host.clock.now_ms() - before_ms == 3_601_000


def test_plugins_are_active_again_after_a_restart(odradek_hosts: Callable[..., RunningHost]) -> None:
    host = odradek_hosts(plugins={"stdout": {}})

    host.restart()

    assert [plugin.name for plugin in host.host.plugins.all] == ["stdout"]


def test_stops_leave_nothing_behind() -> None:
    threads = threading.active_count()

    with odradek.testing.host() as host:
        host.kill()
        host.kill()
        host.stop()

    assert threading.active_count() == threads
    assert host.reserved == []
