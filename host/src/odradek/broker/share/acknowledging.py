"""The acknowledgements of one request, checked and stored together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from odradek.broker.authorization import Rights
from odradek.broker.share.shares import Shares
from odradek.broker.topics import Topics
from odradek.share.acknowledgement import REJECT, RENEW, parsed
from odradek.share.deliveries import Delivery, PartitionKey
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_acknowledge import AcknowledgementBatch


class AcknowledgedPartition(Protocol):
    """A partition of a ShareFetch or ShareAcknowledge request."""

    @property
    def partition_index(self) -> int: ...

    @property
    def acknowledgement_batches(self) -> list[AcknowledgementBatch]: ...


class AcknowledgedTopic(Protocol):
    """A topic of such a request."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[AcknowledgedPartition]: ...


@dataclass(slots=True)
class Acknowledging:
    """The acknowledgements of one member, and their results."""

    shares: Shares
    topics: Topics
    rights: Rights
    """The topics that the member may read."""
    group_id: str
    member_id: str
    now_ms: int
    may_renew: bool
    results: dict[PartitionKey, ApiError | None] = field(default_factory=dict)
    """By partition, without those that have nothing to acknowledge."""
    changed: dict[PartitionKey, Delivery] = field(default_factory=dict)

    def all(
        self, topics: Sequence[AcknowledgedTopic]
    ) -> Generator[Step, Any, dict[PartitionKey, ApiError | None]]:
        """Take the acknowledgements of a request, partition by partition, and store them."""
        try:
            for topic in topics:
                for partition in topic.partitions:
                    if partition.acknowledgement_batches:
                        self.take((topic.topic_id, partition.partition_index), partition)
                    yield None
        finally:
            self.settle()
        return self.results

    def take(self, key: PartitionKey, partition: AcknowledgedPartition) -> None:
        """Take the acknowledgements of one partition, and note their error."""
        try:
            self.one(key, partition.acknowledgement_batches)
            self.results.setdefault(key, None)
        except ApiError as error:
            self.results[key] = error.kept()

    def settle(self) -> None:
        """Store what has changed; if that fails, nothing was acknowledged."""
        try:
            self.shares.deliveries.settle(list(self.changed.values()))
        except ApiError as error:
            self.results.update(dict.fromkeys(self.changed, error.kept()))

    def one(self, key: PartitionKey, batches: Sequence[AcknowledgementBatch]) -> None:
        """Take the acknowledgements of one partition, all or none.

        Raises:
            ApiError: They are refused.
        """
        topic = self.topics.by_id.get(key[0])
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not self.rights.allows(topic.name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        words = parsed(batches, RENEW if self.may_renew else REJECT)
        delivery = None
        if topic.partition(key[1]) is not None:
            delivery = self.shares.deliveries.get(self.group_id, key)
        if delivery is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.shares.deliveries.acknowledge(delivery, self.member_id, words, self.now_ms):
            self.changed[key] = delivery
