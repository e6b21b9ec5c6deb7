"""A member of a share group, as raw requests to a broker in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.broker.broker import Broker
from odradek.plugin.context import ConnectionContext
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from odradek.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from odradek.wire.messages.share_fetch import FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

Words = tuple[int, int, int] | tuple[int, int, list[int]]
"""First offset, last offset, and one type or all of them."""
Acquisition = tuple[int, int, int]


def share_broker(partitions: int = 1, **settings: Any) -> Broker:
    """A broker with topic ``t``, which group ``g`` reads from the beginning."""
    broker = make_broker(**settings)
    broker.topics.create("t", partitions, {})
    topic = broker.topics.by_name["t"]
    group = broker.groups.share_group("g")
    broker.groups.put(group)
    broker.groups.shares.make(group, [(topic.id, index) for index in range(partitions)])
    start_at(broker, *[0] * partitions)
    return broker


def start_at(broker: Broker, *offsets: int) -> None:
    """Set the start offsets of the partitions; -1 for none."""
    topic_id = broker.topics.by_name["t"].id
    broker.groups.shares.store.put_share_partitions(
        [("g", topic_id, index, offset, 0, b"") for index, offset in enumerate(offsets)]
    )


def connection(connection_id: str) -> ConnectionContext:
    return request_context(connection_id=connection_id).connection


@dataclass
class ShareConsumer:
    """One member of group ``g``, which reads topic ``t``."""

    broker: Broker = field(default_factory=share_broker)
    member_id: str = "m"
    epoch: int = 0
    client: BrokerClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = BrokerClient(self.broker, connection=connection(self.member_id))

    @property
    def clock(self) -> MockClock:
        clock = self.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    @property
    def topic_id(self) -> bytes:
        topic = self.broker.topics.named("t")
        return b"?" * 16 if topic is None else topic.id

    def append(self, records: int = 1, partition: int = 0, **fields: Any) -> None:
        """Append one batch."""
        self.broker.topics.log("t", partition).append(batch_of(*[b"v"] * records, **fields), now_ms=NOW_MS)

    def request(self, *words: Words, partitions: tuple[int, ...] = (0,), **fields: Any) -> ShareFetchRequest:
        epoch = fields.pop("epoch", self.epoch)
        named = [
            FetchPartition(
                partition_index=index, acknowledgement_batches=batches(words) if index == 0 else []
            )
            for index in (partitions if epoch == 0 or words else ())
        ]
        defaults: dict[str, Any] = {
            "group_id": "g",
            "member_id": self.member_id,
            "share_session_epoch": epoch,
            "max_wait_ms": 0,
            "max_records": 500,
            "batch_size": 500,
            "topics": [FetchTopic(topic_id=fields.pop("topic_id", self.topic_id), partitions=named)],
        }
        forgotten = fields.pop("forgotten", ())
        if forgotten:
            defaults["forgotten_topics_data"] = [
                ForgottenTopic(topic_id=self.topic_id, partitions=list(forgotten))
            ]
        return ShareFetchRequest(**(defaults | fields))

    def defer(self, *words: Words, **fields: Any) -> Callable[[], Any]:
        """Send a fetch; the function gives its answer, or None while it waits."""
        request = self.request(*words, **fields)
        pending = self.client.defer(request, fields.pop("version", None))
        self.epoch = request.share_session_epoch + 1
        return pending

    def fetch(self, *words: Words, **fields: Any) -> Any:
        """A fetch whose answer must be there."""
        return self.defer(*words, **fields)()

    def acquired(self, *words: Words, **fields: Any) -> list[Acquisition]:
        """What a fetch gets, without the partitions."""
        return acquisitions(self.fetch(*words, **fields))

    def acknowledge(self, *words: Words, version: int = 2, **fields: Any) -> Any:
        """The answer to an acknowledgement."""
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches(words))
        defaults: dict[str, Any] = {
            "group_id": "g",
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "topics": [AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
        }
        answer = self.client.send(ShareAcknowledgeRequest(**(defaults | fields)), version)
        if not answer.error_code:
            self.epoch += 1
        return answer

    def say(self, *words: Words, **fields: Any) -> int:
        """The error of the partition after an acknowledgement."""
        answer = self.acknowledge(*words, **fields)
        assert not answer.error_code
        return int(answer.responses[0].partitions[0].error_code)


def batches(words: tuple[Words, ...]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(
            first_offset=first,
            last_offset=last,
            acknowledge_types=types if isinstance(types, list) else [types],
        )
        for first, last, types in words
    ]


def acquisitions(answer: Any) -> list[Acquisition]:
    assert not answer.error_code
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def errors(answer: Any) -> list[int]:
    """The errors of the partitions, and of their acknowledgements on ShareFetch."""
    return [
        code
        for topic in answer.responses
        for partition in topic.partitions
        for code in (partition.error_code, getattr(partition, "acknowledge_error_code", 0))
        if code
    ]
