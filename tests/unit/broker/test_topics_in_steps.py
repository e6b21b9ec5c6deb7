"""Creating, deleting and extending topics is spread over turns of the loop, and is still all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from odradek.broker import topic_changes
from odradek.broker.broker import BrokerSettings
from odradek.broker.dispatch import response_elements
from odradek.broker.topics import TOPICS_BEING_DELETED, Topic
from odradek.deferred import Deferred
from odradek.log.log_manager import LogManager
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.codec import element_writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock

STEPS_A_TURN = 12
"""A turn of a millisecond in which each step takes a tenth of it, and some room."""
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


class Counted:
    """Counts the calls of a method of the log manager in each turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self.turns = [0]
        original = getattr(LogManager, method)

        def counting(*args: Any, **kw: Any) -> Any:
            self.turns[-1] += 1
            return original(*args, **kw)

        monkeypatch.setattr(LogManager, method, counting)

    def run(self, clock: TickingClock, answer: Callable[[], Any]) -> Any:
        """Run turns until the answer is there."""
        while (response := answer()) is None:
            self.turns.append(0)
            clock.one_turn()
        return response


def new_topics(*names: str, partitions: int = 1, timeout_ms: int = 60_000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def deleting(*names: str, timeout_ms: int = 60_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)


def growing(count: int, *names: str, timeout_ms: int = 60_000) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
    return CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms)


def asking(*names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )


def codes(response: Any) -> list[int]:
    rows = getattr(response, "topics", None) or getattr(response, "responses", None) or response.results
    return [row.error_code for row in rows]


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


# Work in each turn


def test_creating_topics_is_spread_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Counted(monkeypatch, "open")

    response = opened.run(clock, client.defer(new_topics("a", "b", "c", partitions=40)))

    assert codes(response) == [0, 0, 0]
    assert sum(opened.turns) == 120
    assert max(opened.turns) <= STEPS_A_TURN
    assert names(client) == ["a", "b", "c"]


def test_metadata_creates_topics_over_turns(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Counted(monkeypatch, "open")
    wanted = [f"t.{number}" for number in range(120)]

    response = opened.run(clock, client.defer(asking(*wanted)))

    assert codes(response) == [0] * 120
    assert max(opened.turns) <= STEPS_A_TURN
    assert names(client) == wanted


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
    deleted = Counted(monkeypatch, "delete")

    response = deleted.run(clock, client.defer(deleting("a", "b", "c")))

    assert codes(response) == [0, 0, 0]
    assert sum(deleted.turns) == 120
    assert max(deleted.turns) <= STEPS_A_TURN
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
    opened = Counted(monkeypatch, "open")

    response = opened.run(clock, client.defer(growing(121, "a")))

    assert codes(response) == [0]
    assert sum(opened.turns) == 120
    assert max(opened.turns) <= STEPS_A_TURN
    assert len(topic(client, "a").partitions) == 121


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


# Answers


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
    while (response := answer()) is None:
        counts.append(0)
        clock.one_turn()
    return response


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
