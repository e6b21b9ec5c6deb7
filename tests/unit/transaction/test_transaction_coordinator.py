"""Every state, error and outcome of the transaction coordinator, on a mock clock."""

from __future__ import annotations

import pytest

from odradek.transaction.transaction_coordinator import MARKERS_PER_STEP, RETRY_MS
from odradek.transaction.transaction_metadata import EXHAUSTED_EPOCH, ProducerIdAndEpoch
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.error_code import ErrorCode
from support.error_codes import code_of
from support.transactions import TransactionHost, end, state_of

P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)
DAY_MS = 86_400_000
EPOCH_BUMPS = pytest.mark.parametrize("version_2", [False, True], ids=["v1", "v2"])


# Partitions


def test_the_first_partition_starts_the_transaction(host: TransactionHost) -> None:
    producer = host.producer()

    host.coordinator.add_partitions("tx", producer, frozenset({P0}))

    known = host.coordinator.transaction("tx")
    assert (known.state, known.start_ms) == (TransactionState.ONGOING, host.clock.now_ms())
    assert known.partitions == {P0}


def test_adding_a_partition_again_writes_nothing(host: TransactionHost) -> None:
    producer = host.ongoing(P0, P1)
    host.store.failures = 1

    host.coordinator.add_partitions("tx", producer, frozenset({P1}))

    assert host.store.failures == 1


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
def test_adding_and_verifying_partitions_checks_the_producer(
    host: TransactionHost, transactional_id: str, producer: ProducerIdAndEpoch, code: ErrorCode
) -> None:
    host.ongoing(P0)

    added = code_of(lambda: host.coordinator.add_partitions(transactional_id, producer, frozenset({P0})))
    verified = code_of(lambda: host.coordinator.verify_partition(transactional_id, producer, P0))

    assert (added, verified) == (code, code)


def test_a_partition_that_was_not_added_is_not_in_the_transaction(host: TransactionHost) -> None:
    producer = host.ongoing(P0)

    code = code_of(lambda: host.coordinator.verify_partition("tx", producer, P1))

    assert code is ErrorCode.TRANSACTION_ABORTABLE


# EndTxn


@EPOCH_BUMPS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_end_writes_markers_and_settles_offsets(
    host: TransactionHost, committed: bool, version_2: bool
) -> None:
    producer = host.ongoing(P0, P1)

    goes_on = end(host, producer, committed, version_2)

    epoch = 1 if version_2 else 0
    assert goes_on == ProducerIdAndEpoch(0, epoch)
    assert host.partitions.markers == [(P0, 0, epoch, committed), (P1, 0, epoch, committed)]
    assert host.partitions.offsets == [(0, committed)]
    complete = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert state_of(host) is complete
    assert host.coordinator.transaction("tx").partitions == frozenset()


@EPOCH_BUMPS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_end_can_be_repeated_and_not_reversed(
    host: TransactionHost, committed: bool, version_2: bool
) -> None:
    producer = host.ongoing(P0)
    first = end(host, producer, committed, version_2)

    again = end(host, producer, committed, version_2)
    opposite = code_of(lambda: end(host, producer, not committed, version_2))

    assert again == first
    assert opposite is ErrorCode.INVALID_TXN_STATE
    assert len(host.partitions.markers) == 1


@pytest.mark.parametrize(
    ("committed", "version_2", "code"),
    [
        (True, False, ErrorCode.INVALID_TXN_STATE),
        (False, False, ErrorCode.INVALID_TXN_STATE),
        (True, True, ErrorCode.INVALID_TXN_STATE),
        (False, True, ErrorCode.NONE),
    ],
)
def test_ending_without_a_transaction_is_refused_or_harmless(
    host: TransactionHost, committed: bool, version_2: bool, code: ErrorCode
) -> None:
    producer = host.producer()

    found = code_of(lambda: end(host, producer, committed, version_2))

    assert found is code
    assert host.coordinator.transaction("tx").producer_epoch == (0 if code else 1)


@pytest.mark.parametrize("committed", [True, False], ids=["after a commit", "after an abort"])
def test_in_version_2_the_current_epoch_asks_for_the_next_end(host: TransactionHost, committed: bool) -> None:
    goes_on = end(host, host.ongoing(P0), committed, version_2=True)

    commit = code_of(lambda: end(host, goes_on, True, version_2=True))
    aborted = end(host, goes_on, False, version_2=True)

    assert commit is ErrorCode.INVALID_TXN_STATE
    assert aborted == ProducerIdAndEpoch(0, 2)
    assert state_of(host) is TransactionState.COMPLETE_ABORT


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
def test_ending_checks_the_producer(
    host: TransactionHost,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    code: ErrorCode,
    version_2: bool,
) -> None:
    host.producer()
    host.ongoing(P0)

    found = code_of(
        lambda: host.coordinator.end(transactional_id, producer, committed=True, version_2=version_2)
    )

    assert found is code
    assert host.partitions.markers == []


