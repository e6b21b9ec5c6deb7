"""The pairs of a gateway that stand still: which of them end, and when."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.gateway.pair_failure import Cause
from odradek.gateway.pair_state import Pause
from odradek.gateway.path_meter import PathMeter
from odradek.net.held_bytes import MemorySettings
from odradek.net.pairs.client_side import ClientSide
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.standstills import CHECK_MS, LEFT_MS, READ_ON_BYTES, Standstills
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from support.gateway_pair import HEARTBEAT, Through, answer, bare

STUCK_MS, LIMIT = 30_000, 1 << 30
API_VERSIONS, JOIN_GROUP = 18, 11
CHECKS = STUCK_MS // CHECK_MS


class Upstream:
    """A connection to a broker."""

    def __init__(self) -> None:
        self.unsent, self.reasons = 0, 0
        self.read_bytes = None
        self.transport = SimpleNamespace(
            get_extra_info=lambda _: ("10.0.0.1", 9092), get_write_buffer_size=self.unsent_bytes
        )
        self.aborted = False

    def unsent_bytes(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True

    finish = abort


class Transport:
    """The connection to a client, which is read or not."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_reading = True
        self.has_ended = False

    def get_extra_info(self, _name: str) -> socket.socket:
        return self.connection

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.has_ended

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.has_ended = True

    abort = close


@dataclass
class World:
    """One pair, and its client's own end."""

    client: socket.socket
    here: socket.socket
    through: Through = field(default_factory=Through)
    clock: MockClock = field(default_factory=MockClock)
    failures: list[Cause] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = PairBytes(LIMIT, MemorySettings(), self.clock, self.clock.timer)
        self.standstills = Standstills(STUCK_MS, self.clock, self.clock.timer, self.memory)
        owner: Any = SimpleNamespace(
            clock=self.clock,
            gateway=SimpleNamespace(
                memory=self.memory, standstills=self.standstills, path=SimpleNamespace(meter=PathMeter())
            ),
            note_failure=lambda failure, _about: self.failures.append(failure.cause),
            closed=lambda _side, _in_order: None,
        )
        self.side = ClientSide(owner)
        self.transport = cast(Any, Transport(self.here))
        self.side.transport = self.transport
        self.side.context = request_context().connection
        self.upstream = cast(Any, Upstream())
        self.side.other, self.side.pair = self.upstream, self.through.pair
        self.through.pair.failed = self.side.failed

    def answered(self) -> None:
        """A request and its answer pass."""
        self.through.send(bare(HEARTBEAT, 3, 1))
        self.through.reply(answer(1))

    def broker_is_full(self, unsent: int = 1 << 20) -> None:
        self.upstream.unsent = unsent
        self.side.hold(Pause.PEER_IS_SLOW)

    def checks(self, number: int) -> None:
        for _ in range(number):
            self.clock.advance(CHECK_MS)


@pytest.fixture
def world() -> Iterator[World]:
    client, here = socket.socketpair()
    with client, here:
        yield World(client, here)


def test_a_client_that_has_left_is_seen_when_its_broker_takes_nothing(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.client.close()

    world.checks(LEFT_MS // CHECK_MS)
    before = world.transport.has_ended
    world.checks(1)

    assert (before, world.transport.has_ended, world.upstream.aborted) == (False, True, True)
    assert world.failures == []


def test_what_a_client_sent_before_it_left_goes_on_while_the_broker_takes_it(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.client.close()

    for _ in range(10):
        world.checks(1)
        world.upstream.unsent -= 1

    assert not world.transport.has_ended


def test_a_client_that_has_left_is_served_until_its_throttle_time_is_over(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.side.hold(Pause.THROTTLED)
    world.client.close()
    world.checks(CHECKS)
    throttled = world.transport.has_ended

    world.side.release(Pause.THROTTLED)
    world.checks(LEFT_MS // CHECK_MS + 1)

    assert (throttled, world.transport.has_ended) == (False, True)


def test_a_broker_that_takes_nothing_has_its_time(world: World) -> None:
    world.answered()
    world.broker_is_full()

    world.checks(CHECKS)
    before = list(world.failures)
    world.checks(1)

    assert (before, world.failures) == ([], [Cause.UPSTREAM_STUCK])
    assert dict(world.standstills.stuck) == {"bootstrap": 1}


@pytest.mark.parametrize(("api_key", "expected"), [(API_VERSIONS, [Cause.UPSTREAM_STUCK]), (JOIN_GROUP, [])])
def test_a_broker_that_says_nothing_has_its_time_if_it_could_answer_at_once(
    world: World, api_key: int, expected: list[Cause]
) -> None:
    world.through.send(bare(api_key, 0, 1))
    world.standstills.watch(world.side)

    world.checks(2 * CHECKS)

    assert world.failures == expected


def test_a_broker_whose_client_does_not_read_is_not_to_blame(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.upstream.reasons = Pause.PEER_IS_SLOW

    world.checks(2 * CHECKS)

    assert world.failures == []


def test_a_client_is_read_on_up_to_a_bound_because_its_end_comes_last(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.checks(LEFT_MS // CHECK_MS + 1)
    reads = world.transport.is_reading

    world.upstream.unsent += READ_ON_BYTES
    world.side.data_received(bare(HEARTBEAT, 3, 2))

    assert reads
    assert not world.transport.is_reading


def test_reading_on_is_no_progress_of_the_broker(world: World) -> None:
    world.answered()
    world.broker_is_full()
    for _ in range(CHECKS):
        world.checks(1)
        if world.transport.is_reading and world.side.reads_to_bytes:
            world.side.read_on_bytes += 1000
            world.upstream.unsent += 1000
    world.checks(1)

    assert world.failures == [Cause.UPSTREAM_STUCK]


def test_no_client_is_read_on_when_half_of_the_memory_is_used(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.memory.total_bytes = LIMIT // 2

    world.checks(CHECKS // 2)

    assert not world.transport.is_reading


def test_a_pair_that_goes_on_is_not_watched(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.checks(1)
    world.side.release(Pause.PEER_IS_SLOW)

    world.checks(1)

    assert (world.standstills.pairs, world.clock.timer.live) == ({}, 0)


def test_the_rest_for_a_peer_that_takes_nothing_is_dropped(world: World) -> None:
    world.transport.get_write_buffer_size = lambda: 5
    world.standstills.linger(world.side, LEFT_MS)

    world.checks(LEFT_MS // CHECK_MS)
    before = world.transport.has_ended
    world.checks(1)
    world.standstills.gone(world.side)

    assert (before, world.transport.has_ended) == (False, True)
    assert world.standstills.ending == {}


def test_nothing_of_a_pair_stays_when_its_connections_are_gone(world: World) -> None:
    world.answered()
    world.broker_is_full()
    world.side.close()

    world.side.connection_lost(None)

    assert (world.standstills.pairs, list(world.standstills.ending)) == ({}, [world.upstream])
    world.side.upstream_ended(False)
    assert world.standstills.ending == {}
