"""The log is the spool: the telemetry topic, its writer, and its readers in the host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Protocol

from odradek.broker.spool_settings import Durability, SpoolSettings, TopicProduce
from odradek.broker.telemetry_guard import letters_guard, telemetry_guard
from odradek.broker.topic_changes import ChangeableTopics
from odradek.broker.topics import TOPIC_RESOURCE, Topic
from odradek.delivery.log_cursor import Chunk
from odradek.delivery.spool_writer import NoRoomError, SpoolWriter
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.group_offsets import GroupOffsets
from odradek.log.partition_log import PartitionLog
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.record_parts import partition_of, record_parts
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred, Offload
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT64_MAX
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

READ_BYTES: Final = 64 << 10
"""Read from each partition at once, as stored; at least one batch."""
SEGMENT_BYTES: Final = 64 << 20
"""Retention deletes whole segments: Kafka's 1 GiB would be too coarse."""
MIN_SEGMENT_BYTES: Final = 1 << 20
SEGMENTS: Final = 8
"""The least number of segments in ``telemetry.retention.bytes``."""
BATCH_ROOM_BYTES: Final = 1 << 20
"""Room for the rest of a record with the largest payload."""
LEADER_EPOCH: Final = 0


class SpoolReader(Protocol):
    """Reads the telemetry topic as it grows: the feed of a forwarder."""

    def appended(self) -> None:
        """Something was appended."""

    def recreated(self, old_ends: Mapping[int, int], new_ends: Mapping[int, int]) -> None:
        """The topic was deleted and created again."""


