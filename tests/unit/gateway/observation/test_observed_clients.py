"""Which clients are observed, what is written about them, and how many are remembered."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.gateway.observation.names import OWN
from odradek.gateway.observation.settings import Observe
from odradek.telemetry.goodbyes import Place
from odradek.telemetry.record_parts import record_parts
from odradek.testing.data_points import data_points
from odradek.topic import decode_record, encode_headers, record_key
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import encoded_varint, parse_records
from support.observed import INTERVAL_MS, Pair, Stage, totals, value


def ask(pair: Pair, times: int = 1) -> None:
    for _ in range(times):
        pair.exchange(MetadataRequest(), MetadataResponse(), 7)


def test_a_record_is_marked_and_reads_as_a_push() -> None:
    stage = Stage()
    ask(stage.pair(principal="User:alice"))
    stage.clock.advance(INTERVAL_MS)
    (push,) = stage.records

    body = bytes(3) + b"".join(record_parts(push))  # attributes, timestamp and offset delta
    (written,) = parse_records(encoded_varint(len(body)) + body, 1, 0, 0)
    read = decode_record(written.key, written.value, written.headers)

    assert read.observed
    assert ("observed", b"true") in written.headers
    assert list(written.headers) == encode_headers(push)
    assert written.key == record_key(push.payload.client_instance_id)
    assert read.context.client_id == "orders"
    assert read.context.connection.client_address == "10.0.0.7"
    assert read.context.connection.principal == "User:alice"
    assert read.context.connection.client_software_name == "kafka-python"
    assert read.push_interval_ms == INTERVAL_MS
    assert {point.resource["observed"] for point in data_points(read.payload.data)} == {"true"}


def test_the_same_client_has_the_same_instance_id_again() -> None:
    first, second = Stage(), Stage()
    for stage in (first, second):
        ask(stage.pair())
        stage.clock.advance(INTERVAL_MS)

    ids = {push.payload.client_instance_id for stage in (first, second) for push in stage.records}

    assert len(ids) == 1
    assert len(ids.pop()) == 16


@pytest.mark.parametrize(
    "other",
    [
        {"client_id": "payments"},
        {"principal": "User:bob"},
        {"address": "10.0.0.8"},
        {"software_name": "aiokafka"},
        {"software_version": "3"},
    ],
)
def test_each_fact_tells_clients_apart(other: dict[str, Any]) -> None:
    stage = Stage()
    ask(stage.pair())
    ask(stage.pair(**other))
    ask(stage.pair(port=40_001))

    assert len(stage.observation.clients) == 2


@pytest.mark.parametrize(
    ("observe", "seen"), [(Observe.SILENT, {"silent"}), (Observe.ALL, {"silent", "pushing"})]
)
def test_a_client_that_pushes_is_observed_only_where_asked(observe: Observe, seen: set[str]) -> None:
    stage = Stage(observe)
    pushing = stage.pair("pushing")
    ask(pushing)
    pushing.send(PushTelemetryRequest(), 0, answered=False)
    ask(stage.pair("silent"))

    stage.clock.advance(INTERVAL_MS)

    assert {push.context.client_id for push in stage.records} == seen


def test_a_client_that_begins_to_push_ends_as_an_observed_one() -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair)
    stage.clock.advance(INTERVAL_MS)
    pair.send(PushTelemetryRequest(), 0, answered=False)

    stage.clock.advance(3 * INTERVAL_MS)

    assert [(each.payload.terminating, bool(each.payload.data)) for each in stage.records] == [
        (False, True),
        (True, False),
    ]


def test_a_connection_of_a_client_that_pushes_elsewhere_is_told_if_it_was_torn() -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair)
    pair.send(PushTelemetryRequest(), 0, answered=False)

    pair.observer.closed("client", [], False)

    assert list(stage.telemetry.manager.goodbyes.torn) == [Place("orders", "10.0.0.7")]


def test_a_subscription_chooses_metrics_by_prefix() -> None:
    stage = Stage(metrics=OWN + "request,org.apache.kafka.producer.")
    ask(stage.pair())

    names = {point.metric for point in stage.ended()}

    assert names == {OWN + "requests", OWN + "request.bytes"}


def test_without_a_subscription_nothing_is_written() -> None:
    stage = Stage(metrics="")
    ask(stage.pair())

    assert not stage.ended()
    assert stage.source.accounts.received == 0


def test_a_subscription_is_matched_with_the_client() -> None:
    stage = Stage()
    stage.subscribe("*", match="client_software_name=kafka-python,client_id=orders")
    ask(stage.pair())
    ask(stage.pair("payments"))

    stage.clock.advance(INTERVAL_MS)

    assert {push.context.client_id for push in stage.records} == {"orders"}


def test_what_passed_before_a_subscription_selected_the_client_is_said_to_be_lost() -> None:
    stage = Stage(metrics="")
    stage.pair().exchange(MetadataRequest(), MetadataResponse(), 7)
    stage.pair("other").exchange(MetadataRequest(), MetadataResponse(), 7)
    stage.clock.advance(INTERVAL_MS)

    stage.subscribe("*", match="client_id=orders")
    stage.clock.advance(INTERVAL_MS)
    stage.subscribe("io.odradek.", match="client_id=orders")
    stage.clock.advance(INTERVAL_MS)

    assert stage.observation.late == 1
    assert totals(stage.points(), OWN + "requests") == 0


def test_a_new_subscription_begins_a_window_within_its_interval() -> None:
    stage = Stage(metrics="")
    pair = stage.pair()
    ask(pair, 5)
    stage.clock.advance(2_000)
    stage.subscribe("*", interval_ms=1_000)
    stage.clock.advance(1_000)
    ask(pair, 2)

    stage.clock.advance(1_100)

    assert totals(stage.points(), OWN + "requests") == 2


def test_a_changed_interval_ends_the_window_without_a_loss() -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair, 5)
    stage.subscribe("*", interval_ms=1_000)
    stage.clock.advance(1_500)
    ask(pair, 2)

    stage.clock.advance(2_000)

    assert totals(stage.points(), OWN + "requests") == 7


def test_the_last_record_of_a_client_is_terminating_and_then_it_is_forgotten() -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair)
    stage.clock.advance(INTERVAL_MS)
    pair.close()
    stage.clock.advance(3 * INTERVAL_MS)

    assert [push.payload.terminating for push in stage.records] == [False, True]
    assert not stage.observation.clients
    assert not stage.observation.client_ids


def test_an_idle_client_is_still_reported() -> None:
    stage = Stage()
    ask(stage.pair())
    stage.clock.advance(3 * INTERVAL_MS)

    assert len(stage.records) >= 3
    assert totals(stage.points(), OWN + "requests") == 1
    assert {value(data_points(push.payload.data), OWN + "connections.open") for push in stage.records} == {1}


def test_the_least_recently_used_client_is_forgotten_without_a_loss() -> None:
    stage = Stage(max_clients=2)
    pairs = [stage.pair(name) for name in ("a", "b", "c")]
    for pair in pairs:
        ask(pair)

    assert [key.client_id for key in stage.observation.clients] == ["b", "c"]
    assert [push.context.client_id for push in stage.records] == ["a"]
    assert stage.observation.evicted == 1

    ask(pairs[0], 3)
    stage.clock.advance(INTERVAL_MS)

    assert {key.client_id for key in stage.observation.clients} == {"a", "c"}
    assert totals(stage.points(), OWN + "requests") == 6
    assert totals(stage.points(), OWN + "connections") == 3


def test_too_many_client_ids_of_an_address_are_one_client() -> None:
    stage = Stage(cardinality=3)
    for number in range(10):
        ask(stage.pair(f"worker-{number}"))
    ask(stage.pair("elsewhere", address="10.0.0.9"))

    stage.clock.advance(INTERVAL_MS)

    by_id = {push.context.client_id: totals(data_points(push.payload.data), OWN + "requests")
             for push in stage.records}  # fmt: skip
    assert by_id == {"worker-0": 1, "worker-1": 1, "worker-2": 1, "other": 7, "elsewhere": 1}
    assert stage.observation.folded == 7


def test_a_pair_that_becomes_another_client_moves_with_the_next_window() -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair)
    pair.identity.principal = "User:alice"
    stage.clock.advance(INTERVAL_MS)
    ask(pair)
    stage.clock.advance(INTERVAL_MS)

    assert {key.principal for key in stage.observation.clients} == {"User:alice"}
    assert totals(stage.points(), OWN + "requests") == 2
    assert totals(stage.points(), OWN + "connections") == 1


def test_a_record_that_cannot_be_stored_is_counted() -> None:
    stage = Stage(keep=lambda push: False)
    ask(stage.pair())
    stage.clock.advance(INTERVAL_MS)

    accounts = stage.source.accounts
    assert accounts.balanced
    assert accounts.received == sum(accounts.rejected.values()) == 1


def test_records_balance_and_reach_the_receivers() -> None:
    stage = Stage()
    ask(stage.pair())
    stage.clock.advance(INTERVAL_MS)

    accounts = stage.source.accounts
    assert (accounts.received, accounts.appended) == (1, 1)
    assert len(stage.telemetry.receiver.payloads) == 1


def test_the_end_writes_all_windows() -> None:
    stage = Stage()
    ask(stage.pair("a"))
    ask(stage.pair("b"))

    stage.observation.stop()

    assert {push.context.client_id for push in stage.records} == {"a", "b"}
    assert stage.clock.timer.next_deadline_ms() is None


def test_many_windows_end_in_turns() -> None:
    stage = Stage()
    for number in range(50):
        ask(stage.pair(f"client-{number}", address=f"10.0.1.{number}"))

    stage.clock.advance(INTERVAL_MS)

    assert len(stage.records) == 50


@pytest.mark.parametrize(
    ("by", "in_order", "has_left"),
    [("client", True, True), ("client", False, False), ("broker", False, False)],
)
def test_only_a_client_that_closes_in_order_has_left(by: Any, in_order: bool, has_left: bool) -> None:
    stage = Stage()
    pair = stage.pair()
    ask(pair)
    stage.clock.advance(INTERVAL_MS)
    pair.close(by, in_order=in_order)
    stage.clock.advance(INTERVAL_MS)

    assert stage.records[-1].payload.terminating is has_left


def test_a_torn_connection_does_not_count_once_another_was_opened() -> None:
    stage = Stage()
    ask(first := stage.pair())
    first.close(in_order=False)
    ask(second := stage.pair(port=40_001))
    stage.clock.advance(INTERVAL_MS)
    second.close()
    stage.clock.advance(INTERVAL_MS)

    assert stage.records[-1].payload.terminating
