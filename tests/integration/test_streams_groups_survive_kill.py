"""Streams groups after kill -9 of the host: members go on with their epochs and tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from support.hosts import ServeProcess, serving
from support.streams_groups import GROUP, tasks
from support.streams_requests import beat, join
from support.waiting import wait_until
from support.wire_client import WireClient


def connected(serve: ServeProcess) -> WireClient:
    return WireClient(("127.0.0.1", int(serve.bootstrap.rpartition(":")[2])))


def described(client: WireClient) -> Any:
    return client.send(StreamsGroupDescribeRequest(group_ids=[GROUP]), 1).groups


def committed(client: WireClient, epoch: int) -> Any:
    """What a member reads of the offsets of its group."""
    asked = OffsetFetchRequestGroup(group_id=GROUP, member_id="m1", member_epoch=epoch, topics=None)
    (group,) = client.send(OffsetFetchRequest(groups=[asked]), 9).groups
    return group


def assigned(client: WireClient) -> int:
    """The member's epoch with its tasks, which a busy host computes after its answer."""
    epoch: int = client.send(join(), 1).member_epoch

    def has_tasks() -> bool:
        nonlocal epoch
        epoch = client.send(beat(epoch), 1).member_epoch
        (member,) = described(client)[0].members
        return bool(member.assignment.active_tasks)

    wait_until(has_tasks, "the member has no tasks")
    return epoch


def test_a_killed_host_knows_its_streams_groups_again(tmp_path: Path) -> None:
    settings = ("--set", "group.streams.initial.rebalance.delay.ms=0")
    with serving(tmp_path, *settings) as serve, connected(serve) as client:
        topics = [CreatableTopic(name="words", num_partitions=2, replication_factor=1)]
        client.send(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        epoch = assigned(client)
        partitions = [OffsetCommitRequestPartition(partition_index=1, committed_offset=7)]
        commit = OffsetCommitRequest(
            group_id=GROUP,
            member_id="m1",
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name="words", partitions=partitions)],
        )
        assert not client.send(commit, 9).topics[0].partitions[0].error_code
        before = described(client)
        offsets = committed(client, epoch)
        serve.kill()

    with serving(tmp_path, *settings) as serve, connected(serve) as client:
        assert described(client) == before
        assert committed(client, epoch) == offsets
        owning: StreamsGroupHeartbeatRequest = beat(epoch)
        owning.active_tasks, owning.standby_tasks, owning.warmup_tasks = tasks(0, 1), [], []
        answer = client.send(owning, 1)

    assert (answer.error_code, answer.member_epoch, answer.active_tasks) == (0, epoch, None)
    assert (before[0].group_state, len(before[0].members)) == ("Stable", 1)
    assert offsets.topics[0].partitions[0].committed_offset == 7
