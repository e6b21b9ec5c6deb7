"""Sudden deaths of a process that delivers totals: no increment is lost or doubled, and no total goes back.

Only a real death shows what a file holds at that moment.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from integration.totals_program import CLIENTS, increment

LIVES = 8
LONGEST_S = 0.08
"""A fraction of the time that the whole log takes."""
RECORDS = 1_500
TESTS = Path(__file__).parents[1]


def lived(folder: Path, life_s: float) -> int:
    """The exit status of a process after its life."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    command = [sys.executable, "-m", "integration.totals_program", str(folder), str(RECORDS), str(life_s)]
    return subprocess.run(command, cwd=TESTS, env=environment, timeout=100, check=False).returncode


def delivered(folder: Path) -> list[tuple[int, float]]:
    """Client and total of each delivered record."""
    pairs = [line.split() for line in (folder / "delivered").read_text().splitlines()]
    return [(int(client), float(total)) for client, total in pairs]


def test_totals_after_sudden_deaths_are_the_sums_of_the_log(tmp_path: Path) -> None:
    chance = random.Random(7)

    ends = [lived(tmp_path, chance.uniform(0.005, LONGEST_S)) for _ in range(LIVES)]
    last = lived(tmp_path, 0)

    found = delivered(tmp_path)
    assert (ends[0], last) == (-signal.SIGALRM, 0)
    for client in range(CLIENTS):
        totals = [total for each, total in found if each == client]
        assert totals == sorted(totals)
        assert totals[-1] == sum(increment(offset) for offset in range(client, RECORDS, CLIENTS))
