"""Fetch and ListOffsets with read_committed, while transactions begin, commit and abort."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.fetch.fetch_context import Partitions
from odradek.broker.fetch.fetch_read import Read
from odradek.broker.fetch.long_poll import LOOK_MS
from odradek.log.control_batch import TransactionMarker
from odradek.log.extent import Extent
from odradek.log.partition_log import PartitionLog
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
from odradek.wire.messages.fetch import FetchResponse, PartitionData
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches
from support.batches import NOW_MS
from support.broker import BrokerClient, make_broker
from support.data_requests import fetch_request

A, B = 1, 2
"""Two transactional producers."""


@dataclass(slots=True)
class Reader:
    """Reads topic ``t``, of one partition, to which the producers write."""

    client: BrokerClient = field(default_factory=lambda: BrokerClient(make_broker()))
    sequences: dict[int, int] = field(default_factory=dict)
    answers: list[FetchResponse] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client.broker.topics.create("t", 1, {})

    @property
    def log(self) -> PartitionLog:
        return self.client.broker.topics.log("t", 0)

    @property
    def clock(self) -> MockClock:
        clock = self.client.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    def plain(self) -> None:
        """Write a record outside any transaction."""
        self.log.append(build_batch([Record(b"k", b"v", NOW_MS)]), now_ms=NOW_MS)

    def write(self, producer: int) -> None:
        """Write a record in the producer's transaction."""
        sequence = self.sequences.setdefault(producer, 0)
        self.sequences[producer] += 1
        batch = build_batch(
            [Record(b"k", b"v" * 50, NOW_MS)],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        self.log.append(batch, now_ms=NOW_MS, join_transaction=lambda _header: None)

    def end(self, producer: int, committed: bool) -> None:
        self.log.append_marker(TransactionMarker(producer, 0, committed), NOW_MS)

    def fetch(self, offset: int = 0, **fields: Any) -> PartitionData | None:
        """The partition's answer; None if it is deferred."""
        topic_id = self.client.broker.topics.by_name["t"].id
        request: Any = fetch_request("t", offset, topic_id=topic_id, **{"isolation_level": 1, **fields})
        header = RequestHeader(1, 17, 1, "reader")
        frame = request_header(header, flexible_request_header(request, 17)) + encode(request, 17)
        answer = self.client.dispatcher.answer(frame, 0, self.client.connection)
        if isinstance(answer, Deferred):
            answer.when_done(lambda written: self.answers.append(response_in(written)))
            return None
        assert isinstance(answer, bytes)
        return response_in(answer).responses[0].partitions[0]

    def fetched(self, offset: int = 0, **fields: Any) -> PartitionData:
        found = self.fetch(offset, **fields)
        assert found is not None
        return found

    def listed(self, timestamp: int, isolation_level: int = 1) -> tuple[int, int]:
        """Error code and offset."""
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            isolation_level=isolation_level, topics=[ListOffsetsTopic(name="t", partitions=[partition])]
        )
        (row,) = self.client.send(request).topics[0].partitions
        return row.error_code, row.offset


def response_in(frame: bytes) -> FetchResponse:
    _, start = read_response_header(frame, 4, flexible_response_header(FetchResponse, 17))
    return decode(FetchResponse, 17, frame, start)


def offsets(partition: PartitionData) -> list[int]:
    """The first offset of each batch."""
    return [header.base_offset for header, _ in record_batches(bytes(partition.records or b""))]


def aborted(partition: PartitionData) -> list[tuple[int, int]] | None:
    rows = partition.aborted_transactions
    return None if rows is None else [(row.producer_id, row.first_offset) for row in rows]


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_without_transactions_every_record_is_committed(reader: Reader) -> None:
    reader.plain()
    reader.plain()

    found = reader.fetched()

    assert (offsets(found), aborted(found), found.last_stable_offset) == ([0, 1], [], 2)


def test_an_open_transaction_holds_back_all_later_records(reader: Reader) -> None:
    reader.plain()
    reader.write(A)
    reader.plain()

    committed, everything = reader.fetched(), reader.fetched(isolation_level=0)

    assert (offsets(committed), committed.last_stable_offset, committed.high_watermark) == ([0], 1, 3)
    assert (offsets(everything), aborted(everything), everything.last_stable_offset) == ([0, 1, 2], None, 1)


def test_after_the_last_stable_offset_the_answer_is_empty_without_an_error(reader: Reader) -> None:
    reader.write(A)
    reader.plain()

    found = [reader.fetched(offset) for offset in (0, 1, 2)]

    assert [(row.error_code, row.records) for row in found] == [(0, b"")] * 3


