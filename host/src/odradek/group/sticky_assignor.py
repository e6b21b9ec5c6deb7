"""The assignor ``sticky`` of streams groups: balances processes and members, and otherwise leaves tasks where
they are.

After org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor, whose results it has wherever
they do not depend on the order of a hash table.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field

from odradek.group.task import Role, Task, TaskId

log = logging.getLogger(__name__)

TaskTargets = dict[str, set[Task]]
"""The tasks assigned to each member, by member id."""


@dataclass(frozen=True, slots=True)
class StreamsMemberSpec:
    """One member for the assignor."""

    process_id: str
    target: Iterable[Task] = ()
    """Its current target."""
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """How far the state is that it has on its disk, by task."""


@dataclass(frozen=True, slots=True)
class StreamsSpec:
    """A group for the assignor."""

    members: Mapping[str, StreamsMemberSpec]
    """By member id."""
    tasks: Mapping[str, int]
    """The number of tasks of each subtopology."""
    stateful: frozenset[str] = frozenset()
    standbys: int = 0
    """How many copies of its state a task of a stateful subtopology has."""


@dataclass(slots=True, eq=False)
class Process:
    """One process, whose members share its disk."""

    counts: dict[str, int] = field(default_factory=dict)
    """The number of tasks of each of its members, by member id."""
    tasks: set[TaskId] = field(default_factory=set)

    @property
    def load(self) -> float:
        """Tasks for each member."""
        return len(self.tasks) / len(self.counts)

    @property
    def idlest(self) -> str:
        """The member with the fewest tasks."""
        return min(self.counts, key=self.counts.__getitem__)


@dataclass(slots=True)
class Quota:
    """How many tasks a member may have: the average of those that still have room."""

    tasks: int
    members: int

    @property
    def each(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def note(self, count: int) -> None:
        """A member has so many tasks now. If that is all that it may have, the others share the rest."""
        if count == self.each:
            self.members -= 1
            self.tasks -= count


class Placement:
    """The assignment while it is made."""

    def __init__(self, spec: StreamsSpec) -> None:
        self.spec = spec
        self.active_tasks = [(name, index) for name, count in spec.tasks.items() for index in range(count)]
        self.standby_tasks = (
            [task for task in self.active_tasks if task[0] in spec.stateful] if spec.standbys else []
        )
        active = len(self.active_tasks)
        self.active_quota = Quota(active, len(spec.members))
        self.quota = Quota(active + len(self.standby_tasks) * spec.standbys, len(spec.members))
        self.processes: dict[str, Process] = {}
        self.targets: TaskTargets = {member_id: set() for member_id in spec.members}
        self.had_active: dict[TaskId, str] = {}
        """The member that a task was active at, by task."""
        self.had_state: dict[TaskId, list[str]] = {}
        """The members with state of a task, the best first: standbys, then those that only report offsets."""
        ranked: dict[TaskId, list[tuple[bool, int, str]]] = {}
        for member_id, member in spec.members.items():
            self.processes.setdefault(member.process_id, Process()).counts[member_id] = 0
            standbys = {task.id for task in member.target if task.role is Role.STANDBY}
            self.had_active.update({task.id: member_id for task in member.target if task.role is Role.ACTIVE})
            for task in member.offsets.keys() | standbys:
                ranked.setdefault(task, []).append(
                    (task not in standbys, -member.offsets.get(task, 0), member_id)
                )
        for task, members in ranked.items():
            members.sort(key=lambda ranking: ranking[:2])
            self.had_state[task] = [member_id for _, _, member_id in members]

    def process_of(self, member_id: str) -> Process:
        return self.processes[self.spec.members[member_id].process_id]

    def add(self, member_id: str, task: TaskId, role: Role) -> None:
        """Give a task to a member."""
        process = self.process_of(member_id)
        process.tasks.add(task)
        process.counts[member_id] += 1
        count = process.counts[member_id]
        self.targets[member_id].add(Task(*task, role))
        if role is Role.ACTIVE:
            self.active_quota.note(count)
        self.quota.note(count)

    def has_room(self, member_id: str | None, quota: Quota) -> bool:
        """Whether there is such a member, and it may have one more task."""
        return member_id is not None and self.process_of(member_id).counts[member_id] < quota.each

    def idlest_with_state(self, task: TaskId, *, apart: bool) -> str | None:
        """The member with state of a task that has the least to do.

        Args:
            task: The task.
            apart: Whether its process must not have the task yet.
        """
        found: str | None = None
        least = (0.0, 0)
        for member_id in self.had_state.get(task, ()):
            process = self.process_of(member_id)
            if apart and task in process.tasks:
                continue
            loads = (process.load, process.counts[member_id])
            if found is None or (loads[0] < least[0] and loads[1] < least[1]):
                found, least = member_id, loads
        return found

    def place_active(self) -> Generator[None, None, None]:
        """Place each task once, where it was or where its state is, as far as this is balanced."""
        left = sorted(self.active_tasks, key=lambda task: (task[1], task[0]))
        homeless = []
        for task in left:
            member_id = self.had_active.get(task)
            if member_id is not None and self.has_room(member_id, self.active_quota):
                self.add(member_id, task, Role.ACTIVE)
            else:
                homeless.append(task)
            yield
        left, homeless = homeless, []
        for task in left:
            member_id = self.idlest_with_state(task, apart=False)
            if member_id is not None and self.has_room(member_id, self.active_quota):
                self.add(member_id, task, Role.ACTIVE)
            else:
                homeless.append(task)
            yield
        # by subtopology, so that the partitions of one are spread over the processes
        heap = self.by_load()
        for task in sorted(homeless):
            self.place_idlest(heap, task, Role.ACTIVE)
            yield

    def by_load(self) -> list[tuple[float, int, Process]]:
        """A heap of the processes, the one with the least to do first."""
        heap = [(process.load, serial, process) for serial, process in enumerate(self.processes.values())]
        heapq.heapify(heap)
        return heap

    def place_idlest(self, heap: list[tuple[float, int, Process]], task: TaskId, role: Role) -> bool:
        """Give a task to the process with the least to do that does not have it. False if all have it."""
        passed = []
        placed = False
        while heap and not placed:
            load, serial, process = heapq.heappop(heap)
            if task not in process.tasks:
                self.add(process.idlest, task, role)
                load, placed = process.load, True
            passed.append((load, serial, process))
        for each in passed:
            heapq.heappush(heap, each)
        return placed

    def place_standbys(self) -> Generator[None, None, None]:
        """Place the copies of each task's state on processes that do not have the task."""
        missing = []
        for task in sorted(self.standby_tasks, key=lambda task: (task[1], task[0]), reverse=True):
            for placed in range(self.spec.standbys):
                was_active = self.had_active.get(task)
                if was_active is not None and task in self.process_of(was_active).tasks:
                    was_active = None
                standby = self.idlest_with_state(task, apart=True)
                member_id = next(
                    (each for each in (was_active, standby) if self.has_room(each, self.quota)), None
                )
                if member_id is None:
                    missing.append((task, self.spec.standbys - placed))
                    break
                self.add(member_id, task, Role.STANDBY)
            yield
        heap = self.by_load()
        for task, count in sorted(missing, reverse=True):
            for _ in range(count):
                if not self.place_idlest(heap, task, Role.STANDBY):
                    log.debug("too few processes for all standbys", extra={"task": task})
                    break
            yield


def sticky_assignor(spec: StreamsSpec) -> Generator[None, None, TaskTargets]:
    """Assign every task once, and its standbys to other processes, in steps. Every member gets an entry."""
    placement = Placement(spec)
    if spec.members:
        yield from placement.place_active()
        yield from placement.place_standbys()
    return placement.targets
