"""Access to the topics of a running host without a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import record_batches, records

if TYPE_CHECKING:
    from odradek.broker.topic_changes import ChangeableTopics
    from odradek.log.partition_log import PartitionLog
    from odradek.testing.host_thread import HostThread

READ_BYTES = 1 << 20


class StoredRecord(NamedTuple):
    """A record as a consumer would receive it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


class HostTopics:
    """Creates and reads topics directly, bypassing the protocol."""

    def __init__(self, thread: Callable[[], HostThread]) -> None:
        self.thread = thread

    @property
    def topics(self) -> ChangeableTopics:
        return self.thread().host.broker.topics

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
        self.thread().call(lambda: self.topics.create(name, partitions, properties))

    def names(self) -> list[str]:
        """The names of all topics, sorted."""
        return self.thread().call(lambda: sorted(topic.name for topic in self.topics))

    def records(self, name: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of a topic, partition by partition, without transaction markers.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        return self.thread().call(lambda: self.read(name, partition))

    def read(self, name: str, partition: int | None) -> list[StoredRecord]:
        topic = self.topics.named(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        wanted = range(len(topic.partitions)) if partition is None else [partition]
        return [record for index in wanted for record in stored(index, self.topics.log(name, index))]


def stored(partition: int, log: PartitionLog) -> list[StoredRecord]:
    """All records of a partition."""
    found: list[StoredRecord] = []
    offset = log.log_start_offset
    while data := log.read(offset, READ_BYTES):
        for header, batch in record_batches(data):
            offset = header.next_offset
            if not header.is_control:
                found += [as_stored(partition, record) for record in records(batch, header)]
    return [record for record in found if record.offset >= log.log_start_offset]


def as_stored(partition: int, record: Any) -> StoredRecord:
    return StoredRecord(
        partition, record.offset, record.key, record.value, record.timestamp_ms, tuple(record.headers)
    )
