from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.fetch import fetch_context
from odradek.broker.fetch.fetch_read import MAX_READS
from odradek.broker.fetch.fetch_session import (
    MIN_EVICTION_MS,
    NO_SESSION,
    CachedPartition,
    FetchSessionCache,
    PartitionKey,
    next_epoch,
)
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

BATCH = batch_of(b"x" * 100)
SIZE = len(BATCH)
WRONG_EPOCH, NOT_FOUND = ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
BY_NAME, BY_ID = 12, 17


class Reader:
    """A client with topics ``t`` (3 partitions) and ``u`` (1)."""

    def __init__(self, settings: BrokerSettings | None = None, version: int = BY_ID) -> None:
        self.client = BrokerClient(make_broker(settings=settings))
        self.version = version
        self.topics = self.client.broker.topics
        self.topics.create("t", 3, {})
        self.topics.create("u", 1, {})
        self.ids = {topic.name: topic.id for topic in self.topics}

    def append(self, partition: int = 0, topic: str = "t") -> None:
        self.topics.log(topic, partition).append(BATCH, now_ms=NOW_MS)

    def wanted(self, *partitions: FetchPartition, topic: str = "t") -> FetchTopic:
        return FetchTopic(topic=topic, topic_id=self.ids.get(topic, b"?" * 16), partitions=list(partitions))

    def forgotten(self, *partitions: int, topic: str = "t") -> ForgottenTopic:
        return ForgottenTopic(topic=topic, topic_id=self.ids[topic], partitions=list(partitions))

    def fetch(
        self, session_id: int, epoch: int, *topics: FetchTopic, version: int | None = None, **fields: Any
    ) -> FetchResponse:
        request = FetchRequest(
            min_bytes=1, session_id=session_id, session_epoch=epoch, topics=list(topics), **fields
        )
        response = self.client.send(request, version or self.version)
        assert isinstance(response, FetchResponse)
        return response

    def opened(self, *partitions: FetchPartition, **fields: Any) -> int:
        """The session id."""
        response = self.fetch(0, 0, self.wanted(*partitions), **fields)
        assert response.session_id
        return response.session_id


@pytest.fixture(params=[BY_NAME, BY_ID])
def reader(request: pytest.FixtureRequest) -> Reader:
    return Reader(version=request.param)


