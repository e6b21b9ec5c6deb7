"""A client that sends no more: whether it has closed in order, or had requests on their way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from odradek.net.channel import Channel
from odradek.net.large_frame import LargeFrame
from odradek.net.unanswered import waits
from odradek.waiting.deferred import Deferred
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.offset_commit import OffsetCommitRequest
from odradek.wire.messages.produce import ProduceRequest
from support.channels import RecordingTransport, ScriptedListener, receive, transport
from support.gateway_pair import request

FETCH, METADATA = request(FetchRequest(), 12, 1), request(MetadataRequest(), 12, 2)
COMMIT = request(OffsetCommitRequest(group_id="g"), 8, 3)
END_TXN = request(EndTxnRequest(transactional_id="t"), 3, 5)
PRODUCE = {acks: request(ProduceRequest(acks=acks), 9, 4) for acks in (0, 1, -1)}


@pytest.mark.parametrize(
    ("buffer", "torn"),
    [
        (b"", False),
        (FETCH + METADATA, False),
        (PRODUCE[0], False),
        (PRODUCE[1], True),
        (PRODUCE[-1], True),
        (METADATA + COMMIT, False),
        (METADATA + END_TXN, True),
        (METADATA + METADATA[:-1], False),
        (METADATA + PRODUCE[0][:-1], True),
        (METADATA + b"\0\0", False),
        (b"\0\0\0\0\0\0\0\0", True),
        (request(ProduceRequest(acks=1), 9, 4)[:4] + b"\0\0\0\x09" + b"\xff" * 60, True),
    ],
)
def test_requests_that_wait(buffer: bytes, torn: bool) -> None:
    assert waits(buffer) is torn


class Deferring:
    """Answers every request later."""

    def answer(self, *_: object) -> Any:
        return Deferred[Any]()


def connected() -> tuple[Channel, ScriptedListener]:
    listener = ScriptedListener(dispatcher=cast(Any, Deferring()))
    channel = Channel(cast(Any, listener))
    wire = RecordingTransport()
    wire.protocol = channel
    channel.connection_made(wire)
    return channel, listener


@pytest.mark.parametrize(("sent", "in_order"), [(FETCH, True), (COMMIT, True), (PRODUCE[-1], False)])
def test_a_client_that_closes_while_a_request_is_answered(sent: bytes, in_order: bool) -> None:
    channel, listener = connected()
    receive(channel, sent)

    channel.eof_received()
    channel.connection_lost(ConnectionResetError())

    assert listener.in_order == [in_order]


@pytest.mark.parametrize(
    ("sent", "how", "in_order"),
    [
        (FETCH, ConnectionResetError(), True),
        (METADATA + COMMIT, BrokenPipeError(), True),
        (FETCH, TimeoutError(), False),
        (PRODUCE[-1], ConnectionResetError(), False),
    ],
)
def test_a_client_that_closes_before_it_has_read_its_answers(
    sent: bytes, how: OSError, in_order: bool
) -> None:
    channel, listener = connected()
    receive(channel, sent)

    channel.connection_lost(how)

    assert listener.in_order == [in_order]


@pytest.mark.parametrize(("size", "is_large"), [(1_000, False), (200_000, True)])
def test_a_client_that_dies_in_the_middle_of_a_request(size: int, is_large: bool) -> None:
    channel, listener = connected()
    receive(channel, size.to_bytes(4) + PRODUCE[1][4:])
    assert isinstance(transport(channel).protocol, LargeFrame) is is_large

    channel.eof_received()
    channel.connection_lost(None)

    assert listener.in_order == [False]


def test_a_client_whose_requests_are_answered_closes_in_order() -> None:
    channel, listener = connected()

    channel.eof_received()
    channel.connection_lost(None)

    assert listener.in_order == [True]
