"""Records as they come: again after a restart, out of order, from several clusters, and hostile ones."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from rich.cells import cell_len

from odradek.plugin import Origin, TelemetryRecord
from odradek_console.engine.client_entry import State
from odradek_console.engine.fleet import Fleet, FleetLimits
from odradek_console.pictures import client_detail, client_row
from odradek_console.terminal.clients import described, listed
from odradek_console.terminal.watch import client_lines
from support.delta_clients import A, B
from support.watched_clients import WatchedClients, level, ms, total

LATENCY = "producer.request.latency.avg"
HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "a\rb\nc\x08\x7f\x9b31m",
    "user\u202egpj.exe\u2066\u200f",
    "\u0000" * 10,
    "x" * 1_000_000,
    "\ud800",
    "名" * 300,
]


@pytest.fixture
def clients() -> WatchedClients:
    return WatchedClients()


def an_hour(clients: WatchedClients) -> Iterator[TelemetryRecord]:
    """Records of five clients, of which one is in trouble and one ends."""
    for second in range(60, 3601, 60):
        for number in range(5):
            if number == 4 and second > 1800:
                continue
            metrics = [
                total("producer.record.send.total", 10, second, second - 60),
                level(LATENCY, number, second),
                level("producer.record.queue.time.max", 40_000 if number == 3 else 4, second),
            ]
            yield clients.record(
                second,
                *metrics,
                instance=bytes([number + 1]) * 16,
                client_id=f"orders-{number}",
                client_port=second // 600,
                terminating=number == 4 and second == 1800,
            )


def shown(fleet: Fleet, at: float) -> list[str]:
    """All that is shown of all clients."""
    details = [client_detail(fleet, each, ms(at)) for each in fleet.clients.values()]
    return sorted(json.dumps(each.to_json()) for each in details)


def test_a_restart_shows_what_one_that_ran_on_shows(clients: WatchedClients) -> None:
    records = list(an_hour(clients))
    again = Fleet()

    for number, record in enumerate(records):
        clients.fleet.add(record)
        if number % 7 == 0:
            clients.fleet.check(3, record.context.received_ms)
            clients.fleet.expire(record.context.received_ms)
    for record in records:
        again.add(record)

    assert shown(again, 3600) == shown(clients.fleet, 3600)
    assert any("long-queue" in each for each in shown(again, 3600))


def test_a_topic_that_is_read_twice_changes_nothing(clients: WatchedClients) -> None:
    records = list(an_hour(clients))
    for record in records:
        clients.fleet.add(record)
    before = shown(clients.fleet, 3600)

    for record in records:
        clients.fleet.add(record)

    assert shown(clients.fleet, 3600) == before
    assert clients.fleet.counts.repeated_records == len(records)


def test_a_forgotten_client_does_not_come_back_with_its_old_records(clients: WatchedClients) -> None:
    record = clients.record(60, level(LATENCY, 1, 60))
    clients.fleet.add(record)
    clients.fleet.expire(ms(100_000))

    clients.fleet.add(record)

    assert not clients.fleet.clients


def test_an_older_record_changes_no_newer_fact(clients: WatchedClients) -> None:
    clients.push(120, level(LATENCY, 5, 120), client_software_version="4.3.0", principal="User:new")
    clients.push(60, level(LATENCY, 9, 60), client_software_version="4.1.0", principal="User:old")
    clients.push(180, level(LATENCY, 6, 180), principal="User:new", terminating=True)
    clients.push(90, level(LATENCY, 9, 90), principal="User:old")

    client = clients.fleet.clients[A]
    row = client_row(clients.fleet, client, ms(180))
    (series,) = client_detail(clients.fleet, client, ms(180)).series

    assert (row.version, row.principal, row.state) == ("4.3.0", "User:new", State.GONE)
    assert (row.pushes, row.gaps, row.first_ms, row.last_ms) == (4, 0, ms(60), ms(180))
    assert [value for _, value in series.points] == [5, 6]


def test_records_of_any_order_of_partitions_show_the_same(clients: WatchedClients) -> None:
    records = list(an_hour(clients))
    by_client = {bytes([number + 1]) * 16: number for number in range(5)}
    for record in records:
        partition = by_client[record.payload.client_instance_id]
        record.position = Origin("topic-1", partition, record.context.received_ms)
    shuffled = sorted(records, key=lambda each: (each.position.partition, each.position.offset))  # type: ignore[union-attr]
    for record in records:
        clients.fleet.add(record)
    other = Fleet()

    for record in shuffled:
        other.add(record)

    assert shown(other, 3600) == shown(clients.fleet, 3600)


def test_an_instance_behind_two_gateways_and_a_cluster(clients: WatchedClients) -> None:
    for number in range(60):
        place = number % 3
        clients.push(60 + number * 20, cluster_id=f"cluster-{place}", client_address=f"10.0.0.{place}")

    detail = client_detail(clients.fleet, clients.fleet.clients[A], ms(60 + 59 * 20))

    assert [each.cluster_id for each in detail.connections] == ["cluster-2", "cluster-1", "cluster-0"]
    assert detail.connections[-1].since_ms == ms(60)
    assert (detail.row.cluster_id, detail.row.address, detail.row.gaps) == ("cluster-2", "10.0.0.2", 0)


def test_a_full_inventory_forgets_those_that_are_gone_though_the_oldest_lives() -> None:
    clients = WatchedClients(Fleet(FleetLimits(max_clients=200)))
    names = [number.to_bytes(16) for number in range(1, 301)]

    clients.push(60, instance=names[0], interval_s=3600)
    for number, name in enumerate(names[1:200], 1):
        clients.push(60 + number, instance=name, terminating=number % 2 == 0)
    for number, name in enumerate(names[200:], 200):
        clients.push(60 + number, instance=name)

    kept = clients.fleet.clients
    assert len(kept) <= 200
    assert names[0] in kept
    assert all(name in kept for name in names[200:])
    assert clients.fleet.counts.left_out_records == 0
    assert clients.fleet.counts.evicted_clients >= 100
    assert all(not kept[name].entry.terminated for name in kept)


def test_a_full_inventory_of_live_clients_is_not_searched_for_each_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = WatchedClients(Fleet(FleetLimits(max_clients=100)))
    for number in range(1, 101):
        clients.push(60, instance=number.to_bytes(16))
    asked = 0
    state_of = type(clients.fleet.clients[(1).to_bytes(16)].entry).state

    def counted(entry: object, now_ms: int) -> State:
        nonlocal asked
        asked += 1
        return state_of(entry, now_ms)  # type: ignore[arg-type]

    monkeypatch.setattr("odradek_console.engine.client_entry.ClientEntry.state", counted)
    for number in range(1000, 2000):
        clients.push(60, instance=number.to_bytes(16))

    assert clients.fleet.counts.left_out_records == 1000
    assert asked <= 200


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_of_a_client_does_not_steer_the_terminal(text: str) -> None:
    clients = WatchedClients()
    record = clients.record(60, level(LATENCY, 1, 60), client_id=text)
    context = record.context
    facts: dict[str, Any] = dict.fromkeys(
        ("client_address", "client_software_name", "client_software_version", "principal", "listener_name"),
        text,
    )
    connection = dataclasses.replace(context.connection, cluster_id=text, **facts)
    record.context = dataclasses.replace(context, connection=connection)
    record.source = text
    clients.fleet.add(record)
    client = clients.fleet.clients[A]
    detail = client_detail(clients.fleet, client, ms(60))

    lines = [
        *listed([client_row(clients.fleet, client, ms(60))]),
        *described(detail, [], 80),
        *client_lines(detail, ms(60), 80),
    ]

    assert all(line.isprintable() for line in lines), [line for line in lines if not line.isprintable()]
    assert max(map(cell_len, lines[2:])) <= 80
    assert all(len(each) <= 256 for each in (detail.row.address, detail.row.cluster_id, detail.row.source))


@pytest.mark.parametrize("text", [each for each in HOSTILE if each != "\ud800"])
def test_a_metric_of_a_client_does_not_steer_the_terminal(text: str) -> None:
    clients = WatchedClients()
    clients.push(60, level(LATENCY + text, 1, 60, **{"topic": text, text[:99]: "x"}), group_id=text)
    client = clients.fleet.clients[A]

    detail = client_detail(clients.fleet, client, ms(60))
    lines = list(described(detail, [], 80))

    (series,) = detail.series
    assert all(line.isprintable() for line in lines)
    assert len(series.metric) <= 256
    assert all(len(each) <= 256 for pair in series.labels for each in pair)


def test_absurd_numbers_are_bounded(clients: WatchedClients) -> None:
    record = clients.record(60, level(LATENCY, 1e300, 60))
    record.push_interval_ms = 10**400
    clients.fleet.add(record)
    later = clients.record(120, level(LATENCY, float("-inf"), 120))
    later.push_interval_ms = 10**400
    clients.fleet.add(later)
    client = clients.fleet.clients[A]

    row = client_row(clients.fleet, client, ms(120))

    assert row.interval_ms < 10**12
    assert json.loads(json.dumps(client_detail(clients.fleet, client, ms(120)).to_json(), allow_nan=False))


def test_noise_stops_nothing(clients: WatchedClients) -> None:
    numbers = random.Random(7)  # a test
    for second in range(300):
        record = clients.record(60 + second)
        data = numbers.randbytes(numbers.randrange(200))
        record.payload = dataclasses.replace(record.payload, data=data, refused=numbers.randrange(-9, 200))
        record.push_interval_ms = numbers.choice((-5, 0, 1, 60_000))
        clients.fleet.add(record)
        clients.fleet.findings(clients.fleet.clients[A], ms(60 + second))

    assert clients.fleet.clients[A].entry.pushes == 300
    assert B not in clients.fleet.clients


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_terminal(clients: WatchedClients, width: int) -> None:
    for second in range(60, 2000, 60):
        metrics = [level(LATENCY, 3, second), level("producer.record.queue.time.max", 40_000, second)]
        clients.push(second, *metrics, client_software_version="3.4.0", principal="User:" + "p" * 200)
    detail = client_detail(clients.fleet, clients.fleet.clients[A], ms(4_000_000_000))
    detail = dataclasses.replace(
        detail,
        findings=tuple(clients.findings(1980).values()),
        not_reported=("org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.avg",),
    )

    lines = [
        *described(detail, ["a-subscription"] * 20, width),
        *client_lines(detail, ms(1980), width),
    ]

    assert detail.findings
    assert max(map(cell_len, lines)) <= width
    assert sum("org.apache.kafka" in line for line in lines) == 0
