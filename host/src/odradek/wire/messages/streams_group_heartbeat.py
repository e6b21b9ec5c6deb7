"""StreamsGroupHeartbeat, API key 88 (KIP-1071).

Source: StreamsGroupHeartbeatRequest.json and StreamsGroupHeartbeatResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    UInt16,
    between,
    only,
    since,
)


class Setting(Struct):
    """A key and its value."""

    key: String = ""
    value: String = ""


class TopicInfo(Struct):
    """An internal topic of `Subtopology`."""

    name: String = ""
    partitions: Int32 = 0
    """0 if the broker derives it from what is upstream."""
    replication_factor: Int16 = 0
    """0 for the broker's."""
    topic_configs: list[Setting] = field(default_factory=list)


class CopartitionGroup(Struct):
    """One of `Subtopology.copartition_groups`: topics with equally many partitions, by index in the lists."""

    source_topics: list[Int16] = field(default_factory=list)
    source_topic_regex: list[Int16] = field(default_factory=list)
    repartition_source_topics: list[Int16] = field(default_factory=list)


class Subtopology(Struct):
    """One of `Topology.subtopologies`."""

    subtopology_id: String = ""
    source_topics: list[String] = field(default_factory=list)
    source_topic_regex: list[String] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[String] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)


class Topology(Struct):
    """What the members of a streams group run."""

    epoch: Int32 = 0
    subtopologies: list[Subtopology] = field(default_factory=list)


class TaskIds(Struct):
    """The partitions of a subtopology."""

    subtopology_id: String = ""
    partitions: list[Int32] = field(default_factory=list)


class TaskOffset(Struct):
    """How far a task is."""

    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


class UserEndpoint(Struct):
    """Where an application answers queries."""

    host: String = ""
    port: UInt16 = 0


class Status(Struct):
    """One of `StreamsGroupHeartbeatResponse.status`."""

    status_code: Int8 = 0
    status_detail: String = ""


class EndpointTopic(Struct):
    """One of `EndpointToPartitions.active_partitions` and `EndpointToPartitions.standby_partitions`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


class EndpointToPartitions(Struct):
    """One of `StreamsGroupHeartbeatResponse.partitions_by_user_endpoint`."""

    user_endpoint: UserEndpoint = field(default_factory=UserEndpoint)
    active_partitions: list[EndpointTopic] = field(default_factory=list)
    standby_partitions: list[EndpointTopic] = field(default_factory=list)


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions=between(0, 1), flexible=since(0)):
    """Join, stay in and leave a streams group."""

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    """0 joins, -1 leaves, -2 leaves as a static member that will return."""
    endpoint_information_epoch: Int32 = 0
    instance_id: String | None = None
    """Null for a dynamic member."""
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    """-1 if unchanged."""
    topology: Topology | None = None
    """Null if unchanged."""
    active_tasks: list[TaskIds] | None = None
    """The tasks that the member owns; null if unchanged, as of the other kinds."""
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: String | None = None
    """Null if unchanged."""
    user_endpoint: UserEndpoint | None = None
    """Null if unchanged."""
    client_tags: list[Setting] | None = None
    """Null if unchanged."""
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: Bool = False


class StreamsGroupHeartbeatResponse(Message, answers=StreamsGroupHeartbeatRequest):
    """Answer to `StreamsGroupHeartbeatRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag_legacy: Annotated[Int32, only(0)] = 0
    task_offset_interval_ms: Int32 = 0
    acceptable_recovery_lag: Annotated[Int64, since(1)] = -1
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[TaskIds] | None = None
    """Null if unchanged, as of the other kinds."""
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: Annotated[Bool, since(1)] = False
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
