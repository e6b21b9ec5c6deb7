"""Clients that close without a terminating push: which have left, and which may be dead."""

from __future__ import annotations

import pytest

from conformance.telemetry_broker import DEFAULT_PROPERTIES, TelemetryBroker
from odradek.telemetry.goodbyes import (
    CHECK_MS,
    CONNECTION,
    GROUP,
    KEEP_MS,
    MAX_LOST,
    TELL_MS,
    TOGETHER_MS,
    Place,
)
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

INTERVAL_MS = 30_000
HERE = Place("producer-1", "127.0.0.1")


@pytest.fixture
def broker() -> TelemetryBroker:
    broker = TelemetryBroker()
    broker.update("all", {**DEFAULT_PROPERTIES, "interval.ms": str(INTERVAL_MS)})
    return broker


def pushing(broker: TelemetryBroker, connection_id: str) -> GetTelemetrySubscriptionsResponse:
    """A new client that has pushed."""
    told = broker.get(connection_id=connection_id)
    broker.clock.advance(INTERVAL_MS)
    broker.push(told, connection_id=connection_id)
    return told


def close(broker: TelemetryBroker, *connection_ids: str, in_order: bool = True) -> None:
    for connection_id in connection_ids:
        broker.manager.connection_closed(connection_id, in_order)
    broker.clock.advance(CHECK_MS)


def said(broker: TelemetryBroker) -> list[bytes]:
    return [each.payload.client_instance_id for each in broker.goodbyes]


