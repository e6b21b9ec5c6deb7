"""The plugin template: once in contrib, unchanged in the wheel, and an ordinary project."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import odradek

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "contrib/plugin-template"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = PROJECT["tool"]["hatch"]["build"]["targets"]
LIMIT_S = 300


def files(folder: Path) -> dict[str, bytes]:
    """The contents by path, without caches of Python and tools."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any("cache" in part for part in path.parts)
    }


def test_wheel_and_source_distribution_take_it_from_contrib() -> None:
    assert TARGETS["wheel"]["force-include"]["contrib/plugin-template"] == "odradek/plugin_template"
    assert "/contrib/plugin-template" in TARGETS["sdist"]["include"]


def test_it_requires_this_version_of_the_host() -> None:
    major, minor, *_ = odradek.__version__.split(".")

    requirements = tomllib.loads(files(TEMPLATE)["pyproject.toml"].decode())["project"]["dependencies"]

    assert requirements == [f"odradek>={major}.{minor},<{major}.{int(minor) + 1}"]


def test_a_wheel_carries_it_unchanged(tmp_path: Path) -> None:
    """`.ci/run` installs a plugin that was written from it, and runs its tests and the contract."""
    options = ["--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    environment = os.environ | {"ODRADEK_RELEASE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "build", *options, str(ROOT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("odradek-*.whl")

    assert carried(wheel) == files(TEMPLATE)


def carried(wheel: Path) -> dict[str, bytes]:
    """The template as it is in a wheel."""
    prefix = "odradek/plugin_template/"
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(prefix) and "__pycache__" not in name]
        return {name.removeprefix(prefix): archive.read(name) for name in names}
