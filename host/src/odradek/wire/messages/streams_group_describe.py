"""StreamsGroupDescribe, API key 89 (KIP-1071, KIP-1331 for the description of the topology).

Source: StreamsGroupDescribeRequest.json and StreamsGroupDescribeResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.messages.streams_group_heartbeat import (
    Setting,
    TaskIds,
    TaskOffset,
    TopicInfo,
    UserEndpoint,
)
from odradek.wire.types import Bool, Int8, Int16, Int32, Message, String, Struct, between, since


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


class Tasks(Struct):
    """The assignment of a member."""

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


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


class TopologyNode(Struct):
    """One of `DescribedSubtopology.nodes`."""

    name: String = ""
    node_type: Int8 = 0
    source_topics: list[String] = field(default_factory=list)
    sink_topic: String | None = None
    stores: list[String] = field(default_factory=list)
    successors: list[String] = field(default_factory=list)


class DescribedSubtopology(Struct):
    """One of `TopologyDescription.subtopologies`."""

    subtopology_id: String = ""
    nodes: list[TopologyNode] = field(default_factory=list)


class GlobalStore(Struct):
    """One of `TopologyDescription.global_stores`."""

    source: TopologyNode = field(default_factory=TopologyNode)
    processor: TopologyNode = field(default_factory=TopologyNode)


class TopologyDescription(Struct):
    """The nodes of a topology, as a plugin of the broker keeps them."""

    subtopologies: list[DescribedSubtopology] = field(default_factory=list)
    global_stores: list[GlobalStore] = field(default_factory=list)


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
    topology_description: Annotated[TopologyDescription | None, since(1)] = None
    topology_description_status: Annotated[Int8, since(1)] = 0
    """0 not asked for, 1 the broker has no plugin for it."""
    assignor_name: Annotated[String | None, since(1)] = None


class StreamsGroupDescribeRequest(Message, api_key=89, versions=between(0, 1), flexible=since(0)):
    """Describe streams groups."""

    group_ids: list[String] = field(default_factory=list)
    include_authorized_operations: Bool = False
    include_topology_description: Annotated[Bool, since(1)] = False


class StreamsGroupDescribeResponse(Message, answers=StreamsGroupDescribeRequest):
    """Answer to `StreamsGroupDescribeRequest`."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedStreamsGroup] = field(default_factory=list)
