"""A producer that appends batches and waits for their acknowledgment, one request per leader at a time.

With acknowledgment by all in-sync replicas it is idempotent, like Kafka's producer: a batch that is sent
again after a temporary refusal or a broken connection is not appended twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, ConnectFailed, RequestFailed, TimedOut, check, failure
from odradek.client.leaders import Partition, by_topic, each_leader, partition_text
from odradek.client.retries import Retries, values
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.wire.record import Record
from odradek.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, build_batch

ALL = -1
"""Acknowledgment by all in-sync replicas."""
NAMES_VERSION = 12
"""The last version that identifies topics by name."""
TRANSACTION_VERSION = 11
"""The last version that does not add partitions to a transaction (KIP-890)."""
CREATION_S = 10.0
"""How long to wait for a topic that the broker may create."""


class Producer:
    """Appends records to partitions.

    Args:
        admin: The client whose connections are used. It closes them.
        acks: `ALL`, or 1 for acknowledgment by the leader alone.
        codec: Compression of the batches.
        lost: Called when no broker answers, once until one does. The batches are sent again until the
            client's timeout.
    """

    transactional_id: str | None = None
    """None for batches outside of transactions."""

    def __init__(
        self,
        admin: AdminClient,
        acks: int = ALL,
        codec: Codec = Codec.NONE,
        lost: Callable[[ClientError], object] = lambda error: None,
    ) -> None:
        self.cluster = admin.cluster
        self.retries = admin.retries
        self.timeout_ms = admin.timeout_ms
        self.acks = acks
        self.codec = codec
        self.lost = lost
        self.is_lost = False
        self.sequences: dict[Partition, int] = defaultdict(int)
        self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        if acks == ALL:
            self.producer_id, self.producer_epoch = self.retries.settle(self.new_identity)

    def new_identity(self) -> tuple[int, int]:
        """A new producer id and its epoch."""
        response: InitProducerIdResponse = self.cluster.any().send(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        )
        check(response.error_code, subject="InitProducerId")
        return response.producer_id, response.producer_epoch

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic, which the broker may create.

        Raises:
            RequestFailed: The topic does not exist, and the broker does not create it.
        """
        pauses = Retries(CREATION_S).pauses()
        while True:
            wanted = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
            )
            response: MetadataResponse = self.cluster.any().send(wanted, least_version=4)
            check(response.error_code, subject="Metadata")
            (row,) = response.topics
            error = failure(row.error_code, subject=topic)
            if error is None:
                return len(row.partitions)
            if not error.code.retriable or not pauses.pause():
                raise error

    def send(self, records: Mapping[Partition, Sequence[Record]]) -> dict[Partition, int]:
        """Append one batch to each partition, and return the offsets of their first records.

        Raises:
            RequestFailed: A batch was refused; NETWORK_EXCEPTION if no broker answered in time. Then the
                batches may have been appended.
        """
        batches = {partition: self.batch(partition, rows) for partition, rows in records.items()}
        offsets = values(self.retries.settle_each(batches, lambda pending: self.attempt(pending, batches)))
        if self.acks == ALL:
            for partition, rows in records.items():
                self.sequences[partition] = self.sequences[partition] + len(rows) & INT32_MAX
        return offsets

    def attempt(
        self, pending: list[Partition], batches: Mapping[Partition, bytes]
    ) -> Mapping[Partition, int | RequestFailed]:
        """Send batches once. A broken connection is a temporary refusal of all of them, as in Kafka."""
        try:
            outcomes = each_leader(
                self.cluster, pending, lambda leader, group: self.ask(leader, group, batches)
            )
        except (ConnectFailed, TimedOut) as error:
            if not self.is_lost:
                self.lost(error)
            self.is_lost = True
            raise RequestFailed(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        self.is_lost = False
        return outcomes

    def batch(self, partition: Partition, records: Iterable[Record]) -> bytes:
        return build_batch(
            records,
            codec=self.codec,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.sequences[partition] if self.acks == ALL else NO_SEQUENCE,
            transactional=self.transactional_id is not None,
        )

    def ask(
        self, leader: Connection, group: list[Partition], batches: Mapping[Partition, bytes]
    ) -> dict[Partition, int | RequestFailed]:
        """Send the batches of some partitions to their leader."""
        mine = {partition: batches[partition] for partition in group}
        return produce(leader, mine, self.acks, self.timeout_ms, self.transactional_id)


def produce(
    leader: Connection,
    batches: Mapping[Partition, bytes],
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> dict[Partition, int | RequestFailed]:
    """Send batches to the leader of their partitions once. Those of a transaction belong to it already."""
    topics = [
        TopicProduceData(
            name=topic,
            partition_data=[
                PartitionProduceData(index=index, records=batches[topic, index]) for index in indexes
            ],
        )
        for topic, indexes in by_topic(batches).items()
    ]
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topics
    )
    most_version = NAMES_VERSION if transactional_id is None else TRANSACTION_VERSION
    response: ProduceResponse = leader.send(request, most_version=most_version)
    return {
        (topic.name, row.index): outcome((topic.name, row.index), row)
        for topic in response.responses
        for row in topic.partition_responses
    }


def outcome(partition: Partition, row: PartitionProduceResponse) -> int | RequestFailed:
    """The offset of a batch, or the refusal. A duplicate was appended by an earlier attempt."""
    if row.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return row.base_offset
    details = "; ".join(
        each.batch_index_error_message for each in row.record_errors if each.batch_index_error_message
    )
    error = failure(row.error_code, row.error_message or details or None, partition_text(partition))
    return row.base_offset if error is None else error
