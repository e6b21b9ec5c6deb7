"""The plugin template: once in contrib, unchanged in the wheel, and an ordinary project."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

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


def run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment | {"ODRADEK_RELEASE": "1", "PIP_NO_COMPILE": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_and_source_distribution_take_it_from_contrib() -> None:
    assert TARGETS["wheel"]["force-include"]["contrib/plugin-template"] == "odradek/plugin_template"
    assert "/contrib/plugin-template" in TARGETS["sdist"]["include"]


def test_it_requires_this_version_of_the_host() -> None:
    major, minor, *_ = odradek.__version__.split(".")

    requirements = tomllib.loads(files(TEMPLATE)["pyproject.toml"].decode())["project"]["dependencies"]

    assert requirements == [f"odradek>={major}.{minor},<{major}.{int(minor) + 1}"]


@pytest.mark.slow
@pytest.mark.timeout(400)  # an installation alone may take 300 s
def test_a_plugin_written_by_an_installed_host_is_built_installed_and_passes(tmp_path: Path) -> None:
    wheels, pad, bin_folder = tmp_path / "wheels", tmp_path / "pad", tmp_path / "env/bin"
    venv.create(tmp_path / "env", with_pip=True)

    run(sys.executable, "-m", "build", "--outdir", wheels, ROOT, folder=tmp_path)
    (host,) = wheels.glob("odradek-*.whl")
    run(bin_folder / "pip", "install", "-q", host, folder=tmp_path)
    run(bin_folder / "odradek", "new-plugin", "scratch-pad", "--directory", pad, folder=tmp_path)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", wheels, pad, folder=tmp_path)
    (plugin,) = wheels.glob("odradek_scratch_pad-*.whl")
    run(
        bin_folder / "pip", "install", "-q", f"odradek-scratch-pad[test] @ {plugin.as_uri()}", folder=tmp_path
    )
    tested = run(bin_folder / "pytest", "-q", "-o", "pythonpath=", folder=pad)
    listed = run(bin_folder / "odradek", "plugins", folder=tmp_path)
    verify = [
        "verify-plugin",
        "scratch-pad",
        "--set",
        f"path={tmp_path / 'pad.jsonl'}",
        "--set",
        "teams.alice=payments",
    ]
    verified = run(bin_folder / "odradek", *verify, folder=tmp_path)

    assert carried(host) == files(TEMPLATE)
    assert " passed" in tested
    assert "scratch-pad  odradek-scratch-pad  0.1.0    active" in listed
    assert "33 passed, 0 failed" in verified


def carried(wheel: Path) -> dict[str, bytes]:
    """The template as it is in a wheel."""
    prefix = "odradek/plugin_template/"
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(prefix) and "__pycache__" not in name]
        return {name.removeprefix(prefix): archive.read(name) for name in names}
