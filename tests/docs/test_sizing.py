"""The tables of ``explanation/sizing.md`` are those of ``contrib/fleet/sizing.py``."""

from __future__ import annotations

import re

import pytest
from contrib.fleet.sizing import MARK, PAGE, Size, measured, page_of, sizes

from support.reference_page import ROOT, page

TEXT = page("explanation/sizing.md")


def test_the_tables_are_those_of_the_script() -> None:
    assert {found["name"] for found in MARK.finditer(TEXT)} == {"sizes", "measured", "payloads"}
    assert page_of(TEXT) == TEXT
    assert PAGE.is_relative_to(ROOT)


def test_each_measured_figure_names_a_script_that_exists() -> None:
    scripts = set(re.findall(r"`bench\.(\w+)`", measured()))

    assert scripts
    assert [name for name in scripts if not (ROOT / f"tests/bench/{name}.py").exists()] == []


def test_figures_in_the_text_are_those_of_the_script() -> None:
    clients = Size(clients=1, interval_s=60).clients_of_a_host

    assert f"about {round(clients, -2):,} clients" in TEXT


@pytest.mark.parametrize("interval_s", [30, 300])
def test_bytes_and_pushes_follow_the_interval(interval_s: int) -> None:
    usual, other = (Size(clients=50_000, interval_s=each) for each in (60, interval_s))

    assert other.pushes_per_s == pytest.approx(usual.pushes_per_s * 60 / interval_s)
    assert other.log_bytes == pytest.approx(usual.log_bytes * 60 / interval_s)
    assert sizes(interval_s) != sizes(60)
