"""Lives of clients, hosts and gateways by their seeds: nothing is lost, and nothing is left."""

from __future__ import annotations

import gc

import pytest

from lives.breakages import BREAKAGES, Breakage
from lives.life import Life, lived
from lives.seeds import ORDINARY, kept_seeds

TOGETHER = 10
"""Seeds of one test."""
BY_DAY = 50
"""The seeds from this one on are lived every night."""
warm: dict[int, list[str]] = {}
"""What the first lives of this process told, which tests live again."""


FOR_CODE = (2, 3, 7)
"""Lives that import and compile what others use, too."""


@pytest.fixture(autouse=True)
def what_is_loaded_is_no_lifes() -> None:
    """A life collects garbage when a program dies: what other tests have loaded would take 50 ms of it."""
    if not warm:
        warm.update((seed, lived(seed)) for seed in FOR_CODE)
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.nightly] * (first >= BY_DAY))
        for first in range(0, len(ORDINARY), TOGETHER)
    ],
)
def test_a_life_ends_well(first: int) -> None:
    failed = {seed: failures for seed in ORDINARY[first : first + TOGETHER] if (failures := lived(seed))}

    assert failed == {}


def test_a_life_that_has_failed_once_ends_well() -> None:
    failed = {seed: failures for seed in kept_seeds() if (failures := lived(seed))}

    assert failed == {}


@pytest.mark.parametrize(
    ("breakage", "noticed_by"), BREAKAGES.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_some_life_notices_a_breakage(
    breakage: Breakage, noticed_by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakage(monkeypatch)

    assert any(lived(seed) for seed in (noticed_by, *ORDINARY))


def test_a_seed_tells_the_same_life_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    lives = [Life(7, tmp_path_factory.mktemp("life")) for _ in range(2)]

    for life in lives:
        life.live()

    one, other = (life.truth for life in lives)
    assert one == other
