from __future__ import annotations

from itertools import product

import pytest

from odradek.quota.descriptors import Descriptors, DescriptorSettings, divided
from odradek.wire.limits import INT32_MAX
from support.offenders import offenders


@pytest.mark.parametrize(
    ("limit", "connections", "throttled", "segments"),
    [
        (1_048_576, 1_046_296, 1_000, 512),
        (20_000, 17_720, 1_000, 512),
        (1_024, 448, 64, 128),
        (256, 112, 16, 32),
    ],
)
def test_connections_get_what_files_and_throttled_sockets_leave(
    limit: int, connections: int, throttled: int, segments: int
) -> None:
    assert divided(limit, DescriptorSettings()) == Descriptors(
        connections=connections, throttled=throttled, segments=segments
    )


def fits(limit: int, reserved: int, segments: int) -> None:
    shares = divided(limit, DescriptorSettings(segments=segments, reserved=reserved))

    kept = min(reserved, limit // 4)
    assert shares.connections + shares.throttled + 2 * shares.segments + kept == limit
    assert shares.connections >= limit * 3 // 8


def test_all_shares_together_fit_and_connections_have_at_least_three_eighths() -> None:
    limits_reserved_segments = product(
        (0, 16, 64, 300, 1_024, 5_000, 10**6), (0, 256, INT32_MAX), (8, 512, INT32_MAX)
    )

    assert offenders(fits, limits_reserved_segments) == {}


def test_connections_that_take_two_descriptors_are_half_as_many() -> None:
    assert divided(1_024, DescriptorSettings(), per_connection=2).connections == 448 // 2


def test_a_process_without_a_limit_has_no_limit_of_connections() -> None:
    shares = divided(None, DescriptorSettings(segments=100))

    assert (shares.connections, shares.segments) == (INT32_MAX, 100)
