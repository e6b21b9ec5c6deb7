"""Whatever a client or a broker sends: a pair passes it or closes, never fails, and holds little."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.data_path import PathLimits
from odradek.gateway.pair_failure import Cause
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.examples import examples
from support.gateway_pair import HEARTBEAT, Through, answer, bare, request, response

HOLD_BYTES, MOST_BYTES = 4096, 100_000
LIMITS = PathLimits(
    max_request_bytes=MOST_BYTES, max_push_bytes=HOLD_BYTES, hold=HoldLimits(response_bytes=HOLD_BYTES)
)
CHUNK_BYTES = 600

REQUESTS: list[bytes] = [
    bare(HEARTBEAT, 3, 1, bytes(20)),
    bare(3, 5, 2, b"\0\0\0\0"),
    bare(10, 3, 3, b"\2g\0\0"),
    bare(60, 0, 4, b"\0\0"),
    bare(72, 0, 5, b"\0metrics"),
    request(ProduceRequest(acks=0, transactional_id="t"), 9, 6),
    request(ApiVersionsRequest(client_software_name="n"), 3, 7),
    request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 8),
    request(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1, 9),
    request(SaslAuthenticateRequest(auth_bytes=b"n,,n=u,r=x"), 2, 10),
    bare(1, 16, 11, bytes(30)),
]
HOST = "broker.internal"
RESPONSES: list[bytes] = [
    answer(1, bytes(20)),
    response(MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=HOST, port=9092)]), 5, 2),
    response(FindCoordinatorResponse(node_id=1, host=HOST, port=9092), 3, 3),
    response(
        DescribeClusterResponse(brokers=[DescribeClusterBroker(broker_id=1, host=HOST, port=9092)]), 0, 4
    ),
    response(ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)]), 3, 7),
    answer(8, b"\0\0\0\0\0\0"),
    answer(9, b"\0\0\0\0\0\0"),
    answer(10, b"\0" * 12),
    answer(11, b"\0" * 16),
]
INT32S = st.sampled_from([-(2**31), -1, 0, 3, 4, 7, 8, 9, 4096, 99_999, 2**31 - 1]) | st.integers(-9, 300)


@st.composite
def spoiled(draw: Any, frames: list[bytes]) -> bytes:
    """Frames in any order, some of them with changed, missing or additional bytes."""
    stream = bytearray()
    for frame in draw(st.lists(st.sampled_from(frames), max_size=6)):
        data = bytearray(frame)
        match draw(st.integers(0, 5)):
            case 0:
                data[:4] = struct.pack(">i", draw(INT32S))
            case 1:
                data[4:8] = struct.pack(">i", draw(INT32S))
            case 2:
                data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
            case 3:
                del data[draw(st.integers(0, len(data))) :]
            case 4:
                data += draw(st.binary(max_size=12))
        stream += data
    return bytes(stream)


def chunks(stream: bytes) -> list[bytes]:
    return [stream[at : at + CHUNK_BYTES] for at in range(0, len(stream), CHUNK_BYTES)]


def check(through: Through) -> None:
    """No bug, and no more held than the limits say."""
    assert not through.path.meter.internal_errors
    assert through.cause != Cause.INTERNAL_ERROR
    held = [
        len(through.pair.requests.partial or b""),
        len(through.pair.responses.partial or b""),
        0 if through.pair.responses.rewriter is None else through.pair.responses.rewriter.held_bytes,
    ]
    assert max(held) <= max(8192, HOLD_BYTES) + 2 * CHUNK_BYTES


@settings(max_examples=examples(400), deadline=None)
@given(stream=spoiled(REQUESTS) | st.binary(max_size=2000), at_once=st.booleans())
def test_a_hostile_client_hits_only_itself(stream: bytes, at_once: bool) -> None:
    through = Through(at_once=at_once, limits=LIMITS)

    for chunk in chunks(stream):
        through.send(chunk)
        check(through)
    before = through.sent
    closed = through.cause is not None
    through.send(bare(HEARTBEAT, 3, 1))

    assert not closed or through.sent == before


@settings(max_examples=examples(600), deadline=None)
@given(
    asked=st.lists(st.sampled_from(REQUESTS), max_size=6),
    stream=spoiled(RESPONSES) | st.binary(max_size=2000),
)
def test_a_hostile_broker_hits_only_its_own_pair(asked: list[bytes], stream: bytes) -> None:
    through = Through(at_once=True, limits=LIMITS)
    through.send(*asked)

    for chunk in chunks(stream):
        through.reply(chunk)
        check(through)
    before = through.received
    closed = through.cause is not None
    through.reply(answer(1))

    assert not closed or through.received == before