def test_in_version_2_an_empty_id_does_not_know_the_epoch_before(host: TransactionHost) -> None:
    before = host.producer()
    host.producer()

    code = code_of(lambda: end(host, before, False, version_2=True))

    assert code is ErrorCode.PRODUCER_FENCED


def test_an_end_that_exhausts_the_epochs_gives_a_new_producer_id(host: TransactionHost) -> None:
    producer = host.in_epoch(EXHAUSTED_EPOCH)
    host.coordinator.add_partitions("tx", producer, frozenset({P0}))

    goes_on = end(host, producer, True, version_2=True)
    again = end(host, producer, True, version_2=True)

    assert goes_on == again == ProducerIdAndEpoch(1, 0)
    assert host.partitions.markers == [(P0, 0, EXHAUSTED_EPOCH + 1, True)]


# While markers are missing


def test_a_producer_with_its_next_id_waits_for_the_markers_of_the_previous_one(host: TransactionHost) -> None:
    producer = host.in_epoch(EXHAUSTED_EPOCH)
    host.coordinator.add_partitions("tx", producer, frozenset({P0}))
    host.partitions.failures = 1
    goes_on = end(host, producer, True, version_2=True)

    early = code_of(lambda: host.coordinator.add_partitions("tx", goes_on, frozenset({P1})))
    new_epoch = code_of(lambda: host.coordinator.init_producer_id("tx", 60_000, goes_on))

    assert (early, new_epoch) == (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS)
    host.clock.advance(RETRY_MS)
    host.coordinator.add_partitions("tx", goes_on, frozenset({P1}))
    assert state_of(host) is TransactionState.ONGOING


@EPOCH_BUMPS
def test_while_markers_are_missing_every_request_must_wait(host: TransactionHost, version_2: bool) -> None:
    producer = host.ongoing(P0)
    host.partitions.failures = 1

    goes_on = end(host, producer, True, version_2)

    codes = [
        code_of(lambda: end(host, producer, True, version_2)),
        code_of(lambda: host.coordinator.add_partitions("tx", goes_on, frozenset({P0}))),
        code_of(lambda: host.coordinator.verify_partition("tx", goes_on, P0)),
        code_of(host.producer),
    ]
    assert codes == [ErrorCode.CONCURRENT_TRANSACTIONS] * 4
    assert code_of(lambda: end(host, producer, False, version_2)) is ErrorCode.INVALID_TXN_STATE
    assert state_of(host) is TransactionState.PREPARE_COMMIT


def test_a_failed_marker_is_written_later(host: TransactionHost) -> None:
    producer = host.ongoing(P0, P1)
    host.partitions.failures = 3
    end(host, producer, True, version_2=True)

    host.clock.advance(3 * RETRY_MS)

    assert sorted(marker[0] for marker in host.partitions.markers) == [P0, P1]
    assert state_of(host) is TransactionState.COMPLETE_COMMIT


def test_a_partition_that_fails_does_not_hold_up_the_others(host: TransactionHost) -> None:
    producer = host.ongoing(P0, P1, P2)
    host.partitions.broken = {P1}
    end(host, producer, True, version_2=True)

    host.clock.advance(3 * RETRY_MS)

    assert sorted(marker[0] for marker in host.partitions.markers) == [P0, P2]
    assert state_of(host) is TransactionState.PREPARE_COMMIT


def test_many_markers_take_several_turns(host: TransactionHost) -> None:
    producer = host.ongoing(*(("t", index) for index in range(2 * MARKERS_PER_STEP + 1)))

    end(host, producer, True, version_2=True)

    assert len(host.partitions.markers) == MARKERS_PER_STEP
    host.clock.advance(0)
    assert len(set(host.partitions.markers)) == 2 * MARKERS_PER_STEP + 1
    assert state_of(host) is TransactionState.COMPLETE_COMMIT


def test_an_end_that_cannot_be_stored_did_not_happen(host: TransactionHost) -> None:
    producer = host.ongoing(P0)
    host.store.failures = 1

    code = code_of(lambda: end(host, producer, True, version_2=True))

    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (state_of(host), host.partitions.markers) == (TransactionState.ONGOING, [])


