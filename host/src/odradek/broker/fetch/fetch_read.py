"""One pass over the partitions of a fetch: records within the limits, or why there are none.

After ReplicaManager.readFromLog and KafkaApis.handleFetchRequest (Kafka 4.3).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from odradek.broker.fetch.fetch_context import TOPIC_ID_VERSION, Partitions
from odradek.broker.fetch.fetch_session import CachedPartition, PartitionKey
from odradek.broker.topics import LEADER_EPOCH, NO_EPOCH, Topics, check_leader_epoch
from odradek.log.partition_log import PartitionLog
from odradek.quota.replication_quota_manager import ReplicationQuotaManager
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import AbortedTransaction, FetchPartition, FetchRequest, PartitionData

READ_COMMITTED = 1
MAX_READS = 500
"""So many logs give records to one answer, some 20 ms of work; the others have their turn in the next."""
BATCH_START = struct.Struct(">qi")  # base offset, bytes after these two fields
Row = tuple[PartitionKey, CachedPartition, PartitionData]


@dataclass(frozen=True, slots=True)
class ReadParams:
    """What holds for all partitions of a request."""

    version: int
    max_bytes: int
    """Of the whole response; zero or less lets the first batch through."""
    read_committed: bool
    replication: ReplicationQuotaManager | None = None
    """What holds up replicas that are marked; None for a consumer."""

    @classmethod
    def of(
        cls,
        request: FetchRequest,
        version: int,
        limit_bytes: int,
        replication: ReplicationQuotaManager | None = None,
    ) -> ReadParams:
        """A request's, within a limit of the host's own.

        Raises:
            ApiError: UNKNOWN_SERVER_ERROR for an isolation level that does not exist, as in Kafka.
        """
        if request.isolation_level not in (0, READ_COMMITTED):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        committed = request.isolation_level == READ_COMMITTED
        return cls(version, min(request.max_bytes, limit_bytes), committed, replication)


@dataclass(slots=True)
class Read:
    """What was found, and where to wait for more."""

    params: ReadParams
    topics: Topics
    rows: list[Row] = field(default_factory=list)
    """Partitions that are there, in the order of the request, or with an error that their log has."""
    unknown_ids: list[Row] = field(default_factory=list)
    unknown_partitions: list[Row] = field(default_factory=list)
    logs: list[PartitionLog] = field(default_factory=list)
    bytes_read: int = 0
    reads: int = 0
    """Of logs that had something to read."""
    failed: bool = False

    def all(self, partitions: Partitions) -> Read:
        """Read every partition."""
        for key, partition in partitions.items():
            self.one(key, partition)
        return self

    def answers(self) -> list[Row]:
        """In Kafka's order: what was read, ids that nobody knows, partitions that nobody has."""
        return [*self.rows, *self.unknown_ids, *self.unknown_partitions]

    def one(self, key: PartitionKey, partition: CachedPartition) -> None:
        """Read one partition."""
        wanted = partition.wanted
        log = self.log(partition)
        if log is None:
            unnamed = partition.topic is None
            code = ErrorCode.UNKNOWN_TOPIC_ID if unnamed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            row = (key, partition, unread(wanted.partition, code))
            (self.unknown_ids if unnamed else self.unknown_partitions).append(row)
            return
        try:
            self.check(partition, log)
            answer = self.data(log, wanted, self.held_up(partition))
        except ApiError as error:
            self.failed = True
            answer = refused(wanted.partition, error.code)
        else:
            self.logs.append(log)
        self.rows.append((key, partition, answer))

    def log(self, partition: CachedPartition) -> PartitionLog | None:
        """The log that is meant; None if there is none of this name and number, or the id has no name."""
        if partition.topic is None:
            # in a session the topic may have come since
            known = self.topics.by_id.get(partition.topic_id)
            if known is None:
                return None
            partition.topic = known.name
        topic = self.topics.named(partition.topic)
        return None if topic is None else topic.partition(partition.wanted.partition)

    def check(self, partition: CachedPartition, log: PartitionLog) -> None:
        """Whether this log is the one that the client knows.

        Raises:
            ApiError: INCONSISTENT_TOPIC_ID: another topic has the name now. UNKNOWN_LEADER_EPOCH.
                OFFSET_OUT_OF_RANGE, also for a last epoch that never was: it has no end to go back to.
        """
        wanted = partition.wanted
        if self.params.version >= TOPIC_ID_VERSION and partition.topic is not None:
            topic = self.topics.named(partition.topic)
            if topic is not None and topic.id != partition.topic_id:
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
        check_leader_epoch(max(wanted.current_leader_epoch, NO_EPOCH))
        if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if wanted.last_fetched_epoch > LEADER_EPOCH:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)

    def held_up(self, partition: CachedPartition) -> bool:
        """Whether a replica gets nothing now. The host has no replicas of its own, so none is in sync."""
        quota = self.params.replication
        topic, index = partition.topic, partition.wanted.partition
        return quota is not None and topic is not None and quota.skips(topic, index, in_sync=False)

    def replicated_bytes(self, quota: ReplicationQuotaManager) -> int:
        """What was read of partitions that are marked."""
        return sum(
            len(answer.records or b"")
            for _, partition, answer in self.rows
            if partition.topic is not None and quota.is_throttled(partition.topic, answer.partition_index)
        )

    def data(self, log: PartitionLog, wanted: FetchPartition, held_up: bool) -> PartitionData:
        """Whole batches within what is left of the limits; nothing for a replica that is held up."""
        stable_offset = log.last_stable_offset
        aborted = None
        if held_up:
            records = b""
        elif self.params.read_committed:
            records = self.committed(log, wanted, stable_offset)
            aborted = aborted_transactions(log, wanted.fetch_offset, records)
        else:
            records = self.stored(log, wanted)
        self.bytes_read += len(records)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )

    def stored(self, log: PartitionLog, wanted: FetchPartition) -> bytes:
        """Batches as they are; none once enough logs were read for one turn of the loop."""
        if wanted.fetch_offset == log.high_watermark or self.reads == MAX_READS:
            return b""
        self.reads += 1
        max_bytes = max(min(self.params.max_bytes - self.bytes_read, wanted.partition_max_bytes), 0)
        return log.read(wanted.fetch_offset, max_bytes, min_one_message=self.bytes_read == 0)

    def committed(self, log: PartitionLog, wanted: FetchPartition, stable_offset: int) -> bytes:
        """Batches before the last stable offset."""
        if wanted.fetch_offset >= stable_offset:
            return b""
        records = self.stored(log, wanted)
        return records if stable_offset == log.high_watermark else before(records, stable_offset)


