"""Clients of any library are behind or stalled if their group is, as a host or a gateway measures it."""

from __future__ import annotations

import dataclasses

import pytest

from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag, Trend
from odradek.lag.movement import Progress
from odradek.lag.report import ended, group_points, payload
from odradek.lag.standing import Standing
from odradek.plugin import LAG_SOURCE
from odradek_console.kept_rows import KeptRows
from support.watched_clients import WatchedClients, level, ms

OTHER = {"client_software_name": "aiokafka", "client_software_version": "0.13.0", "group_id": "billing"}
GROUP = b"the group billing"
INTERVAL_S = 30


def lag(progress: Progress, *owners: Owner, left: int = 500) -> GroupLag:
    """A group whose last member has nothing left to read."""
    read = [
        PartitionLag(index, 10, Standing(10, left * (index < max(len(owners) - 1, 1)), 0, 0, 0), None)
        for index in range(len(owners))
    ]
    topic = TopicLag(partitions=read, owners=dict(enumerate(owners)), trend=Trend(progress, 1.0, None))
    return GroupLag(group="billing", type="classic", state="Stable", members=1, topics={"orders": topic})


def owner(number: int) -> Owner:
    return Owner("member", f"billing-{number}", "10.0.0.7")


def measured(clients: WatchedClients, at: float, data: bytes, *, terminating: bool = False) -> None:
    record = clients.record(at, instance=GROUP, interval_s=300, terminating=terminating)
    record.source = LAG_SOURCE
    record.payload = dataclasses.replace(record.payload, data=data)
    clients.fleet.add(record)
    clients.fleet.lags.read(ms(at))


def watched(until_s: int = 300, **facts: str) -> WatchedClients:
    """Two consumers that say nothing of their lag."""
    clients = WatchedClients()
    for at in range(INTERVAL_S, until_s + 1, INTERVAL_S):
        for number in range(2):
            metric = level("consumer.connection.count", 1, at)
            clients.push(
                at, metric, instance=bytes([number]) * 16, client_id=f"billing-{number}",
                interval_s=INTERVAL_S, client_address="10.0.0.7", **(OTHER | facts),
            )  # fmt: skip
    return clients


@pytest.mark.parametrize(
    ("progress", "told"),
    [(Progress.FALLING_BEHIND, "behind"), (Progress.STALLED, "stalled"), (Progress.CATCHING_UP, None)],
)
def test_the_clients_that_have_something_to_read_are_in_the_trouble_of_their_group(
    progress: Progress, told: str | None
) -> None:
    clients = watched()
    measured(clients, 300, payload(group_points(lag(progress, owner(0), owner(1))), ms(300), "east"))

    found = clients.findings(301, bytes(16))

    assert list(found) == ([told] if told else [])
    assert clients.findings(301, bytes([1]) * 16) == {}
    if told:
        assert (found[told].value, found[told].labels) == (500, (("topic", "orders"),))


def test_a_row_is_made_again_when_the_group_has_moved_or_is_gone() -> None:
    clients = watched()
    rows, client = KeptRows(clients.fleet), clients.fleet.clients[bytes(16)]
    seen = []
    before = group_points(lag(Progress.CAUGHT_UP, owner(0)))
    for number, data in enumerate(
        [
            payload(group_points(lag(Progress.CAUGHT_UP, owner(0))), ms(300), "east"),
            payload(group_points(lag(Progress.STALLED, owner(0))), ms(301), "east"),
            payload(ended(before, group_points(lag(Progress.STALLED, owner(0)))), ms(302), "east"),
            payload(group_points(lag(Progress.STALLED, owner(1))), ms(303), "east"),
        ]
    ):
        measured(clients, 300 + number, data)
        (row,) = rows.rows([client], ms(300 + number))
        seen.append(row.findings)

    assert seen == [(), ("stalled",), ("stalled",), ()]

    measured(clients, 305, b"", terminating=True)
    assert clients.fleet.lags.told == {}


def test_a_group_that_is_no_longer_measured_says_nothing() -> None:
    clients = watched(until_s=1_500)
    measured(clients, 300, payload(group_points(lag(Progress.STALLED, owner(0))), ms(300), "east"))

    clients.fleet.expire(ms(1_501))
    assert clients.findings(1_501, bytes(16)) == {}
    assert clients.fleet.lags.told == {}


def test_bytes_that_are_no_metrics_are_passed_over() -> None:
    clients = watched()

    measured(clients, 300, b"\xff\xff")

    assert clients.fleet.lags.told == {}
