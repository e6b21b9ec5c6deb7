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

SERIES_CHANGE = "its last record has lost the group, so the series with the group do not end"
NO_GOODBYE = "a client that has closed without a goodbye is taken for dead"
NO_SIGNAL = "nothing asks what the wire tells"
CHOSEN: Final[Mapping[tuple[str, str, str], str]] = {
    ("host", "start alone", "aiokafka producer"): "",
    ("host", "normal close", "java-observed producer"): "",
    ("host", "rolling deploy", "java streams"): NO_GOODBYE,
    ("host", "rolling deploy", "java consumer"): "the first sample of failed rebalances is an increase",
    ("host", "slow application", "java consumer"): "a lag is judged by a number of records",
    ("host", "consumer killed", "librdkafka consumer"): NO_SIGNAL,
    ("host", "wrong password", "librdkafka producer"): NO_SIGNAL,
    ("host", "joins and leaves", "java consumer"): NO_SIGNAL,
    ("gateway", "start alone", "aiokafka producer"): "",
    ("gateway", "normal close", "java-observed producer"): "",
    ("gateway", "rolling deploy", "aiokafka consumer"): SERIES_CHANGE,
    ("gateway", "rolling deploy", "franz-go consumer"): NO_GOODBYE,
    ("gateway", "stuck", "java consumer"): "a lag is judged by a number of records",
    ("gateway", "produce quota", "java producer"): "a client that is held back looks silent",
    ("gateway", "too large", "aiokafka producer"): NO_SIGNAL,
}
"""Cells by way, life and kind. Those that are still wrong have the reason."""
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


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(
            each,
            id="-".join(each),
            marks=pytest.mark.xfail(reason=reason, strict=True) if reason else (),
        )
        for each, reason in CHOSEN.items()
    ],
)
def test_what_rings(outcomes: dict[tuple[str, str, str], Outcome], chosen: tuple[str, str, str]) -> None:
    outcome = outcomes[chosen]

    assert all(outcome.is_right(outlet) for outlet in OUTLETS), said(outcome)
