"""Decisions: short pages of one form, and a reason for every dependency."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from support.reference_page import DOCS, ROOT, page, rows

DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
MAX_LINES = 60
PARTS = ["Context", "Decision", "What we gave up"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def names(requirements: list[str]) -> set[str]:
    """Distributions without versions and markers, except our own."""
    found = {match[0] for requirement in requirements if (match := NAME.match(requirement))}
    return {name for name in found if not name.startswith("odradek")}


def required() -> dict[str, set[str]]:
    """Dependencies by host, extra or plugin."""
    host = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = host["tool"]["hatch"]["metadata"]["hooks"]["custom"]["extras"]
    found = {"host": names(host["project"]["dependencies"])}
    found |= {extra: names(requirements) for extra, requirements in extras.items()}
    for file in ROOT.glob("plugins/*/pyproject.toml"):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        found[project["name"]] = names(project["dependencies"])
        for extra, requirements in project.get("optional-dependencies", {}).items():
            found[f"{project['name']}[{extra}]"] = names(requirements)
    return found


def justified() -> dict[str, set[str]]:
    """The same, from page 8."""
    found: dict[str, set[str]] = {}
    heads = {"host", "extra", "plugin"}
    for line in page("decisions/0008-dependencies.md").splitlines():
        row = next(iter(rows(line).values()), [])
        if len(row) < 2 or row[0] in heads:
            continue
        owner, listed = (row[0], row[1]) if len(row) == 3 else ("host", row[0])
        known = set() if listed == "none" else {name.strip() for name in listed.split(",")}
        assert row[-1] or not known, f"no reason for {listed}"
        found.setdefault(owner, set()).update(known)
    return found


def test_every_dependency_has_a_reason_and_every_reason_a_dependency() -> None:
    assert justified() == required()


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_short_and_names_its_cost(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(prose) <= MAX_LINES
    assert text.startswith(f"# {int(path.name[:4])}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
