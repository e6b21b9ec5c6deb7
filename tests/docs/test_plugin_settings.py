"""The tables of the plugins' pages are those of their declarations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from odradek.settings.reference import MARK, main, written
from support.reference_page import ROOT

PAGES = [
    path
    for path in (
        *sorted((ROOT / "plugins").glob("*/README.md")),
        ROOT / "contrib/plugin-template/README.md",
        ROOT / "host/docs/reference/spark.md",
    )
    if MARK.search(path.read_text(encoding="utf-8"))
]


def test_there_are_pages_with_tables() -> None:
    assert len(PAGES) >= 7


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_tables_are_those_of_the_declarations(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(page.parent / "src")
    text = page.read_text(encoding="utf-8")

    assert written(text) == text


def test_a_page_is_checked_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cmdb_of_a_page.py").write_text(
        "from dataclasses import dataclass\n"
        "from odradek.settings import Duration, TABLE, Whole, declare\n\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class CmdbSettings:\n"
        "    attempts: int = declare('attempts', Whole(least=1, bound=9), 3, 'Attempts for one question', "
        "unit='attempts')\n"
        "    timeout_ms: int = declare('timeout', Duration(100, 60_000), 2_000, 'Time for one question')\n"
        "    teams: dict = declare('teams', TABLE, {}, 'Teams', unset='none')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    page = tmp_path / "README.md"
    page.write_text("# x\n\n<!-- settings: cmdb_of_a_page:CmdbSettings -->\n\nend\n", encoding="utf-8")

    before, _, after = main(["--check", str(page)]), main([str(page)]), main(["--check", str(page)])

    assert (before, after, main([])) == (1, 0, 2)
    assert "is out of date" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8").splitlines()[2:-2] == [
        "<!-- settings: cmdb_of_a_page:CmdbSettings -->",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
        "| `attempts` | integer, 1 to 9 attempts | `3` | Attempts for one question. |",
        "| `teams.NAME` | table of texts | none | Teams. |",
        "| `timeout` | duration, 100ms to 1m | `2s` | Time for one question. |",
    ]
    sys.modules.pop("cmdb_of_a_page")
