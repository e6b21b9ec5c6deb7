"""Random scripts of requests that two brokers get in the same order, and what their answers have in common.

A script knows nothing that only one broker has: ids that a broker chooses are taken from its own answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from random import Random
from typing import Any, Final

from odradek.wire.compression import Codec
from odradek.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches, records

TOPICS, PARTITIONS, GROUPS = ("alpha", "beta", "gamma"), 3, ("one", "two")
STRANGE_PRODUCER: Final = 999_999, 0
TOPIC_RESOURCE, SET, DELETE = 2, 0, 1
KEYS: Final = {
    "retention.ms": ("3600000000", "-1", "x"),
    "max.message.bytes": ("2000", "1048588", "-5"),
    "cleanup.policy": ("delete", "compact", "both"),
    "compression.type": ("producer", "zstd", "fast"),
    "no.such.key": ("1",),
}
OWN: Final = frozenset({
    "throttle_time_ms", "topic_id", "cluster_id", "host", "port", "rack", "error_message", "producer_id",
    "member_id", "leader", "brokers", "node_endpoints", "log_append_time_ms", "session_id", "message",
    "batch_index_error_message", "documentation", "synonyms",
})  # fmt: skip
"""Fields whose values a broker chooses, and texts."""
MISSING_CONFIGS: Final = ("local.retention.", "remote.")
"""Configurations of topics that the host does not have: no tiered storage."""


@dataclass(slots=True)
class Memory:
    """What one broker has told."""

    producer: tuple[int, int] = (-1, -1)
    transactional: tuple[int, int] = (-1, -1)
    members: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Id and generation of the member of each group."""


Step = tuple[str, int, Callable[[Memory], Any], Callable[[Memory, Any], None]]
"""What it is, the version, the request for a broker, and what to remember of its answer."""


def forget(_memory: Memory, _answer: Any) -> None:
    """Remember nothing."""


