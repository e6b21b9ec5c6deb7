"""Examples and the plugin template: short, and with nothing of the host but what a plugin may import."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from contrib.docs.public_names import ROOMS

from support.reference_page import ROOT

MOST_LINES = 60
EXAMPLES = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("examples/*.ipynb")])
TEMPLATE = sorted((ROOT / "contrib/plugin-template").rglob("*.py"))


def source(path: Path) -> str:
    """The code of a file, or of a notebook's cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(lines) for lines in cells)


def imported(code: str) -> Iterator[tuple[str, str]]:
    """What the code imports of the host: the module, and the name or nothing."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "odradek")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "odradek":
            yield from ((str(node.module), alias.name) for alias in node.names)


def offered(module: str, name: str) -> bool:
    """Whether a plugin may import it."""
    if f"{module}.{name}" in ROOMS:
        return True
    return module in ROOMS and (not name or name in importlib.import_module(module).__all__)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 14
    assert list(imported("import odradek.log\nfrom odradek.wire import a, b")) == [
        ("odradek.log", ""),
        ("odradek.wire", "a"),
        ("odradek.wire", "b"),
    ]


@pytest.mark.parametrize("path", [*EXAMPLES, *TEMPLATE], ids=lambda path: path.name)
def test_it_imports_what_a_plugin_may(path: Path) -> None:
    found = sorted(set(imported(source(path))))

    assert [each for each in found if not offered(*each)] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_is_short(path: Path) -> None:
    assert source(path).count("\n") <= MOST_LINES
