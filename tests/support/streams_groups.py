"""Streams groups without a broker: topics of the test, and members that it directs."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from odradek.group.consumer_heartbeat import Client
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.streams_config import StreamsGroupConfig
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_protocol import answer_heartbeat, describe
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.wire.messages.streams_group_describe import DescribedStreamsGroup
from odradek.wire.messages.streams_group_describe import StreamsMember as DescribedMember
from odradek.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from support.consumer_groups import MadeUpTopics

GROUP = "streamers"
AT_ONCE = GroupConfig(streams=StreamsGroupConfig(initial_rebalance_delay_ms=0, assignment_interval_ms=0))
"""Tasks are assigned at every heartbeat."""


def topology(*sources: str, epoch: int = 1, changelog: str = "", **more: Any) -> Topology:
    """One subtopology, ``s``."""
    changelogs = [TopicInfo(name=changelog)] if changelog else []
    subtopology = Subtopology(
        subtopology_id="s", source_topics=list(sources), state_changelog_topics=changelogs, **more
    )
    return Topology(epoch=epoch, subtopologies=[subtopology])


def tasks(*partitions: int) -> list[TaskIds]:
    """Tasks of the subtopology ``s``, as on the wire."""
    return [TaskIds(subtopology_id="s", partitions=list(partitions))] if partitions else []


class StreamsGroups:
    """A coordinator on a mock clock."""

    def __init__(
        self,
        config: GroupConfig = AT_ONCE,
        before: StreamsGroups | None = None,
        own: GroupConfig | None = None,
        /,
        **topics: int,
    ) -> None:
        self.clock = MockClock()
        self.topics: MadeUpTopics = MadeUpTopics() if before is None else before.topics
        self.store: SqliteOffsetStore = SqliteOffsetStore(":memory:") if before is None else before.store
        for name, partitions in topics.items():
            self.topics.put(name, partitions)
        serial = count(100)
        self.coordinator = GroupCoordinator(
            config=config,
            clock=self.clock,
            timer=self.clock.timer,
            random_uuid=lambda: next(serial).to_bytes(16),
            store=self.store,
            topics=self.topics,
            own_configs={} if own is None else {GROUP: own},
        )

    def restarted(self) -> StreamsGroups:
        """What a host that was killed now knows after its start."""
        own = self.coordinator.own_configs.get(GROUP)
        again = StreamsGroups(self.coordinator.config, self, own)
        again.coordinator.start()
        return again

    @property
    def group(self) -> StreamsGroup:
        group = self.coordinator.groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group

    def described(self) -> tuple[DescribedStreamsGroup, list[DescribedMember]]:
        """The group and its members, as clients are told."""
        group, members = describe(self.coordinator, GROUP)
        return group, [member() for member in members]

    def configure(self, **fields: int) -> None:
        """Change settings of streams groups."""
        config = self.coordinator.config
        streams = replace(config.streams, **fields)  # type: ignore[arg-type]  # fields of numbers only
        self.coordinator.use_config(replace(config, streams=streams))

    def put_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or add partitions, and tell the groups."""
        self.topics.put(name, partitions)
        self.coordinator.topics_changed()

    def send(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        return answer_heartbeat(self.coordinator, request, Client("client", "/127.0.0.1"))

    def join(
        self, member_id: str, joined: Topology | None = None, process: str = "", **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """A member's first heartbeat. Without a topology it reads ``words``; its process has its own name."""
        return self.send(
            StreamsGroupHeartbeatRequest(
                **{
                    "group_id": GROUP,
                    "member_id": member_id,
                    "member_epoch": 0,
                    "rebalance_timeout_ms": 60_000,
                    "topology": joined or topology("words"),
                    "process_id": process or f"process of {member_id}",
                    "active_tasks": [],
                    "standby_tasks": [],
                    "warmup_tasks": [],
                    "endpoint_information_epoch": -1,
                    **fields,
                }
            )
        )

    def beat(self, member_id: str, epoch: int | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat at the member's epoch, which reports no tasks unless some are given."""
        known = self.group.members.get(member_id)
        at = known.member_epoch if epoch is None and known is not None else epoch
        return self.send(
            StreamsGroupHeartbeatRequest(
                **{
                    "group_id": GROUP,
                    "member_id": member_id,
                    "member_epoch": at,
                    "endpoint_information_epoch": -1,
                    **fields,
                }
            )
        )

    def own(
        self, member_id: str, *active: int, standby: tuple[int, ...] = (), epoch: int | None = None
    ) -> StreamsGroupHeartbeatResponse:
        """A heartbeat of a member that reports exactly these tasks."""
        return self.beat(
            member_id,
            epoch,
            active_tasks=tasks(*active),
            standby_tasks=tasks(*standby),
            warmup_tasks=[],
        )


def active(response: StreamsGroupHeartbeatResponse) -> list[int] | None:
    """The active tasks of a response; None if unchanged."""
    return partitions(response.active_tasks)


def standby(response: StreamsGroupHeartbeatResponse) -> list[int] | None:
    """The standby tasks of a response; None if unchanged."""
    return partitions(response.standby_tasks)


def partitions(listed: list[TaskIds] | None) -> list[int] | None:
    return None if listed is None else [index for each in listed for index in each.partitions]


def statuses(response: StreamsGroupHeartbeatResponse) -> list[tuple[int, str]]:
    return [(each.status_code, each.status_detail) for each in response.status or ()]
