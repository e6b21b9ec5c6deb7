"""Replication quotas, after Kafka's ReplicationQuotaManagerTest."""

from __future__ import annotations

import pytest

from odradek.quota.quota_config import UNLIMITED, QuotaConfig
from odradek.quota.replication_quota_manager import (
    ReplicationQuotaManager,
    ReplicationQuotaType,
    throttled_partitions,
)
from odradek.testing.clock import MockClock


class ThrottledLeader:
    """A leader's replication quota with ten windows of one second."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.manager = ReplicationQuotaManager(
            ReplicationQuotaType.LEADER, QuotaConfig(samples=10), self.clock
        )

    def record_at(self, elapsed_ms: int, *values: float) -> bool:
        """Record values this long after the start; return whether the quota is then exceeded."""
        now_ms = MockClock().monotonic_ms() + elapsed_ms
        for value in values:
            self.manager.record(value, now_ms)
        return self.manager.is_quota_exceeded(now_ms)


@pytest.fixture
def leader() -> ThrottledLeader:
    return ThrottledLeader()


def test_only_listed_partitions_are_throttled(leader: ThrottledLeader) -> None:
    leader.manager.mark_throttled("topic1", [1, 2, 3])

    throttled = [leader.manager.is_throttled("topic1", partition) for partition in (1, 2, 3, 4)]

    assert throttled == [True, True, True, False]


def test_a_whole_topic_can_be_throttled(leader: ThrottledLeader) -> None:
    leader.manager.mark_throttled("MyTopic")

    throttled = [leader.manager.is_throttled(topic, 0) for topic in ("MyTopic", "MyOtherTopic")]

    assert throttled == [True, False]
    leader.manager.remove_throttle("MyTopic")
    assert not leader.manager.is_throttled("MyTopic", 0)


def test_the_rate_is_measured_since_the_oldest_sample(leader: ThrottledLeader) -> None:
    leader.manager.update_quota(100)

    seen = {
        "start": leader.record_at(0),
        "1 after 1.5 s": leader.record_at(1500, 1),
        "150 after 1.5 s": leader.record_at(1500, 149),
        "151 after 1.5 s": leader.record_at(1500, 1),
        "nothing more after 2 s": leader.record_at(2000),
        "at the bound after 2.5 s": leader.record_at(2500, 99),
        "above the bound after 2.5 s": leader.record_at(2500, 1),
        "nothing more after 4.5 s": leader.record_at(4500),
    }

    assert seen == {
        "start": False,
        "1 after 1.5 s": False,
        "150 after 1.5 s": False,
        "151 after 1.5 s": True,
        "nothing more after 2 s": False,
        "at the bound after 2.5 s": False,
        "above the bound after 2.5 s": True,
        "nothing more after 4.5 s": False,
    }


@pytest.mark.parametrize(
    ("second_throttled", "first_throttled", "in_sync", "served"),
    [
        pytest.param(True, False, False, [0], id="second throttled"),
        pytest.param(True, True, False, [], id="both"),
        pytest.param(False, False, False, [0, 1], id="none"),
        pytest.param(True, True, True, [0, 1], id="in sync"),
    ],
)
def test_a_follower_above_the_quota_gets_no_throttled_partitions(
    leader: ThrottledLeader, second_throttled: bool, first_throttled: bool, in_sync: bool, served: list[int]
) -> None:
    manager = leader.manager
    manager.update_quota(1)
    manager.record(1000)
    throttled = [0] * first_throttled + [1] * second_throttled
    manager.mark_throttled("t", throttled)

    found = [partition for partition in (0, 1) if not manager.skips("t", partition, in_sync)]

    assert found == served


def test_without_a_rate_the_quota_is_never_exceeded(leader: ThrottledLeader) -> None:
    leader.manager.mark_throttled("t")

    exceeded = leader.record_at(0, 1e15)

    assert (exceeded, leader.manager.upper_bound) == (False, UNLIMITED)


def test_a_later_rate_counts_earlier_copies(leader: ThrottledLeader) -> None:
    leader.record_at(0, 1000)

    leader.manager.update_quota(10)

    assert leader.record_at(0)
    rows = [
        (row.name.name, row.name.group, row.value)
        for row in leader.manager.measured(leader.clock.monotonic_ms())
    ]
    assert rows == [("byte-rate", "LeaderReplication", 1000)]


@pytest.mark.parametrize(
    ("text", "partitions"),
    [("*", None), ("", set()), ("0:1, 1:2,2:1", {0, 2}), ("7:3", set()), ("0:1,,2:1,", {0, 2})],
)
def test_a_topic_lists_its_throttled_replicas(text: str, partitions: set[int] | None) -> None:
    found = throttled_partitions(text, broker_id=1)

    assert found == partitions


@pytest.mark.parametrize("text", ["0", "0:1:2", "a:b", "-1:2", "*,0:1"])
def test_malformed_throttled_replicas_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        throttled_partitions(text, broker_id=1)
