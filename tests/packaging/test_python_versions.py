"""Code that every supported Python reads in the same way, also where the one that runs the tests forgives."""

from __future__ import annotations

import subprocess
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INLINED = ("listcomp", "setcomp", "dictcomp")
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from Python 3.12 on, a comprehension has no symbol table of its own"
)


def hidden(table: symtable.SymbolTable) -> Iterator[tuple[int, str]]:
    """Globals that a function reads while one of its comprehensions has a variable of the same name.

    Python 3.12.1 inlines comprehensions and then takes such a global for the variable: UnboundLocalError.
    """
    scopes = [table, *(each for each in table.get_children() if each.get_name() in INLINED)]
    if table.get_type() == "function":
        names = {
            symbol.get_name()
            for scope in scopes
            for symbol in scope.get_symbols()
            if symbol.is_global() and symbol.is_referenced()
        }
        for scope in scopes[1:]:
            local = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_local()}
            yield from ((table.get_lineno(), name) for name in sorted(local & names))
    for each in table.get_children():
        yield from hidden(each)


def hidden_in(source: str) -> list[tuple[int, str]]:
    return list(hidden(symtable.symtable(source, "source", "exec")))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("    a = [name for name in 'x']\n    return [name(n) for n in a]\n", [(2, "name")]),
        ("    a = [name for name in 'x']\n    return name\n", [(2, "name")]),
        ("    a = [each for each in 'x']\n    return name\n", []),
        ("    a = [n for n in 'x']\n    return [n for n in a]\n", []),
    ],
)
def test_what_hides_a_global(body: str, found: list[tuple[int, str]]) -> None:
    assert hidden_in(f"name = str\ndef read():\n{body}") == found


def test_no_variable_of_a_comprehension_hides_a_global_of_its_function() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split()]

    assert len(files) > 1000
    assert {
        str(path.relative_to(ROOT)): places
        for path in files
        if path.exists() and (places := hidden_in(path.read_text(encoding="utf-8")))
    } == {}
