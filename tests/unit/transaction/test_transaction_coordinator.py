"""Each state, error and way out of the transaction coordinator, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.transaction.transaction_coordinator import MARKERS_PER_STEP, RETRY_MS
from odradek.transaction.transaction_metadata import EXHAUSTED_EPOCH, ProducerIdAndEpoch
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

World = Any  # of conftest.py, which cannot be imported

P0, P1 = ("t", 0), ("t", 1)
DAY_MS = 86_400_000
EPOCH_BUMPS = pytest.mark.parametrize("version_2", [False, True], ids=["v1", "v2"])


def code_of(action: Callable[[], object]) -> ErrorCode:
    """NONE if it works."""
    try:
        action()
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def state_of(world: World, transactional_id: str = "tx") -> TransactionState:
    state: TransactionState = world.coordinator.transaction(transactional_id).state
    return state


def end(world: World, producer: ProducerIdAndEpoch, committed: bool, version_2: bool) -> ProducerIdAndEpoch:
    ended: ProducerIdAndEpoch = world.coordinator.end(
        "tx", producer, committed=committed, version_2=version_2
    )
    return ended


# InitProducerId


def test_a_new_id_begins_in_epoch_0_and_is_empty(world: World) -> None:
    producer = world.producer()

    assert producer == ProducerIdAndEpoch(0, 0)
    assert state_of(world) is TransactionState.EMPTY


def test_the_next_incarnation_fences_the_one_before(world: World) -> None:
    before = world.producer()

    after = world.producer()

    assert after == ProducerIdAndEpoch(0, 1)
    assert code_of(lambda: world.coordinator.add_partitions("tx", before, frozenset({P0}))) is (
        ErrorCode.PRODUCER_FENCED
    )


def test_two_ids_do_not_know_each_other(world: World) -> None:
    one = world.ongoing(P0, transactional_id="one")

    two = world.ongoing(P0, transactional_id="two")

    assert one.producer_id != two.producer_id
    assert {known.state for known in world.coordinator} == {TransactionState.ONGOING}


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
def test_what_init_producer_id_refuses(
    world: World, transactional_id: str, timeout_ms: int, code: ErrorCode
) -> None:
    found = code_of(lambda: world.coordinator.init_producer_id(transactional_id, timeout_ms))

    assert found is code


def test_an_open_transaction_is_aborted_first(world: World) -> None:
    world.ongoing(P0, P1)

    code = code_of(world.producer)

    assert code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.partitions.markers == [(P0, 0, 1, False), (P1, 0, 1, False)]
    assert world.producer() == ProducerIdAndEpoch(0, 2)


def test_a_producer_that_goes_on_gets_the_next_epoch(world: World) -> None:
    producer = world.producer()

    goes_on = world.coordinator.init_producer_id("tx", 1_000, producer)

    assert goes_on == ProducerIdAndEpoch(0, 1)


def test_a_lost_answer_is_given_again(world: World) -> None:
    producer = world.producer()
    first = world.coordinator.init_producer_id("tx", 1_000, producer)

    again = world.coordinator.init_producer_id("tx", 1_000, producer)

    assert again == first == ProducerIdAndEpoch(0, 1)


def test_a_producer_whose_transaction_was_aborted_for_it_goes_on(world: World) -> None:
    producer = world.ongoing()
    code = code_of(lambda: world.coordinator.init_producer_id("tx", 60_000, producer))

    goes_on = world.coordinator.init_producer_id("tx", 60_000, producer)

    assert code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert goes_on == ProducerIdAndEpoch(0, 1)


@pytest.mark.parametrize(
    "expected",
    [ProducerIdAndEpoch(0, 0), ProducerIdAndEpoch(7, 1), ProducerIdAndEpoch(0, 5)],
    ids=["an old epoch", "another id", "a future epoch"],
)
def test_who_is_not_the_producer_cannot_go_on(world: World, expected: ProducerIdAndEpoch) -> None:
    world.producer()
    world.producer()

    code = code_of(lambda: world.coordinator.init_producer_id("tx", 1_000, expected))

    assert code is ErrorCode.PRODUCER_FENCED


def test_an_id_that_nobody_knows_takes_anyone(world: World) -> None:
    producer = world.coordinator.init_producer_id("tx", 1_000, ProducerIdAndEpoch(99, 4))

    assert producer == ProducerIdAndEpoch(0, 0)


def test_exhausted_epochs_bring_a_new_producer_id(world: World) -> None:
    world.in_epoch(EXHAUSTED_EPOCH)

    producer = world.producer()

    assert producer == ProducerIdAndEpoch(1, 0)


def test_a_lost_answer_with_a_new_producer_id_is_given_again(world: World) -> None:
    exhausted = world.in_epoch(EXHAUSTED_EPOCH)
    first = world.coordinator.init_producer_id("tx", 1_000, exhausted)

    again = world.coordinator.init_producer_id("tx", 1_000, exhausted)

    assert first == again == ProducerIdAndEpoch(1, 0)


# Partitions


def test_the_first_partition_begins_the_transaction(world: World) -> None:
    producer = world.producer()

    world.coordinator.add_partitions("tx", producer, frozenset({P0}))

    known = world.coordinator.transaction("tx")
    assert (known.state, known.start_ms) == (TransactionState.ONGOING, world.clock.now_ms())
    assert known.partitions == {P0}


def test_a_partition_that_is_there_costs_no_write(world: World) -> None:
    producer = world.ongoing(P0, P1)
    world.store.failures = 1

    world.coordinator.add_partitions("tx", producer, frozenset({P1}))

    assert world.store.failures == 1


@pytest.mark.parametrize(
    ("transactional_id", "producer", "code"),
    [
        ("", ProducerIdAndEpoch(0, 0), ErrorCode.INVALID_REQUEST),
        ("unknown", ProducerIdAndEpoch(0, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("tx", ProducerIdAndEpoch(1, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("tx", ProducerIdAndEpoch(0, 1), ErrorCode.PRODUCER_FENCED),
        ("tx", ProducerIdAndEpoch(0, 0), ErrorCode.NONE),
    ],
)
def test_who_may_add_and_verify_partitions(
    world: World, transactional_id: str, producer: ProducerIdAndEpoch, code: ErrorCode
) -> None:
    world.ongoing(P0)

    added = code_of(lambda: world.coordinator.add_partitions(transactional_id, producer, frozenset({P0})))
    verified = code_of(lambda: world.coordinator.verify_partition(transactional_id, producer, P0))

    assert (added, verified) == (code, code)


def test_a_partition_that_was_not_added_is_not_in_the_transaction(world: World) -> None:
    producer = world.ongoing(P0)

    code = code_of(lambda: world.coordinator.verify_partition("tx", producer, P1))

    assert code is ErrorCode.TRANSACTION_ABORTABLE


# EndTxn


@EPOCH_BUMPS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_end_writes_markers_and_settles_offsets(world: World, committed: bool, version_2: bool) -> None:
    producer = world.ongoing(P0, P1)

    goes_on = end(world, producer, committed, version_2)

    epoch = 1 if version_2 else 0
    assert goes_on == ProducerIdAndEpoch(0, epoch)
    assert world.partitions.markers == [(P0, 0, epoch, committed), (P1, 0, epoch, committed)]
    assert world.partitions.offsets == [(0, committed)]
    complete = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert state_of(world) is complete
    assert world.coordinator.transaction("tx").partitions == frozenset()


@EPOCH_BUMPS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_end_may_be_repeated_and_not_turned_around(
    world: World, committed: bool, version_2: bool
) -> None:
    producer = world.ongoing(P0)
    first = end(world, producer, committed, version_2)

    again = end(world, producer, committed, version_2)
    opposite = code_of(lambda: end(world, producer, not committed, version_2))

    assert again == first
    assert opposite is ErrorCode.INVALID_TXN_STATE
    assert len(world.partitions.markers) == 1


@pytest.mark.parametrize(
    ("committed", "version_2", "code"),
    [
        (True, False, ErrorCode.INVALID_TXN_STATE),
        (False, False, ErrorCode.INVALID_TXN_STATE),
        (True, True, ErrorCode.INVALID_TXN_STATE),
        (False, True, ErrorCode.NONE),
    ],
)
def test_the_end_of_what_never_began(world: World, committed: bool, version_2: bool, code: ErrorCode) -> None:
    producer = world.producer()

    found = code_of(lambda: end(world, producer, committed, version_2))

    assert found is code
    assert world.coordinator.transaction("tx").producer_epoch == (0 if code else 1)


@pytest.mark.parametrize("committed", [True, False], ids=["after a commit", "after an abort"])
def test_in_version_2_the_current_epoch_asks_for_the_next_end(world: World, committed: bool) -> None:
    goes_on = end(world, world.ongoing(P0), committed, version_2=True)

    commit = code_of(lambda: end(world, goes_on, True, version_2=True))
    aborted = end(world, goes_on, False, version_2=True)

    assert commit is ErrorCode.INVALID_TXN_STATE
    assert aborted == ProducerIdAndEpoch(0, 2)
    assert state_of(world) is TransactionState.COMPLETE_ABORT


@EPOCH_BUMPS
@pytest.mark.parametrize(
    ("transactional_id", "producer", "code"),
    [
        ("", ProducerIdAndEpoch(0, 1), ErrorCode.INVALID_REQUEST),
        ("unknown", ProducerIdAndEpoch(0, 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("tx", ProducerIdAndEpoch(1, 1), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("tx", ProducerIdAndEpoch(0, 0), ErrorCode.PRODUCER_FENCED),
        ("tx", ProducerIdAndEpoch(0, 2), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_who_may_not_end_a_transaction(
    world: World, transactional_id: str, producer: ProducerIdAndEpoch, code: ErrorCode, version_2: bool
) -> None:
    world.producer()
    world.ongoing(P0)

    found = code_of(
        lambda: world.coordinator.end(transactional_id, producer, committed=True, version_2=version_2)
    )

    assert found is code
    assert world.partitions.markers == []


def test_in_version_2_an_empty_id_does_not_know_the_epoch_before(world: World) -> None:
    before = world.producer()
    world.producer()

    code = code_of(lambda: end(world, before, False, version_2=True))

    assert code is ErrorCode.PRODUCER_FENCED


def test_an_end_that_exhausts_the_epochs_brings_a_new_producer_id(world: World) -> None:
    producer = world.in_epoch(EXHAUSTED_EPOCH)
    world.coordinator.add_partitions("tx", producer, frozenset({P0}))

    goes_on = end(world, producer, True, version_2=True)
    again = end(world, producer, True, version_2=True)

    assert goes_on == again == ProducerIdAndEpoch(1, 0)
    assert world.partitions.markers == [(P0, 0, EXHAUSTED_EPOCH + 1, True)]


# While markers are missing


def test_a_producer_with_its_next_id_waits_for_the_markers_of_the_one_before(world: World) -> None:
    producer = world.in_epoch(EXHAUSTED_EPOCH)
    world.coordinator.add_partitions("tx", producer, frozenset({P0}))
    world.partitions.failures = 1
    goes_on = end(world, producer, True, version_2=True)

    early = code_of(lambda: world.coordinator.add_partitions("tx", goes_on, frozenset({P1})))
    new_epoch = code_of(lambda: world.coordinator.init_producer_id("tx", 60_000, goes_on))

    assert (early, new_epoch) == (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS)
    world.clock.advance(RETRY_MS)
    world.coordinator.add_partitions("tx", goes_on, frozenset({P1}))
    assert state_of(world) is TransactionState.ONGOING


@EPOCH_BUMPS
def test_while_markers_are_missing_everything_has_to_wait(world: World, version_2: bool) -> None:
    producer = world.ongoing(P0)
    world.partitions.failures = 1

    goes_on = end(world, producer, True, version_2)

    codes = [
        code_of(lambda: end(world, producer, True, version_2)),
        code_of(lambda: world.coordinator.add_partitions("tx", goes_on, frozenset({P0}))),
        code_of(lambda: world.coordinator.verify_partition("tx", goes_on, P0)),
        code_of(world.producer),
    ]
    assert codes == [ErrorCode.CONCURRENT_TRANSACTIONS] * 4
    assert code_of(lambda: end(world, producer, False, version_2)) is ErrorCode.INVALID_TXN_STATE
    assert state_of(world) is TransactionState.PREPARE_COMMIT


def test_a_marker_that_could_not_be_written_is_written_later(world: World) -> None:
    producer = world.ongoing(P0, P1)
    world.partitions.failures = 3
    end(world, producer, True, version_2=True)

    world.clock.advance(3 * RETRY_MS)

    assert sorted(marker[0] for marker in world.partitions.markers) == [P0, P1]
    assert state_of(world) is TransactionState.COMPLETE_COMMIT


def test_many_markers_take_several_turns(world: World) -> None:
    producer = world.ongoing(*(("t", index) for index in range(2 * MARKERS_PER_STEP + 1)))

    end(world, producer, True, version_2=True)

    assert len(world.partitions.markers) == MARKERS_PER_STEP
    world.clock.advance(0)
    assert len(set(world.partitions.markers)) == 2 * MARKERS_PER_STEP + 1
    assert state_of(world) is TransactionState.COMPLETE_COMMIT


def test_an_end_that_cannot_be_stored_has_not_happened(world: World) -> None:
    producer = world.ongoing(P0)
    world.store.failures = 1

    code = code_of(lambda: end(world, producer, True, version_2=True))

    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (state_of(world), world.partitions.markers) == (TransactionState.ONGOING, [])


# Restarts


@pytest.mark.parametrize("written", [0, 1, 2])
def test_after_a_crash_what_was_decided_is_completed(world: World, written: int) -> None:
    producer = world.ongoing(P0, P1)
    prepared = world.coordinator.transactions["tx"].prepared(
        committed=True, bump_epoch=True, next_producer_id=-1, now_ms=world.clock.now_ms()
    )
    world.store.rows["tx"] = prepared.to_text()
    world.partitions.markers += [(("t", index), 0, 1, True) for index in range(written)]

    world.restart()

    assert set(world.partitions.markers) == {(P0, 0, 1, True), (P1, 0, 1, True)}
    assert world.partitions.offsets == [(0, True)]
    assert state_of(world) is TransactionState.COMPLETE_COMMIT
    assert end(world, producer, True, version_2=True) == ProducerIdAndEpoch(0, 1)


def test_after_a_crash_an_open_transaction_is_still_open(world: World) -> None:
    producer = world.ongoing(P0)

    world.restart()

    assert state_of(world) is TransactionState.ONGOING
    end(world, producer, True, version_2=False)
    assert world.partitions.markers == [(P0, 0, 0, True)]


# Upkeep


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(world: World) -> None:
    producer = world.ongoing(P0)

    world.clock.advance(60_000 + world.config.abort_timed_out_interval_ms)

    assert world.partitions.markers == [(P0, 0, 1, False)]
    assert state_of(world) is TransactionState.COMPLETE_ABORT
    assert code_of(lambda: end(world, producer, True, version_2=False)) is ErrorCode.PRODUCER_FENCED


def test_a_transaction_within_its_time_is_left_alone(world: World) -> None:
    world.ongoing(P0)

    world.clock.advance(60_000)

    assert state_of(world) is TransactionState.ONGOING


def test_time_outs_of_many_leave_turns_to_others(world: World) -> None:
    names = [f"tx-{number}" for number in range(3 * MARKERS_PER_STEP)]
    for name in names:
        world.ongoing(P0, transactional_id=name)
    world.clock.time_ms += 60_001

    world.coordinator.abort_timed_out()

    assert 0 < len(world.partitions.markers) <= MARKERS_PER_STEP
    world.clock.advance(100)
    assert {state_of(world, name) for name in names} == {TransactionState.COMPLETE_ABORT}


def test_a_time_out_that_cannot_be_stored_comes_later(world: World) -> None:
    world.ongoing(P0)
    world.store.failures = 1

    world.clock.advance(60_000 + 2 * world.config.abort_timed_out_interval_ms)

    assert state_of(world) is TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize("committed", [True, False])
def test_an_id_that_is_idle_for_long_is_forgotten(world: World, committed: bool) -> None:
    end(world, world.ongoing(P0), committed, version_2=True)
    world.producer("empty")

    world.clock.advance(8 * DAY_MS)

    assert list(world.coordinator) == []
    assert world.store.rows == {}
    assert code_of(lambda: state_of(world)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_ids_that_cannot_be_removed_stay_until_they_can(world: World) -> None:
    world.producer()
    world.clock.advance(7 * DAY_MS - 1)
    world.store.failures = 1

    world.clock.advance(world.config.remove_expired_interval_ms)

    assert state_of(world) is TransactionState.EMPTY
    world.clock.advance(world.config.remove_expired_interval_ms)
    assert list(world.coordinator) == []


def test_a_closed_coordinator_leaves_nothing_in_the_timer(world: World) -> None:
    producer = world.ongoing(P0)
    world.partitions.failures = 1
    end(world, producer, True, version_2=True)

    world.coordinator.close()

    assert len(world.clock.timer) == 0
