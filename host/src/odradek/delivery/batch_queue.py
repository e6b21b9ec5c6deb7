"""A bounded queue in memory that hands out batches by bytes, count and age.

Without a lock between its two sides: one thread may `offer` while another takes. Each counter has one writer,
``append`` and ``popleft`` of a deque are atomic, and the offering side may see the queue fuller than it is,
never emptier.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from odradek.delivery.delivery_ledger import DeliveryLedger, count
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.spooled_record import SpooledRecord
from odradek.plugin.protocols import TelemetryRecord


class Offer(Enum):
    """The outcome of an offer, and whether the taking thread should look again."""

    DROPPED = auto()
    QUEUED = auto()
    QUEUED_LOOK = auto()
    """Queued: the first record (its age counts from now), or the record that fills a batch."""


class BatchQueue:
    """Holds records until they are settled in the ledger. Records being delivered count against the bounds
    too.
    """

    def __init__(self, settings: ForwarderSettings, ledger: DeliveryLedger) -> None:
        self.settings = settings
        self.ledger = ledger
        self.waiting: deque[tuple[TelemetryRecord, int]] = deque()
        """Record and the time it was offered, milliseconds."""
        self.offered = 0
        self.dropped: dict[str, int] = {}
        self.accepted = 0
        self.accepted_bytes = 0
        self.taken_bytes = 0

    def offer(self, record: TelemetryRecord, now_ms: int) -> Offer:
        """Queue a record, or drop it if a bound is reached. Never blocks."""
        settings = self.settings
        size_bytes = len(record.payload.data)
        if self.accepted - self.ledger.settled >= settings.queue_max_records:
            return self.refuse("queue.max.records")
        if self.held_bytes + size_bytes > settings.queue_max_bytes:
            return self.refuse("queue.max.bytes")
        return self.put(record, now_ms)

    def put(self, record: TelemetryRecord, now_ms: int) -> Offer:
        """Queue a record regardless of the bounds."""
        settings = self.settings
        size_bytes = len(record.payload.data)
        waiting_bytes = self.waiting_bytes
        self.offered += 1
        self.accepted += 1
        self.accepted_bytes += size_bytes
        self.waiting.append((record, now_ms))
        filled = waiting_bytes < settings.batch_max_bytes <= waiting_bytes + size_bytes
        if filled or len(self.waiting) in (1, settings.batch_max_records):
            return Offer.QUEUED_LOOK
        return Offer.QUEUED

    def withdraw(self) -> int:
        """Remove the waiting records, for a caller that will queue them again. Returns their number. Only for
        the taking thread.
        """
        records = len(self.waiting)
        self.offered -= records
        self.accepted -= records
        self.accepted_bytes = self.taken_bytes
        self.waiting.clear()
        return records

    def refuse(self, reason: str) -> Offer:
        """Count a record that was offered and not queued."""
        self.offered += 1
        count(self.dropped, reason, 1)
        return Offer.DROPPED

    @property
    def waiting_bytes(self) -> int:
        """Payload bytes that wait."""
        return self.accepted_bytes - self.taken_bytes

    @property
    def held_bytes(self) -> int:
        """Payload bytes that wait or are being delivered."""
        return self.accepted_bytes - self.ledger.settled_bytes

    def due_in_ms(self, now_ms: int) -> int | None:
        """Milliseconds until a batch is due: 0 if it is due now, None if nothing waits."""
        settings = self.settings
        if not self.waiting:
            return None
        waiting_bytes = self.waiting_bytes
        if len(self.waiting) >= settings.batch_max_records or waiting_bytes >= settings.batch_max_bytes:
            return 0
        _, oldest_ms = self.waiting[0]
        return max(0, oldest_ms + settings.batch_max_age_ms - now_ms)

    def take(self, now_ms: int, flush: bool = False) -> list[TelemetryRecord]:
        """The next batch in the order of the offers, at most as large as the bounds; empty when none is due.

        Pushes of one record of a topic stay together, so that its offset is committed with all of them.

        Args:
            now_ms: On the same clock as the offers.
            flush: Whatever waits is due.
        """
        if not flush and self.due_in_ms(now_ms) != 0:
            return []
        batch: list[TelemetryRecord] = []
        room_bytes = self.settings.batch_max_bytes
        while self.waiting:
            record = self.waiting[0][0]
            size_bytes = len(record.payload.data)
            is_full = len(batch) >= self.settings.batch_max_records or size_bytes > room_bytes
            if batch and is_full and begins_record(record):
                break
            room_bytes -= size_bytes
            self.taken_bytes += size_bytes
            batch.append(self.waiting.popleft()[0])
        return batch


def begins_record(push: TelemetryRecord) -> bool:
    """Whether a push is the first one of its record in the topic."""
    return not isinstance(push, SpooledRecord) or push.is_first
