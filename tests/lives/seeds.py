"""The seeds that the tests live."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ORDINARY: Final = range(200)
KEPT: Final = Path(__file__).with_name("kept_seeds.txt")


def kept_seeds() -> list[int]:
    """The seeds that have failed once."""
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return [int(line) for line in lines if line and not line.startswith("#")]


def keep(seed: int) -> None:
    """Let the tests live a seed from now on."""
    if seed not in kept_seeds() and seed not in ORDINARY:
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(f"{seed}\n")
