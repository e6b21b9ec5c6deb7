"""Whether the offsets of a client are taken: by the coordinators, and by the limits of this host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.broker.authorization import EVERYTHING, Rights, refusal
from odradek.broker.broker import Broker
from odradek.group.committed_offset import TopicPartition
from odradek.group.group import PartitionCheck
from odradek.group.offset_total import OffsetRoom
from odradek.plugin.authorizer import ResourceType
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
    rights: Rights
    """The topics that the client may read."""
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
                self.refusal = error.kept()
        if self.refusal is not None:
            raise ApiError(self.refusal.code, self.refusal.message)
        return self.check

    def check_right(self, topic: str, topic_id: bytes, *, by_id: bool) -> None:
        """Check that the client may read a topic. An id that no topic has is not a matter of rights.

        Raises:
            ApiError: TOPIC_AUTHORIZATION_FAILED.
        """
        if by_id:
            known = self.broker.topics.by_id.get(topic_id)
            if known is None:
                return
            topic = known.name
        if not self.rights.allows(topic):
            raise refusal(ResourceType.TOPIC)

    def admit(
        self, topic: str, topic_id: bytes, partition: int, metadata: str, *, by_id: bool
    ) -> TopicPartition:
        """Check one offset. Returns the partition for which it is stored.

        Raises:
            ApiError: The client may not read the topic, the partition is unknown, the request is refused, or
                the offset or its metadata exceeds a limit.
        """
        if self.rights is not EVERYTHING:
            self.check_right(topic, topic_id, by_id=by_id)
        known = self.broker.topics.committed(topic, topic_id, partition, by_id=by_id)
        check = self.partition_check()
        if len(metadata) > self.broker.groups.config.offset_metadata_max_bytes:
            raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if check is not None:
            check(*known)
        self.room.take(known, metadata)
        return known
