"""What the partitions of a share session have to offer, and what a member gets of it.

After SharePartitionManager.processShareFetch and ShareFetchUtils (Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from odradek.broker.authorization import Rights
from odradek.broker.share.shares import Shares
from odradek.broker.topics import Topics
from odradek.group.share_config import OffsetReset
from odradek.log.extent import Extent
from odradek.log.file_slice import FileSlice
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Located
from odradek.share.acquisition import Acquired, Limits, LogBatch, Wanted
from odradek.share.deliveries import Delivery, PartitionKey
from odradek.share.share_sessions import ShareSession
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Step, Steps, result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_fetch import AcquiredRecords, SharePartition

INLINE_BYTES = 131_072
"""The most bytes that are read at once for one response; the rest stays in its files until it is sent."""


@dataclass(slots=True)
class Offer:
    """Records of one partition that could be acquired."""

    delivery: Delivery
    log: PartitionLog
    offset: int
    extent: Extent


@dataclass(frozen=True, slots=True)
class LookParams:
    """The limits of one request."""

    wanted: Wanted
    max_bytes: int
    min_bytes: int
    limits: Limits
    reset: OffsetReset
    read_committed: bool


@dataclass(slots=True)
class ShareLook:
    """One look at the partitions of a session."""

    shares: Shares
    topics: Topics
    clock: Clock
    rights: Rights
    """The topics that the member may read."""
    session: ShareSession
    params: LookParams
    readable: dict[PartitionKey, tuple[Delivery, PartitionLog]] = field(default_factory=dict)
    offers: dict[PartitionKey, Offer] = field(default_factory=dict)
    errors: dict[PartitionKey, ApiError] = field(default_factory=dict)
    inline_bytes: int = 0

    def all(self) -> Steps:
        """Look at every partition. Another request of the session may change it in between."""
        share = self.params.max_bytes // max(len(self.session.partitions), 1)
        for key in list(self.session.partitions):
            if key in self.session.partitions:
                self.one(key, share)
            yield None

    def one(self, key: PartitionKey, max_bytes: int) -> None:
        """Look at one partition, or find its error."""
        try:
            log = self.log(key)
            delivery = self.shares.deliveries.get(self.session.key[0], key)
            if delivery is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group does not know this partition")
            self.begin(delivery, log)
            self.readable[key] = delivery, log
            offer = self.offer(delivery, log, max_bytes)
        except ApiError as error:
            self.errors[key] = error.kept()
            return
        if offer is not None:
            self.offers[key] = offer

    def log(self, key: PartitionKey) -> PartitionLog:
        """The log of a partition.

        Raises:
            ApiError: The member may not read it, it does not exist, or its disk has failed.
        """
        topic_id, index = key
        topic = self.topics.by_id.get(topic_id)
        if topic is None:
            known = self.session.partitions.get(key) is not None
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID)
        self.session.partitions[key] = topic.name
        if not self.rights.allows(topic.name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        log = topic.partition(index)
        if log is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if log.offline:
            raise log.offline_error()
        return log

    def begin(self, delivery: Delivery, log: PartitionLog) -> None:
        """Begin at the first fetch of the group; follow a log start that has moved.

        Raises:
            ApiError: OFFSET_NOT_AVAILABLE: no record is as young as the group wants. The start cannot be
                stored.
        """
        if not delivery.is_started:
            offset = first_offset(self.params.reset, log, self.clock)
            self.shares.deliveries.start(delivery, offset)
        delivery.partition.start_from(log.log_start_offset)

    def offer(self, delivery: Delivery, log: PartitionLog, max_bytes: int) -> Offer | None:
        """The batches of a partition from which records could be acquired; None if there are none."""
        if self.params.wanted.max_records <= 0:
            return None
        offset = delivery.partition.next_fetch_offset(self.params.limits)
        end = log.last_stable_offset if self.params.read_committed else log.high_watermark
        if offset is None or offset >= end:
            return None
        extent = log.find(offset, max_bytes)
        if extent is not None and end < log.high_watermark:
            extent = extent.before(end)
        if extent is None or not extent.size_bytes:
            return None
        return Offer(delivery, log, offset, extent)

    @property
    def is_enough(self) -> bool:
        """Whether the member need not wait: there is no partition to wait for, or there are enough bytes."""
        found = sum(offer.extent.size_bytes for offer in self.offers.values())
        return not self.readable or (bool(self.offers) and found >= self.params.min_bytes)

    def acquire(self) -> Generator[Step, Any, dict[PartitionKey, SharePartition]]:
        """The records that the member gets, and errors, by partition."""
        rows = {
            key: SharePartition(
                partition_index=key[1], error_code=error.code, error_message=error.message or None
            )
            for key, error in self.errors.items()
        }
        left = self.params.wanted.max_records
        for key, offer in self.offers.items():
            if left <= 0:
                break
            row, count = self.acquire_of(key, offer, replace(self.params.wanted, max_records=left))
            if count:
                rows[key] = row
                left -= count
            yield None
        self.session.move_to_end([key for key in rows if key in self.offers])
        return rows

    def acquire_of(self, key: PartitionKey, offer: Offer, wanted: Wanted) -> tuple[SharePartition, int]:
        """What the member gets of one partition, and how many records that is."""
        limits, member_id = self.params.limits, self.session.key[1]
        located = batches_of(offer.extent, offer.offset + wanted.max_records - 1)
        if self.params.read_committed:
            batches = list(without_aborted(offer.log, located))
        else:
            batches = [LogBatch(header.base_offset, header.last_offset) for _, header in located]
        acquired = offer.delivery.partition.acquire(
            member_id, batches, wanted, limits, self.clock.monotonic_ms()
        )
        if not acquired:
            return SharePartition(partition_index=key[1]), 0
        records = sum(last - first + 1 for first, last, _ in acquired)
        self.shares.deliveries.locked(offer.delivery, limits, records)
        self.session.holding.add(offer.delivery)
        row = SharePartition(
            partition_index=key[1],
            records=self.records(cut(offer.extent, located, acquired)),
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
                for first, last, deliveries in acquired
            ],
        )
        return row, records

    def records(self, extent: Extent) -> bytes | FileSlice:
        """The bytes of batches, or the part of the file where they are."""
        self.inline_bytes += extent.size_bytes
        return extent.slice() if self.inline_bytes > INLINE_BYTES else extent.read()


def batches_of(extent: Extent, last_offset: int) -> list[Located]:
    """The batches of an extent, up to the one that contains an offset."""
    end = extent.position + extent.size_bytes
    found: list[Located] = []
    for located in extent.segment.walk(extent.position):
        if located[0] >= end or (found and found[-1][1].last_offset >= last_offset):
            extent.segment.expect(located)
            break
        found.append(located)
    return found


def without_aborted(log: PartitionLog, located: list[Located]) -> Iterable[LogBatch]:
    """The batches, those of aborted transactions marked."""
    if not located:
        return
    rows = log.aborted_transactions(located[0][1].base_offset, located[-1][1].next_offset)
    for _, header in located:
        aborted = (
            header.is_transactional
            and not header.is_control
            and any(
                row.producer_id == header.producer_id
                and row.first_offset <= header.base_offset < row.last_offset
                for row in rows
            )
        )
        yield LogBatch(header.base_offset, header.last_offset, aborted)


def cut(extent: Extent, located: list[Located], acquired: list[Acquired]) -> Extent:
    """The batches that have acquired records, and those between them."""
    first, last = acquired[0].first, acquired[-1].last
    needed = [each for each in located if each[1].last_offset >= first and each[1].base_offset <= last]
    position, (end, header) = needed[0][0], needed[-1]
    return replace(extent, position=position, size_bytes=end + header.size_bytes - position)


def first_offset(reset: OffsetReset, log: PartitionLog, clock: Clock) -> int:
    """Where a group begins to read a partition.

    Raises:
        ApiError: OFFSET_NOT_AVAILABLE: no record is young enough.
    """
    if reset.where == "earliest":
        return log.log_start_offset
    if reset.where == "latest":
        return log.high_watermark
    found = result_of(log.offset_for_time(clock.now_ms() - reset.back_ms))
    if found is None:
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return found.offset
