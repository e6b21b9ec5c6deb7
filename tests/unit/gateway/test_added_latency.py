"""The time that bytes spend in a gateway."""

from __future__ import annotations

from odradek.gateway.path_meter import HELD, REQUEST, RESPONSE, SAMPLED
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from support.gateway_pair import HEARTBEAT, Through, answer, bare, response


class Watch:
    """The time; each look at it takes a microsecond."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def __call__(self) -> int:
        self.now_ns += 1000
        return self.now_ns


def timed(through: Through, of: str) -> tuple[int, float]:
    """How many pieces were timed, and their sum in microseconds."""
    counts = through.path.meter.added[of]
    return sum(counts.counts), round(counts.total * 1e6)


def test_one_piece_in_many_is_timed() -> None:
    through = Through(monotonic_ns=Watch())

    for number in range(SAMPLED + 1):
        through.send(bare(HEARTBEAT, 3, number))
        through.reply(answer(number))

    # a piece reads the time once, between the two looks
    assert timed(through, REQUEST) == (0, 0)
    assert timed(through, RESPONSE) == (2, 4)


def test_responses_that_wait_for_a_local_answer_are_timed() -> None:
    watch = Watch()
    through = Through(monotonic_ns=watch)
    through.send(bare(72, 0, 1, b"\0metrics"), bare(HEARTBEAT, 3, 2))

    through.reply(answer(2))
    watch.now_ns += 50_000_000
    through.answers.finish()

    assert timed(through, HELD) == (1, 50_001)


def test_a_large_response_that_is_held_is_timed() -> None:
    watch = Watch()
    through = Through(monotonic_ns=watch)
    brokers = [MetadataResponseBroker(node_id=1, host="h" * 200, port=1) for _ in range(200)]
    frame = response(MetadataResponse(brokers=brokers), 5, 1)
    through.send(bare(3, 5, 1))

    through.reply(frame[:30_000])
    watch.now_ns += 50_000_000
    through.reply(frame[30_000:])

    assert timed(through, HELD) == (1, 50_002)
