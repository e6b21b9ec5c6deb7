"""A group of the streams protocol (KIP-1071): its topology, and what of it members run.

After org.apache.kafka.coordinator.group.streams.StreamsGroup.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final

from odradek.group.group import GroupType
from odradek.group.kept_group import KeptGroup
from odradek.group.member_sizes import PARTITION_BYTES
from odradek.group.modern_group import ModernGroup, stale
from odradek.group.sticky_assignor import StreamsMemberSpec, StreamsSpec, TaskTargets, sticky_assignor
from odradek.group.streams_member import StreamsMember
from odradek.group.streams_topics import (
    ConfiguredTopology,
    configured,
    required_topics,
    source_names,
    topology_size,
)
from odradek.group.task import Role, Task, stored_tasks, tasks_of_stored
from odradek.waiting.clock import TimerTask
from odradek.wire.api_error import ApiError
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology

STREAMS_PROTOCOL_TYPE = "streams"
OFFSET_BYTES = 100
"""Memory of one offset that a member reports."""
STORED_VERSION: Final = 1
"""The version of the heartbeat that carries the stored topology."""


class StreamsGroup(ModernGroup[StreamsMember, Task], KeptGroup[StreamsMember]):
    """One streams group."""

    group_type = GroupType.STREAMS
    protocol_type = STREAMS_PROTOCOL_TYPE

    def __init__(self, group_id: str, **common: Any) -> None:
        super().__init__(group_id, **common)
        self.topology: Topology | None = None
        """That of the first member; the group keeps it when it is empty."""
        self.configured = ConfiguredTopology()
        self.topics_seen: Mapping[str, tuple[bytes | None, int]] = {}
        """The id and the number of partitions of each topic of the topology, when it was configured."""
        self.topics_stale = True
        self.standbys: int | None = None
        """The number of standbys of the newest epoch."""
        self.initial_delay: TimerTask | None = None
        """Runs while a group that was empty waits for more members."""
        self.shutdown_member: str | None = None
        """The member that asked all others to shut down."""
        self.endpoint_epoch = 0
        """Counts changes of endpoints, and of the tasks of members that have one."""
        self.creating: set[str] = set()
        """Internal topics that are being created."""
        self.failed_topics: dict[str, tuple[str, int]] = {}
        """Internal topics that could not be created: why, and until when that is told."""

    def creation_failures(self, now_ms: int) -> dict[str, str]:
        """Why internal topics could not be created, as long as that is told."""
        self.failed_topics = {name: each for name, each in self.failed_topics.items() if each[1] > now_ms}
        return {name: why for name, (why, _) in self.failed_topics.items()}

    @property
    def epochs(self) -> tuple[int, int]:
        return self.group_epoch, self.target.epoch

    @property
    def is_fresh(self) -> bool:
        return self.initial_delay is not None or super().is_fresh

    @property
    def state_name(self) -> str:
        """The state after StreamsGroup.StreamsGroupState."""
        if self.members and self.topology is not None and not self.configured.is_ready:
            return "NotReady"
        return super().state_name

    @property
    def assignor_name(self) -> str:
        return self.config.streams.assignors[0]

    @property
    def max_size(self) -> int:
        return self.config.streams.max_size

    @property
    def assignment_interval_ms(self) -> int:
        return self.config.streams.assignment_interval_ms

    def session_timeout_ms(self, member: StreamsMember) -> int:
        return self.config.streams.session_timeout_ms

    def new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id)

    def successor(self, old: StreamsMember, member_id: str) -> StreamsMember:
        return old.successor(member_id)

    def size_of(self, member: StreamsMember) -> int:
        host, _ = member.user_endpoint or ("", 0)
        size = len(member.process_id) + len(host)
        size += sum(len(key) + len(value) for key, value in member.client_tags.items())
        size += OFFSET_BYTES * (len(member.task_offsets) + len(member.task_end_offsets))
        return size + PARTITION_BYTES * (len(member.assigned) + len(member.pending_revocation))

    def add(self, member: StreamsMember, instance_id: str | None) -> None:
        delay_ms = self.config.streams.initial_rebalance_delay_ms
        if not self.members and delay_ms and self.initial_delay is None:
            deadline_ms = self.clock.monotonic_ms() + delay_ms
            self.initial_delay = self.timer.schedule(deadline_ms, self.end_initial_delay)
        super().add(member, instance_id)

    def end_initial_delay(self) -> None:
        """Assign tasks to all members that have joined since the first one."""
        self.initial_delay = None
        if self.members:
            self.update_target()
            self.changed(self)

    def remove(self, *members: StreamsMember) -> None:
        super().remove(*members)
        if not self.members:
            self.shutdown_member = None
            self.stop_initial_delay()

    def stop_initial_delay(self) -> None:
        if self.initial_delay is not None:
            self.initial_delay.cancel()
            self.initial_delay = None

    def check_topology(self, topology: Topology) -> None:
        """Check that a member may join with a topology. An older one than the group's is told to the member.

        Raises:
            ApiError: INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY.
        """
        if self.topology is None:
            configured(topology, self.topics.partition_count)
        elif topology.epoch >= self.topology.epoch and not is_same(topology, self.topology):
            raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")

    def use_topology(self, topology: Topology) -> None:
        self.topology = topology
        self.sizes.change(0, topology_size(topology))

    def configure(self, topology: Topology | None) -> bool:
        """Take in the topology of a member, if the group has none, and changes of topics; return whether the
        group needs a new assignment.
        """
        if self.topology is None and topology is not None:
            self.use_topology(topology)
        standbys, self.standbys = self.standbys, self.config.streams.num_standby_replicas
        changed = standbys != self.standbys
        if self.topology is None or not self.topics_stale:
            return changed
        self.topics_stale = False
        seen = {
            name: (self.topics.topic_id(name), self.topics.partition_count(name))
            for name in required_topics(self.topology)
        }
        changed |= seen != self.topics_seen
        self.topics_seen = seen
        self.configured = configured(self.topology, self.topics.partition_count)
        return changed

    def assignment(self) -> Generator[None, None, TaskTargets]:
        members = {
            member.member_id: StreamsMemberSpec(
                # The assignor gets the current target, not what members hold: it is where they are heading.
                member.process_id,
                self.target.of(member.member_id),
                member.task_offsets,
            )
            for member in self.members.values()
        }
        # a topology that is not ready has no tasks to assign
        tasks = self.configured.tasks if self.configured.is_ready else {}
        return sticky_assignor(StreamsSpec(members, tasks, self.configured.stateful, self.standbys or 0))

    def valid(self, targets: Mapping[str, AbstractSet[Task]]) -> TaskTargets:
        """Members and tasks that still exist."""
        found: TaskTargets = {}
        for old_id, tasks in targets.items():
            member_id = self.target.renamed.get(old_id, old_id)
            if member_id in self.members:
                found[member_id] = {task for task in tasks if self.has_task(task)}
        return found

    def has_task(self, task: Task) -> bool:
        """Whether the topology has a task."""
        return 0 <= task.partition < self.configured.tasks.get(task.subtopology_id, 0)

    def is_free(self, task: Task, member: StreamsMember) -> bool:
        """Whether a member can get a task that it does not have in this role.

        A task is active at one member, and a process has it once, in whatever role. But a member may change
        its own role.
        """
        active = task.as_(Role.ACTIVE)
        for other in self.members.values():
            if task.role is Role.ACTIVE and other.holds(active):
                return False
            if other is member:
                if active in member.pending_revocation or task in member.pending_revocation:
                    return False
            elif other.process_id == member.process_id and any(other.holds(task.as_(role)) for role in Role):
                return False
        return True

    def check_held_since(self, member: StreamsMember, member_epoch: int, topic_id: bytes, index: int) -> None:
        name = self.topics.topic_name(topic_id) or ""
        for subtopology in (self.topology or Topology()).subtopologies:
            task = Task(subtopology.subtopology_id, index)
            since = member.assigned.get(task, member.pending_revocation.get(task))
            if name in source_names(subtopology) and since is not None and member_epoch >= since:
                return
        raise stale(member_epoch, member)

    # -- what is stored

    def stored(self) -> str:
        carrier = StreamsGroupHeartbeatRequest(topology=self.topology)
        return json.dumps(
            {
                "assignment_epoch": self.target.epoch,
                "topology": base64.b64encode(encode(carrier, STORED_VERSION)).decode(),
                "topics": {
                    name: [None if topic_id is None else topic_id.hex(), count]
                    for name, (topic_id, count) in self.topics_seen.items()
                },
                "standbys": self.standbys,
            }
        )

    def restore(self, state: str) -> None:
        found = json.loads(state)
        self.target.epoch, self.standbys = found["assignment_epoch"], found["standbys"]
        self.topics_seen = {
            name: (None if topic_id is None else bytes.fromhex(topic_id), count)
            for name, (topic_id, count) in found["topics"].items()
        }
        carrier = base64.b64decode(found["topology"])
        topology = decode(StreamsGroupHeartbeatRequest, STORED_VERSION, carrier).topology
        if topology is not None:
            self.use_topology(topology)
            with suppress(ApiError):  # the next heartbeat tells its member
                self.configured = configured(topology, self.topics.partition_count)

    def stored_member(self, member: StreamsMember) -> str:
        return json.dumps(member.stored() | {"target": stored_tasks(self.target.of(member.member_id))})

    def restore_member(self, member_id: str, state: str) -> None:
        found = json.loads(state)
        member = StreamsMember.restored(member_id, found)
        self.members[member_id] = member
        self.measure(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        self.target.by_member[member_id] = tasks_of_stored(found["target"])

    def start(self) -> None:
        for member in self.members.values():
            if member.session is None:
                self.restart_rebalance(member)
        super().start()

    def is_subscribed_to(self, topic: str) -> bool:
        return self.topology is not None and topic in required_topics(self.topology)

    def topics_changed(self) -> None:
        self.topics_stale = True

    def close(self) -> None:
        super().close()
        self.stop_initial_delay()


def is_same(topology: Topology, other: Topology) -> bool:
    """Whether two topologies are equal; the order of their subtopologies does not matter."""
    if topology.epoch != other.epoch:
        return False
    return {each.subtopology_id: each for each in topology.subtopologies} == {
        each.subtopology_id: each for each in other.subtopologies
    }
