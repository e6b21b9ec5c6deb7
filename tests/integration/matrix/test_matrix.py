"""Some cells of the matrix, at a host and through a gateway side by side: only what must ring rings."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
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
    ("host", "rolling deploy", "java consumer"),
    ("host", "rolling deploy", "librdkafka consumer"),
    ("host", "normal close", "java producer"),
    ("host", "normal close", "kafka-python consumer"),
    ("host", "idle", "java-848 consumer"),
    ("host", "catching up", "java consumer"),
    ("host", "slow application", "java consumer"),
    ("host", "consumer killed", "librdkafka consumer"),
    ("host", "wrong password", "librdkafka producer"),
    ("host", "joins and leaves", "java consumer"),
    ("gateway", "rolling deploy", "aiokafka consumer"),
    ("gateway", "start alone", "java streams"),
    ("gateway", "normal close", "java-observed consumer"),
    ("gateway", "short job", "franz-go producer"),
    ("gateway", "stuck", "java consumer"),
    ("gateway", "produce quota", "java producer"),
    ("gateway", "too large", "aiokafka producer"),
    ("gateway", "consumer killed", "kafka-python consumer"),
)
TAIL_S: Final = 70.0
NOT_YET: Final[Mapping[tuple[str, str, str], str]] = {}
"""Cells that are still wrong, with the reason."""
KIND: Final = {each.name: each for each in KINDS}


def outcomes_at(way: str, folder: Path, clients: Programs) -> list[Outcome]:
    cells = [Cell(life, KIND[kind], where) for where, life, kind in CHOSEN if where == way]
    with place(way, folder / way) as where:
        return lived(where, cells, clients, TAIL_S)


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


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(
            each,
            id="-".join(each),
            marks=pytest.mark.xfail(reason=NOT_YET[each], strict=True) if each in NOT_YET else (),
        )
        for each in CHOSEN
    ],
)
def test_what_rings(outcomes: dict[tuple[str, str, str], Outcome], chosen: tuple[str, str, str]) -> None:
    outcome = outcomes[chosen]

    assert all(outcome.is_right(outlet) for outlet in OUTLETS), said(outcome)
