"""Labels that come later than the push, that have to be asked for again, or that never come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.telemetry_broker import DATA, TelemetryBroker
from odradek.plugin import ConfigError, Later, RequestContext
from odradek.telemetry.client_labels import MAX_CHANGED
from odradek.telemetry.enrichers import ANSWER_MS, MAX_AWAITED, RETRY_MS
from odradek.waiting.deferred import Deferred
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.telemetry_records import resource_labels, telemetry_record

CONNECTION = "conn-1"
INTERVAL_MS = 300_000
WAIT_MS = 100
RED, BLUE = {"team": "red"}, {"team": "blue"}
MISSING = {"labels_missing": "cmdb"}


class Cmdb:
    """An enricher that asks a system elsewhere for the team."""

    def __init__(self, ttl_ms: int | None = None) -> None:
        self.ttl_ms = ttl_ms
        self.questions: list[Later] = []

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Later:
        self.questions.append(Later())
        return self.questions[-1]

    def use_invalidate(self, invalidate: Callable[[str | None], None]) -> None:
        self.invalidate = invalidate


class Client:
    """A client that pushes to a host with this enricher."""

    def __init__(self, enricher: Any) -> None:
        self.broker = TelemetryBroker()
        self.broker.enrichers.register("cmdb", enricher)
        self.told = self.broker.get(connection_id=CONNECTION)

    def push(self, after_ms: int = INTERVAL_MS, connection_id: str = CONNECTION) -> None:
        """Push, some time after the last push."""
        self.broker.clock.advance(after_ms)
        request = PushTelemetryRequest(
            client_instance_id=self.told.client_instance_id,
            subscription_id=self.told.subscription_id,
            metrics=DATA,
        )
        answer = self.broker.send(request, connection_id)
        self.waits = isinstance(answer, Deferred) and not answer.done

    @property
    def labels(self) -> list[dict[str, str]]:
        """The labels of each push that the receiver has got."""
        return [resource_labels(each.data) for each in self.broker.receiver.payloads]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Answers, failures, and pushes without the labels."""
        (stats,) = self.broker.enrichers.stats()
        return stats.exported, stats.failed, stats.unlabeled


def test_a_push_waits_for_labels_that_come_in_time() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)

    client.push()
    waited = client.waits
    client.broker.clock.advance(WAIT_MS - 1)
    cmdb.questions[0].set(RED)
    client.push()

    assert waited
    assert client.labels == [RED, RED]
    assert (client.counts, len(cmdb.questions)) == ((1, 0, 0), 1)
    assert client.broker.manager.accounts.waiting == 0


def test_labels_that_are_late_are_those_of_the_second_push() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)

    client.push()
    client.broker.clock.advance(200)
    cmdb.questions[0].set(RED)
    client.push()

    assert client.labels == [MISSING, RED]
    assert client.counts == (1, 0, 1)


def test_a_push_waits_once_for_an_answer_that_does_not_come() -> None:
    client = Client(Cmdb())

    client.push()
    waited = client.waits
    client.push(after_ms=WAIT_MS)
    client.push(after_ms=ANSWER_MS - WAIT_MS - 1)

    assert (waited, client.waits) == (True, False)
    assert client.labels == [MISSING]  # the others come too early
    assert client.counts == (0, 0, 1)


def test_an_answer_that_does_not_come_is_given_up_and_asked_for_again() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    client.broker.clock.advance(ANSWER_MS)
    given_up = client.counts

    client.push()
    cmdb.questions[0].set(BLUE)
    cmdb.questions[1].set(RED)

    assert given_up == (0, 1, 1)
    assert client.labels == [MISSING, RED]
    assert client.broker.enrichers.entries[0].awaited == 0


def test_a_failure_is_told_and_asked_again_later() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    cmdb.questions[0].fail(OSError("down"))
    client.push(after_ms=RETRY_MS - 1)
    asked = len(cmdb.questions)

    client.push()
    cmdb.questions[1].set(RED)

    assert (asked, len(cmdb.questions)) == (1, 2)
    assert client.labels == [MISSING, RED]
    assert client.broker.enrichers.stats()[0].last_error == "OSError: down"


def test_an_enricher_that_raised_is_asked_again() -> None:
    class Directory:
        is_up = False

        def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
            if not self.is_up:
                raise OSError("down")
            return RED

    directory = Directory()
    client = Client(directory)
    client.push()
    directory.is_up = True
    client.push()

    assert client.labels == [MISSING, RED]


