"""The assignor of streams groups: balance over processes and members, stickiness, standbys (KIP-1071)."""

from __future__ import annotations

from collections import Counter

import pytest

from odradek.group.sticky_assignor import StreamsMemberSpec, StreamsSpec, TaskTargets, sticky_assignor
from odradek.group.task import Role, Task, TaskId
from odradek.waiting.steps import result_of


def assigned(
    *processes: str,
    before: TaskTargets | None = None,
    offsets: dict[str, dict[TaskId, int]] | None = None,
    standbys: int = 0,
    **tasks: int,
) -> TaskTargets:
    """Assign to members m0, m1, ... of these processes. Each keyword is a stateful subtopology."""
    members = {
        f"m{number}": StreamsMemberSpec(
            process, (before or {}).get(f"m{number}", set()), (offsets or {}).get(f"m{number}", {})
        )
        for number, process in enumerate(processes)
    }
    return result_of(sticky_assignor(StreamsSpec(members, tasks, frozenset(tasks), standbys)))


def ids(targets: TaskTargets, role: Role = Role.ACTIVE) -> dict[str, list[TaskId]]:
    return {
        member_id: sorted(task.id for task in tasks if task.role is role)
        for member_id, tasks in targets.items()
    }


def test_without_members_nothing_is_assigned() -> None:
    assert assigned(a=3) == {}


def test_each_task_is_active_once() -> None:
    targets = assigned("p", "q", "q", a=5, b=2)

    active = Counter(task.id for tasks in targets.values() for task in tasks)
    assert active == {**{("a", index): 1 for index in range(5)}, ("b", 0): 1, ("b", 1): 1}


def test_the_partitions_of_a_subtopology_are_spread_over_the_processes() -> None:
    assert ids(assigned("p", "q", a=2, b=2)) == {
        "m0": [("a", 0), ("b", 0)],
        "m1": [("a", 1), ("b", 1)],
    }


@pytest.mark.parametrize(
    ("processes", "sizes"),
    [
        (["p"], [7]),
        (["p", "q"], [3, 4]),
        (["p", "p"], [3, 4]),
        (["p", "p", "q"], [2, 2, 3]),
        (["p", "q", "r", "s", "t", "u", "v", "w"], [0, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_members_get_equally_many(processes: list[str], sizes: list[int]) -> None:
    targets = assigned(*processes, a=7)

    assert sorted(map(len, targets.values())) == sizes


def test_tasks_stay_when_nothing_changes() -> None:
    before = assigned("p", "q", "q", standbys=1, a=5)

    assert assigned("p", "q", "q", before=before, standbys=1, a=5) == before


def test_a_new_process_gets_its_share_and_nothing_else_moves() -> None:
    before = assigned("p", "q", a=6)

    after = assigned("p", "q", "r", before=before, a=6)

    assert sorted(map(len, after.values())) == [2, 2, 2]
    assert after["m0"] < before["m0"]
    assert after["m1"] < before["m1"]


def test_a_task_moves_to_the_process_that_has_its_standby() -> None:
    lost = Task("a", 0)
    before = {"m0": {Task("a", 1)}, "m1": {Task("a", 2), lost.as_(Role.STANDBY)}, "m2": set()}

    after = assigned("p", "q", "r", before=before, standbys=1, a=4)

    assert lost in after["m1"]


def test_a_task_moves_to_the_member_that_reports_most_of_its_state() -> None:
    after = assigned("p", "q", offsets={"m0": {("a", 1): 5}, "m1": {("a", 1): 900}}, a=2)

    assert ids(after) == {"m0": [("a", 0)], "m1": [("a", 1)]}


def test_a_standby_is_on_another_process_than_the_task() -> None:
    targets = assigned("p", "p", "q", standbys=1, a=4)

    processes = {"m0": "p", "m1": "p", "m2": "q"}
    held = Counter((processes[member_id], task.id) for member_id, tasks in targets.items() for task in tasks)
    assert set(held.values()) == {1}
    assert sum(len(each) for each in ids(targets, Role.STANDBY).values()) == 4


def test_two_processes_hold_the_standbys_of_each_other() -> None:
    targets = assigned("p", "q", standbys=1, a=4)

    active, standby = ids(targets), ids(targets, Role.STANDBY)
    assert (active["m0"], active["m1"]) == (standby["m1"], standby["m0"])


def test_there_are_no_more_standbys_than_other_processes() -> None:
    targets = assigned("p", "q", standbys=2, a=1)

    assert sorted(len(tasks) for tasks in targets.values()) == [1, 1]


def test_a_stateless_subtopology_has_no_standbys() -> None:
    spec = StreamsSpec({"m0": StreamsMemberSpec("p"), "m1": StreamsMemberSpec("q")}, {"a": 2}, standbys=1)

    targets = result_of(sticky_assignor(spec))

    assert ids(targets, Role.STANDBY) == {"m0": [], "m1": []}


def test_the_former_holder_of_a_task_becomes_its_standby() -> None:
    before = {"m0": {Task("a", 0), Task("a", 1)}}

    after = assigned("p", "q", before=before, standbys=1, a=2)

    (moved,) = after["m1"] - {task for task in after["m1"] if task.role is Role.STANDBY}
    assert moved.as_(Role.STANDBY) in after["m0"]
