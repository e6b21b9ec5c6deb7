"""A gateway that stops: what was asked is answered, and nothing waits longer than it should."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

from support.gateways import GatewayProcess, gateway_of
from support.hosts import running_host
from support.rogue_broker import HEARTBEAT, RogueBroker, read_all, receive, request, response
from support.waiting import wait_until

pytestmark = pytest.mark.ci

BODY = bytes(300_000)
SECOND_ID = 7
SECOND = request(HEARTBEAT, SECOND_ID)


def address_of(gateway: GatewayProcess) -> tuple[str, int]:
    host, _, port = gateway.bootstrap.rpartition(":")
    return host, int(port)


def refuses(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, 5).close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_in_flight_are_answered_before_the_end(tmp_path: Path, workers: int) -> None:
    both_came, stopping = threading.Event(), threading.Event()

    def answers_late(connection: socket.socket, correlation_id: int) -> None:
        receive(connection, len(SECOND))
        both_came.set()
        stopping.wait(20)
        for each in (correlation_id, SECOND_ID):
            connection.sendall(response(each, BODY))
        connection.recv(1)

    several = (f"gateway.workers={workers}", f"listeners=PLAINTEXT://127.0.0.1:{free_range(4)}")
    with RogueBroker() as rogue, gateway_of(rogue.address, tmp_path, *several) as gateway:
        address = address_of(gateway)
        with (
            rogue.client(address, answers_late) as client,
            socket.create_connection(address, 20) as silent,
        ):
            client.sendall(SECOND)
            assert both_came.wait(20)
            gateway.process.terminate()
            assert read_all(silent) == b""  # a client without requests is not waited for
            wait_until(lambda: refuses(address), "the end of accepting")
            stopping.set()
            received = read_all(client)
        status = gateway.process.wait(20)
        gateway.join()

    assert received[8 : 8 + len(BODY)] == BODY
    assert received[8 + len(BODY) :] == response(SECOND_ID, BODY)
    assert status == 0


def test_a_broker_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    with (
        RogueBroker() as rogue,
        gateway_of(rogue.address, tmp_path, "gateway.drain.ms=300", "shutdown.timeout.ms=60000") as gateway,
        rogue.client(address_of(gateway), lambda connection, _: connection.recv(1)) as client,
    ):
        status = gateway.terminate(30)
        assert read_all(client) == b""

    assert status == 0


def test_records_in_flight_are_neither_lost_nor_doubled(tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    reports: list[tuple[object, int]] = []
    with running_host(tmp_path / "host", "node.id=1") as host:
        upstream = host.bootstrap
        with (
            gateway_of(upstream, tmp_path / "1") as first,
            gateway_of(upstream, tmp_path / "2") as second,
        ):
            producer = kafka.Producer(
                {
                    "bootstrap.servers": f"{first.bootstrap},{second.bootstrap}",
                    "enable.idempotence": True,
                    "linger.ms": 1,
                    "reconnect.backoff.max.ms": 200,
                    "topic.metadata.refresh.interval.ms": 500,
                }
            )
            for number in range(3_000):
                if number == 1_000:
                    wait_until(lambda: producer.poll(0) is not None and reports, "the first report")
                    first.process.terminate()
                producer.produce(
                    "stopped",
                    b"%d" % number,
                    partition=0,
                    on_delivery=lambda error, message: reports.append((error, message.offset())),
                )
                producer.poll(0)
            left = producer.flush(30)
            status = first.process.wait(20)
            first.join()
            consumer = kafka.Consumer(
                {"bootstrap.servers": second.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
            )
            consumer.assign([kafka.TopicPartition("stopped", 0, 0)])
            found: list[bytes] = []
            while len(found) < 3_000 and (messages := consumer.consume(1_000, 20)):
                found += [each.value() for each in messages]
            consumer.close()

    assert (left, status) == (0, 0)
    assert [error for error, _ in reports if error is not None] == []
    assert found == [b"%d" % number for number in range(3_000)]
