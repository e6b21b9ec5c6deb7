"""Access to the topics of a running host without a client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from odradek.broker.handlers.produce import produce
from odradek.client.partitioner import partition_of
from odradek.delivery.spooled_record import NOBODY
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader, build_batch, record_batches, records

if TYPE_CHECKING:
    from odradek.broker.topic_changes import ChangeableTopics
    from odradek.broker.topics import Topic
    from odradek.log.partition_log import PartitionLog
    from odradek.log.transaction_index import AbortedTransaction
    from odradek.testing.host_thread import HostThread

READ_BYTES = 1 << 20
Isolation = Literal["read_uncommitted", "read_committed"]
PRODUCE_KEY, PRODUCE_VERSION = 0, 9
PRODUCE_TIMEOUT_S = 10


class StoredRecord(NamedTuple):
    """A record as a consumer would receive it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


class HostTopics:
    """Creates, reads and writes topics directly, bypassing the protocol."""

    def __init__(self, thread: HostThread) -> None:
        self.thread = thread

    @property
    def topics(self) -> ChangeableTopics:
        return self.thread.host.broker.topics

    def create(self, name: str, partitions: int = 1, **config: object) -> None:
        """Create a topic.

        Args:
            name: Name of the topic.
            partitions: Number of partitions.
            config: Topic configs with ``_`` for ``.``: ``retention_ms=1000``.

        Raises:
            ApiError: The topic exists, or an argument is not valid.
        """
        properties = {key.replace("_", "."): str(value) for key, value in config.items()}
        self.thread.call(lambda: self.topics.create(name, partitions, properties))

    def delete(self, name: str) -> None:
        """Delete a topic with its records.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if it does not exist.
        """
        self.thread.call(lambda: self.topics.delete(self.existing(name)))

    def produce(
        self,
        name: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> list[StoredRecord]:
        """Produce records in one batch, and wake the consumers that wait for them. No fault hits this.

        Args:
            name: Name of the topic; created with ``num.partitions`` if it does not exist.
            values: The values of the records; None deletes the key in a compacted topic.
            key: The key of all of them.
            headers: Their headers.
            partition: Number of the partition; None for that of the key, as Java clients choose it, or for
                partition 0 without a key.
            timestamp_ms: Their time, epoch milliseconds; None for the host's clock.

        Returns:
            The records with their partition, offsets and times.

        Raises:
            ApiError: The topic refuses the records, or the partition does not exist.
        """
        if not values:
            raise ValueError("no value given: expected one for each record")
        key = as_bytes(key)
        pairs = tuple((name, as_bytes(each)) for name, each in (headers or {}).items())
        answered = Future[int]()

        def append() -> tuple[int, int]:
            topic = self.topics.named(name)
            if topic is None:
                topic = self.topics.create(name, self.thread.host.broker.settings.num_partitions, {})
            chosen = partition
            if chosen is None:
                chosen = 0 if key is None else partition_of(key, len(topic.partitions))
            now_ms = self.thread.host.clock.now_ms()
            time_ms = now_ms if timestamp_ms is None else timestamp_ms
            rows = [Record(key, as_bytes(value), time_ms, pairs) for value in values]
            self.append(name, chosen, build_batch(rows), now_ms, answered)
            return chosen, time_ms

        chosen, time_ms = self.thread.call(append)
        first = answered.result(PRODUCE_TIMEOUT_S)
        return [
            StoredRecord(chosen, first + at, key, as_bytes(value), time_ms, pairs)
            for at, value in enumerate(values)
        ]

    def append(self, name: str, partition: int, batch: bytes, now_ms: int, answered: Future[int]) -> None:
        """Append a batch as the broker does for a client; ``answered`` gets its first offset."""
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=0, topic_data=[TopicProduceData(name=name, partition_data=[data])]
        )
        context = replace(NOBODY, api_key=PRODUCE_KEY, api_version=PRODUCE_VERSION, received_ms=now_ms)

        def finish(outcome: Any) -> None:
            if isinstance(outcome, Exception):
                answered.set_exception(outcome)
                return
            row = outcome.responses[0].partition_responses[0]
            if row.error_code:
                problem = f"topic {name}, partition {partition}: {row.error_message or 'refused'}"
                answered.set_exception(ApiError(ErrorCode(row.error_code), problem))
            else:
                answered.set_result(row.base_offset)

        response = produce(request, context, self.thread.host.broker)
        if isinstance(response, Deferred):
            response.when_done(finish)
        else:
            finish(response)

    def existing(self, name: str) -> Topic:
        topic = self.topics.named(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return topic

    def names(self) -> list[str]:
        """The names of all topics, sorted."""
        return self.thread.call(lambda: sorted(topic.name for topic in self.topics))

    def records(
        self, name: str, partition: int | None = None, *, isolation: Isolation = "read_uncommitted"
    ) -> list[StoredRecord]:
        """The records of a topic, partition by partition, without transaction markers.

        Args:
            name: Name of the topic.
            partition: Number of the partition; None for all.
            isolation: As a consumer's ``isolation.level``: ``read_committed`` leaves out the records of
                transactions that are open or were aborted, and what comes after an open one.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
            ValueError: There is no such isolation.
        """
        if isolation not in get_args(Isolation):
            raise ValueError(
                f"isolation={isolation!r}: expected {' or '.join(map(repr, get_args(Isolation)))}"
            )
        return self.thread.call(lambda: self.read(name, partition, isolation == "read_committed"))

    def read(self, name: str, partition: int | None, committed: bool) -> list[StoredRecord]:
        topic = self.existing(name)
        wanted = range(len(topic.partitions)) if partition is None else [partition]
        logs = ((index, self.topics.log(name, index)) for index in wanted)
        return [record for index, log in logs for record in stored(index, log, committed)]


def as_bytes(value: bytes | str | None) -> bytes | None:
    """Text as UTF-8."""
    return value.encode() if isinstance(value, str) else value


def stored(partition: int, log: PartitionLog, committed: bool) -> list[StoredRecord]:
    """All records of a partition, or only those that are committed."""
    found: list[StoredRecord] = []
    offset = log.log_start_offset
    end = log.last_stable_offset if committed else log.log_end_offset
    aborted = log.aborted_transactions(offset, end) if committed else []
    while data := log.read(offset, READ_BYTES):
        for header, batch in record_batches(data):
            offset = header.next_offset
            if not header.is_control and header.base_offset < end and not is_aborted(header, aborted):
                found += [
                    StoredRecord(
                        partition, row.offset, row.key, row.value, row.timestamp_ms, tuple(row.headers)
                    )
                    for row in records(batch, header)
                ]
    return [record for record in found if record.offset >= log.log_start_offset]


def is_aborted(header: RecordBatchHeader, aborted: Iterable[AbortedTransaction]) -> bool:
    """Whether a batch belongs to one of these transactions."""
    return header.is_transactional and any(
        each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
        for each in aborted
    )
