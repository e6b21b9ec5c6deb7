"""InitProducerId: new, continuing and fenced producers of the transaction coordinator."""

from __future__ import annotations

import pytest

from odradek.transaction.transaction_metadata import EXHAUSTED_EPOCH, ProducerIdAndEpoch
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.error_code import ErrorCode
from support.error_codes import code_of
from support.transactions import TransactionHost, state_of

P0, P1 = ("t", 0), ("t", 1)


def test_a_new_id_starts_empty_in_epoch_0(host: TransactionHost) -> None:
    producer = host.producer()

    assert producer == ProducerIdAndEpoch(0, 0)
    assert state_of(host) is TransactionState.EMPTY


def test_the_next_incarnation_fences_the_previous_one(host: TransactionHost) -> None:
    before = host.producer()

    after = host.producer()

    assert after == ProducerIdAndEpoch(0, 1)
    assert code_of(lambda: host.coordinator.add_partitions("tx", before, frozenset({P0}))) is (
        ErrorCode.PRODUCER_FENCED
    )


def test_two_ids_are_independent(host: TransactionHost) -> None:
    one = host.ongoing(P0, transactional_id="one")

    two = host.ongoing(P0, transactional_id="two")

    assert one.producer_id != two.producer_id
    assert {known.state for known in host.coordinator} == {TransactionState.ONGOING}


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [
        ("", 1_000, ErrorCode.INVALID_REQUEST),
        ("tx", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("tx", -1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("tx", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("tx", 900_000, ErrorCode.NONE),
    ],
)
def test_init_producer_id_refuses_invalid_arguments(
    host: TransactionHost, transactional_id: str, timeout_ms: int, code: ErrorCode
) -> None:
    found = code_of(lambda: host.coordinator.init_producer_id(transactional_id, timeout_ms))

    assert found is code


def test_an_open_transaction_is_aborted_first(host: TransactionHost) -> None:
    host.ongoing(P0, P1)

    code = code_of(host.producer)

    assert code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert host.partitions.markers == [(P0, 0, 1, False), (P1, 0, 1, False)]
    assert host.producer() == ProducerIdAndEpoch(0, 2)


def test_a_continuing_producer_gets_the_next_epoch(host: TransactionHost) -> None:
    producer = host.producer()

    goes_on = host.coordinator.init_producer_id("tx", 1_000, producer)

    assert goes_on == ProducerIdAndEpoch(0, 1)


def test_a_lost_answer_is_repeated(host: TransactionHost) -> None:
    producer = host.producer()
    first = host.coordinator.init_producer_id("tx", 1_000, producer)

    again = host.coordinator.init_producer_id("tx", 1_000, producer)

    assert again == first == ProducerIdAndEpoch(0, 1)


def test_a_producer_can_continue_after_its_open_transaction_is_aborted(host: TransactionHost) -> None:
    producer = host.ongoing()
    code = code_of(lambda: host.coordinator.init_producer_id("tx", 60_000, producer))

    goes_on = host.coordinator.init_producer_id("tx", 60_000, producer)

    assert code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert goes_on == ProducerIdAndEpoch(0, 1)


@pytest.mark.parametrize(
    "expected",
    [ProducerIdAndEpoch(0, 0), ProducerIdAndEpoch(7, 1), ProducerIdAndEpoch(0, 5)],
    ids=["an old epoch", "another id", "a future epoch"],
)
def test_another_producer_cannot_continue(host: TransactionHost, expected: ProducerIdAndEpoch) -> None:
    host.producer()
    host.producer()

    code = code_of(lambda: host.coordinator.init_producer_id("tx", 1_000, expected))

    assert code is ErrorCode.PRODUCER_FENCED


def test_an_unknown_id_accepts_any_producer(host: TransactionHost) -> None:
    producer = host.coordinator.init_producer_id("tx", 1_000, ProducerIdAndEpoch(99, 4))

    assert producer == ProducerIdAndEpoch(0, 0)


def test_exhausted_epochs_give_a_new_producer_id(host: TransactionHost) -> None:
    host.in_epoch(EXHAUSTED_EPOCH)

    producer = host.producer()

    assert producer == ProducerIdAndEpoch(1, 0)


def test_a_lost_answer_with_a_new_producer_id_is_repeated(host: TransactionHost) -> None:
    exhausted = host.in_epoch(EXHAUSTED_EPOCH)
    first = host.coordinator.init_producer_id("tx", 1_000, exhausted)

    again = host.coordinator.init_producer_id("tx", 1_000, exhausted)

    assert first == again == ProducerIdAndEpoch(1, 0)
