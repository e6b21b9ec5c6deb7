"""A heartbeat of the streams protocol, from the checks of the request to the response (KIP-1071).

Everything that can refuse a heartbeat is checked before anything changes, so a refused request leaves the
group unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import chain

from odradek.group.consumer_heartbeat import Client, invalid
from odradek.group.group_config import MAX_MEMBER_METADATA_BYTES
from odradek.group.group_member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from odradek.group.member_admission import admitted, check_room, left
from odradek.group.streams_config import ACCEPTABLE_RECOVERY_LAG, TASK_OFFSET_INTERVAL_MS
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_member import StreamsMember
from odradek.group.streams_topics import StatusCode, source_names, topology_size
from odradek.group.streams_topics import invalid as invalid_topology
from odradek.group.task import Role, Task, by_subtopology, tasks_of
from odradek.group.task_reconciliation import reconcile
from odradek.wire.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    EndpointTopic,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
    UserEndpoint,
)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Check a request without its group, in Kafka's order.

    Raises:
        ApiError: INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY.
    """
    check_names(request)
    if request.member_epoch == JOIN_EPOCH:
        check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise invalid(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    kinds = [request.active_tasks, request.standby_tasks, request.warmup_tasks]
    if kinds.count(None) not in (0, len(kinds)):
        raise invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        raise invalid("Topology can only be provided when (re-)joining.")


def check_names(request: StreamsGroupHeartbeatRequest) -> None:
    """Check that no name is empty, and that topics are named."""
    topology = request.topology or Topology()
    if any(subtopology.source_topic_regex for subtopology in topology.subtopologies):
        raise invalid("Regular expressions for source topics are not supported yet.")
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise invalid(f"{name} can't be empty.")


def check_join(request: StreamsGroupHeartbeatRequest) -> None:
    """Check a request to join, which must have a topology and own no tasks."""
    if request.rebalance_timeout_ms == -1:
        raise invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise invalid("Topology must be non-null when (re-)joining.")
    if topology_size(request.topology) > MAX_MEMBER_METADATA_BYTES:
        raise invalid(f"The topology takes more than {MAX_MEMBER_METADATA_BYTES} bytes.")
    changelogs = (each.state_changelog_topics for each in request.topology.subtopologies)
    for topic in chain.from_iterable(changelogs):
        if topic.partitions:
            raise invalid_topology(
                f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                f"{topic.partitions}."
            )


def heartbeat(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, client: Client
) -> StreamsGroupHeartbeatResponse:
    """Respond to a member that joins or stays.

    Args:
        group: The member's group.
        request: Checked by `check_request`.
        client: The sender.

    Raises:
        ApiError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
            UNRELEASED_INSTANCE_ID, INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY.
    """
    owned = owned_tasks(request)
    if request.topology is not None:
        check_room(group, request.member_id)
        group.check_topology(request.topology)
    member = admitted(group, request, owned)
    if owned:
        check_owned(group, owned)
    before, endpoint = member.assigned.keys(), member.user_endpoint
    changed = member.update(request, client.client_id, client.host)
    if group.configure(request.topology) or changed:
        group.group_epoch += 1
    statuses = [*stale_topology(group, member), *delayed(group)]
    group.update_target()
    step(group, member, changed, owned)
    if request.shutdown_application and group.shutdown_member is None:
        group.shutdown_member = member.member_id
    response = StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=group.config.streams.heartbeat_interval_ms,
        acceptable_recovery_lag_legacy=ACCEPTABLE_RECOVERY_LAG,
        acceptable_recovery_lag=ACCEPTABLE_RECOVERY_LAG,
        task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS,
        status=[*statuses, *problems(group)],
    )
    if request.member_epoch == JOIN_EPOCH or member.assigned.keys() != before:
        response.active_tasks = listed(member.assigned, Role.ACTIVE)
        response.standby_tasks = listed(member.assigned, Role.STANDBY)
        response.warmup_tasks = listed(member.assigned, Role.WARMUP)
    if member.user_endpoint is not None:
        group.endpoint_epoch += (member.user_endpoint, member.assigned.keys()) != (endpoint, before)
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = list(endpoints(group))
    response.endpoint_information_epoch = group.endpoint_epoch
    return response