class TelemetrySpool:
    """Keeps pushes in the telemetry topic: the `TelemetrySink` of pushes and the `FeedLog` of forwarders.

    Its maker adds `topics_changed` to the listeners of the topics.

    Raises:
        ConfigError: A topic cannot be created.
    """

    def __init__(
        self,
        settings: SpoolSettings,
        payload_max_bytes: int,
        topics: ChangeableTopics,
        offsets: GroupOffsets,
        clock: Clock,
        timer: Timer,
        offload: Offload,
    ) -> None:
        self.settings = settings
        self.payload_max_bytes = payload_max_bytes
        self.topics = topics
        self.offsets = offsets
        self.clock = clock
        self.topic_name = settings.topic_name
        self.readers: list[SpoolReader] = []
        self.writer = SpoolWriter(
            clock=clock,
            timer=timer,
            write=self.write,
            offload=offload,
            linger_ms=settings.linger_ms,
            max_bytes=settings.buffer_max_bytes,
            when_flushed=self.when_flushed if settings.durability is Durability.FSYNC else None,
        )
        least_bytes = payload_max_bytes + BATCH_ROOM_BYTES
        closed = settings.produce is TopicProduce.REFUSED
        topics.protect(
            {
                settings.topic_name: telemetry_guard(least_bytes, closed=closed, internal=settings.internal),
                settings.dead_letter_topic: letters_guard(least_bytes, internal=settings.internal),
            }
        )
        self.topic = self.made(settings.topic_name, settings.partitions)
        self.dead_letters = self.made(settings.dead_letter_topic, 1)
        self.follow()
        self.begun_at = sum(self.ends().values())
        """Records that had been written when the host started."""

    # The topics

    def made(self, name: str, partitions: int) -> Topic:
        """A topic with at least this many partitions, configured from the settings."""
        properties = self.properties()
        try:
            topic = self.topics.named(name)
            if topic is None:
                return self.topics.create(name, partitions, properties)
            stored = dict(self.topics.metadata.resource(TOPIC_RESOURCE, name)) | properties
            self.topics.metadata.put_resource(TOPIC_RESOURCE, name, stored)
            self.topics.reconfigure(topic, self.topics.config_of(stored))
            if len(topic.partitions) < partitions:
                self.topics.grow(topic, partitions)
        except ApiError as error:
            raise ConfigError(
                "telemetry.topic.name", f"{name}: {error.message or error.code.name}"
            ) from error
        return topic

    def properties(self) -> dict[str, str]:
        """The topics' own configuration. Properties that the settings leave open keep their value."""
        settings = self.settings
        segment_bytes = SEGMENT_BYTES
        properties = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "flush.messages": "1" if settings.durability is Durability.FSYNC else str(INT64_MAX),
            "max.message.bytes": str(self.payload_max_bytes + BATCH_ROOM_BYTES),
            "message.timestamp.type": "CreateTime",
        }
        if settings.retention_ms is not None:
            properties["retention.ms"] = str(settings.retention_ms)
        if settings.retention_bytes is not None:
            properties["retention.bytes"] = str(settings.retention_bytes)
            if settings.retention_bytes >= 0:
                wanted = settings.retention_bytes // SEGMENTS
                segment_bytes = min(SEGMENT_BYTES, max(MIN_SEGMENT_BYTES, wanted))
        largest = self.payload_max_bytes + BATCH_ROOM_BYTES
        return properties | {"segment.bytes": str(max(segment_bytes, largest))}

    def topics_changed(self) -> None:
        """Make a topic again if it was deleted: pushes need it."""
        try:
            topic = self.kept_or_created(self.topic, self.settings.partitions)
            if topic is not self.topic:  # making it has already called this once
                self.continue_in(topic)
            self.dead_letters = self.kept_or_created(self.dead_letters, 1)
            self.follow()
        except ApiError as error:
            log.error("telemetry topic cannot be created again", extra={"problem": str(error)})

    def continue_in(self, topic: Topic) -> None:
        """Continue in a telemetry topic that was created again."""
        before, self.topic = self.topic, topic
        self.begun_at -= sum(ends_of(before).values())
        for reader in self.readers:
            reader.recreated(ends_of(before), self.ends())

    def kept_or_created(self, topic: Topic, partitions: int) -> Topic:
        """The topic, or a new one of its name."""
        if self.topics.named(topic.name) is topic:
            return topic
        log.warning("telemetry topic was deleted, creating it again", extra={"topic": topic.name})
        known = self.topics.named(topic.name)
        return known or self.topics.create(topic.name, partitions, self.properties())

    # Writing

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Store a push. The outcome follows when its batch is written or, with ``fsync``, on disk."""
        return self.take_record(push.record())

    def take_record(self, record: TelemetryRecord) -> bool | Deferred[bool]:
        """Store a record that no client pushed to this host; the outcome follows as for `take`."""
        index = self.index_for(record.payload.client_instance_id)
        return self.writer.append(index, record.context.received_ms, record_parts(record))

    def index_for(self, instance_id: bytes) -> int:
        """The partition for the records of a client instance."""
        partitions = self.topic.partitions
        index = partition_of(instance_id, len(partitions))
        if partitions[index].offline:
            online = [other for other, each in enumerate(partitions) if not each.offline] or [index]
            index = online[partition_of(instance_id, len(online))]
        return index

    def write(self, index: int, batch: bytes) -> None:
        """Append a batch to a partition.

        Raises:
            ApiError: It cannot be written, or the topic is as large as it may be.
        """
        most = self.settings.log_max_bytes
        if most >= 0 and sum(each.size_bytes for each in self.topic.partitions) + len(batch) > most:
            raise NoRoomError("telemetry.log.max.bytes")
        self.partition(index).append(batch, self.clock.now_ms(), trusted_records=True)

    def follow(self) -> None:
        """Tell the readers what is appended to the topic, also by clients: a relay writes records too."""
        for each in self.topic.partitions:
            each.listeners.add(self.grew)

    def grew(self, appended_bytes: int) -> None:
        """Tell the readers that a partition has grown, unless it was deleted (0 bytes)."""
        if appended_bytes:
            for reader in self.readers:
                reader.appended()

    def partition(self, index: int) -> PartitionLog:
        """A partition of the topic.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.topic.partition(index)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def when_flushed(self, index: int, callback: Callable[[ApiError | None], None]) -> None:
        """Call back once everything in a partition is on the disk, or with the error that prevented it."""
        self.partition(index).when_flushed(callback)

    def bury(self, batch: bytes) -> None:
        """Append dead letters to the first partition that works."""
        partitions = self.dead_letters.partitions
        online = next((each for each in partitions if not each.offline), partitions[0])
        online.append(batch, self.clock.now_ms(), trusted_records=True)

    @property
    def topic_id(self) -> str:
        """The id of the telemetry topic, as Kafka prints it."""
        return uuid_text(self.topic.id)

    @property
    def written(self) -> int:
        """Records that were written since the start, by the host and by other producers."""
        return sum(self.ends().values()) - self.begun_at

    # Reading

    def ends(self) -> dict[int, int]:
        """The offset of the next record, by partition."""
        return ends_of(self.topic)

    def read(self, positions: Mapping[int, int]) -> list[Chunk]:
        """The batches from the positions on, a portion of each partition."""
        chunks, topic_id = [], self.topic_id
        for index, each in enumerate(self.topic.partitions):
            if each.offline:
                continue  # the others go on
            wanted = min(positions.get(index, 0), each.log_end_offset)
            start = max(wanted, each.log_start_offset)
            if start > wanted or start < each.log_end_offset:
                chunks.append(Chunk(index, start, each.read(start, READ_BYTES), topic_id))
        return chunks

    def since(self, timestamp_ms: int) -> Generator[Step, Any, dict[int, int]]:
        """The offset of the first record with this timestamp or a later one, by partition, in steps. The end
        of a partition without one; offline partitions are left out.
        """
        offsets: dict[int, int] = {}
        for index, each in enumerate(self.topic.partitions):
            if not each.offline:
                found = yield from each.offset_for_time(timestamp_ms)
                offsets[index] = each.log_end_offset if found is None else found.offset
        return offsets

    def begin(self, group_id: str, moved: Callable[[Mapping[int, int]], None]) -> dict[int, int]:
        """The positions from which a forwarder continues. A new one begins at the ends."""
        ours = self.of_topic(self.offsets.of_group(group_id))
        ends = self.ends()
        if ours:
            positions = {index: min(ours.get(index, 0), end) for index, end in ends.items()}
        else:
            positions = ends
            self.commit_first(group_id, positions)
        self.offsets.owned[group_id] = lambda offsets: moved(self.reachable(self.of_topic(offsets)))
        return positions

    def rewind(self, group_id: str) -> None:
        """Let a forwarder continue at the beginning of the log; before `begin`.

        Raises:
            ConfigError: The offsets cannot be stored.
        """
        partitions = enumerate(self.topic.partitions)
        starts = {index: each.log_start_offset for index, each in partitions if each.has_offsets}
        self.commit_first(group_id, starts)

    def commit_first(self, group_id: str, positions: Mapping[int, int]) -> None:
        """Commit before a forwarder starts.

        Raises:
            ConfigError: The offsets cannot be stored.
        """
        try:
            self.commit(group_id, positions)
        except ApiError as error:
            raise ConfigError("data.dir", f"offsets cannot be stored: {error}") from error

    def reachable(self, positions: Mapping[int, int]) -> dict[int, int]:
        """Positions that an operator committed for a forwarder, moved into the log: records to come are not
        skipped.
        """
        ends = self.ends()
        return {
            index: min(max(offset, 0), ends[index]) for index, offset in positions.items() if index in ends
        }

    def of_topic(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[int, int]:
        """Offsets of the telemetry topic, by partition."""
        return {index: at.offset for (topic_id, index), at in offsets.items() if topic_id == self.topic.id}

    def commit(self, group_id: str, positions: Mapping[int, int]) -> None:
        """Store a forwarder's positions."""
        now_ms = self.clock.now_ms()
        self.offsets.commit(
            group_id,
            {
                (self.topic.id, index): CommittedOffset(
                    offset=offset, leader_epoch=LEADER_EPOCH, commit_timestamp_ms=now_ms
                )
                for index, offset in positions.items()
            },
        )


def ends_of(topic: Topic) -> dict[int, int]:
    """The offset of the next record, by partition. A partition that was offline from the start is left out:
    its offsets are not known.
    """
    return {index: each.log_end_offset for index, each in enumerate(topic.partitions) if each.has_offsets}
