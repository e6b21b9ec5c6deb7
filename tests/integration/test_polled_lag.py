"""The right answer for each kind of group, topic and offset of a cluster that is polled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.lag.group_lag import Owner
from odradek.testing import RunningHost, VirtualClock
from odradek.testing.clock import MockClock
from odradek.waiting.steps import run_steps
from odradek.wire.config_resource import ResourceType
from odradek.wire.types import Versions
from support.polled_lag import PolledLag

MINUTE_MS = 60_000
BILLING = Owner("m", "billing-1", "127.0.0.1")


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    host = odradek_hosts(clock=VirtualClock(), telemetry_lag="none")
    host.topics.create("orders", partitions=2)
    return host


@pytest.fixture
def polled(host: RunningHost) -> Iterator[PolledLag]:
    polled = PolledLag(host.bootstrap, host.clock)
    yield polled
    polled.positions.brokers.close()


def fill(host: RunningHost, records: int, partition: int = 0, topic: str = "orders") -> None:
    host.topics.produce(topic, *[b"v"] * records, partition=partition)


def records(polled: PolledLag, group: str, topic: str = "orders", partition: int = 0) -> int | None:
    """The lag in records; None if there is none to tell."""
    found = polled.at(group, topic, partition)
    return None if found is None else found.standing.lag


def asked(host: RunningHost) -> list[str]:
    """The requests since they were forgotten last."""
    found = [each.api for each in host.requests]
    host.requests.forget()
    return found


def test_lag_in_records_and_in_seconds(host: RunningHost, polled: PolledLag) -> None:
    host.groups.commit("billing", "orders", {0: 0})
    polled.round()
    host.clock.advance(10_000)
    polled.note_ends()
    fill(host, 10)
    host.groups.commit("billing", "orders", {0: 4})
    host.clock.advance(2_000)
    polled.note_ends()
    host.clock.advance(98_000)
    polled.round()

    found = polled.at("billing", "orders")

    assert found is not None
    assert (found.offset, found.standing.lag) == (4, 6)
    assert found.time_ms == pytest.approx(100_000, abs=2_000)


def test_how_much_of_its_retention_the_oldest_unread_record_has_used(
    host: RunningHost, polled: PolledLag
) -> None:
    with AdminClient(host.bootstrap) as admin:
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        change = ConfigChange("retention.ms", str(40 * MINUTE_MS))
        admin.incremental_alter_configs({resource: [change]})
    fill(host, 1)
    host.groups.commit("slow", "orders", {0: 0})
    host.clock.advance(10 * MINUTE_MS)
    polled.round()

    found = polled.of("slow")

    assert found is not None
    retention = found.topics["orders"].retention
    assert retention is not None
    assert retention.share == pytest.approx(0.25, abs=0.01)
    assert retention.left_ms == pytest.approx(30 * MINUTE_MS, abs=2_000)


def test_records_older_than_the_first_poll_have_their_own_time(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 1)
    host.clock.advance(10 * MINUTE_MS)
    fill(host, 1_500)
    host.clock.advance(10 * MINUTE_MS)
    host.groups.commit("slow", "orders", {0: 0})
    host.groups.commit("less", "orders", {0: 1})
    polled.round()

    slow, less = polled.at("slow", "orders"), polled.at("less", "orders")

    assert slow is not None
    assert less is not None
    assert slow.time_ms == pytest.approx(20 * MINUTE_MS, abs=2_000)
    assert less.time_ms == pytest.approx(10 * MINUTE_MS, abs=2_000)


def test_a_round_takes_a_hundred_groups_a_request_and_offsets_before_ends(
    host: RunningHost, polled: PolledLag
) -> None:
    for number in range(150):
        host.groups.commit(f"g{number}", "orders", {0: 0, 1: 0})
    polled.round()
    host.requests.forget()
    polled.round()

    assert asked(host) == ["Metadata", "ListGroups", *["OffsetFetch"] * 2, *["ListOffsets"] * 3]
    polled.note_ends()
    assert asked(host) == ["ListOffsets"]


def test_a_broker_that_does_not_answer_keeps_its_values_for_a_minute(host: RunningHost) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 0})
    clock = MockClock()  # that of the host does not go on while it is stopped
    polled = PolledLag(host.bootstrap, clock)
    polled.round()
    host.stop()

    clock.advance(MINUTE_MS)
    polled.round()
    assert records(polled, "billing") == 5
    assert polled.positions.outcome == "failed"
    clock.advance(1)
    polled.round()
    assert polled.positions.groups() == {}

    host.restart()
    clock.advance(MINUTE_MS)
    polled.round()
    assert records(polled, "billing") == 5
    assert polled.positions.outcome == "completed"
    assert [each.partition(": ")[2] for each in polled.problems] == [
        "the broker closed the connection",
        "connection refused",
    ]
    polled.positions.brokers.close()


def test_a_broker_that_hangs_is_left_alone_for_a_while(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 0})
    polled.round()
    host.fault("ListOffsets", drop="before")
    host.requests.forget()
    polled.note_ends()
    polled.note_ends()
    assert asked(host).count("ListOffsets") == 1

    host.clock.advance(10_001)
    polled.note_ends()
    assert asked(host).count("ListOffsets") == 1
    polled.round()
    assert records(polled, "billing") == 5


def test_a_broker_that_throttles_is_asked_later(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 0})
    polled.round()
    host.fault("ListOffsets", throttle_ms=5_000)
    polled.note_ends()
    host.requests.forget()
    host.clock.advance(4_999)
    polled.note_ends()
    assert asked(host) == []

    host.clock.advance(1)
    polled.note_ends()
    assert asked(host) == ["ListOffsets"]
    assert polled.problems == []


def test_a_leader_that_has_moved_is_asked_for(host: RunningHost, polled: PolledLag) -> None:
    host.groups.commit("billing", "orders", {0: 0, 1: 0})
    polled.round()
    host.fault("ListOffsets", topic="orders", partition=0, error="NOT_LEADER_OR_FOLLOWER")
    host.requests.forget()
    polled.note_ends()
    polled.note_ends()

    assert [each for each in asked(host) if each != "ApiVersions"] == [
        "ListOffsets",
        "Metadata",
        "ListOffsets",
    ]
    polled.round()
    assert records(polled, "billing") == 0


def test_a_partition_whose_end_is_not_known_keeps_its_lag_for_a_minute(
    host: RunningHost, polled: PolledLag
) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 0, 1: 0})
    polled.round()
    fault = host.fault("ListOffsets", topic="orders", partition=0, error="LEADER_NOT_AVAILABLE", times=None)
    host.clock.advance(MINUTE_MS)
    polled.round()
    assert records(polled, "billing") == 5
    host.clock.advance(1)
    polled.round()
    assert records(polled, "billing") is None
    assert records(polled, "billing", partition=1) == 0
    fault.remove()


@pytest.mark.parametrize("error", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
def test_a_group_whose_coordinator_cannot_tell_keeps_its_offsets_for_a_minute(
    host: RunningHost, polled: PolledLag, error: str
) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 2})
    polled.round()
    fault = host.fault("OffsetFetch", error=error, times=None)
    polled.round()
    assert records(polled, "billing") == 3
    host.clock.advance(MINUTE_MS + 1)
    polled.round()
    assert polled.of("billing") is None
    fault.remove()
    polled.round()
    assert records(polled, "billing") == 3


def test_an_answer_that_cannot_be_read_is_no_lag(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 2})
    host.fault("OffsetFetch", garbage=True)
    polled.round()
    assert polled.positions.groups() == {}
    assert polled.positions.outcome == "failed"

    host.clock.advance(10_001)
    polled.round()
    assert records(polled, "billing") == 3


@pytest.mark.parametrize("reads", [True, False])
def test_batches_are_read_only_where_that_is_allowed(host: RunningHost, reads: bool) -> None:
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 2})
    host.clock.advance(MINUTE_MS)
    polled = PolledLag(host.bootstrap, host.clock, reads=reads)
    polled.round()
    polled.round()

    assert ("Fetch" in asked(host)) is reads
    found = polled.at("billing", "orders")
    assert found is not None
    assert found.time_ms == pytest.approx(MINUTE_MS, abs=2_000)
    polled.positions.brokers.close()


def test_what_was_found_at_an_offset_is_not_asked_for_again(host: RunningHost, polled: PolledLag) -> None:
    fill(host, 1_200)
    host.groups.commit("late", "orders", {0: 0})
    host.groups.commit("near", "orders", {0: 1_000})
    polled.round()
    assert "Fetch" in asked(host)
    for _ in range(3):
        polled.round()
    assert asked(host).count("Fetch") == 0


def test_a_topic_that_members_read_and_that_may_not_be_seen_is_counted(
    host: RunningHost, polled: PolledLag
) -> None:
    host.groups.commit("billing", "orders", {0: 0})
    polled.round()
    known = polled.positions.polled["billing"]
    known.reading = replace(
        known.reading, assigned={"secret": {0: BILLING}, "orders": {0: BILLING, 1: BILLING}}
    )
    run_steps(polled.positions.measure())
    found = polled.of("billing")

    assert found is not None
    assert list(found.topics) == ["orders"]
    assert (found.topics["orders"].assigned, found.topics["orders"].uncommitted) == (2, 1)
    assert polled.positions.left_out["hidden"] == 1


def test_groups_and_topics_are_chosen_before_they_are_asked_for(host: RunningHost) -> None:
    host.topics.create("payments")
    for topic in ("orders", "payments"):
        host.groups.commit("billing", topic, {0: 0})
        host.groups.commit("audit", topic, {0: 0})
    polled = PolledLag(
        host.bootstrap,
        host.clock,
        wants_group=lambda name: name == "billing",
        wants_topic=lambda name: name == "orders",
    )
    polled.round()

    assert list(polled.positions.groups()) == ["billing"]
    assert [each.topic for each in polled.positions.ends()] == ["orders"]
    polled.positions.brokers.close()


def test_more_partitions_than_a_request_has(
    host: RunningHost, polled: PolledLag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.client.partition_reading.PARTITIONS_A_REQUEST", 100)
    host.topics.create("wide", partitions=250)
    host.groups.commit("wide", "wide", dict.fromkeys(range(250), 0))
    polled.round()
    found = polled.of("wide")

    assert found is not None
    assert len(found.topics["wide"].partitions) == 250
    assert asked(host).count("ListOffsets") == 3 * 3


def test_a_broker_of_before_groups_had_types(host: RunningHost, polled: PolledLag) -> None:
    """OffsetFetch for one group a request, ListOffsets without isolation, ListGroups without types."""
    fill(host, 5)
    host.groups.commit("billing", "orders", {0: 2})
    polled.round()
    admin = polled.positions.brokers.admin
    assert admin is not None
    for connection in admin.cluster.connections.values():
        connection.offered |= {9: Versions(1, 5), 2: Versions(1, 1), 16: Versions(0, 2)}
    host.requests.forget()
    polled.round()

    assert records(polled, "billing") == 3
    assert {(each.api, each.version) for each in host.requests if each.api == "OffsetFetch"} == {
        ("OffsetFetch", 5)
    }


def test_ends_are_noted_between_the_steps_of_a_round(host: RunningHost, polled: PolledLag) -> None:
    """Whatever a round has learned so far, what is known of the other groups stays."""
    host.topics.create("payments")
    read = {"audit": "orders", "billing": "payments"}
    for group, topic in read.items():
        fill(host, 5, topic=topic)
        host.groups.commit(group, topic, {0: 0})
    polled.round()
    before = {id(each) for each in polled.positions.meter.tables.values()}
    steps, step = polled.positions.begin(), None
    with contextlib.suppress(StopIteration):
        while True:
            step = steps.send(step() if callable(step) else None)
            polled.positions.brokers.outdated = True
            polled.note_ends()

    assert {id(each) for each in polled.positions.meter.tables.values()} == before
    assert [records(polled, group, topic) for group, topic in read.items()] == [5, 5]
