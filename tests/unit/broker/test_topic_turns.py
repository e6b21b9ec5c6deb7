"""Each turn of the loop does a bounded part of creating, deleting, extending and describing topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from odradek.broker import topic_changes
from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.dispatch import response_elements
from odradek.broker.topics import Topic
from odradek.log.log_manager import LogManager
from odradek.wire.api_error import ApiError
from odradek.wire.codec import element_writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataRequest
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock
from support.topic_requests import asking, codes, deleting, growing, new_topics

STEPS_A_TURN = 12
"""A turn of a millisecond in which each step takes a tenth of it, and some room."""


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def client(clock: TickingClock) -> BrokerClient:
    return BrokerClient(make_broker(clock=clock))


def counted(monkeypatch: pytest.MonkeyPatch, method: str) -> list[int]:
    """The calls of a method of the log manager, in each turn."""
    counts, original = [0], getattr(LogManager, method)

    def counting(*args: Any, **kw: Any) -> Any:
        counts[-1] += 1
        return original(*args, **kw)

    monkeypatch.setattr(LogManager, method, counting)
    return counts


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The elements of responses that are encoded one by one, in each turn."""
    counts, original = [0], element_writer

    def counting(*args: Any) -> Callable[[Any], bytes]:
        write = original(*args)
        assert write is not None

        def one(element: Any) -> bytes:
            counts[-1] += 1
            return write(element)

        return one

    monkeypatch.setattr(response_elements, "element_writer", counting)
    return counts


def in_turns(clock: TickingClock, counts: list[int], answer: Callable[[], Any]) -> Any:
    """Run turns until the answer is there, each with a count of its own."""
    while (response := answer()) is None:
        counts.append(0)
        clock.one_turn()
    return response


# Work in each turn


def test_creating_topics_is_spread_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = counted(monkeypatch, "open")

    response = in_turns(clock, opened, client.defer(new_topics("a", "b", "c", partitions=40)))

    assert codes(response) == [0, 0, 0]
    assert sum(opened) == 120
    assert max(opened) <= STEPS_A_TURN
    assert [each.name for each in client.broker.topics] == ["a", "b", "c"]


def test_metadata_creates_topics_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = counted(monkeypatch, "open")
    wanted = [f"t.{number}" for number in range(120)]

    response = in_turns(clock, opened, client.defer(asking(*wanted)))

    assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 120  # the client asks again
    assert max(opened) <= STEPS_A_TURN
    assert [each.name for each in client.broker.topics] == wanted


def test_metadata_of_many_topics_is_spread_over_turns(client: BrokerClient, clock: TickingClock) -> None:
    for number in range(100):
        client.broker.topics.create(f"t{number}", 1, {})

    answer = client.defer(MetadataRequest(topics=None))

    assert answer() is None
    clock.advance(0)
    assert len(answer().topics) == 100


def test_deleting_topics_is_spread_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        client.broker.topics.create(name, 40, {})
    deleted = counted(monkeypatch, "delete")

    response = in_turns(clock, deleted, client.defer(deleting("a", "b", "c")))

    assert codes(response) == [0, 0, 0]
    assert sum(deleted) == 120
    assert max(deleted) <= STEPS_A_TURN
    assert len(client.broker.logs) == 0


def test_the_logs_of_a_deleted_topic_are_freed_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_changes, "FREED_TOGETHER", 2)
    logs = WeakSet(client.broker.topics.create("a", 100, {}).partitions)
    left = [len(logs)]

    answer = client.defer(deleting("a"))
    while answer() is None:
        clock.one_turn()
        left.append(len(logs))

    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) <= 2 * STEPS_A_TURN


def test_adding_partitions_is_spread_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.broker.topics.create("a", 1, {})
    opened = counted(monkeypatch, "open")

    response = in_turns(clock, opened, client.defer(growing(121, "a")))

    assert codes(response) == [0]
    assert sum(opened) == 120
    assert max(opened) <= STEPS_A_TURN
    assert [len(each.partitions) for each in client.broker.topics] == [121]


class Unlisted(dict[str, Topic]):
    """Topics that may be looked up, but not listed."""

    def __iter__(self) -> Iterator[str]:
        pytest.fail("the topics were listed")

    keys = values = items = __iter__  # type: ignore[assignment]


def test_a_dotted_name_is_compared_with_no_other(client: BrokerClient) -> None:
    topics = client.broker.topics
    topics.create("a.b", 1, {})
    topics.by_name = Unlisted(topics.by_name)

    topics.create("a.c", 1, {})

    with pytest.raises(ApiError, match=r"collides with existing topic: a\.c"):
        topics.check_new_name("a_c")


# Answers


def test_the_answer_of_a_creation_is_encoded_in_steps(
    client: BrokerClient, clock: TickingClock, encoded: list[int]
) -> None:
    wanted = [f"t{number}" for number in range(60)]

    response = in_turns(clock, encoded, client.defer(new_topics(*wanted)))

    assert [row.name for row in response.topics] == wanted
    assert all(len(row.configs) > 20 for row in response.topics)
    assert sum(encoded) == 60
    assert max(encoded) <= STEPS_A_TURN


def test_a_creation_is_never_refused_for_its_answer(clock: TickingClock, tmp_path: Path) -> None:
    client = BrokerClient(
        make_broker(tmp_path, clock=clock, settings=BrokerSettings(response_max_bytes=1_024))
    )
    answer = client.defer(new_topics(*(f"t{number}" for number in range(60))))
    clock.advance(0)

    assert codes(answer()) == [0] * 60
    client.broker.logs.close()


def test_metadata_of_many_partitions_is_encoded_in_steps(
    client: BrokerClient, clock: TickingClock, encoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.broker.handlers.metadata.MANY_PARTITIONS", 50)
    for number in range(8):
        client.broker.topics.create(f"t{number}", 10, {})

    response = in_turns(clock, encoded, client.defer(MetadataRequest(topics=None)))

    assert [len(row.partitions) for row in response.topics] == [10] * 8
    assert sum(encoded) == 8


def test_metadata_of_one_topic_is_encoded_at_once(client: BrokerClient, encoded: list[int]) -> None:
    client.broker.topics.create("t", 10, {})

    assert codes(client.send(asking("t"))) == [0]
    assert sum(encoded) == 0
