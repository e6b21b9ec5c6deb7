"""A pass of the loop does a piece of the ring or of long requests, and answers light connections."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from odradek.net.large_frame import (
    HUGE_FRAME_BYTES,
    SHARED_BUFFER_BYTES,
    SMALL_PIECE_BYTES,
    HugeFrame,
    LargeFrame,
)
from odradek.process.limits import SWITCH_INTERVAL_S, switch_threads_often
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps
from support.rounds import Rounds, busy, framed, single


def steps(rounds: Rounds, count: int, name: str = "step") -> Steps:
    """Long work, a millisecond in each step."""
    for _ in range(count):
        rounds.clock.advance(1)
        rounds.seen.append(name)
        yield None


def long_request(rounds: Rounds, count: int) -> None:
    """Begin a request of some steps, the first of which is done at once."""
    runner = StepRunner.of_requests(rounds.clock.timer, rounds.clock, turn_us=1_000)
    runner.soon = rounds.turns.soon
    runner.answer(steps(rounds, count))


def test_long_requests_and_the_ring_alternate() -> None:
    rounds = Rounds()
    long_request(rounds, 4)
    rounds.pipelining("a", 4)

    passes = [rounds.run_once() for _ in range(6)]

    assert passes == [["step"], ["a0"], ["step"], ["a1"], ["step"], ["a2"]]


def test_upkeep_has_passes_of_its_own() -> None:
    rounds = Rounds()
    upkeep = StepRunner(rounds.clock.timer, rounds.clock)
    upkeep.soon = rounds.turns.soon
    long_request(rounds, 6)
    upkeep.run(steps(rounds, 2, "upkeep"))

    passes = [rounds.run_once() for _ in range(7)]

    assert passes == [["step"], ["upkeep"], ["step"], ["step"], ["upkeep"], ["step"], ["step"]]


def test_long_requests_do_not_wait_for_the_timer() -> None:
    rounds = Rounds()
    long_request(rounds, 3)

    rounds.run_until_idle()

    assert rounds.seen == ["step"] * 3
    assert rounds.clock.timer.next_deadline_ms() is None


def test_after_a_piece_of_long_work_only_light_connections_are_answered_at_once() -> None:
    rounds = Rounds()
    light, _ = rounds.connect()
    rounds.clock.advance(1_000)
    heavy, _ = rounds.connect()
    long_request(rounds, 3)
    rounds.run_once()

    at_once = [single(rounds, heavy, "heavy"), single(rounds, light, "light")]

    assert at_once == [[], ["light"]]


def test_work_that_fails_does_not_stop_the_rest() -> None:
    rounds = Rounds()
    rounds.turns.soon(lambda: [][0])
    rounds.pipelining("a", 2)

    with pytest.raises(IndexError):
        rounds.run_once()

    rounds.run_until_idle()
    assert rounds.seen == ["a0", "a1"]


@pytest.mark.parametrize(
    ("prepare", "piece_bytes"),
    [
        pytest.param(busy, SMALL_PIECE_BYTES, id="busy"),
        pytest.param(lambda rounds: None, SHARED_BUFFER_BYTES, id="idle"),
    ],
)
def test_on_a_busy_loop_large_frames_are_received_in_small_pieces(
    prepare: Callable[[Rounds], None], piece_bytes: int
) -> None:
    rounds = Rounds(max_request_bytes=10 << 20)
    channel, transport = rounds.connect()
    channel.data_received(framed("x" * (8 << 20))[:100_000])
    rounds.run_until_idle()
    prepare(rounds)

    assert isinstance(transport.protocol, LargeFrame)
    room = transport.protocol.get_buffer(-1)

    assert len(room) == piece_bytes


def test_a_thread_that_computes_gives_the_interpreter_up_soon() -> None:
    interval_s = sys.getswitchinterval()
    try:
        switch_threads_often()

        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    finally:
        sys.setswitchinterval(interval_s)


def test_a_huge_frame_is_received_in_small_pieces_because_its_pages_have_to_be_found() -> None:
    rounds = Rounds(max_request_bytes=100 << 20)
    channel, transport = rounds.connect()
    channel.data_received(framed("x" * HUGE_FRAME_BYTES)[:100_000])

    assert isinstance(transport.protocol, HugeFrame)
    assert len(transport.protocol.get_buffer(-1)) == SMALL_PIECE_BYTES
