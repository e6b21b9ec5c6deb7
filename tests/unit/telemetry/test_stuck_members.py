"""Members that have left their group and stay connected are stuck; those that close or join again are not."""

from __future__ import annotations

import pytest

from odradek.findings.incidents import STUCK
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.stuck_members import CHECK_MS, MOST, STUCK_MS, StuckMembers
from odradek.testing.clock import MockClock

SOMEBODY = ClientKey("User:alice", "app", "10.0.0.7", "librdkafka", "2.14.0")
EXPIRED = "consumer poll timeout has expired"


class Scene:
    def __init__(self) -> None:
        self.clock = MockClock()
        self.told: list[tuple[str, str, str, int]] = []
        self.members = StuckMembers(self.lasts, self.clock, self.clock.timer)

    def lasts(
        self, key: ClientKey, metric: str, labels: dict[str, str], time_ms: int, connection_id: str
    ) -> None:
        self.told.append((key.client_id, metric, labels["group"], time_ms))

    def leaves(self, connection: str = "a", reason: str = EXPIRED) -> None:
        self.members.left(connection, SOMEBODY, "billing", reason, connection)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("reason", [EXPIRED, ""])
def test_a_member_that_stays_connected_is_stuck_until_it_closes(scene: Scene, reason: str) -> None:
    scene.leaves(reason=reason)
    scene.clock.advance(STUCK_MS - CHECK_MS)
    assert scene.told == []

    scene.clock.advance(2 * CHECK_MS)
    assert scene.told == 2 * [("app", STUCK, "billing", 2 * CHECK_MS)]

    scene.members.closed("another")
    scene.members.closed("a")
    scene.clock.advance(STUCK_MS)
    assert len(scene.told) == 2
    assert scene.members.task is None


def test_a_member_that_closes_or_joins_again_is_not(scene: Scene) -> None:
    scene.leaves("a")
    scene.leaves("b")
    scene.members.closed("a")
    scene.members.joined("b", "billing")

    scene.clock.advance(2 * STUCK_MS)

    assert scene.told == []


@pytest.mark.parametrize(
    "reason", ["the consumer unsubscribed from all topics", "the consumer is being closed"]
)
def test_a_consumer_that_says_another_reason_is_not(scene: Scene, reason: str) -> None:
    scene.leaves(reason=reason)

    scene.clock.advance(2 * STUCK_MS)

    assert scene.told == []


def test_members_are_bounded_and_end_with_the_program(scene: Scene) -> None:
    for number in range(MOST + 1):
        scene.leaves(str(number))
    assert len(scene.members.found) == MOST

    scene.members.stop()
    scene.clock.advance(2 * STUCK_MS)

    assert scene.told == []
