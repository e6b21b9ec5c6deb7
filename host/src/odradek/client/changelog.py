"""Totals in a topic of the cluster: the state of each partition follows it from process to process.

The topic is compacted, and has as many partitions as the topic of the records. Its partition N has the totals
of partition N there: a record for each client instance and each shape, and the next offset. These change in
one transaction. Each partition has a transactional id of its own, so a process that takes over a partition
fences the process that had it. The offsets of the consumer group only decide where reading starts.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed, check
from odradek.client.fetch import Reader
from odradek.client.resources import EARLIEST, LATEST, ConfigResource, NewTopic
from odradek.client.transactions import FENCED, TransactionalProducer
from odradek.plugin import Origin
from odradek.temporality import BadState, Engine, StoreFailed
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record

log = logging.getLogger(__name__)

CLIENT: Final = b"c"
SHAPE: Final = b"s"
POSITION: Final = b"p"
"""First byte of a key. The client instance id, the digest of the shape or the id of the topic follows."""
OFFSET: Final = struct.Struct(">q")
BATCH_BYTES: Final = 512 << 10
"""Limit of the size of a batch before compression. A larger record is a batch of its own."""
MAX_MESSAGE_BYTES: Final = 16 << 20
SEGMENT_BYTES: Final = 32 << 20
"""Small, because the newest segment of a partition is not compacted."""
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "max.message.bytes": str(MAX_MESSAGE_BYTES),
    "segment.bytes": str(SEGMENT_BYTES),
}
READ_BYTES: Final = 4 << 20


class Changelog:
    """The `odradek.temporality.TotalsStore` of a process that shares a topic with others.

    Args:
        admin: The client whose connections are used, and closed by `close`.
        name: The topic of the totals.
        source: The topic of the records.
        partitions_now: The number of partitions of that topic, as last known. 0 if it is not known.
    """

    def __init__(
        self, admin: AdminClient, name: str, source: str, partitions_now: Callable[[], int] = lambda: 0
    ) -> None:
        self.admin = admin
        self.name = name
        self.source = source
        self.partitions_now = partitions_now
        self.parts = 0
        self.producers: dict[int, TransactionalProducer] = {}

    def open(self) -> None:
        """Check the topic, and create it if it is missing."""
        with failures():
            self.parts = self.partitions(self.source)
            try:
                found = self.partitions(self.name)
            except RequestFailed as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                self.create()
                found = self.parts
            self.check_policy()
        self.check_partitions(found)

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic."""
        (row,) = self.admin.metadata([topic]).topics
        check(row.error_code, subject=topic)
        return len(row.partitions)

    def create(self) -> None:
        """Create the topic, unless another process has, and wait until its partitions have leaders."""
        try:
            self.admin.create_topics([NewTopic(name=self.name, partitions=self.parts, configs=CONFIGS)])
        except RequestFailed as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        else:
            log.info("topic of totals created", extra={"topic": self.name, "partitions": self.parts})
        pauses = self.admin.retries.pauses()
        while True:
            (row,) = self.admin.metadata([self.name]).topics
            if row.partitions and all(each.leader_id >= 0 for each in row.partitions):
                return
            if not pauses.pause():
                raise RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE, subject=self.name)

    def check_policy(self) -> None:
        """Refuse a topic that loses records."""
        resource = ConfigResource.topic(self.name)
        (entry,) = self.admin.describe_configs([resource], keys=["cleanup.policy"])[resource]
        if entry.value != "compact":
            raise StoreFailed(
                f"cleanup.policy of {self.name} is {entry.value}, so totals would be lost: set it to compact"
            )

    def check_partitions(self, found: int) -> None:
        """Refuse a topic with another number of partitions: clients now push to other partitions.

        Args:
            found: The number of its partitions.
        """
        expected = self.partitions_now() or self.parts
        if found != expected:
            raise StoreFailed(
                f"{self.source} has {expected} partitions and {self.name} has {found}: clients have moved to "
                "other partitions, their totals have not. Stop all processes of the group and delete "
                f"{self.name}; then totals begin again, with new start times"
            )

    def part_of(self, position: Origin | None) -> int:
        """The partition of a record."""
        assert position is not None, "a record without a position"
        return position.partition

    def load(self, engine: Engine, part: int) -> None:
        """Fence the former owner of a partition, and let a new engine continue from its totals."""
        self.producers.pop(part, None)
        self.check_partitions(self.parts)
        with failures():
            producer = TransactionalProducer(self.admin, f"{self.name}-{part}", Codec.ZSTD)
            found = self.records(part)
        engine.restore(of_kind(found, SHAPE), of_kind(found, CLIENT), positions(found, part))
        self.producers[part] = producer
        log.info(
            "totals of a partition taken over",
            extra={"topic": self.name, "partition": part, "clients": len(engine.clients.states)},
        )

    def records(self, part: int) -> dict[bytes, bytes]:
        """The latest value of each key of a partition. No transaction may be open in it."""
        partition = (self.name, part)
        start = self.admin.list_offsets({partition: EARLIEST})[partition].offset
        end = self.admin.list_offsets({partition: LATEST})[partition].offset
        reader = Reader(self.admin.cluster, {partition: start}, committed_only=True, max_bytes=READ_BYTES)
        pauses = self.admin.retries.pauses()
        found: dict[bytes, bytes] = {}
        while (position := reader.positions[partition]) < end:
            for _, _, record in reader.poll():
                if record.value is None:
                    found.pop(record.key or b"", None)
                elif record.key is not None:
                    found[record.key] = record.value
            if reader.positions[partition] > position:
                pauses = self.admin.retries.pauses()
            elif not pauses.pause():
                raise reader.refusal or ClientError(f"{self.name}-{part} cannot be read to its end")
        return found

    def commit(self, engine: Engine, part: int) -> None:
        """Store the changes of a partition and its next offsets in one transaction.

        The offsets are stored even if they are the same: totals must not be delivered by a process that has
        lost the partition.
        """
        self.check_partitions(self.parts)
        now_ms = time.time_ns() // 1_000_000
        rows = list(changed(engine, now_ms))
        partition = (self.name, part)
        producer = self.producers.pop(part)
        with failures():
            producer.commit([{partition: batch} for batch in batches(rows)])
        self.producers[part] = producer

    def close(self) -> None:
        """Close the connections. The partitions stay ours until another process takes them over."""
        self.producers.clear()
        self.admin.close()


