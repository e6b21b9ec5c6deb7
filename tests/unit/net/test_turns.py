"""Connections that pipeline take turns: counted requests on a virtual loop, without sockets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import pytest

from odradek.net.held_bytes import Pause
from odradek.net.large_frame import LargeFrame
from odradek.net.request_reader import READ_AHEAD_BYTES
from odradek.net.turns import COUNTED_NS, READS_PER_ROUND, TurnSettings
from support.rounds import Rounds, Socket, busy, framed, single

PER_ROUND = 1
"""Requests of a millisecond: one is longer than a round."""
PIPELINING = 200


SHARE_MS = 10
"""A hundredth of a second."""


def test_in_a_busy_pass_a_single_request_of_a_new_connection_waits_for_its_turn() -> None:
    rounds = Rounds()
    busy(rounds)
    channel, transport = rounds.connect()

    at_once = single(rounds, channel, "new")
    rounds.run_once()

    assert (at_once, rounds.seen, transport.written) == ([], ["new"], b"new")
    assert rounds.turns.delayed == 1


def test_a_request_that_waits_for_its_turn_is_not_copied() -> None:
    rounds = Rounds()
    busy(rounds)
    channel, transport = rounds.connect()
    data = framed("new")

    channel.data_received(data)
    waiting = channel.buffer
    rounds.run_once()

    assert waiting is data
    assert (channel.buffer, transport.written) == (None, b"new")


def test_a_request_that_waits_may_be_followed_by_others() -> None:
    rounds = Rounds()
    busy(rounds)
    channel, transport = rounds.connect()

    for start, end in ((0, 1), (1, 2)):
        channel.data_received(framed("first", "next")[9 * start : 9 * end])
    rounds.run_until_idle()

    assert transport.written == b"firstnext"


def test_in_a_busy_pass_a_light_connection_is_answered_at_once() -> None:
    rounds = Rounds()
    channel, _ = rounds.connect()
    rounds.clock.advance(1_000)
    busy(rounds)

    answered = [single(rounds, channel, f"{number}") for number in range(SHARE_MS + 2)]

    assert answered[:SHARE_MS] == [[f"{number}"] for number in range(SHARE_MS)]
    assert answered[-1] == []


def test_what_a_connection_used_long_ago_counts_less() -> None:
    rounds = Rounds(request_ms=200)
    channel, _ = rounds.connect()
    single(rounds, channel, "costly")
    rounds.run_until_idle()
    rounds.request_ms = 1
    answered = []
    for _ in range(12):
        rounds.clock.advance(COUNTED_NS // 2_000_000)
        busy(rounds)
        answered += single(rounds, channel, "cheap") or ["waited"]
        rounds.run_until_idle()

    assert answered[0] == "waited"
    assert answered[-1] == "cheap"


def test_the_next_pass_answers_everybody_for_a_while() -> None:
    rounds = Rounds(request_ms=0)
    busy(rounds)
    rounds.run_until_idle()
    channel, _ = rounds.connect()

    assert single(rounds, channel, "new") == ["new"]


def test_an_idle_loop_answers_everybody() -> None:
    rounds = Rounds()

    for _ in range(5):
        rounds.clock.advance(1_000)
        channel, _ = rounds.connect()
        assert single(rounds, channel, "new") == ["new"]
        rounds.run_until_idle()


def test_without_a_share_every_single_request_of_a_busy_pass_waits() -> None:
    rounds = Rounds(TurnSettings(light_percent=0))
    channel, _ = rounds.connect()
    rounds.clock.advance(60_000)
    busy(rounds)

    assert single(rounds, channel, "light") == []


def test_on_a_busy_loop_few_large_frames_are_received_in_one_round() -> None:
    rounds = Rounds()
    connections = [rounds.connect() for _ in range(3 * READS_PER_ROUND)]
    for channel, _ in connections:
        channel.data_received(struct.pack(">i", 1 << 19) + bytes(100_000))
    busy(rounds)

    for _, transport in connections:
        receive_piece(transport, 100_000)
    reading = [sum(transport.reads for _, transport in connections)]
    for _ in range(3):
        rounds.run_once()
        reading.append(sum(transport.reads for _, transport in connections))

    assert reading == [number * READS_PER_ROUND for number in range(4)]


def receive_piece(transport: Socket, size_bytes: int, took: Callable[[], object] = lambda: None) -> None:
    """Receive part of a large frame, which takes some time."""
    assert isinstance(transport.protocol, LargeFrame)
    transport.protocol.get_buffer(-1)
    took()
    transport.protocol.buffer_updated(size_bytes)


def test_the_pieces_of_a_large_frame_count_as_long_as_they_take() -> None:
    rounds = Rounds()
    channel, transport = rounds.connect()
    channel.data_received(struct.pack(">i", 1 << 19) + bytes(100_000))
    used_ns = channel.used_ns

    receive_piece(transport, 1_000, took=lambda: rounds.clock.advance(3))

    assert channel.used_ns - used_ns == 3_000_000


def test_in_a_long_pass_a_light_connection_waits_with_its_large_frame_but_not_with_a_request() -> None:
    rounds = Rounds()
    channel, transport = rounds.connect()
    other, _ = rounds.connect()
    channel.data_received(struct.pack(">i", 1 << 19) + bytes(100_000))
    rounds.clock.advance(60_000)
    reads = []
    for took_ms in (0, 1, 1):  # libuv reads a socket again at once while it fills the buffer
        receive_piece(transport, 1_000, took=partial(rounds.clock.advance, took_ms))
        reads.append(transport.reads)

    assert reads == [True, True, False]
    assert single(rounds, other, "light") == ["light"]
    rounds.run_once()
    assert transport.reads


def test_all_pipelining_connections_together_hold_the_loop_for_one_round() -> None:
    rounds = Rounds()
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    at_arrival = len(rounds.seen)

    answered = [len(rounds.run_once()) for _ in range(5)]

    assert at_arrival <= PER_ROUND
    assert max(answered) <= PER_ROUND + 1
    assert min(answered) >= PER_ROUND
    assert len(rounds.turns.work) == 1


def test_a_single_request_does_not_wait_for_those_that_pipeline() -> None:
    rounds = Rounds()
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    victim, transport = rounds.connect()
    before = len(rounds.seen)

    victim.data_received(framed("victim"))

    assert rounds.seen[before:] == ["victim"]
    assert transport.written == b"victim"


def test_a_single_request_that_has_to_wait_comes_before_all_that_pipeline() -> None:
    rounds = Rounds()
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    rounds.run_once()
    victim, transport = rounds.connect()

    at_once = single(rounds, victim, "victim")
    passes = 0
    while not transport.written:
        rounds.run_once()
        passes += 1

    assert at_once == []
    assert passes <= 2


def test_a_client_that_waits_for_each_answer_never_waits_for_the_ring() -> None:
    rounds = Rounds()
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    rounds.run_once()
    victim, transport = rounds.connect()
    passes = []

    for number in range(1, 6):
        single(rounds, victim, "v")
        passes.append(0)
        while len(transport.written) < number:
            rounds.run_once()
            passes[-1] += 1

    assert max(passes) <= 2


def test_single_requests_do_not_stop_the_ring() -> None:
    rounds = Rounds()
    rounds.pipelining("old", 50)
    first_turn = len(rounds.run_once())

    for number in range(10):
        for other in range(5):
            channel, _ = rounds.connect()
            single(rounds, channel, f"{number}-{other}")
        rounds.run_once()

    assert len([request for request in rounds.seen if request.startswith("old")]) > 3 * first_turn


def test_a_connection_with_a_few_requests_goes_before_the_ring() -> None:
    rounds = Rounds()
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    while rounds.turns.joined:
        rounds.run_once()
    _, transport = rounds.pipelining("victim", PER_ROUND)

    rounds.run_once()
    rounds.run_once()

    assert transport.written == b"".join(b"victim%d" % number for number in range(PER_ROUND))


def test_a_client_that_runs_out_of_requests_is_not_first_again() -> None:
    rounds = Rounds()
    channel, _ = rounds.pipelining("first", PER_ROUND + 1)
    for number in range(PIPELINING):
        rounds.pipelining(f"{number}-", 50)
    while channel.buffer is not None:
        rounds.run_once()

    channel.data_received(framed("again", "and again"))

    assert channel in rounds.turns.ring
    assert channel not in rounds.turns.joined


def test_connections_that_keep_joining_do_not_stop_the_ring() -> None:
    rounds = Rounds()
    rounds.pipelining("old", 50)
    first_turn = len(rounds.run_once())

    for number in range(10):
        for other in range(5):
            rounds.pipelining(f"{number}-{other}-", 5)
        rounds.run_once()

    assert len([request for request in rounds.seen if request.startswith("old")]) > 3 * first_turn


def test_single_requests_stop_neither_those_that_join_nor_the_ring() -> None:
    rounds = Rounds()
    rounds.pipelining("old", 50)
    rounds.run_once()

    for number in range(20):
        rounds.pipelining(f"few{number}-", 2)
        for other in range(5):
            channel, _ = rounds.connect()
            single(rounds, channel, f"{number}-{other}")
        rounds.run_once()

    for name in ("old", "few"):
        assert sum(request.startswith(name) for request in rounds.seen) > 3


def test_a_turn_is_a_number_of_requests() -> None:
    rounds = Rounds(TurnSettings(turn_requests=2), request_ms=0)
    rounds.pipelining("a", 5)
    rounds.pipelining("b", 3)

    rounds.run_until_idle()

    assert rounds.seen == ["a0", "a1", "b0", "b1", "a2", "a3", "b2", "a4"]
    assert rounds.turns.used_up == 3
    assert len(rounds.turns) == 0


def test_a_turn_ends_after_a_number_of_bytes() -> None:
    rounds = Rounds(TurnSettings(turn_bytes=1_000), request_ms=0)
    for name in "ab":
        channel, _ = rounds.connect()
        channel.data_received(framed(*(f"{name}{number}" for number in range(4)), size=600))

    rounds.run_until_idle()

    assert rounds.seen == ["a0", "a1", "b0", "b1", "a2", "a3", "b2", "b3"]


def test_requests_without_an_answer_keep_their_place() -> None:
    rounds = Rounds(TurnSettings(turn_requests=2))
    channel, transport = rounds.connect()
    channel.data_received(framed("quiet", "a", "quiet", "quiet", "b"))
    channel.data_received(framed("c"))

    rounds.run_until_idle()

    assert rounds.seen == ["quiet", "a", "quiet", "quiet", "b", "c"]
    assert transport.written == b"abc"


def test_a_connection_with_a_full_backlog_is_not_read() -> None:
    rounds = Rounds(TurnSettings(turn_requests=1), request_ms=0)
    channel, transport = rounds.connect()
    channel.data_received(framed(*"abcdef", size=READ_AHEAD_BYTES // 4))
    _, other = rounds.pipelining("other", 3)
    paused = not transport.reads

    rounds.run_until_idle()

    assert paused
    assert transport.reads
    assert other.reads


def test_few_connections_are_read_again_in_one_round() -> None:
    rounds = Rounds(TurnSettings(turn_requests=1), requests_per_ms=40)
    transports = []
    for _ in range(5 * READS_PER_ROUND):
        channel, transport = rounds.connect()
        channel.data_received(framed(*"x" * 128, size=READ_AHEAD_BYTES // 64))
        transports.append(transport)

    reading, begun = 0, []
    while rounds.soon:
        rounds.run_once()
        begun.append(sum(each.reads for each in transports) - reading)
        reading += begun[-1]

    assert reading == len(transports)
    assert max(begun) == READS_PER_ROUND


def test_a_connection_with_half_a_request_is_always_read() -> None:
    rounds = Rounds(request_ms=0)
    channel, transport = rounds.connect()
    channel.data_received(framed("a", "b", "c", size=READ_AHEAD_BYTES) + framed("d", size=30_000)[:20_000])
    paused = not transport.reads

    rounds.turns.reads_left = -100
    rounds.run_until_idle()

    assert paused
    assert transport.reads


def test_a_connection_is_read_again_when_the_last_reason_is_gone() -> None:
    rounds = Rounds()
    channel, transport = rounds.connect()
    seen = []
    for change, reason in (
        (channel.stop_reading, Pause.BACKLOG),
        (channel.stop_reading, Pause.REQUESTS),
        (channel.read_again, Pause.BACKLOG),
        (channel.read_again, Pause.BACKLOG),
        (channel.read_again, Pause.REQUESTS),
    ):
        change(reason)
        seen.append(transport.reads)

    assert seen == [False, False, False, False, True]


def test_a_large_frame_does_not_start_to_read_a_connection_that_must_not() -> None:
    rounds = Rounds(request_ms=0)
    channel, transport = rounds.connect()
    frame = framed("large", size=READ_AHEAD_BYTES * 2)
    channel.data_received(frame[:1_000])

    channel.stop_reading(Pause.REQUESTS)
    channel.large_frame_received(bytearray(frame))

    assert rounds.seen == ["large"]
    assert not transport.reads


def test_a_bug_in_one_connection_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds()
    broken, broken_transport = rounds.connect()
    broken.data_received(framed("bug", "after"))
    _, transport = rounds.pipelining("a", 5)

    rounds.run_until_idle()

    assert broken_transport.closed
    assert "after" not in rounds.seen
    assert transport.written == b"a0a1a2a3a4"
    assert "its requests cannot be answered" in caplog.text


def test_a_connection_that_closes_leaves_the_ring() -> None:
    rounds = Rounds()
    channel, _ = rounds.pipelining("a", 50)
    rounds.run_once()
    answered = len(rounds.seen)

    channel.connection_lost(None)
    rounds.run_until_idle()

    assert len(rounds.seen) == answered
    assert len(rounds.turns) == 0
