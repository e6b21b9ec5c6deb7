"""A topic of a cluster, as one of the processes reads it that share its partitions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed, check
from odradek.client.fetch import Reader, batches
from odradek.client.group_member import NOT_A_MEMBER, GroupMember, GroupTimes
from odradek.client.leaders import Partition, each_leader
from odradek.client.producer import ALL, produce
from odradek.client.resources import EARLIEST, LATEST
from odradek.client.retries import values
from odradek.delivery.log_cursor import Chunk
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import PartitionData
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

READ_BYTES: Final = 512 << 10
"""Read at once, as stored; at least one batch."""
WAIT_MS: Final = 100
"""How long a leader waits for records. Commits wait as long, so it is short."""
METADATA_S: Final = 10.0
"""A new partition, and a topic that was created again, are noticed within this time, or at the next read."""


class OffsetReset(StrEnum):
    """The start of a group in a partition without a committed offset: Kafka's ``auto.offset.reset``."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTopicSettings:
    """A topic and a group."""

    topic: str
    group_id: str
    dead_letter_topic: str
    times: GroupTimes = field(default_factory=GroupTimes)
    offset_reset: OffsetReset = OffsetReset.EARLIEST


class Membership(Enum):
    """A process and its group."""

    MEMBER = auto()
    REBALANCE = auto()
    """The group waits for this member to join again."""
    LOST = auto()
    """The group has given the partitions to others."""


@dataclass(frozen=True, slots=True)
class Recreated:
    """The topic was deleted and created again."""

    old_ends: Mapping[int, int]
    new_ends: Mapping[int, int]


