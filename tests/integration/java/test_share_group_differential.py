"""A host and Apache Kafka answer the same script of requests about share groups alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from contrib.capture.kafka_node import kafka_node

from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
)
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_share_group_offsets import DeletedTopic, DeleteShareGroupOffsetsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsGroup,
    ShareOffsetsTopic,
)
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_delete import OffsetDeleteRequest
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.hosts import running_host
from support.random_script import in_common
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

TOPICS = {"one": 1, "three": 3}


@dataclass
class Side:
    """One of the two brokers."""

    client: WireClient
    ids: dict[bytes, str] = field(default_factory=dict)
    """The names of topics by id."""

    def prepare(self) -> None:
        wait_until(self.has_coordinator, "a coordinator")
        new = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        for topic in self.client.send(CreateTopicsRequest(topics=new, timeout_ms=30_000), 7).topics:
            assert not topic.error_code
            self.ids[topic.topic_id] = topic.name

    def has_coordinator(self) -> bool:
        (found,) = self.client.send(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators
        return not found.error_code and bool(self.beat(5, group_id="none")["error_code"] == 69)

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer, with names instead of the ids of topics."""
        answer = self.client.send(request, request.VERSIONS.last if version is None else version)
        return self.named(in_common(answer))

    def named(self, part: Any) -> Any:
        if isinstance(part, dict):
            return {name: self.named(value) for name, value in part.items()}
        if isinstance(part, list):
            return [self.named(each) for each in part]
        return self.ids.get(part, part) if isinstance(part, bytes) else part

    def beat(self, epoch: int = 0, **fields: Any) -> Any:
        request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
        if not epoch:
            request.subscribed_topic_names = ["one", "three"]
        for name, value in fields.items():
            setattr(request, name, value)
        return self.ask(request)

    def has_partitions(self, epoch: int) -> bool:
        """Whether a member has the next epoch. The answer that has its partitions is not repeated."""
        return bool(self.beat(epoch)["member_epoch"] > epoch)


def named_group(group: str, *topics: str) -> ShareOffsetsGroup:
    named = [ShareOffsetsTopic(topic_name=name, partitions=[0]) for name in topics]
    return ShareOffsetsGroup(group_id=group, topics=named or None)


def altered(offsets: dict[str, dict[int, int]], group: str = "g") -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlteredTopic(
                topic_name=name,
                partitions=[AlteredPartition(partition_index=i, start_offset=at) for i, at in each.items()],
            )
            for name, each in offsets.items()
        ],
    )


def deleted(*topics: str, group: str = "g") -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeletedTopic(topic_name=name) for name in topics]
    )


def described(side: Side) -> Iterator[tuple[str, Any]]:
    """What both say of the group, its offsets, and all groups."""
    groups = ShareGroupDescribeRequest(group_ids=["g", "unknown", "c"], include_authorized_operations=True)
    yield "described", side.ask(groups)
    named = named_group("g", "one", "gone"), named_group("c", "one")
    for each in (named_group("g"), named_group("unknown"), *named):
        yield "offsets", side.ask(DescribeShareGroupOffsetsRequest(groups=[each]))
    yield "listed", side.ask(ListGroupsRequest(types_filter=["share"]))


REFUSED: tuple[dict[str, Any], ...] = (
    {"member_id": ""}, {"member_id": "x" * 37}, {"member_id": "  "}, {"group_id": ""}, {"rack_id": ""},
    {"subscribed_topic_names": []}, {"subscribed_topic_names": None}, {"epoch": -2}, {"epoch": 9},
    {"epoch": 1}, {"epoch": -1, "member_id": "n"}, {"epoch": 3, "member_id": "n"},
    {"epoch": 3, "group_id": "unknown"}, {"epoch": -1, "group_id": "unknown"}, {"group_id": "c"},
    {"epoch": 3, "group_id": "c"},
)  # fmt: skip
"""Fields of heartbeats."""


def without_text(answer: Any) -> Any:
    """An answer without its message."""
    return {name: value for name, value in answer.items() if name != "error_message"}


def of_other_groups(side: Side) -> Iterator[tuple[str, Any]]:
    """Requests for other types of groups."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequestTopic(name="one", partitions=[partition])
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    yield "consumer", without_text(side.ask(consumer("g")))
    yield "commit", side.ask(OffsetCommitRequest(group_id="g", topics=[commit]), 9)
    yield "fetch", side.ask(everything, 9)
    yield "forget", side.ask(OffsetDeleteRequest(group_id="g"))
    yield "join", side.ask(join, 4)
    yield "as consumers", side.ask(ConsumerGroupDescribeRequest(group_ids=["g"]))
    yield "as classic", side.ask(DescribeGroupsRequest(groups=["g"]), 6)


def consumer(group: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="c",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["one"],
        topic_partitions=[],
    )


def script(side: Side) -> Iterator[tuple[str, Any]]:
    """Each request by name, with its answer."""
    side.prepare()
    yield "a consumer", side.ask(consumer("c"))["error_code"]
    yield "joined", side.beat()
    wait_until(partial(side.has_partitions, 2), "partitions")
    yield "again", side.beat()
    yield "previous", side.beat(2)
    yield from described(side)
    for fields in REFUSED:
        yield f"refused {fields}", without_text(side.beat(**fields))
    yield from of_other_groups(side)
    yield "alter with members", without_text(side.ask(altered({"one": {0: 1}})))
    yield "delete with members", without_text(side.ask(deleted("one")))
    yield "not empty", side.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
    yield "left", side.beat(-1)
    yield "left twice", without_text(side.beat(-1))
    yield from described(side)
    yield "back", side.beat()
    yield "second", side.beat(member_id="n")
    wait_until(lambda: side.beat(5)["member_epoch"] == 6, "the share of two members")
    topics = side.beat()["assignment"]["topic_partitions"]
    yield "of two", sum(len(topic["partitions"]) for topic in topics)
    yield "second left", [side.beat(-1, member_id="n"), side.beat(-1)]
    yield from described(side)
    for group in ("c", "", "unknown"):
        yield f"delete of {group}", without_text(side.ask(deleted("one", group=group)))
    for group in ("c", ""):
        yield f"alter of {group}", without_text(side.ask(altered({"one": {0: 1}}, group)))
    yield "altered", side.ask(altered({"one": {0: 5, 9: 1}, "three": {1: -1}, "gone": {0: 1}}))
    yield from described(side)
    yield "deleted", side.ask(deleted("one", "gone"))
    yield "deleted again", side.ask(deleted("one"))
    yield from described(side)
    yield "new", side.ask(altered({"one": {0: 5}}, "new"))
    yield "of new", side.ask(ShareGroupDescribeRequest(group_ids=["new"]))
    yield "gone", side.ask(DeleteGroupsRequest(groups_names=["g", "g", "unknown", "new"]), 2)
    yield from described(side)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    settings = ("auto.create.topics.enable=false",)
    with (
        kafka_node(overrides=settings) as kafka,
        running_host(tmp_path_factory.mktemp("host"), *settings) as host,
        WireClient(("127.0.0.1", kafka.port)) as theirs,
        WireClient(("127.0.0.1", host.address[1])) as ours,
    ):
        yield Side(theirs), Side(ours)


def test_the_answers_are_kafkas(sides: tuple[Side, Side]) -> None:
    theirs, ours = (list(script(side)) for side in sides)

    assert ours == theirs
    assert len(theirs) > 50