def at(partition: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(
        **({"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20} | fields)
    )


def returned(response: FetchResponse) -> list[tuple[int, int, int]]:
    """Partition, error code and record bytes of each row."""
    return [
        (row.partition_index, row.error_code, len(row.records or b""))
        for topic in response.responses
        for row in topic.partitions
    ]


def test_a_new_session_returns_every_partition(reader: Reader) -> None:
    reader.append()

    response = reader.fetch(0, 0, reader.wanted(at(0), at(1)))

    assert response.session_id == 1
    assert returned(response) == [(0, 0, SIZE), (1, 0, 0)]


def test_unchanged_partitions_are_not_returned(reader: Reader) -> None:
    session = reader.opened(at(0), at(1))

    response = reader.fetch(session, 1)

    assert (response.error_code, response.session_id, response.responses) == (0, session, [])


def test_unread_records_are_returned_again(reader: Reader) -> None:
    reader.append()
    session = reader.opened(at(0), at(1))

    again = reader.fetch(session, 1)
    moved_on = reader.fetch(session, 2, reader.wanted(at(0, 1)))

    assert returned(again) == [(0, 0, SIZE)]
    assert returned(moved_on) == []


def test_a_partition_with_new_records_is_returned(reader: Reader) -> None:
    session = reader.opened(at(0), at(1))
    reader.append(1)

    response = reader.fetch(session, 1)

    assert returned(response) == [(1, 0, SIZE)]


def test_a_new_high_watermark_is_returned_without_records(reader: Reader) -> None:
    session = reader.opened(at(0), at(1))
    reader.append(0)
    reader.append(1)

    response = reader.fetch(session, 1, max_bytes=SIZE)

    assert returned(response) == [(0, 0, SIZE), (1, 0, 0)]


def test_returned_partitions_move_to_the_end() -> None:
    reader = Reader()
    for partition in (0, 0, 1, 1, 2, 2):
        reader.append(partition)
    session = reader.opened(at(0), at(1), at(2), max_bytes=SIZE)

    answered = [returned(reader.fetch(session, epoch, max_bytes=SIZE)) for epoch in range(1, 6)]

    assert [rows[0][0] for rows in answered] == [0, 1, 2, 0, 1]
    assert all(len(rows) == 1 for rows in answered)


def test_many_partitions_take_turns() -> None:
    reader = Reader()
    many = reader.topics.create("many", MAX_READS + 100, {})
    reader.ids["many"] = many.id
    for log in many.partitions:
        log.append(BATCH, now_ms=NOW_MS)
    wanted = reader.wanted(*(at(index) for index in range(len(many.partitions))), topic="many")
    session = reader.fetch(0, 0, wanted).session_id

    first, second = reader.fetch(session, 1), reader.fetch(session, 2)

    with_records = [[index for index, _, size in returned(answer) if size] for answer in (first, second)]
    assert [len(indexes) for indexes in with_records] == [MAX_READS, MAX_READS]
    assert {index for indexes in with_records for index in indexes} == set(range(len(many.partitions)))


def test_partitions_can_be_added_and_forgotten(reader: Reader) -> None:
    session = reader.opened(at(0))
    reader.append(0)
    reader.append(topic="u")

    response = reader.fetch(
        session, 1, reader.wanted(at(0), topic="u"), forgotten_topics_data=[reader.forgotten(0)]
    )

    assert returned(response) == [(0, 0, SIZE)]
    assert response.responses[0].topic_id == (reader.ids["u"] if reader.version == BY_ID else bytes(16))
    assert returned(reader.fetch(session, 2)) == [(0, 0, SIZE)]


def test_a_partition_outside_the_session_can_be_forgotten(reader: Reader) -> None:
    session = reader.opened(at(0))

    response = reader.fetch(
        session, 1, forgotten_topics_data=[reader.forgotten(7), reader.forgotten(0, topic="u")]
    )

    assert (response.error_code, response.session_id) == (0, session)


def test_forgetting_every_partition_ends_the_session(reader: Reader) -> None:
    session = reader.opened(at(0))

    response = reader.fetch(session, 1, forgotten_topics_data=[reader.forgotten(0)])

    assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
    assert reader.fetch(session, 2).error_code == NOT_FOUND


def test_a_session_may_be_empty(reader: Reader) -> None:
    response = reader.fetch(0, 0)

    assert (response.session_id, response.responses) == (1, [])


@pytest.mark.parametrize("epoch", [1, 3, -2, INT32_MAX])
def test_an_epoch_other_than_the_next_is_refused(reader: Reader, epoch: int) -> None:
    session = reader.opened(at(0))
    reader.fetch(session, 1)

    response = reader.fetch(session, epoch)

    assert (response.error_code, response.session_id, response.responses) == (WRONG_EPOCH, 0, [])
    assert reader.fetch(session, 2).error_code == 0


def test_an_unknown_session_is_refused(reader: Reader) -> None:
    response = reader.fetch(99, 1)

    assert (response.error_code, response.session_id) == (NOT_FOUND, 0)


def test_epochs_restart_after_the_largest(reader: Reader) -> None:
    session = reader.opened(at(0))
    reader.client.broker.fetch_sessions.sessions[session].epoch = INT32_MAX

    last = reader.fetch(session, INT32_MAX)
    first = reader.fetch(session, 1)

    assert (last.error_code, first.error_code) == (0, 0)


@pytest.mark.parametrize(("opened", "used"), [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_cannot_change_between_names_and_ids(opened: int, used: int) -> None:
    reader = Reader(version=opened)
    session = reader.opened(at(0))

    other = reader.fetch(session, 1, version=used)
    same = reader.fetch(session, 1)

    assert (other.error_code, other.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)
    assert same.error_code == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_closes_the_named_session(reader: Reader, epoch: int) -> None:
    session = reader.opened(at(0))

    reader.fetch(session, epoch, reader.wanted(at(0)))

    assert reader.fetch(session, 1).error_code == NOT_FOUND


def test_errors_are_returned_each_time_and_so_is_their_end(reader: Reader) -> None:
    session = reader.opened(at(0, 5))

    wrong = [returned(reader.fetch(session, epoch)) for epoch in (1, 2)]
    right = reader.fetch(session, 3, reader.wanted(at(0, 0)))
    later = reader.fetch(session, 4)

    assert wrong == [[(0, ErrorCode.OFFSET_OUT_OF_RANGE, 0)]] * 2
    assert returned(right) == [(0, 0, 0)]
    assert returned(later) == []


def test_a_client_with_too_many_records_is_told_each_time() -> None:
    reader = Reader()
    session = reader.opened(at(0, 5, last_fetched_epoch=0), at(1))

    told = [returned(reader.fetch(session, epoch)) for epoch in (1, 2)]

    assert told == [[(0, 0, 0)]] * 2


def test_a_topic_created_later_is_found(reader: Reader) -> None:
    reader.ids["new"] = (7).to_bytes(16)
    session = reader.fetch(0, 0, reader.wanted(at(0), topic="new")).session_id
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if reader.version == BY_ID else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    before = returned(reader.fetch(session, 1))
    reader.topics.random_uuid = lambda: reader.ids["new"]
    reader.topics.create("new", 1, {})

    after = reader.fetch(session, 2)

    assert before == [(0, unknown, 0)]
    assert returned(after) == [(0, 0, 0)]


@pytest.mark.parametrize(("version", "code"), [(BY_NAME, 0), (BY_ID, ErrorCode.INCONSISTENT_TOPIC_ID)])
def test_a_recreated_topic_is_distinguished_by_its_id(version: int, code: int) -> None:
    reader = Reader(version=version)
    session = reader.opened(at(0))
    topic = reader.topics.named("t")
    assert topic is not None
    reader.topics.delete(topic)
    gone = returned(reader.fetch(session, 1))
    reader.topics.create("t", 3, {})

    response = reader.fetch(session, 2)

    assert gone == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    assert returned(response) == [(0, code, 0)]


def test_old_versions_have_no_sessions() -> None:
    reader = Reader(version=6)

    response = reader.fetch(0, 0, reader.wanted(at(0)))

    assert response.session_id == 0
    assert len(reader.client.broker.fetch_sessions) == 0


def test_without_slots_fetches_work_without_sessions() -> None:
    reader = Reader(BrokerSettings(max_incremental_fetch_session_cache_slots=0))
    reader.append()

    response = reader.fetch(0, 0, reader.wanted(at(0)))

    assert (response.session_id, returned(response)) == (0, [(0, 0, SIZE)])


def test_the_number_of_partitions_is_a_setting() -> None:
    reader = Reader(BrokerSettings(max_fetch_session_partitions=2))

    sessions = [reader.fetch(0, 0, reader.wanted(*map(at, range(size)))).session_id for size in (3, 2)]

    assert sessions[0] == 0 != sessions[1]
    assert [(limit.setting, limit.count()) for limit in reader.client.broker.fetch_sessions.limits] == [
        ("max.incremental.fetch.session.cache.slots", 1),
        ("fetch.session.partitions.max", 2),
    ]


def test_a_session_that_grows_too_large_is_closed(reader: Reader) -> None:
    cache = reader.client.broker.fetch_sessions
    cache.max_partitions = 2
    session = reader.opened(at(0), at(1))

    grown = reader.fetch(session, 1, reader.wanted(at(2)))
    whole = reader.fetch(0, 0, reader.wanted(at(0), at(1), at(2)))

    assert (grown.error_code, whole.error_code, whole.session_id) == (NOT_FOUND, 0, 0)
    assert (len(cache), cache.partitions) == (0, 0)


def test_a_session_has_no_more_partitions_than_a_request_can_name(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_context, "MAX_SESSION_PARTITIONS", 2)
    session = reader.opened(at(0), at(1))

    grown = reader.fetch(session, 1, reader.wanted(at(2)))

    assert grown.error_code == NOT_FOUND
    assert len(reader.client.broker.fetch_sessions) == 0


def partitions_of(size: int) -> dict[PartitionKey, CachedPartition]:
    return {
        ("t", index): CachedPartition("t", bytes(16), FetchPartition(partition=index))
        for index in range(size)
    }


class SmallCache:
    """Two slots, and sessions that are created one at a time."""

    def __init__(self) -> None:
        self.cache = FetchSessionCache(2, count(1).__next__, 500)

    def open(self, size: int, now_ms: int) -> int:
        return self.cache.open(partitions_of(size), True, now_ms)


def test_a_recent_session_is_not_replaced() -> None:
    small = SmallCache()
    small.open(1, 0)
    small.open(1, 0)

    third = small.open(50, MIN_EVICTION_MS)

    assert third == NO_SESSION


def test_an_inactive_session_is_replaced_by_any() -> None:
    small = SmallCache()
    small.open(9, 0)
    small.open(9, 1)

    third = small.open(1, MIN_EVICTION_MS + 1)

    assert third == 3
    assert list(small.cache.sessions) == [2, 3]


@pytest.mark.parametrize(("size", "opened"), [(4, NO_SESSION), (5, NO_SESSION), (6, 3)])
def test_an_old_active_session_is_replaced_by_a_larger_one(size: int, opened: int) -> None:
    small = SmallCache()
    for session_id in (small.open(5, 0), small.open(8, 0)):
        small.cache.touch(small.cache.sessions[session_id], MIN_EVICTION_MS + 1)

    third = small.open(size, MIN_EVICTION_MS + 2)

    assert third == opened
    assert (1 in small.cache.sessions) == (opened == NO_SESSION)


def test_a_session_id_in_use_is_drawn_again() -> None:
    drawn = iter([5, 5, 5, 6])
    cache = FetchSessionCache(9, lambda: next(drawn), 500)

    ids = [cache.open(partitions_of(1), True, 0) for _ in range(2)]

    assert ids == [5, 6]


def test_removing_an_unknown_session_is_harmless() -> None:
    cache = FetchSessionCache(9, count(1).__next__, 500)

    cache.remove(3)

    assert (len(cache), cache.partitions) == (0, 0)


@pytest.mark.parametrize(
    ("answer", "differs"),
    [
        (PartitionData(high_watermark=5, log_start_offset=2), False),
        (PartitionData(high_watermark=6, log_start_offset=2), True),
        (PartitionData(high_watermark=5, log_start_offset=3), True),
        (PartitionData(high_watermark=5, log_start_offset=2, records=b"x"), True),
        (PartitionData(high_watermark=5, log_start_offset=2, error_code=1), True),
    ],
)
def test_a_changed_answer_is_returned(answer: PartitionData, differs: bool) -> None:
    partition = CachedPartition("t", bytes(16), FetchPartition(), 5, 2)

    news = partition.differs(answer)

    assert news == differs


def test_epochs_wrap_around() -> None:
    assert [next_epoch(1), next_epoch(INT32_MAX)] == [2, 1]