def unread(index: int, code: ErrorCode) -> PartitionData:
    """An error that was found before a log was looked at."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1)


def refused(index: int, code: ErrorCode) -> PartitionData:
    """An error that a log has."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None)


def batch_starts(records: bytes) -> Iterable[tuple[int, int]]:
    """Position and first offset of each batch."""
    position = 0
    while position + BATCH_START.size <= len(records):  # of a damaged file the end may be missing
        base_offset, length = BATCH_START.unpack_from(records, position)
        yield position, base_offset
        position += BATCH_START.size + length


def before(records: bytes, end_offset: int) -> bytes:
    """The batches that begin before an offset."""
    for position, base_offset in batch_starts(records):
        if base_offset >= end_offset:
            return records[:position]
    return records


def aborted_transactions(log: PartitionLog, offset: int, records: bytes) -> list[AbortedTransaction]:
    """Those that a client has to know to read these records."""
    if not records or not log.producers.aborted.reaches(offset):
        return []
    # Where the last batch ends does not matter: a transaction that aborts has its own batches.
    last_offset = max(base_offset for _, base_offset in batch_starts(records))
    found = log.aborted_transactions(offset, last_offset + 1)
    return [AbortedTransaction(producer_id=row.producer_id, first_offset=row.first_offset) for row in found]
