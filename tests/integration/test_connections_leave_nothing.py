"""Connections that have ended leave no memory behind: in every program, at every listener, by every end.

`bench.soak` is the long form, with a million connections.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from bench.soak import memory_bytes
from bench.soak_lives import Spot, ends_of, live_elsewhere
from bench.soak_programs import PROGRAMS, Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SHORT: Final = ("garbage", "half", "reset early", "complete", "refused", "timed out")
"""The ends that are tried here."""
WARM_UP: Final = 200
LIVES: Final = 400
PARTS: Final = 5
LEFT_BYTES: Final = 1_000
"""By each connection, in the part that leaves least. Memory grows in chunks, the arena of a thread for some
thousand handshakes, and a leak in every part: the smallest that was found left 1.7 kB."""
GRPC: Final = "gRPC"
GRPC_LEFT_BYTES: Final = 4_000
"""gRPC's own core keeps 1 to 3 kB of a connection for a while."""


def left_bytes(program: Program, spot: Spot, end: str) -> float:
    """What each connection leaves, in the best of several parts."""
    live_elsewhere(spot, end, WARM_UP)
    sizes = [memory_bytes(program.pid)]
    for seed in range(PARTS):
        live_elsewhere(spot, end, LIVES, seed)
        sizes.append(memory_bytes(program.pid))
        if sizes[-1] - sizes[-2] <= LEFT_BYTES * LIVES:
            break
    return min(after - before for before, after in pairwise(sizes)) / LIVES


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_end_of_a_connection_leaves_memory(name: str, tmp_path: Path) -> None:
    with PROGRAMS[name](tmp_path) as program:
        left = {
            f"{spot.name}, {end}": left_bytes(program, spot, end)
            for spot in program.spots
            for end in ends_of(spot)
            if end in SHORT
        }

    most = {which: GRPC_LEFT_BYTES if GRPC in which else LEFT_BYTES for which in left}
    assert {which: count for which, count in left.items() if count > most[which]} == {}
