"""Sudden deaths of processes at random moments."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from support.hosts import ServeProcess

Process = TypeVar("Process", bound=ServeProcess)


def random_moments(deaths: int, longest_s: float, seed: int = 7) -> Iterator[random.Random]:
    """Wait for a random time before each of so many deaths."""
    chance = random.Random(seed)
    for _ in range(deaths):
        time.sleep(chance.uniform(0, longest_s))
        yield chance


def killed(processes: Sequence[Process], chance: random.Random) -> Process:
    """End one of the processes with SIGKILL; return it."""
    process = chance.choice(processes)
    process.kill()
    return process