def changed(engine: Engine, now_ms: int) -> Iterator[Record]:
    """The changes of an engine since the last call, and all of its next offsets."""
    changes, _ = engine.take_changes()
    for digest in changes.unused_shapes:
        yield Record(SHAPE + digest, None, now_ms)
    for digest, shape in changes.shapes.items():
        yield Record(SHAPE + digest, shape, now_ms)
    for instance_id, state in changes.clients.items():
        yield Record(CLIENT + instance_id, state, now_ms)
    for (topic_id, _), offset in engine.positions.next_offsets.items():
        yield Record(POSITION + topic_id.encode(), OFFSET.pack(offset), now_ms)


def batches(rows: list[Record]) -> Iterator[list[Record]]:
    """Records in batches of limited size."""
    batch: list[Record] = []
    size_bytes = 0
    for row in rows:
        row_bytes = len(row.value or b"")
        if batch and size_bytes + row_bytes > BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
        batch.append(row)
        size_bytes += row_bytes
    if batch:
        yield batch


def of_kind(found: Mapping[bytes, bytes], kind: bytes) -> dict[bytes, bytes]:
    """The records of a kind, without the first byte of their keys."""
    return {key[1:]: value for key, value in found.items() if key[:1] == kind}


def positions(found: Mapping[bytes, bytes], part: int) -> list[Origin]:
    """The next offset of each topic id that the topic's name has had.

    Raises:
        BadState: An offset is damaged.
    """
    try:
        return [
            Origin(topic_id.decode(), part, *OFFSET.unpack(offset))
            for topic_id, offset in of_kind(found, POSITION).items()
        ]
    except (struct.error, UnicodeDecodeError) as error:
        raise BadState(f"a stored offset is damaged: {error}") from error


@contextmanager
def failures() -> Iterator[None]:
    """Turn the client's errors into those of a store."""
    try:
        yield
    except RequestFailed as error:
        if error.code in FENCED:
            raise StoreFailed("another process has taken over the partition") from error
        raise StoreFailed(str(error)) from error
    except ClientError as error:
        raise StoreFailed(str(error)) from error
