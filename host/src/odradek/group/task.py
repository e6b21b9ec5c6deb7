"""The tasks of a streams group (KIP-1071): one partition of one subtopology, in one role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from odradek.wire.messages.streams_group_heartbeat import TaskIds

TaskId = tuple[str, int]
"""A subtopology and a partition."""


class Role(StrEnum):
    """What a member does with a task."""

    ACTIVE = "active"
    """It processes records. A task is active at one member only."""
    STANDBY = "standby"
    """It keeps a copy of the state. A process has a task once, in whatever role."""
    WARMUP = "warmup"
    """It builds up the state before the task becomes active. Kafka 4.4 gives nobody a task in this role."""


class Task(NamedTuple):
    """A task of one member."""

    subtopology_id: str
    partition: int
    role: Role = Role.ACTIVE

    @property
    def id(self) -> TaskId:
        return self.subtopology_id, self.partition

    def as_(self, role: Role) -> Task:
        """The same task in a role."""
        return Task(self.subtopology_id, self.partition, role)


def tasks_of(listed: Mapping[Role, Iterable[TaskIds] | None]) -> set[Task]:
    """The tasks that a request lists."""
    return {
        Task(each.subtopology_id, partition, role)
        for role, tasks in listed.items()
        for each in tasks or ()
        for partition in each.partitions
    }


def by_subtopology(tasks: Iterable[Task], role: Role) -> dict[str, list[int]]:
    """The partitions of the tasks in one role, in order."""
    found: dict[str, list[int]] = {}
    for task in sorted(tasks):
        if task.role is role:
            found.setdefault(task.subtopology_id, []).append(task.partition)
    return found


def stored_tasks(tasks: Iterable[Task]) -> list[list[str | int]]:
    """The stored form of tasks."""
    return [[task.subtopology_id, task.partition, task.role] for task in sorted(tasks)]


def tasks_of_stored(stored: Iterable[tuple[str, int, str]]) -> set[Task]:
    """The tasks of their stored form."""
    return {Task(subtopology_id, partition, Role(role)) for subtopology_id, partition, role in stored}
