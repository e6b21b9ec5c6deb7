"""Code that every supported Python reads in the same way, also where the one that runs the tests forgives."""

from __future__ import annotations

import ast
import subprocess
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS_OF_FILES = ("log", "metadata", "temporality")
SILENT = {"exists", "is_file"}
"""Methods of paths that hide a failure of the disk from Python 3.14 on."""
INLINED = ("listcomp", "setcomp", "dictcomp")
inlining_is_seen = pytest.mark.skipif(
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


@inlining_is_seen
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


@inlining_is_seen
def test_no_variable_of_a_comprehension_hides_a_global_of_its_function() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [ROOT / name for name in listed.stdout.split()]

    assert len(files) > 1000
    assert {
        str(path.relative_to(ROOT)): places
        for path in files
        if path.exists() and (places := hidden_in(path.read_text(encoding="utf-8")))
    } == {}


def silent_calls(source: str) -> list[int]:
    """The lines that ask a path whether it is there."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SILENT
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [("path.exists()", [1]), ("(path / 'x').is_file()", [1]), ("exists(path)", []), ("path.stat()", [])],
)
def test_what_asks_a_path(line: str, found: list[int]) -> None:
    assert silent_calls(line) == found


def test_a_failing_disk_does_not_look_empty() -> None:
    """The rooms that keep what must not be lost ask `odradek.bounds.path_kind`."""
    files = [path for room in ROOMS_OF_FILES for path in (ROOT / "host/src/odradek" / room).rglob("*.py")]

    assert len(files) > 50
    assert {
        path.name: lines for path in files if (lines := silent_calls(path.read_text(encoding="utf-8")))
    } == {}


def test_one_function_says_which_certificates_are_accepted() -> None:
    """`ssl.create_default_context` accepts fewer from Python 3.13 on."""
    code = [*ROOT.glob("host/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]

    found = {path.name for path in code if ".create_default_context(" in path.read_text(encoding="utf-8")}

    assert found == {"tls_context.py"}
