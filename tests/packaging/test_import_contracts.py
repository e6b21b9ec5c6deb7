"""The contracts of import-linter name every room of the host and every plugin, future ones included."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
PLUGINS = {path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")}


def rooms() -> set[str]:
    """Packages and modules at the top level of the host."""
    package = ROOT / "host" / "src" / "odradek"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    files = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    return folders | files


FOR_PLUGINS = {"plugin", "settings", "otlp", "topic", "findings", "temporality", "endpoints"}


def test_a_plugin_may_import_rooms_that_are_made_for_it() -> None:
    contract = CONTRACTS[
        "a plugin imports the rooms plugin, settings, otlp, topic, findings, temporality and endpoints only"
    ]

    assert set(contract["forbidden_modules"]) == {f"odradek.{room}" for room in rooms() - FOR_PLUGINS}
    assert set(contract["source_modules"]) == PLUGINS - {"odradek_console"}


def test_the_console_is_a_client_besides() -> None:
    contract = CONTRACTS["the console imports what a plugin may, and the room client"]

    assert set(contract["forbidden_modules"]) == {
        f"odradek.{room}" for room in rooms() - FOR_PLUGINS - {"client"}
    }
    assert contract["source_modules"] == ["odradek_console"]


def test_every_room_has_a_floor() -> None:
    layers = CONTRACTS["floors of the host"]["layers"]

    assert {room.strip() for layer in layers for room in layer.split("|")} == rooms()


@pytest.mark.parametrize(
    ("name", "key"),
    [("plugins do not import each other", "modules"), ("no circles of imports", "ancestors")],
)
def test_every_plugin_has_a_contract(name: str, key: str) -> None:
    assert set(CONTRACTS[name][key]) >= PLUGINS


def test_the_rooms_of_the_host_have_no_circles() -> None:
    assert "odradek" in CONTRACTS["no circles of imports"]["ancestors"]
