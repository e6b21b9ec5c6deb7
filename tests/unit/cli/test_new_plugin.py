"""``odradek new-plugin``: it writes a plugin with the requested name, whose tests pass."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from odradek.cli import new_plugin
from odradek.cli.main import FAILED, UNUSABLE, run

ROOT = Path(__file__).parents[3]


def text_of(folder: Path) -> str:
    """Names and contents of all files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path.relative_to(folder)}\n{path.read_text()}" for path in files)


def test_a_new_plugin_has_its_name_in_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "plugin"

    status = run(["new-plugin", "space-ship", "--directory", str(folder)])

    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert status == 0
    assert project["name"] == "odradek-space-ship"
    assert project["entry-points"]["odradek"] == {"space-ship": "odradek_space_ship"}
    assert "example" not in text_of(folder).lower()
    for part in ("receiver", "exporter", "enricher", "forwarder"):
        text = (folder / f"src/odradek_space_ship/space_ship_{part}.py").read_text()
        assert f"class SpaceShip{part.capitalize()}:" in text
    assert str(folder / "tests/test_odradek_space_ship.py") in capsys.readouterr().out.splitlines()


def test_an_existing_folder_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    status = run(["new-plugin", "ship", "--directory", str(tmp_path)])

    assert status == FAILED
    assert "exists and is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["Ship", "1ship", "ship-", "a/b", "ship plan"])
def test_a_name_that_is_not_a_package_name_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["new-plugin", name])

    assert status == UNUSABLE
    assert "expected lower-case words (a-z, 0-9) joined by -" in capsys.readouterr().err


def test_underscores_of_a_name_become_hyphens(tmp_path: Path) -> None:
    run(["new-plugin", "space_ship", "--directory", str(tmp_path)])

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert project["name"] == "odradek-space-ship"


def test_the_prefix_of_the_distribution_can_be_set(tmp_path: Path) -> None:
    run(["new-plugin", "odradek-ship", "--directory", str(tmp_path)])

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert project["name"] == "odradek-ship"
    assert project["entry-points"]["odradek"] == {"ship": "odradek_ship"}


def test_a_checkout_uses_the_template_in_contrib() -> None:
    assert new_plugin.template() == ROOT / "contrib/plugin-template"