def test_an_offset_outside_the_log_is_still_out_of_range(reader: Reader) -> None:
    reader.write(A)

    assert reader.fetched(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_aborted_transactions_are_returned_with_their_records(reader: Reader) -> None:
    reader.write(A)
    reader.write(B)
    reader.end(A, committed=False)
    reader.end(B, committed=True)

    found = reader.fetched()

    assert (offsets(found), aborted(found)) == ([0, 1, 2, 3], [(A, 0)])


def test_only_aborted_transactions_within_the_records_are_returned(reader: Reader) -> None:
    for producer in (A, B):
        reader.write(producer)
        reader.end(producer, committed=False)
    size = len(reader.fetched(max_bytes=1).records or b"")

    first, later, last = reader.fetched(max_bytes=size), reader.fetched(2), reader.fetched(4)

    assert (offsets(first), aborted(first)) == ([0], [(A, 0)])
    assert (offsets(later), aborted(later)) == ([2, 3], [(B, 2)])
    assert (offsets(last), aborted(last)) == ([], [])


def test_the_first_batch_is_returned_whatever_the_limit_unless_it_is_open(reader: Reader) -> None:
    reader.plain()
    reader.write(A)

    committed, opened = reader.fetched(0, max_bytes=1), reader.fetched(1, max_bytes=1)

    assert (offsets(committed), offsets(opened)) == ([0], [])


def test_a_commit_answers_a_waiting_fetch(reader: Reader) -> None:
    reader.write(A)
    waiting = reader.fetch(max_wait_ms=500)
    reader.write(A)
    before = list(reader.answers)

    reader.end(A, committed=True)

    assert (waiting, before) == (None, [])
    (answer,) = reader.answers
    assert offsets(answer.responses[0].partitions[0]) == [0, 1, 2]
    assert reader.log.listeners == set()


def test_records_after_an_open_transaction_answer_no_fetch(reader: Reader) -> None:
    reader.write(A)
    reader.fetch(max_wait_ms=500)

    reader.plain()

    assert reader.answers == []


def test_a_marker_that_releases_too_few_bytes_does_not_answer(reader: Reader) -> None:
    reader.write(A)
    reader.write(B)
    reader.fetch(max_wait_ms=500, min_bytes=10_000)
    reader.end(A, committed=True)
    before = list(reader.answers)

    reader.clock.advance(500)

    assert before == []
    (answer,) = reader.answers
    assert offsets(answer.responses[0].partitions[0]) == [0]


@pytest.mark.parametrize(("level", "expected"), [(0, 3), (1, 1)])
def test_the_latest_offset_is_the_last_stable_offset(reader: Reader, level: int, expected: int) -> None:
    reader.plain()
    reader.write(A)
    reader.plain()

    assert reader.listed(-1, level) == (0, expected)


def test_a_timestamp_of_an_unstable_record_is_not_found(reader: Reader) -> None:
    reader.write(A)

    found = [reader.listed(timestamp, level) for timestamp in (NOW_MS, -3) for level in (0, 1)]

    assert found == [(0, 0), (0, -1), (0, 0), (0, -1)]


def test_an_unknown_isolation_level_is_refused(reader: Reader) -> None:
    assert reader.listed(-1, 7) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)


def test_without_aborted_transactions_batches_are_not_examined(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.write(A)
    reader.end(A, committed=False)
    for _ in range(3):
        reader.plain()
    looked_at: list[Extent] = []
    monkeypatch.setattr(Extent, "end_offset", property(looked_at.append))

    found = reader.fetched(2)

    assert (offsets(found), aborted(found), looked_at) == ([2, 3, 4], [], [])


def test_a_fetch_that_waits_for_many_committed_bytes_is_checked_at_intervals(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    read_all = Read.all

    def noting(read: Read, partitions: Partitions) -> Read:
        looks.append(reader.clock.now_ms())
        return read_all(read, partitions)

    reader.fetch(max_wait_ms=500, min_bytes=3_000)
    monkeypatch.setattr(Read, "all", noting)
    for _ in range(60):
        reader.plain()
    before = list(looks)

    reader.clock.advance(LOOK_MS)

    assert before == []
    (answer,) = reader.answers
    assert len(offsets(answer.responses[0].partitions[0])) == 60
    assert len(looks) == 1
    assert reader.log.listeners == set()
