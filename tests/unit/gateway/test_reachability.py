"""A gateway without an upstream is not ready after a while; the kill switch goes down step by step."""

from __future__ import annotations

from odradek.gateway.reachability import Reachability
from odradek.gateway.switch import STEPS, Switch


def test_a_gateway_is_ready_until_no_broker_has_answered_for_ten_seconds() -> None:
    upstream = Reachability()
    upstream.missed(1_000)
    upstream.missed(9_000)
    assert upstream.is_ready(10_999)
    assert not upstream.is_ready(11_000)

    upstream.reached()

    assert upstream.is_ready(20_000)


def test_the_switch_steps_down_to_rewriting_only() -> None:
    switch = Switch()

    taken = [(switch.step, switch.observes, switch.has_telemetry, switch.rewrites_least)]
    while switch.down():
        taken.append((switch.step, switch.observes, switch.has_telemetry, switch.rewrites_least))

    assert taken == [
        ("full", True, True, False),
        ("no-observation", False, True, False),
        ("no-telemetry", False, False, False),
        ("rewrite-only", False, False, True),
    ]


def test_a_step_has_to_be_known_and_new() -> None:
    switch = Switch()

    assert [switch.set(text) for text in ("full", "nothing", "", *STEPS[1:])] == [False] * 3 + [True] * 3
