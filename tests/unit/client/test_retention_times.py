"""Retention of topics: asked for once, again after ten minutes, and without the right to see it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.retention_times import ASKED_EVERY_MS, RetentionTimes, retention_ms
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def described(name: str, *, error: int = 0, **values: str) -> DescribeConfigsResult:
    configs = [
        DescribeConfigsResourceResult(name=key.replace("_", "."), value=each) for key, each in values.items()
    ]
    return DescribeConfigsResult(error_code=error, resource_name=name, configs=configs)


@dataclass
class Brokers:
    """Brokers of which the first does not answer."""

    nodes: tuple[int, ...] = (1, 2)
    asked: list[list[str]] = field(default_factory=list)

    def answer(self, node: int, request: Callable[[Any], Any]) -> Generator[None, Any, Any]:
        yield None
        return None if node == 1 else request(self)

    def send(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        names = [each.resource_name for each in request.resources]
        self.asked.append(names)
        rows = [described(name, retention_ms="60000", cleanup_policy="delete") for name in names]
        return DescribeConfigsResponse(results=rows)


def learn(times: RetentionTimes, *topics: str) -> None:
    for _ in times.learn(topics):
        pass


def test_topics_are_asked_for_when_they_are_new_and_every_ten_minutes() -> None:
    brokers, clock = Brokers(), MockClock()
    times = RetentionTimes(cast(AskedBrokers, brokers), clock)

    learn(times, "a", "b")
    learn(times, "a", "b")
    learn(times, "b", "c")
    assert brokers.asked == [["a", "b"], ["c"]]
    assert times.times == {"b": 60_000, "c": 60_000}

    clock.advance(ASKED_EVERY_MS)
    learn(times, "b", "c")
    assert brokers.asked[2:] == [["b", "c"]]


def test_many_topics_are_asked_for_in_several_requests() -> None:
    brokers = Brokers()
    times = RetentionTimes(cast(AskedBrokers, brokers), MockClock())

    learn(times, *[f"t{number}" for number in range(250)])

    assert [len(each) for each in brokers.asked] == [100, 100, 50]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (described("t", retention_ms="1000", cleanup_policy="compact,delete"), 1000),
        (described("t", retention_ms="-1", cleanup_policy="delete"), -1),
        (described("t", retention_ms="1000", cleanup_policy="compact"), None),
        (described("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED), None),
        (described("t"), None),
    ],
)
def test_what_deletes_records(row: DescribeConfigsResult, expected: int | None) -> None:
    assert retention_ms(row) == expected
