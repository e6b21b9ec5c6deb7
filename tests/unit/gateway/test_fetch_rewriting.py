"""Fetch and ShareFetch responses: streamed, with endpoints that must not name a broker's address."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse, Rewriter
from odradek.gateway.rewriting.tails import filling, tagged
from odradek.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from odradek.wire.messages.share_fetch import AcquiredRecords, ShareFetchResponse, SharePartition, ShareTopic
from support.offenders import offenders
from support.rewriting import STREAMED, USUAL, Advertised, fed, frame_of, message_of, pieces, rewritten

UPSTREAM = "b1.upstream.internal"
VERSIONS = range(16, 19)
MOVED = PartitionData(error_code=6, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=9))
TWO_ENDPOINTS = [NodeEndpoint(node_id=node_id, host=UPSTREAM, port=9092, rack="r") for node_id in (1, 2)]


def response(*partitions: PartitionData, endpoints: list[NodeEndpoint] | None = None) -> FetchResponse:
    topic = FetchableTopicResponse(topic_id=bytes(range(16)), partitions=list(partitions))
    return FetchResponse(responses=[topic], node_endpoints=TWO_ENDPOINTS if endpoints is None else endpoints)


def rewriter_of(frame: bytes, limits: HoldLimits = STREAMED, addresses: Advertised | None = None) -> Rewriter:
    rewriter = rewriter_for(1, 18, len(frame), addresses or Advertised("g"), limits)
    assert rewriter is not None
    return rewriter


def streamed(message: Any, addresses: Advertised, version: int = 18) -> Any:
    """What a client reads of a streamed response, whose size must be the same."""
    frame = frame_of(message, version)
    rewriter = rewriter_for(message.API_KEY, version, len(frame), addresses, STREAMED)
    assert rewriter is not None
    out = fed(rewriter, [memoryview(frame)])
    assert len(out) == len(frame)
    assert UPSTREAM.encode() not in out
    return message_of(type(message), version, out)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "partition",
    [
        PartitionData(),
        PartitionData(records=None, aborted_transactions=None, preferred_read_replica=3),
        PartitionData(records=b"r" * 100_000, aborted_transactions=[AbortedTransaction(producer_id=5)] * 300),
        PartitionData(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        PartitionData(
            diverging_epoch=EpochEndOffset(epoch=1, end_offset=2),
            current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
            snapshot_id=SnapshotId(end_offset=3, epoch=4),
        ),
        MOVED,
    ],
    ids=["empty", "nulls", "records and aborted transactions", "a tag", "every tag", "moved"],
)
def test_everything_but_the_endpoints_passes(version: int, partition: PartitionData) -> None:
    upstream = response(MOVED, partition, partition)

    result = streamed(upstream, Advertised("g"), version)

    assert result.responses == upstream.responses
    assert [(node.node_id, node.host, node.port, node.rack) for node in result.node_endpoints] == [
        (1, "g", 9001, "r"), (2, "g", 9002, "r"),
    ]  # fmt: skip


def test_a_response_without_endpoints_passes_as_it_is() -> None:
    frame = frame_of(response(PartitionData(records=b"r" * 1000), endpoints=[]), 18)

    for limits in (USUAL, STREAMED):
        out = rewriter_of(frame, limits).feed(memoryview(frame))
        assert b"".join(out) == len(frame).to_bytes(4) + frame


def test_endpoints_that_became_longer_are_left_out_of_a_streamed_response() -> None:
    result = streamed(response(MOVED), Advertised("gateway-with-a-long-name.example.com"))

    assert result.node_endpoints == []
    assert result.responses == response(MOVED).responses


def test_endpoints_that_became_longer_are_complete_in_a_small_response() -> None:
    result = rewritten(
        response(MOVED), 18, Advertised("gateway-with-a-long-name.example.com"), cuts=[50, 100]
    )

    assert {node.host for node in result.node_endpoints} == {"gateway-with-a-long-name.example.com"}


@pytest.mark.parametrize("shorter", range(len(UPSTREAM)))
def test_endpoints_of_every_smaller_size_keep_the_size_of_the_response(shorter: int) -> None:
    """One byte less is too little for a filler, so the endpoints are left out."""
    host = "x" * (len(UPSTREAM) - shorter)
    one = [NodeEndpoint(node_id=1, host=UPSTREAM, port=9092)]

    fetched = streamed(response(MOVED, endpoints=one), Advertised(host))
    shared = streamed(ShareFetchResponse(node_endpoints=one), Advertised(host), 2)

    hosts = [] if shorter == 1 else [host]
    assert [node.host for node in fetched.node_endpoints] == hosts
    assert [node.host for node in shared.node_endpoints] == hosts


def is_filled(room: int, last: int) -> None:
    filler = filling(room, last)

    if filler is None:
        assert last > 100, "two numbers of different size are left"
        return
    assert len(tagged(*filler)) == room
    assert filler[0] > max(last, 125)
    assert filler[1] == bytes(len(filler[1]))


def test_a_filler_has_any_size_and_follows_the_other_tags() -> None:
    assert (
        offenders(
            is_filled,
            product(
                (5, 6, 126, 127, 128, 129, 130, 131, 132, 133, 16_386, 16_387, 16_388, 16_390),
                (-1, 0, 125, 126, 127, 5000),
            ),
        )
        == {}
    )


def test_endpoints_of_nodes_without_an_address_are_left_out() -> None:
    result = streamed(response(MOVED), Advertised("g", unmapped_from=0))

    assert [node.node_id for node in result.node_endpoints] == [2]


@pytest.mark.parametrize("every", [1, 7, 65_536])
def test_records_leave_as_they_come(every: int) -> None:
    """The largest piece that is held, but for the endpoints, is smaller than 64 bytes."""
    size = 5_000_000 if every > 1000 else 20_000
    frame = frame_of(response(PartitionData(records=b"r" * size), MOVED), 18)
    rewriter = rewriter_of(frame)
    taken = given = 0

    for piece in pieces(frame, range(every, size, every)):
        given += sum(map(len, rewriter.feed(piece)))
        taken += len(piece)
        if taken < size:
            assert taken - given < 64 - 4


def test_pieces_of_records_are_not_copied() -> None:
    frame = frame_of(response(PartitionData(records=b"r" * 300_000)), 18)
    rewriter = rewriter_of(frame)
    rewriter.feed(memoryview(frame)[:1000])
    piece = memoryview(frame)[1000:200_000]

    (out,) = rewriter.feed(piece)

    assert isinstance(out, memoryview)
    assert out.obj is piece.obj


def with_unknown_tags(endpoints: bytes, tags: bytes, top: bytes) -> bytes:
    """A response of one partition, by hand: its tags, and those at the end."""
    partition = bytes(30) + b"\0" + bytes(4) + b"\x04rec" + tags
    return (
        bytes(5) + bytes(10) + b"\x02" + bytes(16) + b"\x02" + partition + b"\x01\x09\x02to" + endpoints + top
    )


def test_unknown_tags_pass() -> None:
    """The filler comes last, because tags ascend."""
    (endpoint,) = (bytes((0, 0, 0, 1)) + b"\x15" + UPSTREAM.encode() + bytes((0, 0, 35, 132)) + b"\0\0",)
    array = b"\x02" + endpoint
    top = b"\x03\xc8\x01\x02ab"
    frame = with_unknown_tags(b"\x02\0" + bytes([len(array)]) + array, b"\x02\x01\x01x\x07\x03abc", top[1:])

    out = b"".join(rewriter_of(frame).feed(memoryview(frame)))[4:]

    end = frame.index(b"\x02\0" + bytes([len(array)]) + array)
    assert out[:end] == frame[:end]
    shorter = b"\x02" + endpoint[:4] + b"\x02g" + (9001).to_bytes(4) + b"\0\0"
    rest = b"\x03\0" + bytes([len(shorter)]) + shorter + top[1:]
    filler_bytes = len(frame) - end - len(rest)
    assert out[end:] == rest + b"\xc9\x01" + bytes([filler_bytes - 3]) + bytes(filler_bytes - 3)


@pytest.mark.parametrize(
    "tags",
    [b"\x02\x01\0\x01\0", b"\x02\x02\0\x01\0"],
    ids=["repeated", "out of order"],
)
def test_tags_that_kafka_does_not_send_are_malformed(tags: bytes) -> None:
    frame = with_unknown_tags(b"", b"\0", tags)

    with pytest.raises(MalformedResponse, match="tag"):
        rewriter_of(frame).feed(memoryview(frame))


def test_records_that_lead_out_of_the_response_are_malformed_before_they_leave() -> None:
    """A client would otherwise get the endpoints as records, with their addresses."""
    frame = bytearray(frame_of(response(PartitionData(records=b"r" * 100_000)), 18))
    at = frame.index(b"rrr") - 3
    frame[at : at + 3] = b"\xff\xff\x7f"

    with pytest.raises(MalformedResponse):
        rewriter_of(bytes(frame)).feed(memoryview(frame)[:1000])


def test_an_end_larger_than_the_bound_is_malformed_before_it_is_held() -> None:
    many = [NodeEndpoint(node_id=node_id, host=UPSTREAM) for node_id in range(100)]
    frame = frame_of(response(MOVED, endpoints=many), 18)

    with pytest.raises(MalformedResponse, match="bytes follow the partitions"):
        rewriter_of(frame, HoldLimits(1000, 0)).feed(memoryview(frame)[:200])


def test_a_response_larger_than_the_bound_of_held_ones_is_streamed() -> None:
    frame = frame_of(response(PartitionData(records=b"r" * 5000)), 18)

    out = fed(rewriter_of(frame, HoldLimits(response_bytes=4000)), [memoryview(frame)])

    assert (
        message_of(FetchResponse, 18, out).responses == response(PartitionData(records=b"r" * 5000)).responses
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_share_fetch_passes_but_for_its_endpoints(version: int) -> None:
    partition = SharePartition(
        error_message="e" * 200,
        acknowledge_error_message="",
        records=b"r" * 70_000,
        acquired_records=[AcquiredRecords(first_offset=1, last_offset=2, delivery_count=3)] * 20,
    )
    topics = [ShareTopic(partitions=[SharePartition(), partition])] * 2
    upstream = ShareFetchResponse(responses=topics, error_message="m", node_endpoints=TWO_ENDPOINTS)

    result = streamed(upstream, Advertised("g"), version)
    without_hint = streamed(upstream, Advertised("x" * 40), version)

    assert result.responses == without_hint.responses == topics
    assert [(node.node_id, node.host) for node in result.node_endpoints] == [(1, "g"), (2, "g")]
    assert without_hint.node_endpoints == []


@pytest.mark.parametrize("error_code", [6, 74, -1])
def test_the_first_error_of_a_partition_is_noted(error_code: int) -> None:
    frame = frame_of(response(PartitionData(), PartitionData(error_code=error_code), MOVED), 18)
    rewriter = rewriter_of(frame)

    rewriter.feed(memoryview(frame))

    assert (rewriter.error_code, rewriter.throttle_ms) == (error_code, 0)
