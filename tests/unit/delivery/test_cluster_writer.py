"""Pushes that wait for the acknowledgment of a cluster: every outcome, the bounds, and the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.delivery.cluster_writer import RECORD_BYTES, ClusterWriter
from odradek.plugin import NotWritten, TelemetryRecord
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from support.examples import examples
from support.telemetry_records import telemetry_record

TIMEOUT_MS = 10_000
TOO_LARGE = NotWritten("MSG_SIZE_TOO_LARGE", "too large", of_record=True)
NO_RIGHTS = NotWritten("TOPIC_AUTHORIZATION_FAILED", "not allowed")
NO_TOPIC = NotWritten("UNKNOWN_TOPIC_OR_PART", "no such topic")
NO_ANSWER = NotWritten("_MSG_TIMED_OUT", "no answer")
DOWN = "the cluster acknowledges no pushes: they are refused, and clients push again later"
UP = "the cluster acknowledges pushes again"
ONE = "the cluster has refused a push"


@dataclass
class Cluster:
    """A host's pushes, and the plugin that was given them."""

    clock: MockClock = field(default_factory=MockClock)
    sent: list[int] = field(default_factory=list)
    heard: dict[int, bool] = field(default_factory=dict)
    """The outcome of each push."""
    writer: ClusterWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = self.made()

    def made(self, **changes: Any) -> ClusterWriter:
        given = {"max_bytes": 1 << 20, "max_records": 100, "timeout_ms": TIMEOUT_MS} | changes
        self.writer = ClusterWriter(
            clock=self.clock,
            timer=self.clock.timer,
            write=lambda number, _record: self.sent.append(number),
            **given,
        )
        return self.writer

    def push(self, size_bytes: int = 10) -> bool | None:
        """Push; the outcome if it is known at once."""
        kept = self.writer.append(telemetry_record(bytes(size_bytes)))
        if isinstance(kept, Deferred):
            kept.when_done(partial(self.heard.__setitem__, self.writer.number))
            return None
        return kept

    def settled(self, problem: NotWritten | None) -> bool:
        """Push, and take the cluster's outcome; return that of the push."""
        assert self.push() is None
        self.writer.settle(self.sent[-1], problem)
        return self.heard[self.sent[-1]]

    @property
    def is_balanced(self) -> bool:
        """Every push that was taken is acknowledged, refused or waits; what waits is what is held."""
        writer = self.writer
        outcomes = sum(self.heard.values()), sum(not each for each in self.heard.values())
        held = sum(each.size_bytes for each in (*writer.waiting.values(), *writer.overdue.values()))
        return (
            outcomes[0] == writer.acknowledged
            and len(self.sent) == sum(outcomes) + len(writer.waiting)
            and writer.held_bytes == held
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_push_is_kept_when_the_cluster_acknowledges_it(cluster: Cluster) -> None:
    assert cluster.push() is None
    assert cluster.heard == {}
    assert (cluster.writer.in_flight, cluster.writer.held_bytes) == (1, 10 + RECORD_BYTES)

    cluster.writer.settle(1, None)

    assert cluster.heard == {1: True}
    assert (cluster.writer.in_flight, cluster.writer.held_bytes, cluster.writer.acknowledged) == (0, 0, 1)


@pytest.mark.parametrize("problem", [TOO_LARGE, NO_RIGHTS, NO_TOPIC, NO_ANSWER])
def test_a_push_that_the_cluster_refuses_is_counted_by_its_reason(
    cluster: Cluster, problem: NotWritten
) -> None:
    assert not cluster.settled(problem)

    assert cluster.writer.refused == {problem.reason: 1}
    assert cluster.is_balanced


def test_without_a_report_a_push_is_refused_in_time_and_still_counted_as_memory(cluster: Cluster) -> None:
    cluster.push()
    cluster.clock.advance(4_000)
    cluster.push()

    cluster.clock.advance(TIMEOUT_MS - 4_001)
    assert cluster.heard == {}
    cluster.clock.advance(1)
    assert cluster.heard == {1: False}
    cluster.clock.advance(4_000)

    assert cluster.heard == {1: False, 2: False}
    assert cluster.writer.refused == {"telemetry.acknowledge.timeout.ms": 2}
    assert (cluster.writer.in_flight, cluster.writer.held_bytes) == (2, 2 * (10 + RECORD_BYTES))


def test_a_late_acknowledgment_is_counted_and_changes_no_answer(cluster: Cluster) -> None:
    cluster.push()
    cluster.clock.advance(TIMEOUT_MS)
    cluster.writer.settle(1, None)

    assert cluster.heard == {1: False}
    assert (cluster.writer.late, cluster.writer.acknowledged, cluster.writer.held_bytes) == (1, 0, 0)


def test_a_second_report_is_ignored(cluster: Cluster) -> None:
    cluster.settled(None)
    cluster.writer.settle(1, NO_ANSWER)
    cluster.writer.settle(99, None)

    assert (cluster.writer.acknowledged, cluster.writer.refused, cluster.writer.held_bytes) == (1, {}, 0)


@pytest.mark.parametrize(
    ("bounds", "key"),
    [
        ({"max_bytes": 2 * (10 + RECORD_BYTES)}, "telemetry.buffer.max.bytes"),
        ({"max_records": 2}, "telemetry.buffer.max.records"),
    ],
)
def test_beyond_a_bound_pushes_are_refused_at_once(
    cluster: Cluster, bounds: dict[str, int], key: str
) -> None:
    cluster.made(**bounds)
    cluster.push()
    cluster.push()

    assert cluster.push() is False
    assert cluster.writer.refused == {key: 1}
    cluster.writer.settle(1, None)
    assert cluster.push() is None


def test_a_plugin_that_raises_loses_only_its_own_push(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    def write(number: int, record: TelemetryRecord) -> None:
        raise OSError("no more threads")

    cluster.writer.write = write
    cluster.push()

    assert cluster.heard == {1: False}
    assert cluster.writer.refused == {"fault": 1}
    assert cluster.writer.in_flight == 0


def test_ten_minutes_without_a_cluster(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """One push in a second is tried, the others are refused at once; the log has a line at each end."""
    caplog.set_level(logging.WARNING)
    assert cluster.settled(None)
    refused_at_once, most_held = 0, 0
    for _ in range(600):
        for _ in range(10):
            refused_at_once += cluster.push() is False
        most_held = max(most_held, cluster.writer.in_flight)
        cluster.clock.advance(1_000)
        for number in [each for each in cluster.sent if each in cluster.writer.overdue]:
            cluster.writer.settle(number, NO_ANSWER)  # librdkafka has given it up
    assert [record.getMessage() for record in caplog.records] == [DOWN]

    cluster.push()
    cluster.writer.settle(cluster.sent[-1], None)

    assert [record.getMessage() for record in caplog.records] == [DOWN, UP]
    assert (caplog.records[0].levelname, caplog.records[1].levelname) == ("ERROR", "WARNING")
    assert vars(caplog.records[1])["after_s"] == 590
    assert most_held <= 100  # ten seconds of pushes, until the first of them has timed out
    assert refused_at_once > 5_000
    assert cluster.writer.refused["unavailable"] == refused_at_once - cluster.writer.refused.get(
        "telemetry.buffer.max.records", 0
    )
    assert cluster.push() is None
    assert cluster.push() is None
    assert cluster.is_balanced


def test_one_failure_among_acknowledgments_stops_nothing(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader of one partition is gone; the other partitions work."""
    cluster.push()
    cluster.settled(None)
    cluster.writer.settle(1, NO_ANSWER)

    assert cluster.writer.down_since_ms is None
    assert caplog.messages == [ONE]


def test_a_push_that_is_too_large_stops_nothing(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert not cluster.settled(TOO_LARGE)

    assert cluster.writer.down_since_ms is None
    assert caplog.messages == [ONE]


def test_without_rights_the_log_says_so_once(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        cluster.settled(NO_RIGHTS)
        cluster.clock.advance(1_000)

    assert caplog.messages == [DOWN]
    assert vars(caplog.records[0])["problem"] == "not allowed"


def test_a_stop_refuses_what_is_in_flight(cluster: Cluster) -> None:
    cluster.push()
    cluster.settled(None)

    cluster.writer.close()

    assert cluster.heard == {1: False, 2: True}
    assert cluster.writer.refused == {"stopped": 1}
    assert cluster.push() is False
    assert cluster.clock.timer.next_deadline_ms() is None


Step = tuple[str, int]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "yes", "no", "wait", "large"]), st.integers(0, 9)), max_size=60
    )
)
def test_at_any_time_every_push_has_one_place(steps: list[Step]) -> None:
    cluster = Cluster()
    cluster.made(max_records=8, timeout_ms=3_000)
    outcomes: dict[str, Callable[[], NotWritten | None]] = {
        "yes": lambda: None,
        "no": lambda: NO_ANSWER,
        "large": lambda: TOO_LARGE,
    }
    for action, at in steps:
        if action == "push":
            cluster.push(at)
        elif action == "wait":
            cluster.clock.advance(at * 500)
        elif cluster.sent:
            cluster.writer.settle(cluster.sent[-1 - at % len(cluster.sent)], outcomes[action]())
        assert cluster.is_balanced
        assert cluster.writer.in_flight <= 8
    cluster.writer.close()
    assert set(cluster.heard) == set(cluster.sent)
