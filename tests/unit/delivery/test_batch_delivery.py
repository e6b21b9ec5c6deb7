"""One batch until each of its records is settled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.delivery.batch_delivery import BatchDelivery
from odradek.delivery.delivery_ledger import OTHER, DeliveryLedger, ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin import Reject, Retry, TelemetryRecord

RecordOf = Callable[[int], TelemetryRecord]
DeliveryOf = Callable[..., BatchDelivery]


@pytest.fixture
def delivery_of(record_of: RecordOf) -> DeliveryOf:
    def delivery(uniform: float = 0.5, records: int = 3, **settings: int) -> BatchDelivery:
        batch = [record_of(10) for _ in range(records)]
        return BatchDelivery(batch, ForwarderSettings(**settings), DeliveryLedger(), lambda: uniform)

    return delivery


def test_a_delivered_batch_is_settled(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()

    delivery.delivered()

    assert delivery.records == []
    assert delivery.ledger.delivered == 3
    assert (delivery.ledger.settled, delivery.ledger.settled_bytes) == (3, 30)


def test_retries_back_off_exponentially_up_to_a_bound(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(retry_backoff_ms=100, retry_backoff_max_ms=1_000)

    waits_ms = [delivery.retry(Retry("busy")) for _ in range(6)]

    assert waits_ms == [100, 200, 400, 800, 1_000, 1_000]
    assert delivery.ledger.retries == 6
    assert delivery.ledger.last_error == "busy"


@pytest.mark.parametrize(("uniform", "wait_ms"), [(0.0, 80), (0.5, 100), (0.999999, 120)])
def test_jitter_is_at_most_a_fifth_either_way(delivery_of: DeliveryOf, uniform: float, wait_ms: int) -> None:
    delivery = delivery_of(uniform, retry_backoff_ms=100)

    found_ms = delivery.retry(Retry("busy"))

    assert found_ms == wait_ms


def test_the_destination_can_set_the_wait(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(retry_backoff_ms=100)

    waits_ms = [delivery.retry(Retry("busy", after_s)) for after_s in (7.0, 0.25, 86_400.0)]

    assert waits_ms == [7_000, 250, 300_000]


@pytest.mark.parametrize("after_s", [0.0, -1.0, float("nan"), "soon"])
def test_a_wait_of_zero_or_less_uses_the_backoff(delivery_of: DeliveryOf, after_s: float) -> None:
    delivery = delivery_of(retry_backoff_ms=100)

    wait_ms = delivery.retry(Retry("busy", after_s))

    assert wait_ms == 100


def test_an_infinite_wait_is_bounded(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()

    wait_ms = delivery.retry(Retry("busy", float("inf")))

    assert wait_ms == 300_000


def test_the_number_of_retries_is_bounded(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(retry_max_attempts=2)

    waits_ms = [delivery.retry(Retry("busy")) for _ in range(3)]

    assert waits_ms[2] == 0
    assert delivery.records == []
    assert delivery.ledger.dropped == {"retry.max.attempts": 3}


def test_unlimited_retries_do_not_end(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(retry_max_attempts=0)

    waits_ms = [delivery.retry(Retry("busy")) for _ in range(1_000)]

    assert waits_ms[-1] == 30_000
    assert len(delivery.records) == 3


def test_failures_of_one_record_are_bounded(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=1, failure_max_attempts=3, retry_backoff_ms=100)

    waits_ms = [delivery.failed("ValueError: 1") for _ in range(3)]

    assert waits_ms == [100, 200, 0]
    assert delivery.ledger.failures == 3
    assert delivery.ledger.dropped == {"failure.max.attempts": 1}


def test_a_failing_batch_is_halved_until_the_record_is_alone(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=8, failure_max_attempts=3)
    poison = delivery.records[5]
    attempts = 0

    while delivery.records:
        attempts += 1
        if poison in delivery.piece():
            delivery.failed("ValueError: 1")
        else:
            delivery.delivered()

    assert delivery.ledger.delivered == 7
    assert delivery.ledger.dropped == {"failure.max.attempts": 1}
    assert attempts <= 3 + 2 * 3 + 9


def test_a_timeout_is_retried_without_limit(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(failure_max_attempts=2, retry_backoff_ms=100)

    waits_ms = [delivery.timed_out("TimeoutError: 30 s") for _ in range(20)]

    assert waits_ms[:2] == [100, 200]
    assert waits_ms[-1] == 30_000
    assert len(delivery.records) == 3


def test_retries_do_not_count_as_failures(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(failure_max_attempts=1, retry_max_attempts=5)

    delivery.retry(Retry("busy"))

    assert len(delivery.records) == 3
    assert delivery.ledger.failures == 0


def test_a_rejection_of_a_single_record_settles_it(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=1)

    delivery.reject(Reject("HTTP 400"))

    assert delivery.records == []
    assert delivery.ledger.rejected == {"HTTP 400": 1}


@pytest.mark.parametrize("poisoned", [{0}, {999}, {500}, {3, 700}, set(range(10)), set(range(1_000))])
def test_a_rejection_without_records_halves_until_the_poison_record_is_alone(
    delivery_of: DeliveryOf, poisoned: set[int]
) -> None:
    delivery = delivery_of(records=1_000)
    batch = delivery.records
    poison = {id(batch[index]) for index in poisoned}
    taken: list[TelemetryRecord] = []

    while delivery.records:
        piece = delivery.piece()
        if any(id(record) in poison for record in piece):
            delivery.reject(Reject("HTTP 400"))
        else:
            taken += piece
            delivery.delivered()

    assert taken == [record for record in batch if id(record) not in poison]
    assert delivery.ledger.rejected == {"HTTP 400": len(poisoned)}
    assert delivery.ledger.settled == 1_000


def test_a_dead_letter_is_settled_only_after_it_is_written(record_of: RecordOf) -> None:
    ledger = DeliveryLedger()
    batch = [record_of(10) for _ in range(2)]
    delivery = BatchDelivery(batch, ForwarderSettings(), ledger, lambda: 0.5, buries=True)

    delivery.reject(Reject("bad", batch[:1]))

    assert ledger.settled == 0
    assert delivery.records == batch
    assert delivery.piece() == batch[1:]
    delivery.buried()
    assert ledger.rejected == {"bad": 1}
    assert delivery.records == batch[1:]


@pytest.mark.parametrize("setting", ["retry_max_attempts", "failure_max_attempts"])
def test_an_abandoned_record_is_a_dead_letter_too(record_of: RecordOf, setting: str) -> None:
    ledger = DeliveryLedger()
    settings = ForwarderSettings(**{setting: 1})
    delivery = BatchDelivery([record_of(10)], settings, ledger, lambda: 0.5, buries=True)

    if setting == "failure_max_attempts":
        delivery.failed("ValueError: bug")
    else:
        delivery.retry(Retry("busy"))
        delivery.retry(Retry("busy"))

    assert [reason for _, reason in delivery.lost] == [setting.replace("_", ".")]
    assert ledger.dropped == {}


def test_a_rejection_of_named_records_keeps_the_others(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()
    first, second, third = delivery.records

    delivery.reject(Reject("too large", [second]))

    assert delivery.records == [first, third]
    assert delivery.ledger.rejected == {"too large": 1}
    assert delivery.ledger.settled == 1


def test_a_rejection_of_unknown_records_counts_as_one_without_records(
    delivery_of: DeliveryOf, record_of: RecordOf
) -> None:
    delivery = delivery_of(records=3)

    delivery.reject(Reject("liar", [record_of(1)]))

    assert len(delivery.piece()) == 2
    assert len(delivery.records) == 3


def test_a_rejection_of_every_record_settles_the_batch(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()

    delivery.reject(Reject("bad", list(delivery.records)))

    assert delivery.records == []
    assert delivery.ledger.settled == 3


def test_a_retry_still_settles_delivered_records(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()
    first, second, third = delivery.records

    wait_ms = delivery.retry(Retry("busy", 1.0, delivered=[first, third]))

    assert wait_ms == 1_000
    assert delivery.records == [second]
    assert delivery.ledger.delivered == 2


def test_a_rejection_still_settles_delivered_records(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=4)
    first, second, third, fourth = delivery.records

    delivery.reject(Reject("bad label", [second], delivered=[first, third]))

    assert delivery.records == [fourth]
    assert delivery.ledger.delivered == 2
    assert delivery.ledger.rejected == {"bad label": 1}


def test_a_record_is_not_settled_both_as_delivered_and_as_rejected(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=2)
    batch = list(delivery.records)

    delivery.reject(Reject("bad label", batch, delivered=batch))

    assert delivery.records == []
    assert (delivery.ledger.settled, delivery.ledger.delivered) == (2, 2)


def test_an_abandoned_batch_cannot_be_settled_twice(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of()

    delivery.abandon("stopped")
    delivery.delivered()

    assert delivery.ledger.dropped == {"stopped": 3}
    assert delivery.ledger.delivered == 0


def test_reasons_are_bounded_in_number_and_length(record_of: RecordOf) -> None:
    ledger = DeliveryLedger()

    for number in range(50):
        ledger.reject([record_of(1)], f"{number} " + "x" * 1_000)

    assert len(ledger.rejected) == 21
    assert ledger.rejected[OTHER] == 30
    assert max(len(reason) for reason in ledger.rejected) == 200


@pytest.mark.parametrize(("queued", "balanced"), [(1, True), (0, False), (2, False)])
def test_the_accounting_check_notices_one_record_too_many_or_too_few(queued: int, balanced: bool) -> None:
    stats = ForwarderStats(
        offered=10,
        delivered=3,
        dropped={"a": 1, "b": 1},
        rejected={"c": 2},
        retries=9,
        failures=9,
        queued=queued,
        in_flight=2,
        queued_bytes=0,
        last_error=None,
    )

    found = stats.balanced

    assert found is balanced


def test_retries_of_one_half_do_not_count_for_the_other(delivery_of: DeliveryOf) -> None:
    delivery = delivery_of(records=2, failure_max_attempts=2, retry_max_attempts=1)
    for _ in range(3):
        delivery.failed("ValueError: poison")

    given_up = dict(delivery.ledger.dropped)
    delivery.failed("ValueError: poison")
    delivery.retry(Retry("busy"))

    assert given_up == {"failure.max.attempts": 1}
    assert delivery.ledger.dropped == given_up
    assert len(delivery.records) == 1


@pytest.mark.parametrize("kind", [Retry, Reject])
def test_an_error_after_a_complete_delivery_does_not_affect_the_next_piece(
    delivery_of: DeliveryOf, kind: type[Retry | Reject]
) -> None:
    delivery = delivery_of(records=2, retry_max_attempts=1)
    delivery.halved()
    taken = delivery.piece()
    delivery.retries = 1

    if kind is Retry:
        delivery.retry(Retry("busy", delivered=taken))
    else:
        delivery.reject(Reject("bad", delivered=taken))

    assert delivery.ledger.delivered == 1
    assert (delivery.ledger.dropped, delivery.ledger.rejected) == ({}, {})
    assert len(delivery.records) == 1
