"""Bugs in rewriting that a gateway notices at run time."""

from __future__ import annotations

import pytest

from odradek.gateway.switch import OPAQUE_FETCH_VERSION
from odradek.programs.config import load_config
from odradek.programs.gateway_pairs import pairs_of
from odradek.testing.clock import MockClock

FETCH, METADATA = 1, 3


@pytest.mark.parametrize(
    ("api_keys", "pause_ms", "is_limited"),
    [
        pytest.param([FETCH] * 3, 20_000, True, id="three within a minute"),
        pytest.param([FETCH] * 2, 0, False, id="two"),
        pytest.param([FETCH] * 3, 31_000, False, id="three in more than a minute"),
        pytest.param([METADATA] * 3, 0, False, id="of another API"),
    ],
)
def test_bugs_in_rewriting_fetch_end_with_a_version_that_needs_none(
    api_keys: list[int], pause_ms: int, is_limited: bool
) -> None:
    clock = MockClock()
    config = load_config(None, ("gateway.upstream=kafka:9092",), ())
    gateway = pairs_of(config, [("kafka", 9092)], None, False, clock, clock.timer)

    for api_key in api_keys:
        gateway.path.on_internal_error(api_key)
        clock.advance(pause_ms)

    assert (gateway.path.policy.fetch_max_version == OPAQUE_FETCH_VERSION) == is_limited
