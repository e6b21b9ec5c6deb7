"""The connections of a gateway that are closed because nothing passes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.gateway.pair_failure import Cause
from odradek.gateway.path_meter import PathMeter
from odradek.net.pairs.client_side import ClientSide, GatewayListener
from odradek.programs.config import load_config
from odradek.testing.clock import MockClock
from support.gateway_pair import HEARTBEAT, Through, answer, bare

SILENT_MS, PAIR_MS = 600_000, 700_000
NOW_MS = 1_000


def side_of(through: Through | None) -> tuple[ClientSide, Any]:
    """A connection that was opened or used last at `NOW_MS`, and its listener."""
    config = load_config(
        None, ("gateway.upstream=kafka:9092", f"gateway.connections.max.idle.ms={PAIR_MS}"), ()
    )
    path = SimpleNamespace(meter=PathMeter())
    owner: Any = SimpleNamespace(
        clock=MockClock(),
        gateway=SimpleNamespace(
            memory=None,
            path=path,
            settings=config.gateway,
            standstills=SimpleNamespace(linger=lambda _end, _limit_ms: None),
        ),
    )
    side = ClientSide(owner)
    side.since_ms = NOW_MS
    side.pair = None if through is None else through.pair
    owner.channels = {side}
    return side, owner


def used(through: Through) -> Through:
    """A pair on which a request was answered."""
    through.send(bare(HEARTBEAT, 3, 1))
    through.reply(answer(1))
    return through


def through_at(now_ms: int) -> Through:
    return Through(monotonic_ns=lambda: now_ms * 1_000_000)


def close_idle(owner: Any, after_ms: int) -> int:
    return GatewayListener.close_idle(cast(GatewayListener, owner), NOW_MS + after_ms, SILENT_MS)


@pytest.mark.parametrize(("has_pair", "limit_ms"), [(False, SILENT_MS), (True, PAIR_MS)])
def test_a_connection_is_closed_when_its_time_is_over(has_pair: bool, limit_ms: int) -> None:
    side, owner = side_of(used(through_at(NOW_MS)) if has_pair else None)

    closed = [close_idle(owner, limit_ms - 1), close_idle(owner, limit_ms), close_idle(owner, limit_ms + 1)]

    assert closed == [0, 1, 0]
    assert side.closing


def test_the_cause_is_counted() -> None:
    through = used(through_at(NOW_MS))
    _, owner = side_of(through)
    _, silent_owner = side_of(None)

    close_idle(owner, PAIR_MS)
    close_idle(silent_owner, PAIR_MS)

    assert through.path.meter.closed == {Cause.IDLE: 1}
    assert silent_owner.gateway.path.meter.closed == {Cause.IDLE: 1}


def test_a_connection_with_a_request_outstanding_stays() -> None:
    through = used(through_at(NOW_MS))
    through.send(bare(HEARTBEAT, 3, 2))
    _, owner = side_of(through)

    assert close_idle(owner, 10 * PAIR_MS) == 0


def test_a_client_whose_broker_is_being_dialed_stays() -> None:
    side, owner = side_of(None)
    side.dial = cast(Any, object())

    assert close_idle(owner, 10 * PAIR_MS) == 0


def test_without_the_setting_no_pair_is_idle() -> None:
    _, owner = side_of(used(through_at(NOW_MS)))
    owner.gateway.settings = load_config(None, ("gateway.upstream=kafka:9092",), ()).gateway

    assert close_idle(owner, 10 * PAIR_MS) == 0
