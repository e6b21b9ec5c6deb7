"""An observer is told once of requests that arrive together, and once of their responses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from odradek.gateway.observation.observer import HEAD_BYTES, CloseCause, PairObserver
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import KNOWN_BYTES, OfTopic
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.batches import batch_of
from support.gateway_pair import FETCH, HEARTBEAT, Through, answer, bare, framed, request, response
from unit.gateway.observation.test_observed_requests import produced

PRODUCE = 0
BATCH = batch_of(b"v" * 200, b"v")


@dataclass
class Told:
    """The observer of all pairs and of the only one: what it was told, in order."""

    asked: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    answered: list[tuple[int, int, int, int]] = field(default_factory=list)
    outcomes: list[tuple[int, bytes, int | None, int | None]] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)
    produced: list[tuple[int, ...]] = field(default_factory=list)
    late: list[tuple[int, int, int]] = field(default_factory=list)

    def opened(self, identity: PairIdentity) -> PairObserver:
        return self

    def produce(
        self,
        version: int,
        acks: int,
        count: int,
        size: int,
        records: int,
        batches: int,
        batch_bytes: int,
        in_flight: int,
    ) -> None:
        self.produced.append((version, acks, count, size, records, batches, batch_bytes, in_flight))

    def wrote(self, version: int, topics: Iterable[OfTopic]) -> None: ...
    def writes(self, version: int, topic: tuple[bytes, bool] | None) -> None: ...

    def batches(self, records: int, batches: int, batch_bytes: int) -> None:
        self.late.append((records, batches, batch_bytes))

    def look(self, api_key: int, version: int, head: bytes, at: int) -> None:
        self.looks.append(api_key)

    def requests(self, api_key: int, version: int, count: int, size: int, in_flight: int) -> None:
        self.asked.append((api_key, version, count, size, in_flight))

    def responses(self, api_key: int, count: int, size: int, latency_ns: int) -> None:
        self.answered.append((api_key, count, size, latency_ns))

    def outcome(
        self,
        api_key: int,
        version: int,
        size: int,
        head: bytes,
        at: int,
        error_code: int | None = None,
        throttle_ms: int | None = None,
    ) -> None:
        self.outcomes.append((api_key, head[at : at + min(size, HEAD_BYTES)], error_code, throttle_ms))

    def closed(self, by: CloseCause, outstanding: Iterable[int], in_order: bool) -> None: ...


def test_requests_that_arrive_together_are_told_together() -> None:
    told = Told()
    through = Through(observer=told)
    messages = [
        bare(FETCH, 12, 1, bytes(10)),
        bare(FETCH, 12, 2, bytes(30)),
        bare(FETCH, 11, 3),
        bare(HEARTBEAT, 3, 4),
        bare(FETCH, 11, 5),
    ]

    through.send(*messages)

    assert told.asked == [
        (FETCH, 12, 2, len(messages[0] + messages[1]), 2),
        (FETCH, 11, 1, len(messages[2]), 3),
        (HEARTBEAT, 3, 1, len(messages[3]), 4),
        (FETCH, 11, 1, len(messages[4]), 5),
    ]
    assert told.looks == [FETCH, FETCH, FETCH, HEARTBEAT, FETCH]
    assert through.path.meter.requests == {FETCH: 4, HEARTBEAT: 1}


def test_responses_to_requests_that_arrived_together_are_told_together() -> None:
    told, now_ns = Told(), [1_000]
    through = Through(observer=told, monotonic_ns=lambda: now_ns[0])
    through.send(bare(FETCH, 12, 1), bare(FETCH, 12, 2))
    now_ns[0] = 3_000
    through.send(bare(FETCH, 12, 3), bare(FETCH, 12, 4))
    now_ns[0] = 9_000
    replies = [answer(number, bytes(20 * number)) for number in (1, 2, 3, 4)]

    through.reply(*replies)

    assert told.answered == [
        (FETCH, 2, len(replies[0] + replies[1]), 8_000),
        (FETCH, 2, len(replies[2] + replies[3]), 6_000),
    ]
    assert [head for _, head, _, _ in told.outcomes] == [each[4 : 4 + HEAD_BYTES] for each in replies]


def test_a_response_of_the_usual_form_has_no_outcome() -> None:
    told = Told()
    through = Through(observer=told)
    through.send(*(stored(number, 13) for number in (1, 2, 3)))
    replies = [produced(0), produced(6), produced(0)]

    through.reply(*(response(each, 13, number) for number, each in enumerate(replies, 1)))

    assert [(key, count) for key, count, _, _ in told.answered] == [(PRODUCE, 3)]
    assert [(key, error) for key, _, error, _ in told.outcomes] == [(PRODUCE, 6)]


def test_a_response_in_pieces_is_told_when_it_is_complete() -> None:
    told = Told()
    through = Through(observer=told)
    through.send(bare(FETCH, 12, 1), bare(FETCH, 12, 2))
    first, second = answer(1), answer(2, bytes(range(200)))

    through.reply(first, second[:30])
    assert [(count, size) for _, count, size, _ in told.answered] == [(1, len(first))]
    through.reply(second[30:])

    assert [(count, size) for _, count, size, _ in told.answered] == [(1, len(first)), (1, len(second))]
    assert told.outcomes[-1] == (FETCH, second[4 : 4 + HEAD_BYTES], None, None)


def test_requests_before_one_that_closes_the_pair_are_told() -> None:
    told = Told()
    through = Through(observer=told)

    through.send(bare(FETCH, 12, 1), bare(FETCH, 12, 2), framed(b"x"), bare(FETCH, 12, 3))

    assert through.cause == "bad-request"
    assert [(key, count) for key, _, count, _, _ in told.asked] == [(FETCH, 2)]


def test_responses_before_one_that_closes_the_pair_are_told() -> None:
    told = Told()
    through = Through(observer=told)
    through.send(bare(FETCH, 12, 1), bare(FETCH, 12, 2))

    through.reply(answer(1), answer(7))

    assert through.cause == "desync"
    assert through.received == answer(1)
    assert [(key, count) for key, count, _, _ in told.answered] == [(FETCH, 1)]


def stored(number: int, version: int = 9, **fields: Any) -> bytes:
    """A Produce request with one batch of two records."""
    topics = [TopicProduceData(name="orders", partition_data=[PartitionProduceData(records=BATCH)])]
    return request(ProduceRequest(topic_data=topics, **{"acks": 1, **fields}), version, number)


def test_produce_requests_are_told_together_if_they_have_the_same_acks() -> None:
    told = Told()
    through = Through(observer=told)
    sent = [stored(number, acks=acks) for number, acks in enumerate((1, 1, 1, 0, 0, 0, -1, -1))]
    size = len(sent[0])

    through.send(*sent)

    assert told.asked == []
    assert told.produced == [
        (9, 1, 3, 3 * size, 6, 3, 3 * len(BATCH), 3),
        (9, 0, 3, 3 * size, 6, 3, 3 * len(BATCH), 3),
        (9, -1, 2, 2 * size, 4, 2, 2 * len(BATCH), 5),
    ]
    assert through.path.meter.requests == {PRODUCE: 8}
    assert through.path.meter.acks0 == 3
    through.reply(*(response(ProduceResponse(), 9, number) for number in (0, 1, 2, 6, 7)))
    assert [(count, size) for _, count, size, _ in told.answered] == [(3, 45), (2, 30)]


def test_the_batches_of_a_request_in_pieces_are_told_when_all_have_come() -> None:
    told = Told()
    through = Through(observer=told)
    sent, two = stored(1) + stored(2), stored(3)

    through.send(sent + two[:-1])
    assert [each[2:7] for each in told.produced] == [(3, len(sent + two), 4, 2, 2 * len(BATCH))]
    assert told.late == []
    through.send(two[-1:] + two)

    assert told.late == [(2, 1, len(BATCH))]
    assert [each[2:7] for each in told.produced[1:]] == [(1, len(two), 2, 1, len(BATCH))]


def test_produce_requests_with_long_beginnings_are_told_one_by_one() -> None:
    told = Told()
    through = Through(observer=told)
    long, short = "n" * KNOWN_BYTES, "n"

    through.send(
        *(stored(number, transactional_id=name) for number, name in enumerate((long, long, short, short)))
    )

    assert [each[:3] for each in told.produced] == [(9, 1, 1), (9, 1, 1), (9, 1, 2)]


def test_a_rewritten_response_tells_what_its_rewriter_has_read() -> None:
    told = Told()
    through = Through(observer=told)
    through.send(bare(FETCH, 16, 1))

    through.reply(response(FetchResponse(error_code=70, throttle_time_ms=30), 16, 1))

    assert [each[2:] for each in told.outcomes] == [(70, 30)]


def test_produce_requests_of_different_versions_are_not_told_together() -> None:
    told = Told()
    through = Through(observer=told)

    through.send(*(stored(number, version) for number, version in enumerate((11, 11, 12, 12))))

    assert [each[:3] for each in told.produced] == [(11, 1, 2), (12, 1, 2)]
