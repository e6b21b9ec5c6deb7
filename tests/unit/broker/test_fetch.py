from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.fetch.long_poll import LongPoll
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.wire.parts import Parts
from odradek.wire.record_batch import record_batches, records
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

VERSIONS = range(FetchRequest.VERSIONS.first, FetchRequest.VERSIONS.last + 1)
LATEST = FetchRequest.VERSIONS.last
MANY = 1 << 20
BATCH = batch_of(b"x" * 100)
SIZE = len(BATCH)
OUT_OF_RANGE, UNKNOWN = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(slots=True)
class Consumer:
    """Fetches from topic ``t`` of three partitions."""

    client: BrokerClient
    answers: list[FetchResponse] = field(default_factory=list)
    pending: Deferred[Any] | None = None
    idle_tasks: int = 0
    """The timers that exist whether a fetch waits or not."""

    def __post_init__(self) -> None:
        self.idle_tasks = len(self.clock.timer)

    @property
    def clock(self) -> MockClock:
        clock = self.client.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    def append(self, partition: int = 0, *values: bytes) -> None:
        log = self.client.broker.topics.log("t", partition)
        log.append(batch_of(*values) if values else BATCH, now_ms=NOW_MS)

    def request(self, *partitions: FetchPartition, **fields: Any) -> Any:
        topic = self.client.broker.topics.named("t")
        wanted = FetchTopic(topic="t", topic_id=topic.id if topic else b"?" * 16, partitions=list(partitions))
        defaults: dict[str, Any] = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": MANY,
            "topics": [wanted] if partitions else [],
        }
        return FetchRequest(**(defaults | fields))

    def fetch(
        self, *partitions: FetchPartition, version: int = LATEST, **fields: Any
    ) -> FetchResponse | None:
        """The answer if it is immediate; otherwise it will be in ``answers``."""
        request = self.request(*partitions, **fields)
        header = RequestHeader(FetchRequest.API_KEY, version, 1, "consumer")
        frame = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        answer = self.client.dispatcher.answer(frame, 0, self.client.connection)
        if isinstance(answer, bytes | Parts):
            return self.decoded(answer, version)
        assert isinstance(answer, Deferred)
        self.pending = answer
        answer.when_done(lambda written: self.answers.append(self.decoded(written, version)))
        return None

    def fetched(self, *partitions: FetchPartition, version: int = LATEST, **fields: Any) -> FetchResponse:
        """The immediate answer; fails if there is none."""
        response = self.fetch(*partitions, version=version, **fields)
        assert response is not None
        return response

    @staticmethod
    def decoded(answer: bytes | Parts, version: int) -> FetchResponse:
        frame = bytes(answer)
        _, start = read_response_header(frame, 4, flexible_response_header(FetchResponse, version))
        return decode(FetchResponse, version, frame, start)

    def waits(self) -> bool:
        """Whether a fetch still has a timer or a listener on a log."""
        topics = self.client.broker.topics
        return bool(
            len(self.clock.timer) > self.idle_tasks
            or any(log.listeners for topic in topics for log in topic.partitions)
        )


@pytest.fixture
def consumer() -> Consumer:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 3, {})
    return Consumer(client)


def at(offset: int = 0, partition: int = 0, max_bytes: int = MANY, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)


def sizes(response: FetchResponse) -> list[int]:
    """The number of record bytes in each partition."""
    return [len(partition.records or b"") for topic in response.responses for partition in topic.partitions]


def codes(response: FetchResponse) -> list[int]:
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


def offsets(response: FetchResponse) -> list[int]:
    """The offsets of all records of the first partition."""
    data = bytes(response.responses[0].partitions[0].records or b"")
    return [record.offset for header, batch in record_batches(data) for record in records(batch, header)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_has_its_offsets(consumer: Consumer, version: int) -> None:
    consumer.append()
    consumer.append()

    response = consumer.fetched(at(1), version=version)

    (partition,) = response.responses[0].partitions
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, 2, 2)
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    assert partition.aborted_transactions is None
    assert offsets(response) == [1]
    assert (response.responses[0].topic == "t") == (version < 13)
    assert response.session_id == 0


