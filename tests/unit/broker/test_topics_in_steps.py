"""A topic is created, deleted or extended over several turns of the loop, and still whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.topics import TOPICS_BEING_DELETED, Topic
from odradek.log.log_manager import LogManager
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreateTopicsRequest
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock
from support.topic_requests import asking, codes, deleting, growing, new_topics

UNKNOWN, EXISTS, TIMED_OUT, STORAGE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def client(clock: TickingClock, tmp_path: Path) -> Iterator[BrokerClient]:
    client = BrokerClient(make_broker(tmp_path, clock=clock))
    yield client
    client.broker.steps.stop()
    client.broker.logs.close()


def topic(client: BrokerClient, name: str) -> Topic:
    found = client.broker.topics.named(name)
    assert found is not None
    return found


def count(client: BrokerClient, name: str) -> int:
    """The number of partitions; 0 if there is no such topic."""
    found = client.broker.topics.named(name)
    return 0 if found is None else len(found.partitions)


def names(client: BrokerClient) -> list[str]:
    return [each.name for each in client.broker.topics]


def folders(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


# Half done


def test_a_topic_is_invisible_until_all_of_it_exists(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.defer(new_topics("a", partitions=40))

    assert answer() is None
    assert names(client) == []
    assert client.broker.topics.by_id == {}
    assert client.broker.metadata.topics() == []
    clock.advance(0)
    assert codes(answer()) == [0]
    assert [row.name for row in client.broker.metadata.topics()] == ["a"]


def test_the_second_request_for_a_topic_finds_it_taken(client: BrokerClient, clock: TickingClock) -> None:
    first = client.defer(new_topics("a", partitions=40))

    second = client.defer(new_topics("a"))
    clock.advance(0)

    assert (codes(first()), codes(second())) == ([0], [EXISTS])
    assert len(topic(client, "a").partitions) == 40


def test_a_name_collides_with_one_that_is_being_created(client: BrokerClient, clock: TickingClock) -> None:
    first = client.defer(new_topics("a.b", partitions=40))

    second = client.defer(new_topics("a_b"))
    clock.advance(0)

    assert (codes(first()), codes(second())) == ([0], [ErrorCode.INVALID_TOPIC_EXCEPTION])


def test_metadata_does_not_know_a_topic_that_is_being_created(
    client: BrokerClient, clock: TickingClock
) -> None:
    first = client.defer(new_topics("a", partitions=40))

    second = client.defer(asking("a"))
    clock.advance(0)

    assert (codes(first()), codes(second())) == ([0], [UNKNOWN])


def test_topics_are_created_although_the_client_has_left(client: BrokerClient, clock: TickingClock) -> None:
    connection = client.dispatcher.respond(
        client.dispatcher.routes[CreateTopicsRequest.API_KEY].at(7),
        new_topics("a", partitions=40),
        RequestContext(client.connection, CreateTopicsRequest.API_KEY, 7, 1, "test", clock.now_ms()),
    )
    assert isinstance(connection, Deferred)

    connection.lost()
    clock.advance(0)

    assert len(topic(client, "a").partitions) == 40


def test_a_stop_in_the_middle_leaves_no_topic(
    client: BrokerClient, clock: TickingClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client.defer(new_topics("a", partitions=40))
    assert folders(tmp_path)
    client.broker.steps.stop()
    client.broker.logs.close()

    again = make_broker(tmp_path, metadata=client.broker.metadata)

    assert list(again.topics) == []
    assert folders(tmp_path) == set()
    assert not [line for line in caplog.records if line.levelname in ("WARNING", "ERROR")]
    again.topics.create("a", 2, {})
    again.logs.close()


def test_a_creation_that_fails_in_the_middle_leaves_nothing(
    client: BrokerClient, clock: TickingClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_log = LogManager.open

    def full(logs: LogManager, name: str, index: int, *args: Any, **kw: Any) -> Any:
        if (name, index) == ("b", 30):
            raise ApiError(STORAGE, "no space left on device")
        return open_log(logs, name, index, *args, **kw)

    monkeypatch.setattr(LogManager, "open", full)
    answer = client.defer(new_topics("a", "b", "c", partitions=40))
    clock.advance(0)

    assert codes(answer()) == [0, STORAGE, 0]
    assert names(client) == ["a", "c"]
    assert not [name for name in folders(tmp_path) if name.startswith("b-") and not name.endswith("-delete")]
    assert client.send(new_topics("b")).topics[0].error_code == 0


def test_a_topic_deleted_in_steps_is_gone_at_once(client: BrokerClient, clock: TickingClock) -> None:
    client.broker.topics.create("a", 100, {})

    answer = client.defer(deleting("a"))

    assert answer() is None
    assert names(client) == []
    assert client.broker.metadata.topics() == []
    clock.advance(0)
    assert codes(answer()) == [0]


def test_two_requests_delete_one_topic(client: BrokerClient, clock: TickingClock) -> None:
    client.broker.topics.create("a", 100, {})

    first, second = client.defer(deleting("a")), client.defer(deleting("a"))
    clock.advance(0)

    assert (codes(first()), codes(second())) == ([0], [UNKNOWN])
    assert len(client.broker.logs) == 0


def test_a_topic_can_be_created_again_while_its_old_logs_are_deleted(
    client: BrokerClient, clock: TickingClock, tmp_path: Path
) -> None:
    old = client.broker.topics.create("a", 100, {})
    for log in old.partitions:
        log.append(batch_of(b"old"), now_ms=NOW_MS)

    first = client.defer(deleting("a"))
    second = client.defer(new_topics("a", partitions=60))
    clock.advance(0)

    assert (codes(first()), codes(second())) == ([0], [0])
    new = topic(client, "a")
    assert new.id != old.id
    assert [log.log_end_offset for log in new.partitions] == [0] * 60
    assert all(log.closed for log in old.partitions)
    assert len(client.broker.logs) == 60
    kept = {name for name in folders(tmp_path) if not name.endswith("-delete")}
    assert kept == {f"a-{index}" for index in range(60)}
    assert not any(log.closed for log in new.partitions)


def test_a_topic_grows_by_two_requests_one_after_the_other(client: BrokerClient, clock: TickingClock) -> None:
    client.broker.topics.create("a", 1, {})

    answers = [client.defer(growing(count, "a")) for count in (50, 80, 60, 100)]
    clock.advance(0)

    invalid = ErrorCode.INVALID_PARTITIONS
    assert [codes(answer()) for answer in answers] == [[0], [0], [invalid], [0]]
    assert len(topic(client, "a").partitions) == 100


def test_partitions_are_invisible_until_all_exist(client: BrokerClient, clock: TickingClock) -> None:
    client.broker.topics.create("a", 1, {})

    client.defer(growing(50, "a"))

    assert len(topic(client, "a").partitions) == 1
    assert client.broker.metadata.topics()[0].partitions == 1
    clock.advance(0)
    assert client.broker.metadata.topics()[0].partitions == 50


def test_a_topic_that_is_deleted_while_it_grows_stays_deleted(
    client: BrokerClient, clock: TickingClock, tmp_path: Path
) -> None:
    client.broker.topics.create("a", 1, {})

    first = client.defer(growing(50, "a"))
    second = client.defer(deleting("a"))
    third = client.defer(new_topics("a", partitions=30))
    clock.advance(0)

    assert [codes(first()), codes(second()), codes(third())] == [[UNKNOWN], [0], [0]]
    assert len(topic(client, "a").partitions) == len(client.broker.logs) == 30
    assert not any(log.closed for log in topic(client, "a").partitions)
    assert [row.partitions for row in client.broker.metadata.topics()] == [30]


# Time


@pytest.mark.parametrize("request_of", [new_topics, deleting, lambda *names, **kw: growing(9, *names, **kw)])
def test_topics_that_were_not_begun_in_time_are_refused(
    client: BrokerClient, clock: TickingClock, request_of: Callable[..., Any]
) -> None:
    wanted = [f"t{number}" for number in range(120)]
    if request_of is not new_topics:
        for name in wanted:
            client.broker.topics.create(name, 2, {})
    before = {name: count(client, name) for name in wanted}

    def touched() -> list[bool]:
        return [count(client, name) != before[name] for name in wanted]

    answer = client.defer(request_of(*wanted, timeout_ms=500))
    while not any(touched()):
        clock.one_turn()
    clock.time_ms += 500
    clock.advance(0)

    told = codes(answer())
    assert set(told) == {0, TIMED_OUT}
    assert [code == 0 for code in told] == touched()


def test_a_request_that_is_in_time_is_completed(client: BrokerClient, clock: TickingClock) -> None:
    answer = client.defer(new_topics("a", partitions=100, timeout_ms=500))

    clock.time_ms += 499
    clock.advance(0)

    assert codes(answer()) == [0]


# Stops and crashes during a deletion


@pytest.mark.parametrize("turns", [1, 3])
def test_a_stop_in_the_middle_of_a_deletion_leaves_no_record(
    client: BrokerClient, clock: TickingClock, tmp_path: Path, caplog: pytest.LogCaptureFixture, turns: int
) -> None:
    kept = client.broker.topics.create("kept", 1, {})
    for log in client.broker.topics.create("a", 100, {}).partitions + kept.partitions:
        log.append(batch_of(b"deleted"), now_ms=NOW_MS)
    client.defer(deleting("a"))
    for _ in range(turns):
        clock.one_turn()
    assert "a-99" in folders(tmp_path)
    client.broker.steps.stop()
    client.broker.logs.close()

    again = make_broker(tmp_path, metadata=client.broker.metadata)

    assert folders(tmp_path) == {"kept-0"}
    assert not [line for line in caplog.records if line.levelname in ("WARNING", "ERROR")]
    again.logs.close()


def test_a_deletion_that_was_completed_is_not_remembered(client: BrokerClient, clock: TickingClock) -> None:
    metadata = client.broker.metadata
    for name in ("a", "b"):
        client.broker.topics.create(name, 1, {})
        client.defer(deleting(name))
        clock.advance(0)

    remembered = metadata.value(TOPICS_BEING_DELETED) or ""
    again = make_broker(metadata=metadata)

    assert remembered.count(",") == 0
    assert metadata.value(TOPICS_BEING_DELETED) == ""
    again.logs.close()
