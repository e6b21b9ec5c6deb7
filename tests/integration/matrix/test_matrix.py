"""Some cells of the matrix, at a host and through a gateway side by side: only what must ring rings."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from contrib.go_program import UnavailableError
from contrib.prometheus.prometheus import PROMETHEUS

from matrix.clients import commands
from matrix.lives import KINDS
from matrix.place import place
from matrix.report import said
from matrix.run import Outcome, Programs, lived, programs
from matrix.table import Cell
from matrix.watch import OUTLETS

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

CHOSEN: Final = (
    ("host", "start alone", "aiokafka producer"),
    ("host", "normal close", "java-observed producer"),
    ("host", "consumer killed", "librdkafka consumer"),
    ("host", "wrong password", "librdkafka producer"),
    ("gateway", "start alone", "aiokafka producer"),
    ("gateway", "normal close", "java-observed producer"),
    ("gateway", "rolling deploy", "aiokafka consumer"),
    ("gateway", "too large", "aiokafka producer"),
)
"""Cells by way, life and kind."""
TAIL_S: Final = 70.0
SICK_TAIL_S: Final = 10.0
KIND: Final = {each.name: each for each in KINDS}


def outcomes_at(way: str, folder: Path, clients: Programs) -> list[Outcome]:
    cells = [Cell(life, KIND[kind], where) for where, life, kind in CHOSEN if where == way]
    with place(way, folder / way) as where:
        return lived(where, cells, clients, TAIL_S, SICK_TAIL_S)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Outcome]:
    """All cells, lived at once in both places."""
    try:
        PROMETHEUS.path()
        found = commands()
    except (UnavailableError, OSError, subprocess.CalledProcessError) as reason:
        pytest.skip(f"clients or Prometheus cannot be built: {reason}")
    folder = tmp_path_factory.mktemp("matrix")
    with programs(found) as clients, ThreadPoolExecutor(2) as pool:
        both = pool.map(lambda way: outcomes_at(way, folder, clients), ("host", "gateway"))
        return {(each.cell.way, each.cell.life, each.cell.kind.name): each for some in both for each in some}


@pytest.mark.parametrize("chosen", CHOSEN, ids="-".join)
def test_what_rings(outcomes: dict[tuple[str, str, str], Outcome], chosen: tuple[str, str, str]) -> None:
    outcome = outcomes[chosen]

    assert all(outcome.is_right(outlet) for outlet in OUTLETS), said(outcome)
