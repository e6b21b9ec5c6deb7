"""The memory of all pairs of a gateway: the ends that are not read above the limit, the pairs that close."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from odradek.gateway.pair_state import Pause
from odradek.meters.memory_metrics import memory_rows
from odradek.net.held_bytes import CHECK_MS, COUNTED_BYTES, MemorySettings
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.socket_end import SocketEnd
from odradek.testing.clock import MockClock

LIMIT, FRAME = 1_000_000, 400_000
STALLED_MS = MemorySettings().stalled_ms


class Transport(asyncio.Transport):
    """Takes nothing of what is written until the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.buffered = 0
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


class End(SocketEnd):
    """One connection of a pair that is closed as a whole."""

    transport: Transport

    @property
    def about(self) -> dict[str, str]:
        return {"address": "10.0.0.7"}

    def give_up(self) -> None:
        for each in (self, self.other):
            assert isinstance(each, End)
            each.transport.abort()

    @property
    def is_read(self) -> bool:
        return not self.reasons & Pause.MEMORY

    def takes(self, size: int) -> None:
        """The peer has taken bytes, as many as the loop says goodbye to the pause with."""
        self.transport.buffered -= size
        self.resume_writing()

    def piles_up(self, size: int) -> None:
        """The peer takes nothing of what was written."""
        self.transport.buffered += size
        self.pause_writing()


@dataclass
class Gateway:
    """The memory of pairs."""

    clock: MockClock = field(default_factory=MockClock)

    def __post_init__(self) -> None:
        self.memory = PairBytes(LIMIT, MemorySettings(), self.clock, self.clock.timer, FRAME)

    def pair(self) -> tuple[End, End]:
        """The ends of a new pair, the client's first."""
        client, upstream = End(self.memory), End(self.memory)
        client.other, upstream.other = upstream, client
        for each in (client, upstream):
            each.transport = Transport()
        return client, upstream

    def pass_time(self, ms: int) -> None:
        for _ in range(ms // CHECK_MS):
            self.clock.advance(CHECK_MS)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.mark.parametrize("is_client_slow", [True, False])
def test_bytes_that_a_peer_does_not_take_are_counted_until_it_does(
    gateway: Gateway, is_client_slow: bool
) -> None:
    client, upstream = gateway.pair()
    slow = client if is_client_slow else upstream

    held = []
    slow.piles_up(300_000)
    held.append(gateway.memory.total_bytes)
    slow.takes(299_000)
    held.append(gateway.memory.total_bytes)

    assert held == [300_000, 0]


def test_a_frame_that_is_held_back_is_counted_with_the_bytes_before_it(gateway: Gateway) -> None:
    client, upstream = gateway.pair()

    held = []
    client.piles_up(100_000)
    upstream.holds(50_000, 10_000)
    held.append(gateway.memory.total_bytes)
    upstream.holds(0, 0)
    held.append(gateway.memory.total_bytes)

    assert held == [150_000, 100_000]


def test_little_is_not_counted(gateway: Gateway) -> None:
    client, _ = gateway.pair()

    client.holds(COUNTED_BYTES, 1)

    assert gateway.memory.total_bytes == 0


def test_above_the_limit_the_ends_that_hold_the_most_are_not_read(gateway: Gateway) -> None:
    small, *large = [gateway.pair() for _ in range(4)]
    untouched = gateway.pair()

    small[0].holds(20_000, 1_000)
    for _, upstream in large:
        upstream.holds(350_000, 50_000)

    assert [upstream.is_read for _, upstream in large] == [False] * 3
    assert [client.is_read for client, _ in large] == [True] * 3  # requests go on
    assert all(end.is_read for end in (*small, *untouched))


def test_the_frame_that_misses_least_is_still_read(gateway: Gateway) -> None:
    pairs = [gateway.pair() for _ in range(4)]
    for missing, (_, upstream) in enumerate(pairs, 1):
        upstream.holds(300_000, missing)

    gateway.pass_time(CHECK_MS)
    first = [upstream.is_read for _, upstream in pairs]
    pairs[0][1].holds(0, 0)
    gateway.pass_time(CHECK_MS)

    assert first == [True, False, False, False]
    assert all(upstream.is_read for _, upstream in pairs)


def test_a_frame_that_stands_still_gives_its_memory_to_the_others(gateway: Gateway) -> None:
    pairs = [gateway.pair() for _ in range(4)]
    for missing, (_, upstream) in enumerate(pairs, 1):
        upstream.holds(300_000, missing)

    gateway.pass_time(STALLED_MS + 2 * CHECK_MS)

    assert [client.transport.aborted for client, _ in pairs] == [True, False, False, False]
    assert gateway.memory.closed == 1


def test_a_frame_that_goes_on_is_not_closed(gateway: Gateway) -> None:
    pairs = [gateway.pair() for _ in range(4)]
    for _, upstream in pairs:
        upstream.holds(300_000, 50_000)

    for size in range(300_000, 300_050):
        pairs[0][1].holds(size, 350_000 - size)
        gateway.pass_time(STALLED_MS // 2)

    assert not pairs[0][0].transport.aborted


def test_a_client_that_takes_nothing_is_closed_before_others(gateway: Gateway) -> None:
    largest, *others = [gateway.pair() for _ in range(4)]
    largest[0].piles_up(400_000)
    for client, _ in others:
        client.piles_up(250_000)

    gateway.pass_time(STALLED_MS + 2 * CHECK_MS)

    assert largest[0].transport.aborted
    assert not any(client.transport.aborted for client, _ in others)


def test_far_above_the_limit_the_largest_is_closed_at_once(gateway: Gateway) -> None:
    largest, *others = [gateway.pair() for _ in range(6)]
    largest[1].holds(FRAME, 1)
    for _, upstream in others:
        upstream.holds(300_000, 1)

    gateway.pass_time(CHECK_MS)

    assert largest[0].transport.aborted
    assert not any(client.transport.aborted for client, _ in others)


def test_below_the_limit_a_client_may_be_as_slow_as_it_likes(gateway: Gateway) -> None:
    client, upstream = gateway.pair()
    client.piles_up(900_000)

    gateway.pass_time(10 * STALLED_MS)

    assert not client.transport.aborted
    assert upstream.is_read


def test_a_connection_that_is_lost_holds_nothing(gateway: Gateway) -> None:
    client, upstream = gateway.pair()
    client.holds(300_000, 1)
    upstream.piles_up(200_000)
    client.piles_up(100_000)

    held = []
    client.lost()
    held.append(gateway.memory.total_bytes)
    upstream.lost()
    held.append(gateway.memory.total_bytes)

    # what the client has sent may still be on its way to the broker
    assert held == [200_000, 0]


def test_the_metrics(gateway: Gateway) -> None:
    client, _ = gateway.pair()
    client.piles_up(LIMIT)

    rows = {row.name: (row.value, row.attributes) for row in memory_rows(gateway.memory)}

    assert rows["odradek.queued.bytes"] == (LIMIT, {"of": "pairs"})
    assert rows["odradek.queued.limit"] == (LIMIT, {"of": "pairs"})


@pytest.mark.parametrize("first", [0, 1], ids=["client", "broker"])
def test_a_pair_that_has_ended_holds_nothing(gateway: Gateway, first: int) -> None:
    pair = gateway.pair()
    client, upstream = pair

    client.piles_up(300_000)
    upstream.piles_up(200_000)
    pair[first].lost()
    while_one_lingers = gateway.memory.total_bytes
    pair[1 - first].lost()

    assert while_one_lingers == [200_000, 300_000][first]
    assert gateway.memory.total_bytes == 0
    assert [each.other for each in pair] == [None, None]
