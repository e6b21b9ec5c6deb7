"""The entrance for records that no client pushed: checks, labels, repetitions and accounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.telemetry_broker import TelemetryBroker
from odradek.plugin import Origin, TelemetryRecord
from odradek.telemetry.client_labels import Labels
from odradek.telemetry.recent_origins import RecentOrigins
from odradek.telemetry.record_source import Outcome, RecordSource
from odradek.waiting.deferred import Deferred
from odradek.wire.compression import TooLarge
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from support.spooling import payload
from support.telemetry_records import push_request, resource_labels, telemetry_record

MAX_BYTES = 10_000
ORIGIN = Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 1, 7)


class Entrance:
    """A source, and the records it stored."""

    def __init__(self, keep: Callable[[TelemetryRecord], bool | Deferred[bool]] | None = None) -> None:
        self.broker = TelemetryBroker(max_decompressed_bytes=MAX_BYTES)
        self.stored: list[TelemetryRecord] = []
        self.source = RecordSource("lines", self.broker.manager, keep or self.keep)

    def keep(self, record: TelemetryRecord) -> bool:
        self.stored.append(record)
        return True

    @property
    def accounts(self) -> tuple[int, int, int, int]:
        """Received, appended, repeated, waiting."""
        found = self.source.accounts
        assert found.balanced
        return found.received, found.appended, found.repeated, found.waiting


class Team:
    def labels(self, client_instance_id: bytes, context: object) -> dict[str, str]:
        return {"team": "east"}


def labels_of(entrance: Entrance, came: TelemetryRecord) -> Labels:
    found: list[list[Labels]] = []
    entrance.broker.manager.enrichers.of_records([came], found.append)
    return found[0][0]


def record(number: int = 1, origin: Origin | None = None, received_ms: int = 5) -> TelemetryRecord:
    found = telemetry_record(payload(number), bytes([number]) * 16, push_request(received_ms=received_ms))
    found.origin = origin
    return found


def test_a_labeled_record_is_stored_as_it_came() -> None:
    entrance = Entrance()
    entrance.broker.manager.enrichers.register("team", Team())
    came = record(origin=ORIGIN)

    ready = entrance.source.prepared(came, labels_of(entrance, came))

    assert ready is came


def test_a_record_without_labels_gets_those_of_this_host() -> None:
    entrance = Entrance()
    entrance.broker.manager.enrichers.register("team", Team())
    came = replace(record(), labeled=False)

    ready = entrance.source.prepared(came, labels_of(entrance, came))

    assert resource_labels(ready.payload.data) == {"team": "east"}
    assert (ready.labeled, ready.source) == (True, "lines")
    assert not resource_labels(came.payload.data)


def test_a_record_keeps_the_source_that_brought_it_first() -> None:
    came = replace(record(), labeled=False, source="relay")

    assert Entrance().source.prepared(came, None).source == "relay"


@pytest.mark.parametrize("labeled", [True, False])
def test_what_is_not_otlp_or_too_large_is_refused(labeled: bool) -> None:
    source = Entrance().source

    for data, error in ((b"\xff\xfe junk", WireError), (payload(1, "x" * MAX_BYTES), TooLarge)):
        with pytest.raises(error):
            source.prepared(replace(telemetry_record(data), labeled=labeled), None)


def test_refusals_are_counted_by_their_code() -> None:
    entrance = Entrance()

    entrance.source.reject(TooLarge("large"))
    entrance.source.reject(WireError("junk"))
    entrance.source.unreadable(3)

    assert entrance.source.accounts.rejected == {
        ErrorCode.TELEMETRY_TOO_LARGE: 1,
        ErrorCode.INVALID_RECORD: 4,
    }
    assert entrance.accounts == (5, 0, 0, 0)


def test_a_record_with_a_known_origin_is_not_stored_again() -> None:
    entrance = Entrance()

    outcomes = [entrance.source.take(record(1, ORIGIN)) for _ in range(3)]

    assert outcomes == [Outcome.STORED, Outcome.REPEATED, Outcome.REPEATED]
    assert entrance.accounts == (3, 1, 2, 0)


@pytest.mark.parametrize(
    "other",
    [
        record(1, ORIGIN._replace(offset=8)),
        record(1, ORIGIN._replace(partition=0)),
        record(1, ORIGIN._replace(topic_id="AAAAAAAAAAAAAAAAAAAAAQ")),
        record(1, ORIGIN, received_ms=6),
    ],
    ids=["offset", "partition", "topic", "time"],
)
def test_any_other_origin_is_another_record(other: TelemetryRecord) -> None:
    entrance = Entrance()

    outcomes = [entrance.source.take(each) for each in (record(1, ORIGIN), other)]

    assert outcomes == [Outcome.STORED, Outcome.STORED]


def test_records_without_an_origin_are_always_new() -> None:
    entrance = Entrance()

    outcomes = [entrance.source.take(record()) for _ in range(2)]

    assert outcomes == [Outcome.STORED, Outcome.STORED]


def test_a_record_of_this_hosts_own_log_is_a_repetition() -> None:
    entrance = Entrance()
    entrance.source.recent.own_topic_id = lambda: ORIGIN.topic_id

    outcome = entrance.source.take(record(1, ORIGIN))

    assert outcome is Outcome.REPEATED


def test_a_record_without_room_may_come_again() -> None:
    answers = iter([False, True])
    entrance = Entrance(lambda record: next(answers))

    outcomes = [entrance.source.take(record(1, ORIGIN)) for _ in range(3)]

    assert outcomes == [Outcome.NO_ROOM, Outcome.STORED, Outcome.REPEATED]
    assert entrance.source.accounts.rejected == {ErrorCode.THROTTLING_QUOTA_EXCEEDED: 1}


def test_a_record_waits_until_it_is_written() -> None:
    kept: Deferred[bool] = Deferred()
    entrance = Entrance(lambda record: kept)
    outcome = entrance.source.take(record(1, ORIGIN))
    assert isinstance(outcome, Deferred)
    before = entrance.accounts

    kept.complete(True)

    assert before == (1, 0, 0, 1)
    assert outcome.result() is Outcome.STORED
    assert entrance.accounts == (1, 1, 0, 0)


def test_an_empty_record_is_stored_and_counted_as_empty() -> None:
    entrance = Entrance()
    came = telemetry_record(b"")

    outcome = entrance.source.take(entrance.source.prepared(came, None))

    assert outcome is Outcome.STORED
    assert entrance.source.accounts.empty == 1
    assert entrance.stored == [came]


def test_only_the_last_origins_are_remembered() -> None:
    recent = RecentOrigins(max_origins=2)

    found = [recent.add(record(1, ORIGIN._replace(offset=offset))) for offset in (1, 2, 3, 3, 1)]

    assert found == [True, True, True, False, True]
    assert len(recent.received) == 2


def test_two_clients_may_have_the_same_origin() -> None:
    recent = RecentOrigins()
    two = [record(1, ORIGIN), record(2, ORIGIN)]

    found = [recent.add(each) for each in (*two, *two)]

    assert found == [True, True, False, False]