class Script:
    """The steps of one seed.

    Args:
        seed: Decides everything.
        base_ms: The time of the records.
    """

    def __init__(self, seed: int, base_ms: int) -> None:
        self.chance = Random(seed)
        self.prefix = f"s{seed}-"
        self.base_ms = base_ms
        self.missing = [self.prefix + name for name in TOPICS[:2]]
        """Topics that are created first."""
        self.sequences: dict[tuple[str, int], int] = {}
        self.kinds = (
            *[self.produce] * 6, *[self.fetch] * 4, *[self.list_offsets] * 3, *[self.commit] * 2,
            self.committed,
            self.uncommit, self.delete_records, self.create, self.grow, self.drop, self.alter, self.describe,
            *[self.member] * 4, *[self.transaction] * 3, self.idempotent, self.metadata, self.delete_group,
        )  # fmt: skip

    def step(self) -> Step:
        """The next step."""
        if self.missing:
            return self.first_topic(self.missing.pop())
        kind: Callable[[], Step] = self.chance.choice(self.kinds)
        return kind()

    def topic(self) -> str:
        return self.prefix + self.chance.choice(TOPICS)

    def group(self) -> str:
        return self.prefix + self.chance.choice(GROUPS)

    def partition(self) -> int:
        return self.chance.choice((0, 0, 1, 2, 7))

    def version(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    # topics

    @staticmethod
    def first_topic(name: str) -> Step:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        return "create topic", 7, lambda _: CreateTopicsRequest(topics=[topic]), forget

    def create(self) -> Step:
        key = self.chance.choice([*KEYS, "", ""])
        configs = [CreatableTopicConfig(name=key, value=self.chance.choice(KEYS[key]))] if key else []
        request = CreateTopicsRequest(topics=[CreatableTopic(
            name=self.chance.choice((self.topic(), self.topic(), self.topic(), "no/topic")),
            num_partitions=self.chance.choice((1, 2, 3, 0)),
            replication_factor=self.chance.choice((1, 1, 1, 2)),
            configs=configs,
        )])  # fmt: skip
        return "create topic", self.version(5, 7), lambda _: request, forget

    def grow(self) -> Step:
        wanted = CreatePartitionsTopic(
            name=self.topic(), count=self.chance.choice((1, 2, 3)), assignments=None
        )
        return "create partitions", 3, lambda _: CreatePartitionsRequest(topics=[wanted]), forget

    def drop(self) -> Step:
        request = DeleteTopicsRequest(topic_names=[self.topic()], timeout_ms=10_000)
        return "delete topic", self.version(1, 5), lambda _: request, forget

    def alter(self) -> Step:
        key = self.chance.choice(list(KEYS))
        operation = self.chance.choice((SET, SET, DELETE))
        value = self.chance.choice(KEYS[key]) if operation == SET else None
        change = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=self.topic(), configs=[change]
        )
        return "alter configs", 1, lambda _: IncrementalAlterConfigsRequest(resources=[resource]), forget

    def describe(self) -> Step:
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=self.topic(), configuration_keys=list(KEYS)
        )
        return "describe configs", 4, lambda _: DescribeConfigsRequest(resources=[resource]), forget

    def metadata(self) -> Step:
        topics = [MetadataRequestTopic(name=self.prefix + name) for name in TOPICS]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return "metadata", self.version(4, 13), lambda _: request, forget

    # records

    def values(self) -> list[Record]:
        chance = self.chance
        return [
            Record(
                chance.choice((None, b"", b"key")),
                chance.choice((None, chance.randbytes(min(int(chance.lognormvariate(4, 1.5)), 1_500)))),
                self.base_ms + chance.randint(-1_000, 1_000),
                chance.choice(((), (("h", b"1"), ("h", None)))),
            )
            for _ in range(chance.choice((1, 1, 2, 5, 40)))
        ]

    def produce(self) -> Step:
        topic, partition, sent = self.topic(), self.partition(), self.values()
        codec = self.chance.choice(list(Codec))
        idempotent = self.chance.random() < 0.4
        sequence = self.sequences.get((topic, partition), 0) if idempotent else -1
        jump = self.chance.choice((0, 0, 0, 0, 7)) if idempotent else 0
        acks = -1 if idempotent else self.chance.choice((1, -1))

        def request(memory: Memory) -> Any:
            producer = memory.producer if idempotent else (-1, -1)
            base = -1 if producer[0] < 0 else sequence + jump
            batch = build_batch(
                sent, codec=codec, producer_id=producer[0], producer_epoch=producer[1], base_sequence=base
            )
            return produce_request(topic, partition, batch, acks)

        def remember(memory: Memory, answer: Any) -> None:
            row = answer.responses[0].partition_responses[0]
            if idempotent and memory.producer[0] >= 0 and not row.error_code:
                self.sequences[topic, partition] = sequence + jump + len(sent)

        return "produce", self.version(9, 11), request, remember

    def fetch(self) -> Step:
        partition = FetchPartition(
            partition=self.partition(), fetch_offset=self.chance.choice((0, 0, 1, 5, 40, 1_000)),
            partition_max_bytes=self.chance.choice((1, 500, 100_000)),
        )  # fmt: skip
        request = FetchRequest(
            max_bytes=self.chance.choice((1, 100_000)), isolation_level=self.chance.choice((0, 1)),
            topics=[FetchTopic(topic=self.topic(), partitions=[partition])],
        )  # fmt: skip
        return "fetch", self.version(4, 12), lambda _: request, forget

    def list_offsets(self) -> Step:
        time_ms = self.chance.choice((-1, -2, -3, -4, 0, self.base_ms, self.base_ms + 500, self.base_ms * 2))
        partition = ListOffsetsPartition(partition_index=self.partition(), timestamp=time_ms)
        topics = [ListOffsetsTopic(name=self.topic(), partitions=[partition])]
        request = ListOffsetsRequest(replica_id=-1, topics=topics, isolation_level=self.chance.choice((0, 1)))
        return "list offsets", self.version(8, 9), lambda _: request, forget

    def delete_records(self) -> Step:
        row = DeleteRecordsPartition(
            partition_index=self.partition(), offset=self.chance.choice((0, 1, 3, -1, 500))
        )
        topics = [DeleteRecordsTopic(name=self.topic(), partitions=[row])]
        return "delete records", 2, lambda _: DeleteRecordsRequest(topics=topics, timeout_ms=10_000), forget

    # producers

    def idempotent(self) -> Step:
        def remember(memory: Memory, answer: Any) -> None:
            memory.producer = answer.producer_id, answer.producer_epoch
            self.sequences.clear()

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return "init producer id", self.version(2, 5), lambda _: request, remember

    def transaction(self) -> Step:
        name = f"{self.prefix}transaction"
        kind = self.chance.choice(("init", "add", "produce", "end"))
        topic, partition = self.topic(), self.partition()
        if kind == "init":
            timeout_ms = self.chance.choice((60_000, 60_000, 0, 1 << 30))
            first = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
            return "init transactions", self.version(2, 5), lambda _: first, self.took_identity
        if kind == "add":
            return "add partitions", 3, lambda memory: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name, v3_and_below_producer_id=memory.transactional[0],
                v3_and_below_producer_epoch=memory.transactional[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
            ), forget  # fmt: skip
        if kind == "end":
            committed = self.chance.random() < 0.6
            return "end transaction", 4, lambda memory: EndTxnRequest(
                transactional_id=name, producer_id=memory.transactional[0],
                producer_epoch=memory.transactional[1], committed=committed,
            ), forget  # fmt: skip
        sent = self.values()

        def request(memory: Memory) -> Any:
            producer = memory.transactional if memory.transactional[0] >= 0 else STRANGE_PRODUCER
            batch = build_batch(
                sent, producer_id=producer[0], producer_epoch=producer[1],
                base_sequence=0, transactional=True,
            )  # fmt: skip
            return produce_request(topic, partition, batch, -1, name)

        return "produce in a transaction", self.version(9, 11), request, forget

    @staticmethod
    def took_identity(memory: Memory, answer: Any) -> None:
        if not answer.error_code:
            memory.transactional = answer.producer_id, answer.producer_epoch

    # groups

    def commit(self) -> Step:
        row = OffsetCommitRequestPartition(
            partition_index=self.partition(), committed_offset=self.chance.choice((0, 3, 100)),
            committed_metadata=self.chance.choice(("", None, "m")),
        )  # fmt: skip
        topics = [OffsetCommitRequestTopic(name=self.topic(), partitions=[row])]
        group, as_member = self.group(), self.chance.random() < 0.4

        def request(memory: Memory) -> Any:
            member, generation = memory.members.get(group, ("", -1)) if as_member else ("", -1)
            return OffsetCommitRequest(
                group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=topics
            )

        return "offset commit", self.version(5, 9), request, forget

    def committed(self) -> Step:
        topics = [
            OffsetFetchRequestTopic(name=self.prefix + name, partition_indexes=[0, 1]) for name in TOPICS
        ]
        request = OffsetFetchRequest(group_id=self.group(), topics=self.chance.choice((topics, None)))
        return "offset fetch", self.version(6, 7), lambda _: request, forget

    def uncommit(self) -> Step:
        row = OffsetDeleteRequestPartition(partition_index=self.partition())
        topics = [OffsetDeleteRequestTopic(name=self.topic(), partitions=[row])]
        request = OffsetDeleteRequest(group_id=self.group(), topics=topics)
        return "offset delete", 0, lambda _: request, forget

    def delete_group(self) -> Step:
        request = DeleteGroupsRequest(groups_names=[self.group()])
        return "delete group", 2, lambda _: request, forget

    def member(self) -> Step:
        def joined(memory: Memory, answer: Any) -> None:
            memory.members[group] = answer.member_id, answer.generation_id

        group, kind = self.group(), self.chance.choice(("join", "join", "sync", "heartbeat", "leave"))
        if kind == "join":
            return "join", self.version(5, 9), lambda memory: JoinGroupRequest(
                group_id=group, member_id=memory.members.get(group, ("", -1))[0], session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000, protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
            ), joined  # fmt: skip
        if kind == "sync":
            return "sync", 5, lambda memory: sync_request(group, *memory.members.get(group, ("", -1))), forget
        if kind == "heartbeat":
            return "heartbeat", 4, lambda memory: HeartbeatRequest(
                group_id=group, member_id=memory.members.get(group, ("x", -1))[0],
                generation_id=memory.members.get(group, ("", -1))[1],
            ), forget  # fmt: skip
        return "leave", 3, lambda memory: leave_request(group, *memory.members.get(group, ("", -1))), forget