def test_the_batch_that_contains_the_offset_is_returned_whole(consumer: Consumer) -> None:
    consumer.append(0, b"a", b"b", b"c")
    consumer.append(0, b"d")

    response = consumer.fetched(at(2))

    assert offsets(response) == [0, 1, 2, 3]


@pytest.mark.parametrize(("limit", "batches"), [(SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (MANY, 3)])
def test_max_bytes_limits_whole_batches(consumer: Consumer, limit: int, batches: int) -> None:
    for _ in range(3):
        consumer.append()

    of_all = consumer.fetched(at(), max_bytes=limit)
    of_one = consumer.fetched(at(max_bytes=limit))

    assert sizes(of_all) == sizes(of_one) == [batches * SIZE]


@pytest.mark.parametrize("limit", [1, SIZE - 1, 0, -1, -(2**31)])
def test_the_first_batch_is_returned_even_if_larger_than_every_limit(consumer: Consumer, limit: int) -> None:
    consumer.append()
    consumer.append(1)

    of_all = consumer.fetched(at(), at(partition=1), max_bytes=limit)
    of_each = consumer.fetched(at(max_bytes=limit), at(partition=1, max_bytes=limit))

    assert sizes(of_all) == [SIZE, 0]
    assert sizes(of_each) == [SIZE, 0]


def test_partitions_share_the_limit_in_their_order(consumer: Consumer) -> None:
    for partition in (0, 0, 1, 1, 2):
        consumer.append(partition)

    response = consumer.fetched(at(), at(partition=1), at(partition=2), max_bytes=3 * SIZE)

    assert sizes(response) == [2 * SIZE, SIZE, 0]


def test_an_empty_first_partition_does_not_consume_the_oversized_batch(consumer: Consumer) -> None:
    consumer.append(1)

    response = consumer.fetched(at(), at(partition=1), max_bytes=1)

    assert sizes(response) == [0, SIZE]


def test_the_hosts_limit_overrides_a_larger_one_of_the_client() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(fetch_max_bytes=SIZE)))
    client.broker.topics.create("t", 1, {})
    consumer = Consumer(client)
    consumer.append()
    consumer.append()

    response = consumer.fetched(at())

    assert sizes(response) == [SIZE]


@pytest.mark.parametrize("offset", [2, 99, -1, -2, 2**63 - 1, -(2**63)])
def test_an_offset_out_of_range_answers_at_once(consumer: Consumer, offset: int) -> None:
    consumer.append()

    response = consumer.fetched(at(offset), at(1, partition=1), at(partition=2), min_bytes=MANY)

    assert codes(response) == [OUT_OF_RANGE, OUT_OF_RANGE, 0]
    assert response.responses[0].partitions[0].high_watermark == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_has_the_error_of_its_version(consumer: Consumer, version: int) -> None:
    topics = [FetchTopic(topic="no", topic_id=b"?" * 16, partitions=[at()])]

    response = consumer.fetched(version=version, topics=topics)

    assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else UNKNOWN]


