"""The lag of groups and of clients that read, as hosts and gateways write it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag
from odradek.lag.readers import Reader, ReaderLag
from odradek.lag.report import Point, ended, group_points, payloads, reader_points
from odradek.lag.standing import Ends, standing
from odradek.plugin import LAG_SOURCE
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.lags import KEPT_MS, Behind, Lags
from odradek_console.pictures import client_row
from support.delta_clients import A
from support.watched_clients import WatchedClients, level, ms

GROUP, READER = b"G" * 16, b"R" * 16
LAG = "consumer.fetch.manager.records.lag.max"


def group(*lags: int, member: str = "orders-1") -> GroupLag:
    """A group in which two members have every second partition each."""
    read = [
        PartitionLag(index, 100 - lag, standing(100 - lag, Ends(0, 100, 100)), lag * 1_000)
        for index, lag in enumerate(lags)
    ]
    owners = {
        index: Owner(f"m{index % 2}", member if index % 2 else "other", "10.0.0.1") for index in range(9)
    }
    topic = TopicLag(partitions=read, assigned=len(lags), owners={at: owners[at] for at in range(len(lags))})
    return GroupLag(group="billing", type="classic", state="Stable", members=2, topics={"orders": topic})


def tell(
    fleet: Fleet, at_s: float, points: Iterable[Point], instance: bytes = GROUP, *, terminating: bool = False
) -> None:
    clients = WatchedClients(fleet)
    for data in payloads(points, ms(at_s), "east"):
        record = clients.record(at_s, instance=instance, terminating=terminating)
        record.source = LAG_SOURCE
        record.payload = replace(record.payload, data=data)
        fleet.add(record)


def known(fleet: Fleet, at_s: float = 60) -> Lags:
    fleet.lags.read(ms(at_s))
    return fleet.lags


def test_a_group_has_its_partitions_and_their_owners() -> None:
    fleet = Fleet()
    tell(fleet, 60, group_points(group(5, 7, 11)))

    (found,) = known(fleet).groups.values()

    assert (found.state, found.kind, found.members, found.whole) == ("Stable", "classic", 2, Behind(23, 11))
    assert found.records == {("orders", 0): 5, ("orders", 1): 7, ("orders", 2): 11}
    assert {owner.member: lag for owner, lag in found.by_member().items()} == {
        "m0": Behind(16, 11),
        "m1": Behind(7, 7),
    }


def test_a_group_with_more_points_than_a_record_takes_is_whole() -> None:
    fleet, whole = Fleet(), group(*range(9))
    many = replace(whole, topics={f"t{number}": whole.topics["orders"] for number in range(60)})
    tell(fleet, 60, group_points(many))

    (found,) = known(fleet).groups.values()

    assert len(fleet.lags.reports[GROUP].payloads) > 1
    assert len(found.records) == 540


def test_a_series_that_has_ended_is_gone() -> None:
    fleet, before, after = Fleet(), group(5, 7), group(5)
    tell(fleet, 60, group_points(before))
    known(fleet)
    tell(fleet, 70, group_points(after))
    tell(fleet, 70, ended(group_points(before), group_points(after)))

    (found,) = known(fleet, 70).groups.values()

    assert list(found.records) == [("orders", 0)]
    assert len(found.owners) == 1


def test_a_group_that_is_gone_is_forgotten() -> None:
    said, silent = Fleet(), Fleet()
    for fleet in (said, silent):
        tell(fleet, 60, group_points(group(5)))
        known(fleet)
    tell(said, 70, ended(group_points(group(5)), ()), terminating=True)

    assert known(said, 70).groups == {}
    assert known(silent, 61 + KEPT_MS / 1000).groups == {}
    assert said.lags.held_bytes == silent.lags.held_bytes == 0


def test_nothing_is_left_of_groups_that_come_and_go() -> None:
    fleet = Fleet()
    for life in range(300):
        at_s, instance = 60 + 30 * life, bytes([life % 7]) * 16
        lived = replace(group(life), group=f"test-{life}")
        tell(fleet, at_s, group_points(lived), instance)
        if life % 2:
            known(fleet, at_s)
        tell(fleet, at_s + 10, group_points(lived), instance)
        if life % 3:
            known(fleet, at_s + 10)
        if life % 5:
            tell(fleet, at_s + 20, ended(group_points(lived), ()), instance, terminating=True)
    lags = known(fleet, at_s + 20)
    living = set(lags.told)

    assert 0 < len(living) <= 7
    assert living == set(lags.changes) == set(lags.groups) == set(lags.members)
    known(fleet, at_s + 20 + KEPT_MS)
    assert not any((lags.told, lags.changes, lags.groups, lags.members))


def test_a_group_that_comes_back_is_another_change() -> None:
    fleet = Fleet()
    tell(fleet, 60, group_points(group(5)))
    first = known(fleet).changes["billing"]
    tell(fleet, 70, ended(group_points(group(5)), ()), terminating=True)
    tell(fleet, 80, group_points(group(5)))

    assert known(fleet, 80).changes["billing"] > first


def test_a_client_has_the_lag_of_its_partitions() -> None:
    clients = WatchedClients()
    clients.push(60, level(LAG, 3, 60), group_id="billing", client_address="10.0.0.1")
    tell(clients.fleet, 60, group_points(group(5, 7)))
    before = client_row(clients.fleet, clients.fleet.clients[A], ms(60))
    known(clients.fleet)

    row = client_row(clients.fleet, clients.fleet.clients[A], ms(60))

    assert (before.figures["lag"].source, before.figure("lag")) == ("pushed", 3)
    assert (row.figures["lag"].source, row.figure("lag"), row.figure("lag_s")) == ("measured", 7, 7)


def test_members_that_cannot_be_told_apart_have_no_lag() -> None:
    fleet = Fleet()
    tell(fleet, 60, group_points(group(5, 7, member="other")))
    lags = known(fleet)

    assert lags.of_client("other", "10.0.0.1", "billing", "") is None
    assert lags.of_client("other", "10.0.0.1", "billing", "m1") == Behind(7, 7)


def test_a_client_without_a_group_has_the_lag_of_what_it_fetches() -> None:
    fleet = Fleet()
    reader = Reader("orders-1", "10.0.0.1", "", "java", "4", "User:a", "gw-1")
    read = PartitionLag(0, 60, standing(60, Ends(0, 100, 100)), 2_500)
    lag = ReaderLag(reader=reader, topics={"orders": TopicLag(partitions=[read])})
    tell(fleet, 60, reader_points(lag), READER)

    assert known(fleet).of_client("orders-1", "10.0.0.1", "", "") == Behind(40, 2.5)


def test_bytes_that_are_no_report_stop_nothing() -> None:
    fleet = Fleet()
    tell(fleet, 60, group_points(group(5)))
    fleet.lags.reports[GROUP].payloads.append(b"\xff\xff")

    assert list(known(fleet).groups) == ["billing"]
