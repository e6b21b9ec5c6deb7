"""Scenarios of the APIs about groups: offsets in transactions, and deleting groups."""

from __future__ import annotations

import time
from typing import Any

from contrib.capture.golden import Recorder, Scenario, exchange
from contrib.capture.group_scenarios import GROUP, TRANSACTION, until_loaded
from contrib.capture.host_requests import request
from contrib.capture.topic_scenarios import DYNAMIC_IDS, NOBODY, create, delete_all, new

from odradek.wire.codec import decode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

DYNAMIC_PRODUCER = "dynamic: the ids of topics and of the producer"
ATTEMPTS, PAUSE_S = 100, 0.1
TIMEOUT_MS = 60_000
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


def producer_of(say: Recorder, transactional_id: str) -> tuple[int, int]:
    """The id and the epoch of a producer. Attempts that load its coordinator are not recorded."""
    init = request(
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS), 5
    )
    for _ in range(ATTEMPTS):
        frame = exchange(say.channel, init.frame(correlation_id=0))
        if not decode(InitProducerIdResponse, 5, frame or b"", 5).error_code:
            break
        time.sleep(PAUSE_S)
    answer = decode(InitProducerIdResponse, 5, say.ask("a producer", init), 1)
    return answer.producer_id, answer.producer_epoch


def joined(say: Recorder, group: str, topic: str) -> int:
    """The epoch of the only member of a group of the consumer protocol, which reads a topic."""
    message = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=TIMEOUT_MS,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    body = say.ask(f"join {group}", request(message, 1))
    return decode(ConsumerGroupHeartbeatResponse, 1, body, 1).member_epoch


def left(say: Recorder, group: str) -> None:
    message = ConsumerGroupHeartbeatRequest(group_id=group, member_id=MEMBER, member_epoch=-1)
    say.ask(f"leave {group}", request(message, 1))


def committed(say: Recorder, group: str, topic_id: bytes) -> None:
    """A group that has offsets and no members."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])
    say.ask(f"commit for {group}", request(OffsetCommitRequest(group_id=group, topics=[topic]), 10))


class Transaction:
    """Commits offsets in the transactions of one producer."""

    def __init__(self, say: Recorder, ids: dict[str, bytes], version: int) -> None:
        self.say = say
        self.ids = ids
        self.version = version
        self.producer_id, self.epoch = producer_of(say, "tx")

    def topic(self, name: str, *partitions: int, **fields: Any) -> TxnOffsetCommitRequestTopic:
        return TxnOffsetCommitRequestTopic(
            name=name,
            topic_id=self.ids.get(name, NOBODY),
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=5, **({"committed_metadata": ""} | fields)
                )
                for index in partitions
            ],
        )

    def ask(
        self, label: str, *topics: TxnOffsetCommitRequestTopic, group: str = "offsets", **fields: Any
    ) -> None:
        known: dict[str, Any] = {
            "transactional_id": "tx",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "topics": list(topics),
        }
        message = TxnOffsetCommitRequest(group_id=group, **(known | fields))
        self.say.ask(label, request(message, self.version))

    def end(self, committed: bool) -> None:
        message = EndTxnRequest(
            transactional_id="tx",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        body = self.say.ask("commit" if committed else "abort", request(message, 5))
        answer = decode(EndTxnResponse, 5, body, 1)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        time.sleep(PAUSE_S)


def offsets_in_transactions(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_PRODUCER)
        until_loaded(say, GROUP)
        until_loaded(say, TRANSACTION)
        ids = create(say, "topics", new("t", 2), new("u", 1))
        say_to = Transaction(say, ids, version)
        topic = say_to.topic("t", 0, 1)
        unnamed = TxnOffsetCommitRequestTopic(topic_id=bytes(16), partitions=topic.partitions)
        say_to.ask("two partitions", topic)
        say_to.ask("an unknown topic", say_to.topic("nope", 0))
        say_to.ask("a known topic and an unknown one", topic, say_to.topic("nope", 0), say_to.topic("u", 0))
        say_to.ask("neither a name nor an id", unnamed, topic)
        say_to.ask("an unknown partition", say_to.topic("t", 0, 7))
        say_to.ask("a topic twice", topic, topic)
        say_to.ask("a partition twice", say_to.topic("t", 0, 0))
        say_to.ask("no topics")
        say_to.ask("no partitions", say_to.topic("t"))
        say_to.ask("long metadata", say_to.topic("t", 0, committed_metadata="x" * 5000))
        say_to.ask("no group", topic, group="")
        say_to.ask(
            "a generation of an unknown group", topic, group="unknown", generation_id_or_member_epoch=3
        )
        say_to.ask(
            "a member of a group without members", topic, member_id="m", generation_id_or_member_epoch=1
        )
        say_to.ask("a generation without a member", topic, generation_id_or_member_epoch=1)
        say_to.ask("another producer", topic, producer_id=say_to.producer_id + 1000)
        say_to.ask("an old epoch", topic, producer_epoch=say_to.epoch - 1)
        say_to.ask("a new epoch", topic, producer_epoch=say_to.epoch + 1)
        say_to.ask("another transactional id", topic, transactional_id="unknown")
        say_to.end(committed=True)
        epoch = joined(say, "members", "t")
        for label, fields in (
            ("the member", {"member_id": MEMBER, "generation_id_or_member_epoch": epoch}),
            ("an old epoch of the member", {"member_id": MEMBER, "generation_id_or_member_epoch": epoch - 1}),
            ("a new epoch of the member", {"member_id": MEMBER, "generation_id_or_member_epoch": epoch + 1}),
            ("an unknown member", {"member_id": "m", "generation_id_or_member_epoch": epoch}),
            ("no member", {}),
        ):
            say_to.ask(label, topic, group="members", **fields)
        say_to.end(committed=False)
        left(say, "members")
        say.ask("forget the groups", request(DeleteGroupsRequest(groups_names=["members", "offsets"]), 2))
        delete_all(say, "t", "u")

    return scenario


def deleted(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_IDS)
        until_loaded(say, GROUP)
        ids = create(say, "a topic", new("t"))
        committed(say, "empty", ids["t"])
        joined(say, "busy", "t")
        for label, *groups in (
            ("an unknown group", "unknown"),
            ("no name", ""),
            ("a group with a member", "busy"),
            ("two groups", "unknown", "empty"),
            ("the same again", "empty"),
            ("a group twice", "unknown", "unknown"),
            ("none",),
        ):
            say.ask(label, request(DeleteGroupsRequest(groups_names=groups), version))
        left(say, "busy")
        say.ask("the member has left", request(DeleteGroupsRequest(groups_names=["busy"]), version))
        delete_all(say, "t")

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "txn_offset_commit_v5_committed": ("by name of the topic", offsets_in_transactions(5)),
    "delete_groups_v2_deleted": ("each kind of group", deleted(2)),
}
SINCE_4_4: dict[str, tuple[str, Scenario]] = {
    "txn_offset_commit_v6_committed": ("by id of the topic", offsets_in_transactions(6)),
    "delete_groups_v3_deleted": ("each kind of group, with a message", deleted(3)),
}
