"""Whether the offsets of a client are taken: by the coordinators, and by the limits of this host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.group.committed_offset import TopicPartition
from odradek.group.group import PartitionCheck
from odradek.group.offset_total import OffsetRoom
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


@dataclass(slots=True)
class CommitVerdict:
    """The verdict of the coordinators about one request, which is asked for once.

    Kafka refuses unknown partitions before it asks a coordinator, and with no others it does not ask at all.
    """

    broker: Broker
    room: OffsetRoom
    """The offsets that the request may add."""
    ask: Callable[[], PartitionCheck | None]
    is_known: bool = False
    refusal: ApiError | None = None
    check: PartitionCheck | None = None

    def partition_check(self) -> PartitionCheck | None:
        """The check of each partition; None if there is none.

        Raises:
            ApiError: The request is refused.
        """
        if not self.is_known:
            self.is_known = True
            try:
                self.check = self.ask()
            except ApiError as error:
                self.refusal = error
        if self.refusal is not None:
            raise ApiError(self.refusal.code, self.refusal.message)
        return self.check

    def admit(
        self, topic: str, topic_id: bytes, partition: int, metadata: str, *, by_id: bool
    ) -> TopicPartition:
        """Check one offset. Returns the partition for which it is stored.

        Raises:
            ApiError: The partition is unknown, the request is refused, or the offset or its metadata exceeds
                a limit.
        """
        known = self.broker.topics.committed(topic, topic_id, partition, by_id=by_id)
        check = self.partition_check()
        if len(metadata) > self.broker.groups.config.offset_metadata_max_bytes:
            raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if check is not None:
            check(*known)
        self.room.take(known, metadata)
        return known
