"""The inventory: facts of clients, gaps, states, bounds."""

from __future__ import annotations

import pytest

from odradek_console.engine.client_entry import State
from odradek_console.engine.fleet import Fleet, FleetLimits
from odradek_console.pictures import client_detail, client_row
from support.delta_clients import A, B
from support.watched_clients import WatchedClients, level, ms, total

SENT = "producer.record.send.total"
LATENCY = "producer.request.latency.avg"


@pytest.fixture
def clients() -> WatchedClients:
    return WatchedClients()


def test_a_row_has_what_the_connection_and_the_resource_tell(clients: WatchedClients) -> None:
    clients.push(60, total(SENT, 5, 60, 0), group_id="g", principal="User:ann", client_address="10.0.0.1")

    row = client_row(clients.fleet, clients.fleet.clients[A], ms(60))

    assert (row.client_id, row.principal, row.group_id, row.app) == ("orders-1", "User:ann", "g", "g")
    assert (row.software, row.version, row.address) == ("apache-kafka-java", "4.3.0", "10.0.0.1")
    assert (row.state, row.pushes, row.series) == (State.LIVE, 1, 1)


def test_a_record_that_comes_again_is_not_counted_again(clients: WatchedClients) -> None:
    record = clients.record(60, total(SENT, 5, 60, 0))

    clients.fleet.add(record)
    clients.fleet.add(record)

    assert clients.fleet.clients[A].entry.pushes == 1
    assert clients.fleet.counts.repeated_records == 1


def test_a_push_that_did_not_come_is_a_gap(clients: WatchedClients) -> None:
    for second in (60, 120, 300):
        clients.push(second)

    entry = clients.fleet.clients[A].entry

    assert (entry.gaps, entry.gap_ms) == (1, 120_000)


def test_a_client_that_gets_other_subscriptions_may_wait_longer(clients: WatchedClients) -> None:
    clients.push(60)
    record = clients.record(60 + 140)
    record.subscription_id += 1
    clients.fleet.add(record)

    assert clients.fleet.clients[A].entry.gaps == 0


@pytest.mark.parametrize(
    ("later", "terminating", "state"),
    [
        (60, False, State.LIVE),
        (600, False, State.SILENT),
        (4_000, False, State.GONE),
        (1, True, State.GONE),
    ],
)
def test_states(clients: WatchedClients, later: int, terminating: bool, state: State) -> None:
    clients.push(60, terminating=terminating)

    assert clients.fleet.clients[A].entry.state(ms(60 + later)) is state


def test_connections_of_an_instance_and_other_instances_of_its_client_id(clients: WatchedClients) -> None:
    clients.push(60, instance=B, terminating=True)
    clients.push(120, client_port=1)
    clients.push(180, client_port=2, node_id=5)

    detail = client_detail(clients.fleet, clients.fleet.clients[A], ms(180))

    assert [(each.port, each.node_id) for each in detail.connections] == [(2, 5), (1, 1)]
    assert [(each.state, each.pushes) for each in detail.others] == [(State.GONE, 1)]


def test_peers_are_clients_of_the_same_application(clients: WatchedClients) -> None:
    for number, latency in enumerate((5, 7, 9, 400)):
        facts = {"instance": bytes([number + 1]) * 16, "client_id": f"orders-{number}"}
        clients.push(60, level(LATENCY, latency, 60), **facts)
    clients.push(60, level(LATENCY, 1_000, 60), client_id="search-1")

    slow = client_detail(clients.fleet, clients.fleet.clients[bytes([4]) * 16], ms(60))

    assert [(each.value, each.peers) for each in slow.series] == [(400, 7)]


def test_metrics_that_a_library_does_not_send(clients: WatchedClients) -> None:
    software = {"client_software_name": "confluent-kafka-python", "client_software_version": "2.12.0"}
    clients.push(60, total("producer.connection.creation.total", 1, 60, 0), **software)
    clients.push(60, total("producer.connection.creation.total", 1, 60, 0), instance=B)

    of_librdkafka = client_detail(clients.fleet, clients.fleet.clients[A], ms(60)).not_reported
    of_java = client_detail(clients.fleet, clients.fleet.clients[B], ms(60)).not_reported

    assert "org.apache.kafka.producer.record.retry.total" in of_librdkafka
    assert "org.apache.kafka.producer.record.queue.time.max" not in of_librdkafka
    assert not [name for name in of_librdkafka if "consumer" in name]
    assert not of_java


def test_a_silent_client_makes_room_and_a_live_one_does_not() -> None:
    clients = WatchedClients(Fleet(FleetLimits(max_clients=1)))
    clients.push(60)

    clients.push(61, instance=B)
    kept = list(clients.fleet.clients)
    clients.push(6_000, instance=B)

    assert kept == [A]
    assert list(clients.fleet.clients) == [B]
    assert (clients.fleet.counts.left_out_records, clients.fleet.counts.evicted_clients) == (1, 1)


def test_short_memory_makes_all_histories_shorter() -> None:
    clients = WatchedClients(Fleet(FleetLimits(max_history_bytes=20_000)))

    for second in range(10, 2_000, 10):
        clients.push(second, level(LATENCY, 1, second), interval_s=10)

    assert clients.fleet.history_bytes <= 20_000
    assert clients.fleet.history_bytes == clients.fleet.clients[A].history.held_bytes
    assert clients.fleet.counts.shortened_histories > 0
    assert clients.fleet.scale < 1


def test_a_client_that_is_gone_is_forgotten(clients: WatchedClients) -> None:
    clients.push(60, total(SENT, 5, 60, 0))

    clients.fleet.expire(ms(60) + FleetLimits().retain_ms + 1)

    assert not clients.fleet.clients
    assert clients.fleet.history_bytes == 0


def test_findings_are_made_ready_a_few_at_a_time(clients: WatchedClients) -> None:
    for number in range(5):
        clients.push(60, instance=bytes([number + 1]) * 16)

    turns = [clients.fleet.check(2, ms(60)) for _ in range(3)]

    assert turns == [False, False, True]
    assert all(each.entry.is_checked for each in clients.fleet.clients.values())


def test_bytes_that_are_no_metrics_are_counted(clients: WatchedClients) -> None:
    record = clients.record(60)
    record.payload = type(record.payload)(A, False, b"\xff\xff")

    clients.fleet.add(record)

    assert clients.fleet.counts.not_otlp_records == 1
    assert clients.fleet.clients[A].entry.pushes == 1


def test_texts_of_clients_are_cut_and_printable(clients: WatchedClients) -> None:
    clients.push(60, client_id="a\x1b[2J" + "b" * 1000)

    entry = clients.fleet.clients[A].entry

    assert entry.client_id.startswith("a\ufffd[2J")
    assert len(entry.client_id) == 256
