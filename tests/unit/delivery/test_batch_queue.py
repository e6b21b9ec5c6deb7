"""Batches by bytes, count and age from a bounded queue."""

from __future__ import annotations

from collections.abc import Callable

from odradek.delivery.batch_queue import BatchQueue, Offer
from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin import TelemetryRecord

RecordOf = Callable[[int], TelemetryRecord]


def queue_of(
    queue_max_bytes: int = 1_000,
    queue_max_records: int = 100,
    batch_max_bytes: int = 100,
    batch_max_records: int = 4,
    batch_max_age_ms: int = 50,
) -> BatchQueue:
    settings = ForwarderSettings(
        queue_max_bytes=queue_max_bytes,
        queue_max_records=queue_max_records,
        batch_max_bytes=batch_max_bytes,
        batch_max_records=batch_max_records,
        batch_max_age_ms=batch_max_age_ms,
    )
    return BatchQueue(settings, DeliveryLedger())


def test_an_empty_queue_has_nothing_due() -> None:
    queue = queue_of()

    batch = queue.take(1_000_000, flush=True)

    assert batch == []
    assert queue.due_in_ms(1_000_000) is None


def test_a_lone_record_is_due_when_it_is_old_enough(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_age_ms=50)
    record = record_of(1)
    queue.offer(record, now_ms=1_000)

    early, late = queue.take(1_049), queue.take(1_050)

    assert early == []
    assert late == [record]


def test_the_oldest_record_determines_when_a_batch_is_due(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_age_ms=50)
    queue.offer(record_of(1), now_ms=1_000)
    queue.offer(record_of(1), now_ms=1_040)

    due_ms = [queue.due_in_ms(now_ms) for now_ms in (1_000, 1_040, 1_050, 9_999)]

    assert due_ms == [50, 10, 0, 0]


def test_a_full_count_is_due_at_once_and_in_order(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_records=3)
    records = [record_of(1) for _ in range(4)]
    for record in records:
        queue.offer(record, now_ms=0)

    first, second = queue.take(0), queue.take(0)

    assert first == records[:3]
    assert second == []


def test_a_batch_is_due_by_bytes_and_never_exceeds_them(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_bytes=100)
    records = [record_of(60), record_of(39), record_of(2)]
    for record in records:
        queue.offer(record, now_ms=0)

    first, second = queue.take(0), queue.take(0, flush=True)

    assert first == records[:2]
    assert second == records[2:]


def test_a_record_larger_than_a_batch_is_sent_alone(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_bytes=100)
    records = [record_of(1), record_of(500), record_of(1)]
    for record in records:
        queue.offer(record, now_ms=0)

    batches = [queue.take(0, flush=True) for _ in range(3)]

    assert batches == [[record] for record in records]


def test_the_newest_record_is_dropped_when_the_bytes_are_full(record_of: RecordOf) -> None:
    queue = queue_of(queue_max_bytes=100)
    first = record_of(60)
    queue.offer(first, now_ms=0)

    offers = [queue.offer(record_of(41), now_ms=0), queue.offer(record_of(40), now_ms=0)]

    assert offers == [Offer.DROPPED, Offer.QUEUED_LOOK]
    assert queue.dropped == {"queue.max.bytes": 1}
    assert queue.take(0, flush=True)[0] is first


def test_the_newest_record_is_dropped_when_the_count_is_full(record_of: RecordOf) -> None:
    queue = queue_of(queue_max_records=2)
    queue.offer(record_of(0), now_ms=0)
    queue.offer(record_of(0), now_ms=0)

    offer = queue.offer(record_of(0), now_ms=0)

    assert offer is Offer.DROPPED
    assert queue.dropped == {"queue.max.records": 1}
    assert queue.offered == 3


def test_records_in_flight_count_against_the_bounds_until_settled(record_of: RecordOf) -> None:
    queue = queue_of(queue_max_bytes=100, queue_max_records=2, batch_max_records=2)
    queue.offer(record_of(50), now_ms=0)
    queue.offer(record_of(50), now_ms=0)
    batch = queue.take(0)

    before = queue.offer(record_of(1), now_ms=0)

    assert before is Offer.DROPPED
    queue.ledger.deliver(batch)
    assert queue.held_bytes == 0
    assert queue.offer(record_of(100), now_ms=0) is not Offer.DROPPED


def test_the_first_record_and_a_full_batch_wake_the_consumer(
    record_of: RecordOf,
) -> None:
    queue = queue_of(batch_max_records=4)

    offers = [queue.offer(record_of(1), now_ms=0) for _ in range(6)]

    assert offers == [
        Offer.QUEUED_LOOK,
        Offer.QUEUED,
        Offer.QUEUED,
        Offer.QUEUED_LOOK,
        Offer.QUEUED,
        Offer.QUEUED,
    ]


def test_the_record_that_fills_the_bytes_wakes_the_consumer(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_bytes=100, batch_max_records=40)

    offers = [queue.offer(record_of(size_bytes), now_ms=0) for size_bytes in (10, 10, 90, 10)]

    assert offers == [Offer.QUEUED_LOOK, Offer.QUEUED, Offer.QUEUED_LOOK, Offer.QUEUED]


def test_bytes_are_counted_from_zero_after_a_batch_left(record_of: RecordOf) -> None:
    queue = queue_of(batch_max_bytes=100, batch_max_records=40)
    for size_bytes in (60, 60):
        queue.offer(record_of(size_bytes), now_ms=0)
    queue.take(0)

    due_ms = queue.due_in_ms(0)

    assert due_ms == 50
    assert queue.offer(record_of(39), now_ms=0) is Offer.QUEUED
    assert queue.offer(record_of(1), now_ms=0) is Offer.QUEUED_LOOK
    assert queue.due_in_ms(0) == 0