class SharedTopic:
    """One member's view of the topic: the `FeedLog` of a forwarder.

    Methods block, and are called on one thread, unless they say otherwise.

    Args:
        admin: The client whose connections are used, and closed by `leave`.
        settings: The topic and the group.
        now_s: A monotonic clock.

    Raises:
        ApiError: From every method: the brokers refuse a request, or do not answer: NETWORK_EXCEPTION.
    """

    def __init__(
        self, admin: AdminClient, settings: SharedTopicSettings, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.admin = admin
        self.cluster = admin.cluster
        self.settings = settings
        self.topic_name = settings.topic
        self.now_s = now_s
        self.member = GroupMember(self.cluster, settings.group_id, settings.topic, settings.times)
        self.topic_id: bytes | None = None
        """None until it is known; zeros from brokers before 2.8."""
        self.partitions = 0
        self.first_partitions = 0
        """The number at the start: later ones are read from their beginning."""
        self.joined_partitions = 0
        """The number that the current assignment is for."""
        self.known_ends: dict[int, int] = {}
        self.old_ends: dict[int, int] | None = None
        """The ends of a topic that is gone; None if it is not."""
        self.beat_s = self.asked_s = 0.0
        self.moved: Callable[[Mapping[int, int]], None] = lambda positions: None

    def ends(self) -> dict[int, int]:
        """The offset of the next record by partition, as last known. Call from any thread."""
        return self.known_ends

    def begin(self, _group_id: str, moved: Callable[[Mapping[int, int]], None]) -> dict[int, int]:
        """No position: they come with the partitions. ``moved`` is called, during `read`, with the end of a
        partition that lost the records after it.
        """
        self.moved = moved
        return {}

    def partitions_now(self) -> int:
        """The number of partitions, as last known; 0 before the first answer. Call from any thread."""
        return self.partitions

    # Membership

    def join(self) -> frozenset[int]:
        """Join the group, or take part in its rebalance; return the assigned partitions. After an error no
        partition is assigned.
        """
        with api_errors():
            self.look()
            self.joined_partitions = self.partitions
            found = self.member.join(self.partitions)
            self.beat_s = self.now_s()
            self.known_ends = {index: end for index, end in self.known_ends.items() if index in found}
            return found

    def membership(self) -> Membership:
        """Send a heartbeat if one is due. The member that assigns partitions joins again for new ones."""
        now_s = self.now_s()
        if now_s - self.asked_s >= METADATA_S:
            with api_errors():
                self.look()
        if now_s - self.beat_s >= self.settings.times.heartbeat_interval_ms / 1000:
            try:
                with api_errors():
                    self.member.heartbeat()
            except ApiError as error:
                if error.code in NOT_A_MEMBER:
                    self.member.forget()
                    return Membership.LOST
                if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
                    self.beat_s = now_s
                    return Membership.REBALANCE
                raise
            self.beat_s = now_s
        if self.member.is_leader and self.partitions != self.joined_partitions:
            return Membership.REBALANCE
        return Membership.MEMBER

    def leave(self) -> None:
        """Leave the group, so that others take over at once, and close the connections."""
        try:
            with api_errors():
                self.member.leave()
        finally:
            self.admin.close()

    def commit(self, _group_id: str, positions: Mapping[int, int]) -> None:
        """Commit offsets as a member."""
        with api_errors():
            self.member.commit(positions)

    # The topic

    def look(self) -> MetadataResponse:
        """Ask for the topic: its id, partitions and leaders.

        Raises:
            ClientError: There is no such topic, or no broker answers.
        """
        metadata = self.cluster.metadata([self.topic_name])
        (row,) = metadata.topics
        check(row.error_code, subject=self.topic_name)
        if self.topic_id is None:
            self.first_partitions = len(row.partitions)
        elif row.topic_id != self.topic_id:
            log.warning(
                "topic was deleted and created again, starting over", extra={"topic": self.topic_name}
            )
            self.old_ends = dict(self.known_ends)
            self.first_partitions = 0
        self.topic_id = row.topic_id
        self.partitions = len(row.partitions)
        self.asked_s = self.now_s()
        return metadata

    def recreated(self) -> Recreated | None:
        """Whether the topic was created again since the last call. Its records are read from the start."""
        if self.old_ends is None:
            return None
        with api_errors():
            mine = [index for index in self.old_ends if index < self.partitions]
            new_ends = self.offsets(mine, LATEST)
        old_ends, self.old_ends = self.old_ends, None
        self.known_ends = new_ends
        return Recreated(old_ends, new_ends)

    def positions(self, partitions: Collection[int]) -> dict[int, int]:
        """The committed offsets, or where a group without one begins; that is committed at once."""
        with api_errors():
            committed = self.admin.offset_fetch(
                self.settings.group_id, [(self.topic_name, index) for index in partitions]
            )
            starts, ends = self.offsets(partitions, EARLIEST), self.offsets(partitions, LATEST)
            found = {}
            for index in partitions:
                known = committed.get((self.topic_name, index))
                if known is not None and known.offset > ends[index]:
                    log.warning(
                        "committed offset is after the end of the partition, reading it from its start",
                        extra={"topic": self.topic_name, "partition": index, "offset": known.offset},
                    )
                    known = None
                    found[index] = starts[index]
                elif known is not None:
                    found[index] = known.offset
                else:
                    found[index] = self.first(index, starts, ends)
            self.member.commit(found)
        self.known_ends = {**self.known_ends, **ends}
        return found

    def first(self, index: int, starts: Mapping[int, int], ends: Mapping[int, int]) -> int:
        """The first offset to read in a partition of which the group has read nothing."""
        at_end = self.settings.offset_reset is OffsetReset.LATEST and index < self.first_partitions
        return ends[index] if at_end else starts[index]

    def offsets(self, partitions: Collection[int], place: int) -> dict[int, int]:
        """The first offset of each partition, or the one after the last."""
        wanted = {(self.topic_name, index): place for index in partitions}
        return {index: found.offset for (_, index), found in self.admin.list_offsets(wanted).items()}

    # Records

    def read(self, positions: Mapping[int, int]) -> list[Chunk]:
        """A portion of each partition; empty if none arrive soon. Without records of aborted transactions."""
        if not positions:
            return []
        with api_errors():
            metadata = self.look()
            if self.old_ends is not None:
                return []
            wanted = {(self.topic_name, index): offset for index, offset in positions.items()}
            reader = Reader(self.cluster, wanted, committed_only=True, max_bytes=READ_BYTES)
            responses = reader.responses(WAIT_MS, metadata)
        chunks, refusal = [], None
        for (_, index), found in responses.items():
            if not isinstance(found, RequestFailed):
                chunks += self.chunks(index, positions[index], found)
            elif found.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                chunks += self.gap(index, positions[index])
            else:
                refusal = found
        if refusal is not None and not chunks:
            raise ApiError(refusal.code, str(refusal))
        return chunks

    def chunks(self, index: int, position: int, found: PartitionData) -> list[Chunk]:
        """The batches of one partition, if there are any."""
        self.known_ends = {**self.known_ends, index: found.high_watermark}
        data = bytes(found.records or b"")
        if not data:
            return []
        aborted = frozenset(
            header.base_offset
            for header, batch in batches(data, found.aborted_transactions or ())
            if batch is None and not header.is_control
        )
        return [Chunk(index, position, data, self.id_text(), aborted)]

    def gap(self, index: int, position: int) -> list[Chunk]:
        """An empty chunk at the start of the partition if records before it have expired."""
        with api_errors():
            start, end = self.offsets([index], EARLIEST)[index], self.offsets([index], LATEST)[index]
        self.known_ends = {**self.known_ends, index: end}
        if position <= end:
            return [Chunk(index, max(start, position), b"", self.id_text())]
        log.warning(
            "partition was truncated, continuing at its end",
            extra={"topic": self.topic_name, "partition": index, "expected": position, "end": end},
        )
        self.moved({index: end})
        return []

    def id_text(self) -> str:
        """The id of the topic as Kafka prints it; empty if the brokers do not tell."""
        return uuid_text(self.topic_id) if self.topic_id and any(self.topic_id) else ""

    def bury(self, batch: bytes) -> None:
        """Append dead letters to the first partition of their topic."""
        partition: Partition = (self.settings.dead_letter_topic, 0)
        timeout_ms = self.admin.timeout_ms
        with api_errors():
            values(
                each_leader(
                    self.cluster,
                    [partition],
                    lambda leader, _group: produce(leader, {partition: batch}, ALL, timeout_ms),
                )
            )


@contextmanager
def api_errors() -> Iterator[None]:
    """Turn the client's errors into those of the floors below."""
    try:
        yield
    except RequestFailed as error:
        raise ApiError(error.code, str(error)) from error
    except ClientError as error:
        raise ApiError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