def test_labels_are_asked_for_again_when_their_time_is_over() -> None:
    cmdb = Cmdb(ttl_ms=INTERVAL_MS + 1)
    client = Client(cmdb)
    client.push()
    cmdb.questions[0].set(RED)
    client.push()
    client.push()
    client.broker.clock.advance(WAIT_MS)  # with what is known
    cmdb.questions[1].set(BLUE)
    client.push()

    assert client.labels == [RED, RED, RED, BLUE]
    assert client.counts == (2, 0, 0)


def test_labels_of_a_principal_are_asked_for_again_when_they_have_changed() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    cmdb.questions[0].set(RED)

    cmdb.invalidate("User:somebody")
    client.push()
    asked = len(cmdb.questions)
    cmdb.invalidate("User:ANONYMOUS")
    client.push()
    cmdb.questions[1].set(BLUE)

    assert asked == 1
    assert client.labels == [RED, RED, BLUE]


def test_an_answer_from_before_a_change_does_not_count() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    cmdb.invalidate(None)
    client.push()
    cmdb.questions[0].set(RED)
    cmdb.questions[1].set(BLUE)

    assert client.labels == [MISSING, BLUE]
    assert client.broker.enrichers.entries[0].awaited == 0


def test_changes_of_many_principals_are_bounded() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    cmdb.questions[0].set(RED)
    for number in range(MAX_CHANGED + 1):
        cmdb.invalidate(f"User:{number}")

    client.push()

    assert len(cmdb.questions) == 2
    assert len(client.broker.enrichers.changes.by_principal) <= MAX_CHANGED


def test_an_enricher_that_never_answers_is_asked_a_bounded_number_of_times() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    records = [telemetry_record(DATA, number.to_bytes(16)) for number in range(1, MAX_AWAITED + 2)]
    for record in records:
        record.labeled = False
    found: list[Any] = []

    client.broker.enrichers.of_records(records, found.append)
    client.broker.clock.advance(WAIT_MS)

    assert len(cmdb.questions) == MAX_AWAITED
    assert len(found[0]) == len(records)
    assert client.counts == (0, 1, len(records))


def test_records_of_other_hosts_get_late_labels_from_the_second_on() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    record = telemetry_record(DATA)
    record.labeled = False
    found: list[Any] = []

    for _ in range(2):
        client.broker.enrichers.of_records([record], found.append)
        client.broker.clock.advance(WAIT_MS)
        cmdb.questions[0].set(RED)

    assert [b"red" in labels.encoded for (labels,) in found] == [False, True]
    assert len(cmdb.questions) == 1


def test_without_a_wait_a_push_goes_at_once() -> None:
    client = Client(Cmdb())
    client.broker.enrichers.wait_ms = 0

    client.push()

    assert not client.waits
    assert client.labels == [MISSING]


def test_labels_that_come_later_are_checked_too() -> None:
    cmdb = Cmdb()
    client = Client(cmdb)
    client.push()
    nonsense: Any = {"team": 7}
    cmdb.questions[0].set(nonsense)

    assert client.labels == [MISSING]
    assert "labels returned int for 'team'" in str(client.broker.enrichers.stats()[0].last_error)


@pytest.mark.parametrize("ttl_ms", [0, -1, 1.5, "10s"])
def test_a_time_that_is_none_stops_the_start(ttl_ms: Any) -> None:
    with pytest.raises(
        ConfigError, match=f"plugins.cmdb: ttl_ms is {ttl_ms!r}, expected a .* \\({__file__}:"
    ):
        Client(Cmdb(ttl_ms))


def test_a_function_that_was_not_called_is_told() -> None:
    async def ask() -> dict[str, str]:
        return {}

    question: Any = ask
    with pytest.raises(TypeError, match=r"Later got the function ask; call it, Later\(ask\(\.\.\.\)\)"):
        Later(question)
    with pytest.raises(TypeError, match=r"Later got 7, expected an awaitable or nothing"):
        Later(7)  # type: ignore[arg-type]


def test_a_use_invalidate_that_raises_stops_the_start() -> None:
    class Broken(Cmdb):
        def use_invalidate(self, invalidate: Callable[[str | None], None]) -> None:
            raise OSError("no queue")

    with pytest.raises(ConfigError, match=r"plugins\.cmdb: use_invalidate raised OSError: no queue"):
        Client(Broken())
