"""Weeks of groups and topics that come and go: what they leave with the source of lag is nothing."""

from __future__ import annotations

import gc
import sys
from typing import Any

from odradek.broker.host_positions import HostPositions
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from support.lag_scene import LagScene

DAY_MS = 86_400_000
HOURS = 6
PARTITIONS = 3
OURS = ("builtins", "collections", "array", "odradek.lag")
A_BLOCK = 600
"""The bytes by which a deque differs, depending on where in its blocks it begins."""


def size_of(root: object) -> int:
    """The bytes of the containers and numbers that only the source of lag has."""
    seen: set[int] = set()
    waiting: list[Any] = [root]
    size = 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or not type(each).__module__.startswith(OURS):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        waiting += gc.get_referents(each)
    return size


def day(scene: LagScene, number: int) -> None:
    """A day with five groups and two topics that nobody will see again."""
    names = [f"topic-{number}-{each}" for each in range(2)]
    for name in names:
        scene.broker.topics.create(name, PARTITIONS, {})
    groups = [f"group-{number}-{each}" for each in range(5)]
    for hour in range(0, 24, HOURS):
        for name in names:
            for index in range(PARTITIONS):
                scene.write(3, topic=name, index=index)
                for group in groups:
                    scene.commit(hour // HOURS, group, topic=name, index=index)
        scene.clock.advance(DAY_MS * HOURS // 24)
    scene.client.send(DeleteGroupsRequest(groups_names=groups))
    for name in names:
        scene.broker.topics.delete(scene.broker.topics.by_name[name])
    scene.clock.advance(DAY_MS * HOURS // 24)
    scene.records.clear()


def test_nothing_grows_as_groups_and_topics_come_and_go() -> None:
    scene = LagScene(export_interval_ms=3_600_000)
    scene.rounds.interval_ms = 1_800_000
    scene.commit(0, "stays")
    positions = scene.rounds.positions
    assert isinstance(positions, HostPositions)
    rounds, meter, sizes = scene.rounds, positions.meter, []
    for number in range(5):
        day(scene, number)
        held = [
            rounds.reported,
            meter.tables,
            meter.still,
            meter.still_before,
            meter.lookups,
            meter.lookups_before,
        ]
        sizes.append([size_of(held), size_of(rounds.trends)])

    assert sizes[-1][0] == sizes[2][0]
    assert sizes[-1][1] <= sizes[2][1] + A_BLOCK
    assert list(meter.tables) == [(scene.broker.topics.by_name["t"].id, 0)]
    assert set(scene.series["group.state"]) == {("stays", "Empty", "classic")}
