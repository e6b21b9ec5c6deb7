"""The bytes that pass through a pair, and their order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from unittest.mock import Mock

import pytest

from odradek.gateway.data_path import PathLimits
from odradek.gateway.pair_failure import Cause
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.pair_state import Pause
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from odradek.wire.messages.produce import ProduceRequest, TopicProduceData
from support.gateway_pair import (
    FETCH,
    HEARTBEAT,
    LIST_OFFSETS,
    FakeAnswers,
    Through,
    answer,
    bare,
    framed,
    request,
    response,
)
from support.offenders import offenders

END_TXN = 26
PUSH = 72


def push(correlation_id: int, body: bytes = b"\0metrics") -> bytes:
    return bare(PUSH, 0, correlation_id, body)


def local(correlation_id: int) -> bytes:
    return answer(correlation_id, b"local")


def test_requests_and_responses_pass_whole() -> None:
    through = Through()
    requests = bare(HEARTBEAT, 3, 1, b"x" * 50), bare(LIST_OFFSETS, 5, 2, b"y" * 9)

    through.send(*requests)
    through.reply(answer(1, b"one"), answer(2, b"two"))

    assert through.sent == b"".join(requests)
    assert through.received == answer(1, b"one") + answer(2, b"two")
    assert (through.upstream.writes, through.client.writes) == (1, 1)
    assert through.identity.client_id == "app"
    assert through.pair.is_idle


def test_a_response_that_nobody_asked_for_closes() -> None:
    through = Through()

    through.reply(answer(1))

    assert through.cause == "desync"
    assert through.received == b""


def test_a_response_to_another_request_closes() -> None:
    through = Through()
    through.send(bare(HEARTBEAT, 3, 1), bare(HEARTBEAT, 3, 2))

    through.reply(answer(1), answer(3))

    assert through.cause == "desync"
    assert through.received == answer(1)


def test_correlation_ids_may_repeat_and_go_down() -> None:
    through = Through()
    ids = [2**31 - 8, 2**31 - 1, 0, 0, 5, 4]

    through.send(*(bare(HEARTBEAT, 3, each) for each in ids))
    through.reply(*(answer(each) for each in ids))

    assert through.received == b"".join(answer(each) for each in ids)


def has_no_response(version: int, transactional_id: str | None, cut: int | None) -> None:
    through = Through()
    silent = request(ProduceRequest(acks=0, transactional_id=transactional_id), version, 1)
    asking = bare(HEARTBEAT, 3, 2)
    stream = silent + asking

    for part in (stream[:cut], stream[cut:]) if cut else (stream,):
        through.send(part)
    through.reply(answer(2))

    assert through.sent == stream
    assert through.received == answer(2)
    assert through.path.meter.acks0 == 1


def test_produce_without_acks_has_no_response() -> None:
    assert (
        offenders(has_no_response, product(range(3, 14), (None, "", "t" * 200), (None, 12, 13, 14, 20, 30)))
        == {}
    )


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 12])
def test_produce_with_acks_has_a_response(version: int, acks: int) -> None:
    through = Through()
    if version < 3:
        message = bare(0, version, 1, acks.to_bytes(2, signed=True) + bytes(8))
    else:
        message = request(ProduceRequest(acks=acks), version, 1)

    through.send(message, bare(HEARTBEAT, 3, 2))

    assert [each[0] for each in through.pair.state.outstanding] == [1, 2]


def test_the_acks_of_each_produce_request_are_read() -> None:
    through = Through()
    messages = [
        request(ProduceRequest(acks=acks, transactional_id=name), version, number)
        for number, (acks, name, version) in enumerate(
            [(1, "a", 9), (1, "a", 9), (0, "a", 9), (0, "a", 9), (-1, "b", 9), (0, "b", 12), (-1, "b", 8)]
        )
    ]

    through.send(*messages)

    assert [each[0] for each in through.pair.state.outstanding] == [0, 1, 4, 6]


def test_a_cut_in_the_beginning_does_not_change_known_acks() -> None:
    through = Through()
    first, second = (request(ProduceRequest(acks=1, transactional_id="t"), 9, number) for number in (1, 2))
    stream = first + second

    through.send(stream[: len(first) + 20])
    through.send(stream[len(first) + 20 :])

    assert [each[0] for each in through.pair.state.outstanding] == [1, 2]


@pytest.mark.parametrize("together", [False, True])
def test_a_known_beginning_does_not_hide_that_a_produce_request_ends_before_its_acks(together: bool) -> None:
    through = Through()
    name = "n" * 30
    whole = request(ProduceRequest(acks=1, transactional_id=name), 9, 1)
    short = framed(whole[4:40]) + whole[40:]

    for chunk in (whole + short,) if together else (whole, short):
        through.send(chunk)

    assert through.cause == "bad-request"
    assert through.path.meter.requests == {0: 1}


def test_a_known_beginning_does_not_hide_that_a_produce_request_is_too_long() -> None:
    through = Through(limits=PathLimits(max_request_bytes=100))
    known, long = (
        request(ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t" * size)]), 9, size)
        for size in (1, 100)
    )

    through.send(known + known + long)

    assert through.cause == "bad-request"
    assert through.path.meter.requests == {0: 2}


def test_a_produce_request_that_ends_before_its_acks_closes() -> None:
    through = Through()

    through.send(bare(0, 9, 1, b"\0"))

    assert through.cause == "bad-request"


def test_a_push_is_answered_here() -> None:
    through = Through(at_once=True)

    through.send(bare(HEARTBEAT, 3, 1), push(2), bare(HEARTBEAT, 3, 3))
    through.reply(answer(1, b"a"), answer(3, b"b"))

    assert through.sent == bare(HEARTBEAT, 3, 1) + bare(HEARTBEAT, 3, 3)
    assert through.received == answer(1, b"a") + local(2) + answer(3, b"b")


def test_a_local_answer_waits_for_earlier_responses() -> None:
    through = Through(at_once=True)

    through.send(bare(FETCH, 12, 1), push(2))

    assert through.received == b""


def test_later_responses_wait_for_a_local_answer() -> None:
    through = Through()
    through.send(push(1), bare(HEARTBEAT, 3, 2), push(3))
    through.reply(answer(2, b"later"))
    assert through.upstream.held == {Pause.LOCAL_ANSWER}
    assert through.received == b""

    through.answers.finish()

    assert through.received == local(1) + answer(2, b"later")
    assert through.upstream.held == set()
    through.answers.finish()
    assert through.received == local(1) + answer(2, b"later") + local(3)
    assert through.pair.is_idle


def test_a_local_answer_waits_for_the_rest_of_a_response() -> None:
    through = Through()
    through.send(bare(FETCH, 12, 1), push(2))
    whole = answer(1, b"r" * 100)
    through.reply(whole[:40])

    through.answers.finish()

    assert through.received == whole[:40]
    through.reply(whole[40:])
    assert through.received == whole + local(2)


def test_a_local_answer_waits_for_the_rest_of_a_response_that_is_rewritten() -> None:
    through = Through(at_once=True)
    through.send(bare(3, 5, 1), push(2))
    brokers = [MetadataResponseBroker(node_id=1, host="internal.example", port=9092)]
    theirs = response(MetadataResponse(brokers=brokers), 5, 1)

    for part in (theirs[:8], theirs[8:9], theirs[9:]):
        through.reply(part)

    gate = [MetadataResponseBroker(node_id=1, host="gate", port=19001)]
    assert through.received == response(MetadataResponse(brokers=gate), 5, 1) + local(2)


def test_a_local_answer_passes_the_start_of_a_later_response() -> None:
    through = Through()
    through.send(bare(HEARTBEAT, 3, 1), push(2), bare(HEARTBEAT, 3, 3))
    through.reply(answer(1))

    through.answers.finish()
    through.reply(answer(3)[:5])
    through.reply(answer(3)[5:])

    assert through.received == answer(1) + local(2) + answer(3)


def test_an_empty_local_answer_closes() -> None:
    through = Through()
    through.send(push(1))

    through.answers.asked[0][1](b"")

    assert through.cause == "bad-request"


def test_a_push_that_is_too_large_closes() -> None:
    through = Through(limits=PathLimits(max_push_bytes=1000))

    through.send(push(1, b"m" * 1000)[:20])

    assert through.cause == "telemetry-too-large"


def test_telemetry_passes_if_it_is_the_brokers() -> None:
    through = Through(answers=None)

    through.send(push(1))
    through.reply(answer(1, b"theirs"))

    assert through.sent == push(1)
    assert through.received == answer(1, b"theirs")


def test_a_client_with_too_many_requests_is_not_read() -> None:
    through = Through(limits=PathLimits(most_in_flight=10))

    through.send(*(bare(HEARTBEAT, 3, each) for each in range(10)))

    assert through.client.held == {Pause.IN_FLIGHT}
    through.reply(*(answer(each) for each in range(4)))
    assert through.client.held == {Pause.IN_FLIGHT}
    through.reply(answer(4))
    assert through.client.held == set()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xaa", "TLS"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\0\0\0\x07" + bytes(8), "7 bytes"),
        (b"\xff" * 12, "-1 bytes"),
        (b"\x06\x40\x00\x01" + bytes(8), "104857601 bytes"),
    ],
)
def test_bytes_that_are_no_requests_close(data: bytes, why: str) -> None:
    through = Through()

    through.send(data)

    assert through.cause == "bad-request"
    assert why in str(through.failures[0])
    assert through.sent == b""


def test_addresses_in_metadata_are_replaced() -> None:
    through = Through()
    through.send(bare(3, 5, 1))
    brokers = [MetadataResponseBroker(node_id=1, host="internal.example", port=9092)]

    through.reply(response(MetadataResponse(brokers=brokers), 5, 1))

    gate = [MetadataResponseBroker(node_id=1, host="gate", port=19001)]
    assert through.received == response(MetadataResponse(brokers=gate), 5, 1)
    assert through.table.addresses == {1: ("internal.example", 9092)}


def test_a_response_that_does_not_parse_closes() -> None:
    through = Through()
    through.send(bare(HEARTBEAT, 3, 1), bare(3, 5, 2))

    through.reply(answer(1), framed(b"\0\0\0\x02" + bytes(4) + b"\x7f" * 8))

    assert through.cause == "malformed-response"
    assert through.received == answer(1)


def test_a_closed_pair_tells_its_telemetry_and_takes_nothing() -> None:
    through = Through()
    through.send(bare(HEARTBEAT, 3, 1), push(2))
    through.reply(answer(9))
    through.send(bare(HEARTBEAT, 3, 3))
    through.answers.finish()

    assert through.answers.gone == 1
    assert through.sent == bare(HEARTBEAT, 3, 1)
    assert through.received == b""
    assert dict(through.path.meter.closed) == {"desync": 1}


@pytest.mark.parametrize(
    ("sent", "in_order"),
    [
        (bare(FETCH, 3, 1), True),
        (bare(LIST_OFFSETS, 5, 1), True),
        (bare(FETCH, 3, 1, b"x" * 90)[:60], True),
        (bare(END_TXN, 3, 1), False),
        (bare(END_TXN, 3, 1, b"x" * 90)[:60], False),
    ],
    ids=["fetches", "asks", "half a fetch", "ends a transaction", "half a request"],
)
def test_a_client_that_dies_with_a_request_on_its_way_has_not_closed_in_order(
    sent: bytes, in_order: bool
) -> None:
    through = Through()
    through.send(sent)

    through.pair.close(Cause.CLIENT)

    assert through.answers.in_order is in_order


@pytest.mark.parametrize(("key", "in_order"), [(FETCH, True), (END_TXN, False)])
def test_a_client_that_closes_before_it_has_read_its_answers(key: int, in_order: bool) -> None:
    through = Through()
    through.send(bare(key, 3, 1))
    through.reply(answer(1))

    through.pair.close(Cause.CLIENT_RESET)

    assert through.answers.in_order is in_order


def test_a_large_push_is_counted_until_it_is_answered() -> None:
    through = Through()
    frame = push(1, bytes(40_000))

    counted = []
    for part in (frame[:30_000], frame[30_000:35_000], frame[35_000:]):
        through.send(part)
        counted.append(through.client.held_bytes)
    through.answers.finish()
    counted.append(through.client.held_bytes)

    size = len(frame)
    assert counted == [(30_000, size - 30_000), (35_000, size - 35_000), (size - 4, 0), (0, 0)]


@pytest.mark.parametrize("version", [5, 12])
def test_a_response_that_is_held_is_counted_until_it_leaves(version: int) -> None:
    through = Through()
    brokers = [MetadataResponseBroker(node_id=1, host="h" * 200, port=1) for _ in range(200)]
    frame = response(MetadataResponse(brokers=brokers), version, 1)
    through.send(bare(3, version, 1, b"\0\0" if version > 8 else b""))

    counted = []
    for part in (frame[:30_000], frame[30_000:35_000], frame[35_000:]):
        through.reply(part)
        counted.append(through.upstream.held_bytes)

    size = len(frame)
    assert counted[0] == (29_996, size - 30_000)
    assert counted[1:] == [(34_996, size - 35_000), (0, 0)]


def test_responses_that_wait_for_a_local_answer_are_counted() -> None:
    through = Through()
    through.send(push(1), bare(HEARTBEAT, 3, 2))

    counted = []
    through.reply(answer(2, bytes(20_000)))
    counted.append(through.upstream.held_bytes)
    through.answers.finish()
    counted.append(through.upstream.held_bytes)

    assert counted == [(20_008, 0), (0, 0)]


class Unanswerable(FakeAnswers):
    def answer(self, frame: bytes, peer: PairIdentity, done: Callable[[bytes], None]) -> None:
        done(b"")


def test_a_burst_that_closes_its_pair_is_not_observed_afterwards() -> None:
    observer = Mock()
    through = Through(answers=Unanswerable(), observer=Mock(opened=Mock(return_value=observer)))

    through.send(push(1), bare(HEARTBEAT, 3, 2))

    assert through.cause == "bad-request"
    assert [each[0] for each in observer.method_calls] == ["closed"]
