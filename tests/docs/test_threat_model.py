"""Each attack in the table of the threat model has tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from support.reference_page import rows, sections

ROOT = Path(__file__).parents[2]
ATTACKS = rows(sections("explanation/threat-model.md")["Attacks on the console"])


def test_the_tests_of_each_attack_exist() -> None:
    files = [*ROOT.glob("plugins/console/tests/test_*.py"), *ROOT.glob("tests/integration/test_console_*.py")]
    known = {
        name
        for file in files
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = [re.findall(r"`(test_\w+)`", cells[2]) for cells in list(ATTACKS.values())[1:]]

    assert len(named) > 20
    assert all(named)
    assert {name for names in named for name in names} <= known