@pytest.mark.parametrize("partition", [3, -1, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_does_not_end_the_wait(consumer: Consumer, partition: int) -> None:
    waiting = consumer.fetch(at(partition=partition), at())

    consumer.append()

    assert waiting is None
    assert [codes(answer) for answer in consumer.answers] == [[0, UNKNOWN]]
    assert consumer.answers[0].responses[0].partitions[1].aborted_transactions == []


def test_only_unknown_partitions_are_answered_at_once(consumer: Consumer) -> None:
    response = consumer.fetched(at(partition=8), at(partition=9))

    assert codes(response) == [UNKNOWN, UNKNOWN]
    assert not consumer.waits()


def test_a_partition_named_twice_is_answered_once(consumer: Consumer) -> None:
    consumer.append()

    response = consumer.fetched(at(), at())

    assert sizes(response) == [SIZE]


@pytest.mark.parametrize("records", [0, 1])
def test_a_client_with_more_of_the_epoch_than_the_log_learns_at_once_where_it_ends(
    consumer: Consumer, records: int
) -> None:
    for _ in range(records):
        consumer.append()

    response = consumer.fetched(at(5, last_fetched_epoch=0), min_bytes=MANY)

    (partition,) = response.responses[0].partitions
    diverging = partition.diverging_epoch
    assert (partition.error_code, partition.high_watermark, partition.records) == (0, records, b"")
    assert (diverging.epoch, diverging.end_offset) == (0, records)


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [(8, 5, 0), (9, 5, ErrorCode.UNKNOWN_LEADER_EPOCH), (LATEST, 0, 0), (LATEST, -1, 0), (LATEST, -7, 0)],
)
def test_the_leader_epoch_is_checked_if_sent(consumer: Consumer, version: int, epoch: int, code: int) -> None:
    consumer.append()

    response = consumer.fetched(at(current_leader_epoch=epoch), version=version)

    assert codes(response) == [code]


@pytest.mark.parametrize(("version", "code"), [(11, 0), (12, OUT_OF_RANGE)])
def test_an_unknown_last_fetched_epoch_is_answered_by_version(
    consumer: Consumer, version: int, code: int
) -> None:
    consumer.append()

    response = consumer.fetched(at(last_fetched_epoch=3), version=version)

    assert codes(response) == [code]


@pytest.mark.parametrize(("epoch", "opened"), [(-1, 0), (0, 1)])
@pytest.mark.parametrize("session_id", [0, 77])
def test_a_full_request_is_served_with_any_session_id(
    consumer: Consumer, session_id: int, epoch: int, opened: int
) -> None:
    consumer.append()

    response = consumer.fetched(at(), session_id=session_id, session_epoch=epoch)

    assert (response.error_code, response.session_id, sizes(response)) == (0, opened, [SIZE])


@pytest.mark.parametrize(("session_id", "epoch"), [(0, 1), (77, 3), (0, -9), (-1, 2**31 - 1)])
def test_an_incremental_request_needs_its_session(consumer: Consumer, session_id: int, epoch: int) -> None:
    response = consumer.fetched(at(), session_id=session_id, session_epoch=epoch)

    assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


def test_an_empty_request_does_not_wait(consumer: Consumer) -> None:
    response = consumer.fetched(min_bytes=MANY)

    assert response.responses == []
    assert not consumer.waits()


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_without_a_wait_available_records_are_returned(consumer: Consumer, max_wait_ms: int) -> None:
    response = consumer.fetched(at(), min_bytes=MANY, max_wait_ms=max_wait_ms)

    assert sizes(response) == [0]


@pytest.mark.parametrize("min_bytes", [0, -1, -(2**31)])
def test_without_min_bytes_a_fetch_does_not_wait(consumer: Consumer, min_bytes: int) -> None:
    response = consumer.fetched(at(), min_bytes=min_bytes)

    assert sizes(response) == [0]


def test_min_bytes_above_the_limit_are_not_waited_for(consumer: Consumer) -> None:
    consumer.append()

    response = consumer.fetched(at(), min_bytes=2**31 - 1, max_bytes=SIZE)

    assert sizes(response) == [SIZE]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_append_answers_a_waiting_fetch(consumer: Consumer, version: int) -> None:
    waiting = consumer.fetch(at(), at(partition=1), version=version)

    consumer.append(1)

    assert waiting is None
    assert [sizes(answer) for answer in consumer.answers] == [[0, SIZE]]
    assert not consumer.waits()


def test_several_small_appends_add_up(consumer: Consumer) -> None:
    consumer.append()
    consumer.fetch(at(), at(partition=1), min_bytes=3 * SIZE)
    consumer.append(1)
    before = list(consumer.answers)

    consumer.append(0)

    assert before == []
    assert [sizes(answer) for answer in consumer.answers] == [[2 * SIZE, SIZE]]
    assert not consumer.waits()


def test_an_append_to_another_partition_does_not_answer(consumer: Consumer) -> None:
    consumer.fetch(at())

    consumer.append(1)

    assert consumer.answers == []


def test_after_max_wait_available_records_are_returned(consumer: Consumer) -> None:
    consumer.append()
    consumer.fetch(at(), min_bytes=MANY, max_wait_ms=500)
    consumer.clock.advance(499)
    before = list(consumer.answers)

    consumer.clock.advance(1)

    assert before == []
    assert [sizes(answer) for answer in consumer.answers] == [[SIZE]]
    assert not consumer.waits()


def test_a_fetch_waits_at_most_five_minutes(consumer: Consumer) -> None:
    consumer.fetch(at(), max_wait_ms=2**31 - 1)

    consumer.clock.advance(300_000)

    assert [sizes(answer) for answer in consumer.answers] == [[0]]
    assert not consumer.waits()


@pytest.mark.parametrize("version", [12, 13])
def test_deleting_the_topic_answers_a_waiting_fetch(consumer: Consumer, version: int) -> None:
    consumer.fetch(at(), at(partition=1), version=version)
    topic = consumer.client.broker.topics.named("t")
    assert topic is not None
    logs = [*topic.partitions]

    consumer.client.broker.topics.delete(topic)

    assert [codes(answer) for answer in consumer.answers] == [[UNKNOWN, UNKNOWN]]
    assert len(consumer.clock.timer) == consumer.idle_tasks
    assert [log.listeners for log in logs] == [set(), set(), set()]


def test_a_lost_connection_leaves_nothing_behind(consumer: Consumer) -> None:
    consumer.fetch(at(), at(partition=1))
    assert consumer.pending is not None

    consumer.pending.lost()

    assert not consumer.waits()
    assert consumer.answers == []


@pytest.mark.parametrize("end", ["lost", "hurry"])
def test_a_wait_that_is_over_is_freed_without_the_garbage_collector(consumer: Consumer, end: str) -> None:
    gc.collect()
    gc.disable()
    consumer.fetch(at(), at(partition=1), isolation_level=1)
    before = waiting_fetches()

    getattr(consumer.pending, end)()
    consumer.pending = None

    gc.enable()
    assert (before, waiting_fetches()) == (1, 0)


def waiting_fetches() -> int:
    """How many `LongPoll` objects exist."""
    return sum(type(each) is LongPoll for each in gc.get_objects())


def test_a_lost_connection_gets_no_answer(consumer: Consumer) -> None:
    consumer.fetch(at())
    assert consumer.pending is not None
    consumer.pending.lost()

    consumer.append()

    consumer.clock.advance(1_000)
    assert consumer.answers == []


def test_a_stopping_host_answers_with_available_records(consumer: Consumer) -> None:
    consumer.append()
    consumer.fetch(at(), min_bytes=MANY)
    assert consumer.pending is not None
    assert consumer.pending.hurry is not None

    consumer.pending.hurry()

    assert [sizes(answer) for answer in consumer.answers] == [[SIZE]]
    assert not consumer.waits()


def test_one_append_answers_every_waiting_fetch(consumer: Consumer) -> None:
    for _ in range(3):
        consumer.fetch(at())

    consumer.append()

    assert [sizes(answer) for answer in consumer.answers] == [[SIZE]] * 3


def test_a_bug_while_answering_does_not_affect_the_producer(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.fetch(at())
    monkeypatch.setattr("odradek.broker.handlers.fetch.Read.one", None)

    consumer.append()

    assert consumer.client.broker.topics.log("t", 0).log_end_offset == 1
    assert [answer.error_code for answer in consumer.answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert consumer.client.dispatcher.unexpected_errors == 1
    assert not consumer.waits()


def test_a_damaged_file_is_a_corrupt_message(consumer: Consumer) -> None:
    consumer.append()
    segment = next(consumer.client.broker.topics.log("t", 0).directory.glob("*.log"))
    segment.write_bytes(b"\xff" * SIZE)

    response = consumer.fetched(at())

    assert codes(response) == [ErrorCode.CORRUPT_MESSAGE]