def step(group: StreamsGroup, member: StreamsMember, changed: bool, owned: AbstractSet[Task] | None) -> None:
    """Move a member towards the newest target, and restart its timers.

    Args:
        group: The member's.
        member: The member.
        changed: Whether it has said something new about itself.
        owned: See `owned_tasks`.
    """
    assigned, pending = member.assigned, member.pending_revocation
    progress = (member.state, member.member_epoch)
    reconcile(group, member, owned)
    group.measure(member)
    if changed or member.assigned is not assigned or member.pending_revocation is not pending:
        group.touch(member.member_id)
    if member.pending_revocation is not pending or (member.state, member.member_epoch) != progress:
        # The member has progressed, or has more to give up: its time starts again.
        group.restart_rebalance(member)
    group.restart_session(member)


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> AbstractSet[Task] | None:
    """The tasks that the client reports to own; None if it does not report them."""
    if request.active_tasks is None:
        return None
    return tasks_of(
        {
            Role.ACTIVE: request.active_tasks,
            Role.STANDBY: request.standby_tasks,
            Role.WARMUP: request.warmup_tasks,
        }
    )


def check_owned(group: StreamsGroup, owned: AbstractSet[Task]) -> None:
    """Check that the topology has the tasks that a member owns.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not group.configured.is_ready:
        return
    for task in owned:
        count = group.configured.tasks.get(task.subtopology_id)
        if count is None:
            raise invalid(f"Subtopology {task.subtopology_id} does not exist in the topology.")
        if not group.has_task(task):
            raise invalid(
                f"Task {task.partition} for subtopology {task.subtopology_id} is invalid. Number of tasks "
                f"for this subtopology: {count}"
            )


def stale_topology(group: StreamsGroup, member: StreamsMember) -> Iterable[Status]:
    """Tells a member that others run a newer topology."""
    if group.topology is not None and member.topology_epoch < group.topology.epoch:
        yield Status(
            status_code=StatusCode.STALE_TOPOLOGY,
            status_detail=f"The member's topology epoch {member.topology_epoch} is behind the group's "
            f"topology epoch {group.topology.epoch}.",
        )


def delayed(group: StreamsGroup) -> Iterable[Status]:
    """Tells why the group does not assign tasks yet."""
    if group.group_epoch > group.target.epoch and group.is_fresh:
        why = "initial rebalance delay" if group.initial_delay is not None else "assignment interval"
        yield Status(
            status_code=StatusCode.ASSIGNMENT_DELAYED,
            status_detail=f"Assignment delayed due to the configured {why}.",
        )


def problems(group: StreamsGroup) -> Iterable[Status]:
    """Tells why members get no tasks, and that they must shut down."""
    if group.configured.problem is not None:
        code, detail = group.configured.problem
        yield Status(status_code=code, status_detail=detail)
    if group.shutdown_member is not None:
        yield Status(
            status_code=StatusCode.SHUTDOWN_APPLICATION,
            status_detail=f"Streams group member {group.shutdown_member} encountered a fatal error and "
            "requested a shutdown for the entire application.",
        )


def listed(tasks: Iterable[Task], role: Role) -> list[TaskIds]:
    """The tasks in one role."""
    return [
        TaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks, role).items()
    ]


def endpoints(group: StreamsGroup) -> Iterable[EndpointToPartitions]:
    """The partitions whose state can be asked for at each member with an endpoint."""
    topology = group.topology or Topology()
    sources = {each.subtopology_id: list(source_names(each)) for each in topology.subtopologies}

    def partitions(member: StreamsMember, role: Role) -> list[EndpointTopic]:
        return [
            EndpointTopic(
                topic=topic,
                partitions=[index for index in indexes if index < group.topics.partition_count(topic)],
            )
            for subtopology_id, indexes in by_subtopology(member.assigned, role).items()
            for topic in sources.get(subtopology_id, ())
        ]

    for member in group.members.values():
        if member.user_endpoint is not None:
            host, port = member.user_endpoint
            yield EndpointToPartitions(
                user_endpoint=UserEndpoint(host=host, port=port),
                active_partitions=partitions(member, Role.ACTIVE),
                standby_partitions=partitions(member, Role.STANDBY),
            )


def leave(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Respond to a member that leaves, for good or temporarily.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    member = left(group, request)
    return StreamsGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