# Restarts


@pytest.mark.parametrize("written", [0, 1, 2])
def test_after_a_crash_a_decided_end_is_completed(host: TransactionHost, written: int) -> None:
    producer = host.ongoing(P0, P1)
    prepared = host.coordinator.transactions["tx"].prepared(
        committed=True, bump_epoch=True, next_producer_id=-1, now_ms=host.clock.now_ms()
    )
    host.store.rows["tx"] = prepared.to_text()
    host.partitions.markers += [(("t", index), 0, 1, True) for index in range(written)]

    host.restart()

    assert set(host.partitions.markers) == {(P0, 0, 1, True), (P1, 0, 1, True)}
    assert host.partitions.offsets == [(0, True)]
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert end(host, producer, True, version_2=True) == ProducerIdAndEpoch(0, 1)


def test_after_a_crash_an_open_transaction_is_still_open(host: TransactionHost) -> None:
    producer = host.ongoing(P0)

    host.restart()

    assert state_of(host) is TransactionState.ONGOING
    end(host, producer, True, version_2=False)
    assert host.partitions.markers == [(P0, 0, 0, True)]


@pytest.mark.parametrize(
    ("jump_ms", "open_ms"), [(-3_600_000, 60_000), (0, 50_000), (20_000, 30_000), (3_600_000, 0)]
)
def test_an_open_transaction_times_out_after_a_restart(
    host: TransactionHost, jump_ms: int, open_ms: int
) -> None:
    # A clock that was set back while the host was down never makes a transaction longer than its time-out.
    host.ongoing(P0)
    host.clock.advance(10_000)
    host.clock.jump(jump_ms)

    host.restart()

    host.clock.time_ms += open_ms
    host.coordinator.abort_timed_out()
    before = state_of(host)
    host.clock.time_ms += 1
    host.coordinator.abort_timed_out()
    assert (before, state_of(host)) == (TransactionState.ONGOING, TransactionState.COMPLETE_ABORT)


# Upkeep


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(
    host: TransactionHost,
) -> None:
    producer = host.ongoing(P0)

    host.clock.advance(60_000 + host.config.abort_timed_out_interval_ms)

    assert host.partitions.markers == [(P0, 0, 1, False)]
    assert state_of(host) is TransactionState.COMPLETE_ABORT
    assert code_of(lambda: end(host, producer, True, version_2=False)) is ErrorCode.PRODUCER_FENCED


def test_a_transaction_within_its_timeout_is_not_aborted(host: TransactionHost) -> None:
    host.ongoing(P0)

    host.clock.advance(60_000)

    assert state_of(host) is TransactionState.ONGOING


def test_many_timeouts_leave_turns_to_others(host: TransactionHost) -> None:
    names = [f"tx-{number}" for number in range(3 * MARKERS_PER_STEP)]
    for name in names:
        host.ongoing(P0, transactional_id=name)
    host.clock.time_ms += 60_001

    host.coordinator.abort_timed_out()

    assert 0 < len(host.partitions.markers) <= MARKERS_PER_STEP
    host.clock.advance(100)
    assert {state_of(host, name) for name in names} == {TransactionState.COMPLETE_ABORT}


def test_a_timeout_that_cannot_be_stored_is_tried_again(host: TransactionHost) -> None:
    host.ongoing(P0)
    host.store.failures = 1

    host.clock.advance(60_000 + 2 * host.config.abort_timed_out_interval_ms)

    assert state_of(host) is TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize("committed", [True, False])
def test_an_id_that_is_idle_for_long_is_forgotten(host: TransactionHost, committed: bool) -> None:
    end(host, host.ongoing(P0), committed, version_2=True)
    host.producer("empty")

    host.clock.advance(8 * DAY_MS)

    assert list(host.coordinator) == []
    assert host.store.rows == {}
    assert code_of(lambda: state_of(host)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_ids_that_cannot_be_removed_stay_until_they_can(host: TransactionHost) -> None:
    host.producer()
    host.clock.advance(7 * DAY_MS - 1)
    host.store.failures = 1

    host.clock.advance(host.config.remove_expired_interval_ms)

    assert state_of(host) is TransactionState.EMPTY
    host.clock.advance(host.config.remove_expired_interval_ms)
    assert list(host.coordinator) == []


def test_a_closed_coordinator_has_no_timers(host: TransactionHost) -> None:
    producer = host.ongoing(P0)
    host.partitions.failures = 1
    end(host, producer, True, version_2=True)

    host.coordinator.close()

    assert len(host.clock.timer) == 0
