"""One member of a streams group: a thread of Kafka Streams.

After org.apache.kafka.coordinator.group.streams.StreamsGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.group.group_member import GroupMember
from odradek.group.task import Task, TaskId
from odradek.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskOffset


@dataclass(slots=True, eq=False)
class StreamsMember(GroupMember[Task]):
    """One member, which holds tasks."""

    process_id: str = ""
    """The process, whose members share the state on its disk."""
    topology_epoch: int = 0
    user_endpoint: tuple[str, int] | None = None
    """Host and port where the application answers queries."""
    client_tags: Mapping[str, str] = field(default_factory=dict)
    task_offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """How far its state is, by task."""
    task_end_offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """How far the changelogs are, by task."""

    def described(self) -> tuple[object, ...]:
        """What members say about themselves: a change begins a new epoch of the group."""
        return (
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.process_id,
            self.topology_epoch,
            self.user_endpoint,
            self.client_tags,
        )

    def update(self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str) -> bool:
        """Update the member from its request; return whether it says something new about itself."""
        before = self.described()
        self.client_id, self.client_host = client_id, client_host
        self.update_offsets(request)
        if request.rack_id is not None:
            self.rack_id = request.rack_id
        if request.rebalance_timeout_ms != -1:
            self.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.topology is not None:
            self.topology_epoch = request.topology.epoch
        if request.process_id is not None:
            self.process_id = request.process_id
        if request.user_endpoint is not None:
            self.user_endpoint = (request.user_endpoint.host, request.user_endpoint.port)
        if request.client_tags is not None:
            self.client_tags = {tag.key: tag.value for tag in request.client_tags}
        return before != self.described()

    def update_offsets(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Remember how far the member's state is."""
        if request.task_offsets is not None:
            self.task_offsets = offsets_by_task(request.task_offsets)
        if request.task_end_offsets is not None:
            self.task_end_offsets = offsets_by_task(request.task_end_offsets)

    def holds(self, task: Task) -> bool:
        """Whether the member has a task, or has not given it up yet."""
        return task in self.assigned or task in self.pending_revocation

    def successor(self, member_id: str) -> StreamsMember:
        """The same static member under another id, without timers. The caller transfers the instance id."""
        return StreamsMember(
            member_id=member_id,
            rack_id=self.rack_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            process_id=self.process_id,
            topology_epoch=self.topology_epoch,
            user_endpoint=self.user_endpoint,
            client_tags=self.client_tags,
            state=self.state,
            assigned=self.assigned,
            pending_revocation=self.pending_revocation,
        )


def offsets_by_task(offsets: list[TaskOffset]) -> dict[TaskId, int]:
    """The offsets of a request by task."""
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}