def leave_request(group: str, member: str, generation: int) -> LeaveGroupRequest:
    """A member leaves. One that has not joined with its id does not: Kafka keeps its empty group."""
    leaving = MemberIdentity(member_id=member if generation >= 0 else "nobody")
    return LeaveGroupRequest(group_id=group, members=[leaving])


def sync_request(group: str, member: str, generation: int) -> SyncGroupRequest:
    """The leader assigns itself something."""
    return SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member, protocol_type="consumer",
        protocol_name="range", assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"all")],
    )  # fmt: skip


def produce_request(
    topic: str, partition: int, batch: bytes, acks: int, transactional_id: str | None = None
) -> ProduceRequest:
    rows = [PartitionProduceData(index=partition, records=batch)]
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=topic, partition_data=rows)],
    )  # fmt: skip


def in_common(answer: Any) -> Any:
    """An answer without what a broker chooses; records as consumers see them."""
    if is_dataclass(answer):
        return {
            each.name: read_records(value) if each.name == "records" else in_common(value)
            for each in fields(answer)
            if each.name not in OWN
            for value in (getattr(answer, each.name),)
        }
    if isinstance(answer, list):
        known = [each for each in answer if not str(getattr(each, "name", "")).startswith(MISSING_CONFIGS)]
        found = [in_common(each) for each in known]
        return sorted(found, key=repr)
    return answer


def read_records(data: bytes | None) -> list[Any]:
    """Offsets and contents; a part of a batch at the end is nothing."""
    found: list[Any] = []
    for header, batch in record_batches(data or b""):
        if header.is_control:
            found.append(("control", header.base_offset))
        else:
            found += [each._replace(value=each.value and each.value[:20]) for each in records(batch, header)]
    return found
