"""One pass over the partitions of a fetch: read records within the limits, or find the error.

Few bytes are read at once. The others stay in their files until they are sent: an answer of 50 MB to a client
that does not read it holds no memory.

After ReplicaManager.readFromLog and KafkaApis.handleFetchRequest (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from odradek.broker.authorization import NOTHING, Rights
from odradek.broker.fetch.fetch_context import TOPIC_ID_VERSION, Partitions
from odradek.broker.fetch.fetch_session import CachedPartition, PartitionKey
from odradek.broker.topics import LEADER_EPOCH, NO_EPOCH, Topics, check_leader_epoch
from odradek.log.extent import Extent
from odradek.log.file_slice import FileSlice
from odradek.log.partition_log import PartitionLog
from odradek.quota.replication_quota_manager import ReplicationQuotaManager
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    PartitionData,
)

READ_COMMITTED = 1
MAX_READS = 500
"""The most logs read for one response, some 20 ms of work; the next response reads the others."""
INLINE_BYTES = 131_072
"""The most bytes that are read at once for one response. A fetch of this size takes no less CPU if the kernel
sends it from the file; a larger one does."""
Row = tuple[PartitionKey, CachedPartition, PartitionData]


@dataclass(frozen=True, slots=True)
class ReadParams:
    """Parameters of a request that apply to all its partitions."""

    version: int
    max_bytes: int
    """Limit of the whole response; zero or less still lets the first batch through."""
    read_committed: bool
    replication: ReplicationQuotaManager | None = None
    """The quota of throttled replicas; None for a consumer."""


@dataclass(slots=True)
class Read:
    """The data that was read, and the logs in which to wait for more."""

    params: ReadParams
    topics: Topics
    rights: Rights
    """The topics that the client may read."""
    rows: list[Row] = field(default_factory=list)
    """Existing partitions in the order of the request, with their records or the error of their log."""
    unknown_ids: list[Row] = field(default_factory=list)
    unknown_partitions: list[Row] = field(default_factory=list)
    """Also those that the client may not read."""
    logs: list[PartitionLog] = field(default_factory=list)
    bytes_read: int = 0
    inline_bytes: int = 0
    """The part of them that is in memory."""
    reads: int = 0
    """Number of logs that had records to read."""
    failed: bool = False
    """Whether a partition has an error, or the client has to truncate: it must learn so at once."""

    def all(self, partitions: Partitions) -> Read:
        """Read every partition."""
        for key, partition in partitions.items():
            self.one(key, partition)
        return self

    def in_steps(self, partitions: Partitions) -> Generator[None, None, None]:
        """Read every partition. Another request of the same session may change it in between."""
        for key, partition in list(partitions.items()):
            self.one(key, partition)
            yield

    def is_enough(self, min_bytes: int) -> bool:
        """Whether the client need not wait for more bytes."""
        return self.failed or not self.logs or self.bytes_read >= min_bytes

    def answers(self) -> list[Row]:
        """All rows in Kafka's order: existing partitions, unknown topic ids, unknown partitions."""
        return [*self.rows, *self.unknown_ids, *self.unknown_partitions]

    def one(self, key: PartitionKey, partition: CachedPartition) -> None:
        """Read one partition."""
        wanted = partition.wanted
        log = self.log(partition)
        if log is None or not self.rights.allows(partition.topic or ""):
            code = self.unread_code(partition)
            row = (key, partition, unread(wanted.partition, code))
            unknown_id = code is ErrorCode.UNKNOWN_TOPIC_ID
            (self.unknown_ids if unknown_id else self.unknown_partitions).append(row)
            return
        try:
            self.check(partition, log)
            if wanted.fetch_offset > log.log_end_offset:
                self.failed = True
                answer = diverged(log, wanted.partition)
            else:
                answer = self.data(log, wanted, self.is_throttled(partition))
                self.logs.append(log)
        except ApiError as error:
            self.failed = True
            answer = refused(wanted.partition, error.code)
        self.rows.append((key, partition, answer))

    def unread_code(self, partition: CachedPartition) -> ErrorCode:
        """The error of a partition that does not exist, or that the client may not read."""
        if self.rights is NOTHING:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if partition.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        allowed = self.rights.allows(partition.topic)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def log(self, partition: CachedPartition) -> PartitionLog | None:
        """The log of a partition; None if the topic, its id or the partition is unknown."""
        if partition.topic is None:
            # in a session, the topic may have been created since
            known = self.topics.by_id.get(partition.topic_id)
            if known is None:
                return None
            partition.topic = known.name
        topic = self.topics.named(partition.topic)
        return None if topic is None else topic.partition(partition.wanted.partition)

    def check(self, partition: CachedPartition, log: PartitionLog) -> None:
        """Check that this log is the one that the client knows, and that it has the offset.

        Raises:
            ApiError: INCONSISTENT_TOPIC_ID if another topic has the name now; KAFKA_STORAGE_ERROR if its log
                directory is offline; UNKNOWN_LEADER_EPOCH; OFFSET_OUT_OF_RANGE, also for a last fetched epoch
                that never existed: the client cannot truncate to its end. A client with records of an epoch
                behind its end can.
        """
        wanted = partition.wanted
        if self.params.version >= TOPIC_ID_VERSION and partition.topic is not None:
            topic = self.topics.named(partition.topic)
            if topic is not None and topic.id != partition.topic_id:
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
        if log.offline:
            raise log.offline_error()
        check_leader_epoch(max(wanted.current_leader_epoch, NO_EPOCH))
        too_far = wanted.fetch_offset > log.log_end_offset and wanted.last_fetched_epoch < LEADER_EPOCH
        if too_far or wanted.fetch_offset < log.log_start_offset or wanted.last_fetched_epoch > LEADER_EPOCH:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)

    def is_throttled(self, partition: CachedPartition) -> bool:
        """Whether a replica is throttled now. The host has no replicas, so none counts as in sync."""
        quota = self.params.replication
        topic, index = partition.topic, partition.wanted.partition
        return quota is not None and topic is not None and quota.skips(topic, index, in_sync=False)

    def replicated_bytes(self, quota: ReplicationQuotaManager) -> int:
        """The bytes read from throttled replicas."""
        return sum(
            len(answer.records or b"")
            for _, partition, answer in self.rows
            if partition.topic is not None and quota.is_throttled(partition.topic, answer.partition_index)
        )

    def data(self, log: PartitionLog, wanted: FetchPartition, throttled: bool) -> PartitionData:
        """Whole batches within the remaining limits; none for a throttled replica."""
        stable_offset = log.last_stable_offset
        found = aborted = None
        if throttled:
            pass
        elif self.params.read_committed:
            found = self.committed(log, wanted, stable_offset)
            aborted = aborted_transactions(log, wanted.fetch_offset, found)
        else:
            found = self.stored(log, wanted)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=b"" if found is None else self.records(found),
        )

    def records(self, found: Extent) -> bytes | FileSlice:
        """The bytes of batches, or the part of the file where they are."""
        self.bytes_read += found.size_bytes
        if self.inline_bytes + found.size_bytes > INLINE_BYTES:
            return found.slice()
        self.inline_bytes += found.size_bytes
        return found.read()

    def stored(self, log: PartitionLog, wanted: FetchPartition) -> Extent | None:
        """Batches as stored; none once `MAX_READS` logs were read."""
        if wanted.fetch_offset == log.high_watermark or self.reads == MAX_READS:
            return None
        self.reads += 1
        max_bytes = max(min(self.params.max_bytes - self.bytes_read, wanted.partition_max_bytes), 0)
        return log.find(wanted.fetch_offset, max_bytes, min_one_message=self.bytes_read == 0)

    def committed(self, log: PartitionLog, wanted: FetchPartition, stable_offset: int) -> Extent | None:
        """Batches before the last stable offset."""
        if wanted.fetch_offset >= stable_offset:
            return None
        found = self.stored(log, wanted)
        return found if found is None or stable_offset == log.high_watermark else found.before(stable_offset)


def unread(index: int, code: ErrorCode) -> PartitionData:
    """The response of a partition whose log is unknown."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1)


def refused(index: int, code: ErrorCode) -> PartitionData:
    """The response of a partition whose log refused the read."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None)


def diverged(log: PartitionLog, index: int) -> PartitionData:
    """The response for a client that has more of the epoch than the log: it truncates to its end."""
    return PartitionData(
        partition_index=index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=LEADER_EPOCH, end_offset=log.log_end_offset),
        aborted_transactions=None,
    )


def aborted_transactions(log: PartitionLog, offset: int, found: Extent | None) -> list[AbortedTransaction]:
    """The aborted transactions that a client must know to filter these records."""
    if found is None or not found.size_bytes or not log.producers.aborted.reaches(offset):
        return []
    rows = log.aborted_transactions(offset, found.end_offset)
    return [AbortedTransaction(producer_id=row.producer_id, first_offset=row.first_offset) for row in rows]
