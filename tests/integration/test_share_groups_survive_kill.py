"""Share groups after kill -9 of the host: members, epochs, assignments and offsets are as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
)
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsGroup,
)
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.hosts import ServeProcess, serving
from support.waiting import wait_until
from support.wire_client import WireClient


def connected(serve: ServeProcess) -> WireClient:
    return WireClient(("127.0.0.1", int(serve.bootstrap.rpartition(":")[2])))


def beat(client: WireClient, epoch: int) -> Any:
    names = None if epoch else ["t"]
    return client.send(
        ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=epoch, subscribed_topic_names=names
        ),
        1,
    )


def known(client: WireClient) -> list[Any]:
    groups = [ShareOffsetsGroup(group_id=name, topics=None) for name in ("g", "idle")]
    return [
        client.send(ShareGroupDescribeRequest(group_ids=["g", "idle"]), 1).groups,
        client.send(DescribeShareGroupOffsetsRequest(groups=groups), 1).groups,
    ]


def assigned(client: WireClient) -> int:
    """The member's epoch with its partitions, which a busy host computes after its answer."""
    epoch: int = beat(client, 0).member_epoch

    def has_partitions() -> bool:
        nonlocal epoch
        epoch = beat(client, epoch).member_epoch
        (member,) = known(client)[0][0].members
        return bool(member.assignment.topic_partitions)

    wait_until(has_partitions, "the member has no partitions")
    return epoch


def test_a_killed_host_knows_its_share_groups_again(tmp_path: Path) -> None:
    at_once = ("--set", "group.share.assignment.interval.ms=0")
    offsets = [AlteredPartition(partition_index=0, start_offset=7)]
    with serving(tmp_path, *at_once) as serve, connected(serve) as client:
        topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
        client.send(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        epoch = assigned(client)
        altered = [AlteredTopic(topic_name="t", partitions=offsets)]
        client.send(AlterShareGroupOffsetsRequest(group_id="idle", topics=altered), 0)
        before = known(client)
        serve.kill()

    with serving(tmp_path, *at_once) as serve, connected(serve) as client:
        assert known(client) == before
        answer = beat(client, epoch)

    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, epoch, None)
    assert [len(each.members) for each in before[0]] == [1, 0]
    assert before[1][1].topics[0].partitions[0].start_offset == 7