def test_a_client_that_closes_in_order_has_left(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")

    close(broker, "a")

    (goodbye,) = broker.goodbyes
    assert goodbye.payload.client_instance_id == told.client_instance_id
    assert goodbye.payload.terminating
    assert goodbye.payload.data == b""
    assert goodbye.context.client_id == "producer-1"
    assert goodbye.context.received_ms == broker.clock.now_ms()
    assert goodbye.push_interval_ms == INTERVAL_MS
    assert goodbye.subscription_id == told.subscription_id


def test_a_client_that_said_goodbye_itself_is_not_mentioned(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.push(told, terminating=True, connection_id="a")

    close(broker, "a")

    assert said(broker) == []


@pytest.mark.parametrize("in_order", [True, False])
def test_a_client_that_closes_before_its_goodbye_is_stored_has_left(
    broker: TelemetryBroker, in_order: bool
) -> None:
    told = pushing(broker, "a")
    (seen,) = broker.manager.goodbyes.open.values()
    seen.instance.terminating = True  # it is being stored, and is lost with the connection

    close(broker, "a", in_order=in_order)

    assert said(broker) == [told.client_instance_id]


def test_a_client_is_lost_with_another_connection_than_that_of_its_pushes(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.manager.goodbyes.was_torn(HERE)

    close(broker, "a")

    assert said(broker) == []
    assert told.client_instance_id in broker.manager.goodbyes.lost["User:ANONYMOUS", "producer-1", False]


def test_a_connection_that_was_torn_some_time_before_says_nothing(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.manager.goodbyes.was_torn(HERE)
    broker.clock.advance(TOGETHER_MS)

    close(broker, "a")

    assert said(broker) == [told.client_instance_id]


def test_a_client_that_never_pushed_is_not_mentioned(broker: TelemetryBroker) -> None:
    broker.get(connection_id="a")

    close(broker, "a")

    assert said(broker) == []


def test_a_client_that_goes_on_by_another_connection_has_not_left(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.clock.advance(INTERVAL_MS)
    broker.push(told, connection_id="b")

    close(broker, "a")
    assert said(broker) == []

    close(broker, "b")
    assert said(broker) == [told.client_instance_id]


def test_a_torn_connection_is_no_goodbye(broker: TelemetryBroker) -> None:
    pushing(broker, "a")

    close(broker, "a", in_order=False)

    assert said(broker) == []


def test_a_member_that_has_not_left_its_group_is_lost(broker: TelemetryBroker) -> None:
    pushing(broker, "a")
    broker.members[HERE] = 1

    close(broker, "a")

    assert said(broker) == []


def test_members_of_another_client_id_or_address_do_not_count(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.members.update({Place("producer-1", "10.0.0.9"): 1, Place("producer-2", "127.0.0.1"): 1})

    close(broker, "a")

    assert said(broker) == [told.client_instance_id]


def test_of_clients_with_one_name_one_leaves_and_the_other_stays_a_member(broker: TelemetryBroker) -> None:
    leaving = pushing(broker, "a")
    pushing(broker, "b")
    broker.members[HERE] = 1

    close(broker, "a")
    assert said(broker) == [leaving.client_instance_id]

    close(broker, "b")
    assert len(broker.goodbyes) == 1


@pytest.mark.parametrize("role", ["consumer", "restore-consumer"])
def test_a_stream_thread_keeps_its_place_in_the_group(broker: TelemetryBroker, role: str) -> None:
    client_id = f"app-1-StreamThread-2-{role}"
    context = broker.context("a")
    context.client_id = client_id
    instance = broker.known(pushing(broker, "other"))
    broker.manager.goodbyes.asked(instance, context, pushes=True)
    broker.manager.connection_closed("other")
    broker.members[Place(client_id, "127.0.0.1")] = 1

    close(broker, "a")

    assert len(broker.goodbyes) == 1


WAIT_MS = max(TELL_MS, 2 * INTERVAL_MS)


@pytest.mark.parametrize(
    ("waited_ms", "known"), [(WAIT_MS, True), (WAIT_MS + KEEP_MS - 2_000, True), (WAIT_MS + KEEP_MS, False)]
)
def test_a_lost_client_has_left_when_another_instance_takes_its_place(
    broker: TelemetryBroker, waited_ms: int, known: bool
) -> None:
    lost = pushing(broker, "a")
    close(broker, "a", in_order=False)
    broker.clock.advance(waited_ms)

    broker.get(connection_id="b")

    assert said(broker) == [lost.client_instance_id] * known
    assert broker.manager.goodbyes.lost == {}


def test_a_lost_client_that_comes_back_has_not_left(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    close(broker, "a", in_order=False)

    broker.clock.advance(INTERVAL_MS)
    broker.push(told, connection_id="b")
    pushing(broker, "c")

    assert said(broker) == []
    assert broker.manager.goodbyes.lost == {}


@pytest.mark.parametrize(("in_order", "members", "why"), [(False, 0, CONNECTION), (True, 1, GROUP)])
def test_a_client_that_is_lost_and_not_back_in_time_is_told(
    broker: TelemetryBroker, in_order: bool, members: int, why: str
) -> None:
    told = pushing(broker, "a")
    broker.members[HERE] = members
    close(broker, "a", in_order=in_order)

    broker.clock.advance(WAIT_MS - 2 * CHECK_MS)
    assert broker.lost == []

    broker.clock.advance(2 * CHECK_MS)
    assert broker.lost == [(told.client_instance_id, why)]


def test_a_lost_client_that_is_back_in_time_is_not_told(broker: TelemetryBroker) -> None:
    pushing(broker, "a")
    close(broker, "a", in_order=False)
    broker.clock.advance(INTERVAL_MS)
    broker.get(connection_id="b")

    broker.clock.advance(WAIT_MS + KEEP_MS)

    assert broker.lost == []


def test_a_client_with_a_torn_connection_and_another_one_is_not_lost(broker: TelemetryBroker) -> None:
    told = pushing(broker, "a")
    broker.clock.advance(INTERVAL_MS)
    broker.push(told, connection_id="b")
    close(broker, "a", in_order=False)

    broker.clock.advance(2 * WAIT_MS)

    assert broker.lost == []
    assert broker.manager.goodbyes.lost == {}


def test_each_new_instance_takes_the_place_of_one(broker: TelemetryBroker) -> None:
    lost = [pushing(broker, name) for name in ("a", "b")]
    close(broker, "a", "b", in_order=False)

    broker.get(connection_id="c")
    assert said(broker) == [lost[0].client_instance_id]

    broker.get(connection_id="d")
    broker.get(connection_id="e")
    assert said(broker) == [each.client_instance_id for each in lost]


def test_lost_clients_are_bounded_and_closing_leaves_no_timer(broker: TelemetryBroker) -> None:
    instance, goodbyes = broker.known(pushing(broker, "first")), broker.manager.goodbyes
    for number in range(MAX_LOST + 5):
        context = broker.context(f"connection-{number}")
        context.client_id = f"client-{number}"
        goodbyes.asked(instance, context, pushes=True)
        goodbyes.closed(f"connection-{number}", in_order=False)

    assert goodbyes.lost_count == len(goodbyes.lost) == MAX_LOST

    broker.manager.close()

    assert goodbyes.lost == {}
    assert goodbyes.lost_count == 0
    assert broker.clock.timer.next_deadline_ms() is None


def test_ten_thousand_lives_leave_nothing(broker: TelemetryBroker) -> None:
    instance, goodbyes = broker.known(pushing(broker, "first")), broker.manager.goodbyes
    broker.manager.connection_closed("first", in_order=True)
    for life in range(10_000):
        connection_id = f"connection-{life}"
        context = broker.context(connection_id)
        context.client_id = f"client-{life % 7}"
        goodbyes.asked(instance, context, pushes=life % 5 > 0)
        goodbyes.closed(connection_id, in_order=life % 3 > 0)
        broker.clock.advance(life % 50)
    broker.clock.advance(2 * WAIT_MS)
    broker.clock.advance(KEEP_MS)

    assert (goodbyes.open, goodbyes.closing, goodbyes.lost, goodbyes.lost_count) == ({}, [], {}, 0)
