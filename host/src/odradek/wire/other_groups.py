"""Share groups and streams groups, API keys 77, 89 and 90 (KIP-932, KIP-1071, KIP-1226), which the host does
not have.

Source: ShareGroupDescribeRequest.json, StreamsGroupDescribeRequest.json, their responses, and those of
DescribeShareGroupOffsets, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.consumer_group_describe import Assignment
from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    UInt16,
    Uuid,
    between,
    since,
)


class ShareMember(Struct):
    """One of `DescribedShareGroup.members`."""

    member_id: String = ""
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)


class DescribedShareGroup(Struct):
    """One of `ShareGroupDescribeResponse.groups`."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[ShareMember] = field(default_factory=list)
    authorized_operations: Int32 = -0x8000_0000


class ShareGroupDescribeRequest(Message, api_key=77, versions=between(1, 1), flexible=since(0)):
    """Describe share groups."""

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


class ShareGroupDescribeResponse(Message, answers=ShareGroupDescribeRequest):
    """Answer to `ShareGroupDescribeRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareGroup] = field(default_factory=list)


class Setting(Struct):
    """A key and its value."""

    key: String = ""
    value: String = ""


class TopicInfo(Struct):
    """An internal topic of `Subtopology`."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[Setting] = field(default_factory=list)


class Subtopology(Struct):
    """One of `Topology.subtopologies`."""

    subtopology_id: String = ""
    source_topics: list[String] = field(default_factory=list)
    repartition_sink_topics: list[String] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)


class Topology(Struct):
    """What the members of a streams group run."""

    epoch: Int32 = 0
    subtopologies: list[Subtopology] | None = None


class TaskIds(Struct):
    """The partitions of a subtopology."""

    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


class Tasks(Struct):
    """The assignment of a member."""

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


class TaskOffset(Struct):
    """How far a task is."""

    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


class UserEndpoint(Struct):
    """Where an application answers queries."""

    host: String = ""
    port: UInt16 = 0


class StreamsMember(Struct):
    """One of `DescribedStreamsGroup.members`."""

    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: list[Setting] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Tasks = field(default_factory=Tasks)
    target_assignment: Tasks = field(default_factory=Tasks)
    is_classic: Bool = False


class DescribedStreamsGroup(Struct):
    """One of `StreamsGroupDescribeResponse.groups`."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: Topology | None = None
    members: list[StreamsMember] = field(default_factory=list)
    authorized_operations: Int32 = -0x8000_0000


class StreamsGroupDescribeRequest(Message, api_key=89, versions=between(0, 0), flexible=since(0)):
    """Describe streams groups."""

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False


class StreamsGroupDescribeResponse(Message, answers=StreamsGroupDescribeRequest):
    """Answer to `StreamsGroupDescribeRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedStreamsGroup] = field(default_factory=list)


class ShareOffsetsTopic(Struct):
    """One of `ShareOffsetsGroup.topics`."""

    topic_name: String = ""
    partitions: list[Int32] = field(default_factory=list)


class ShareOffsetsGroup(Struct):
    """One of `DescribeShareGroupOffsetsRequest.groups`."""

    group_id: String = ""
    topics: list[ShareOffsetsTopic] | None = None
    """Null for all."""


class DescribedShareOffset(Struct):
    """One of `DescribedShareTopic.partitions`."""

    partition_index: Int32 = 0
    start_offset: Int64 = 0
    """-1 if nothing has been read yet."""
    leader_epoch: Int32 = 0
    lag: Annotated[Int64, since(1)] = -1
    """-1 if it is not known."""
    error_code: Int16 = 0
    error_message: String | None = None


class DescribedShareTopic(Struct):
    """One of `DescribedShareOffsets.topics`."""

    topic_name: String = ""
    topic_id: Uuid = NIL_UUID
    partitions: list[DescribedShareOffset] = field(default_factory=list)


class DescribedShareOffsets(Struct):
    """One of `DescribeShareGroupOffsetsResponse.groups`."""

    group_id: String = ""
    topics: list[DescribedShareTopic] = field(default_factory=list)
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions=between(0, 1), flexible=since(0)):
    """Read the offsets of share groups from which on records may be unread, and their lag."""

    groups: list[ShareOffsetsGroup] = field(default_factory=list)


class DescribeShareGroupOffsetsResponse(Message, answers=DescribeShareGroupOffsetsRequest):
    """Answer to `DescribeShareGroupOffsetsRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedShareOffsets] = field(default_factory=list)
