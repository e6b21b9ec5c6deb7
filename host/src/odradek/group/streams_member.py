"""One member of a streams group: a thread of Kafka Streams.

After org.apache.kafka.coordinator.group.streams.StreamsGroupMember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.group.group_member import GroupMember, MemberState
from odradek.group.task import Role, Task, TaskId
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

    def stored(self) -> dict[str, object]:
        """What is stored of the member, for JSON: as in Kafka, not how far its state is. It says so again."""
        return {
            "instance_id": self.instance_id,
            "rack_id": self.rack_id,
            "client_id": self.client_id,
            "client_host": self.client_host,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "process_id": self.process_id,
            "topology_epoch": self.topology_epoch,
            "user_endpoint": self.user_endpoint,
            "client_tags": self.client_tags,
            "epoch": self.member_epoch,
            "previous_epoch": self.previous_member_epoch,
            "state": self.state.value,
            "assigned": stored_holding(self.assigned),
            "pending": stored_holding(self.pending_revocation),
        }

    @classmethod
    def restored(cls, member_id: str, found: Mapping[str, Any]) -> StreamsMember:
        """The member from its stored form. Raises as `odradek.group.kept_group.readable` expects."""
        endpoint = found["user_endpoint"]
        return cls(
            member_id=member_id,
            instance_id=found["instance_id"],
            rack_id=found["rack_id"],
            client_id=found["client_id"],
            client_host=found["client_host"],
            rebalance_timeout_ms=found["rebalance_timeout_ms"],
            process_id=found["process_id"],
            topology_epoch=found["topology_epoch"],
            user_endpoint=None if endpoint is None else (endpoint[0], endpoint[1]),
            client_tags=found["client_tags"],
            member_epoch=found["epoch"],
            previous_member_epoch=found["previous_epoch"],
            state=MemberState(found["state"]),
            assigned=holding_of_stored(found["assigned"]),
            pending_revocation=holding_of_stored(found["pending"]),
        )

    def successor(self, member_id: str) -> StreamsMember:
        """The same static member under another id, without timers. The caller transfers the instance id."""
        return StreamsMember(
            member_id=member_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
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


def stored_holding(tasks: Mapping[Task, int]) -> list[list[str | int]]:
    """The stored form of tasks, each with the epoch since which the member has it."""
    return [[task.subtopology_id, task.partition, task.role, since] for task, since in sorted(tasks.items())]


def holding_of_stored(stored: Iterable[tuple[str, int, str, int]]) -> dict[Task, int]:
    return {Task(subtopology, index, Role(role)): since for subtopology, index, role, since in stored}
