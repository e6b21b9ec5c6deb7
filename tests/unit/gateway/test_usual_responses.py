"""Responses of the usual form pass as they are; every other one goes through its rewriter."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.gateway.rewriting.addressed_layout import USUAL
from odradek.gateway.rewriting.catalog import ADDRESSED
from odradek.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from support.gateway_pair import Through, bare, response
from support.rewriting import frame_of

FETCH_VERSIONS, PRODUCE_VERSIONS = range(16, 19), range(10, 14)
AROUND = b"\2" * 30
"""Bytes of other frames in the same chunk."""


def fetched(*partitions: PartitionData, **fields: Any) -> FetchResponse:
    topic = FetchableTopicResponse(topic_id=bytes(range(16)), partitions=list(partitions))
    return FetchResponse(responses=[topic], **fields)


def produced(*partitions: PartitionProduceResponse, name: str = "orders", **fields: Any) -> ProduceResponse:
    topic = TopicProduceResponse(name=name, partition_responses=list(partitions))
    return ProduceResponse(responses=[topic], **fields)


ONE = PartitionData(partition_index=7, high_watermark=9, records=b"r" * 300)
STORED = PartitionProduceResponse(index=3, base_offset=77)
ENDPOINT = NodeEndpoint(node_id=1, host="b1.upstream.internal", port=9092)

USUAL_FETCHES = {
    "records": fetched(ONE),
    "many records": fetched(PartitionData(records=b"r" * 70_000)),
    "no records": fetched(PartitionData(records=b"")),
    "null records": fetched(PartitionData(records=None)),
    "read committed": fetched(PartitionData(aborted_transactions=[], records=b"r")),
    "nothing": FetchResponse(session_id=12345),
    "no partition": fetched(),
    "many partitions": fetched(*[ONE, PartitionData(records=b"r" * 70_000), PartitionData(records=b"")] * 42),
    "many topics": FetchResponse(responses=fetched(ONE, ONE).responses * 200),
    "a leader of the first partition": fetched(
        PartitionData(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2)), ONE
    ),
    "aborted transactions": fetched(PartitionData(aborted_transactions=[AbortedTransaction(producer_id=1)])),
}
UNUSUAL_FETCHES = {
    "an error of the last partition": fetched(ONE, ONE, PartitionData(error_code=3)),
    "throttled": fetched(ONE, throttle_time_ms=1),
    "an error": FetchResponse(error_code=70),
    "an error of the partition": fetched(PartitionData(error_code=3)),
    "an endpoint": fetched(ONE, node_endpoints=[ENDPOINT]),
    "only an endpoint": FetchResponse(node_endpoints=[ENDPOINT]),
}
USUAL_PRODUCES = {
    "stored": produced(STORED),
    "a long name": produced(STORED, name="n" * 126),
    "two partitions": produced(STORED, STORED),
    "many partitions": produced(*[STORED] * 200),
    "no partition": produced(),
    "nothing": ProduceResponse(),
    "two topics": ProduceResponse(responses=produced(STORED).responses * 2),
    "a message of the first partition": produced(PartitionProduceResponse(error_message="no"), STORED),
    "an error of a record": produced(
        PartitionProduceResponse(record_errors=[BatchIndexAndErrorMessage(batch_index=1)])
    ),
}
UNUSUAL_PRODUCES = {
    "an error of the last partition": produced(STORED, STORED, PartitionProduceResponse(error_code=6)),
    "throttled": produced(STORED, throttle_time_ms=1),
    "an error": produced(PartitionProduceResponse(error_code=6)),
    "an endpoint": produced(STORED, node_endpoints=[ENDPOINT]),
}


def is_usual(message: Any, version: int, cut: int = 0) -> bool:
    """The verdict about a response in the middle of a chunk, with so many bytes missing at its end."""
    frame = frame_of(message, version)
    see = ADDRESSED[message.API_KEY].see(version)
    assert see is not None
    return see(AROUND + frame + AROUND, len(AROUND), len(AROUND) + len(frame) - cut) is USUAL


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_usual_fetch_response_is_recognized(version: int) -> None:
    assert [case for case, message in USUAL_FETCHES.items() if not is_usual(message, version)] == []


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_another_fetch_response_is_not(version: int) -> None:
    assert [case for case, message in UNUSUAL_FETCHES.items() if is_usual(message, version)] == []


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_usual_produce_response_is_recognized(version: int) -> None:
    assert [case for case, message in USUAL_PRODUCES.items() if not is_usual(message, version)] == []


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_another_produce_response_is_not(version: int) -> None:
    assert [case for case, message in UNUSUAL_PRODUCES.items() if is_usual(message, version)] == []


@pytest.mark.parametrize(
    "message",
    [
        USUAL_FETCHES["records"],
        FetchResponse(),
        fetched(ONE, PartitionData(records=b"")),
        FetchResponse(responses=fetched(ONE, ONE).responses * 2),
        produced(STORED),
        produced(STORED, STORED),
    ],
)
def test_a_response_that_ends_early_or_late_is_not_usual(message: Any) -> None:
    size = len(frame_of(message, 13 if isinstance(message, ProduceResponse) else 16))
    version = 13 if isinstance(message, ProduceResponse) else 16

    verdicts = [is_usual(message, version, cut) for cut in range(-3, size + 1) if cut]

    assert not any(verdicts)


def test_usual_responses_pass_in_one_piece() -> None:
    through = Through()
    frames = response(USUAL_FETCHES["records"], 17, 1) + response(produced(STORED), 13, 2)
    produce_acks_1 = b"\0\0\0\1" + bytes(8)
    through.send(bare(1, 17, 1, b"\0"), bare(0, 13, 2, produce_acks_1))

    through.reply(frames)

    assert through.received == frames
    assert through.client.writes == 1
    assert not through.path.meter.rewritten


PASSING: dict[str, tuple[Any, int, int]] = {
    "two partitions": (fetched(ONE, ONE), 0, 0),
    "an error of a partition": (fetched(ONE, PartitionData(error_code=3)), 3, 0),
    "throttled": (fetched(ONE, throttle_time_ms=9), 0, 9),
    "a leader": (USUAL_FETCHES["a leader of the first partition"], 0, 0),
    "produced to two partitions": (produced(STORED, STORED), 0, 0),
    "an error of a record": (USUAL_PRODUCES["an error of a record"], 0, 0),
    "an error of a producer": (UNUSUAL_PRODUCES["an error"], 6, 0),
}


@pytest.mark.parametrize("case", PASSING)
def test_a_complete_response_without_addresses_passes(case: str) -> None:
    message, error_code, throttle_ms = PASSING[case]
    version = 12 if isinstance(message, ProduceResponse) else 17
    through = Through()
    frame = response(message, version, 1)
    through.send(bare(message.API_KEY, version, 1, b"\0\0\0\1" + bytes(8)))

    through.reply(frame)
    see = ADDRESSED[message.API_KEY].see(version)
    seen = see(frame, 4, len(frame)) if see is not None else None

    assert through.received == frame
    assert not through.path.meter.rewritten
    assert seen is not None
    assert (seen.error_code, seen.throttle_ms) == (error_code, throttle_ms)


@pytest.mark.parametrize(
    "message",
    [
        fetched(ONE, ONE, node_endpoints=[ENDPOINT]),
        produced(STORED, STORED, node_endpoints=[ENDPOINT]),
    ],
    ids=["fetched", "produced"],
)
def test_a_response_with_endpoints_needs_its_rewriter(message: Any) -> None:
    version = 12 if isinstance(message, ProduceResponse) else 17
    frame = frame_of(message, version)

    see = ADDRESSED[message.API_KEY].see(version)

    assert see is not None
    assert see(frame, 0, len(frame)) is None
    assert see(frame, 0, len(frame) - 1) is None


def test_a_usual_response_in_two_pieces_passes_a_rewriter() -> None:
    through = Through()
    frame = response(USUAL_FETCHES["records"], 17, 1)
    through.send(bare(1, 17, 1, b"\0"))

    through.reply(frame[:100])
    through.reply(frame[100:])

    assert through.received == frame
    assert through.path.meter.rewritten == {1: 1}
