"""The tutorial "your first plugin", step by step: a new virtual environment, with wheels built here.

Only the dependencies come from the package index, not the host itself.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.reference_page import ROOT, blocks

PAGE = "tutorial/first-plugin.md"
BUILD_LIMIT_S, COMMAND_LIMIT_S = 300, 300
# Pytest fits its summary to the terminal, except in what it takes for a CI build.
TERMINAL_COLUMNS = 80
NOT_A_READERS = ("PYTHON", "PYTEST", "CI", "BUILD_NUMBER")
FILES = {"toml": "pyproject.toml", "odradek_census": "odradek_census.py", "test_census": "test_census.py"}


class Reader:
    """A reader who follows the page in one folder."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(NOT_A_READERS)},
            "PIP_FIND_LINKS": f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}".strip(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "COLUMNS": str(TERMINAL_COLUMNS),
        }

    def run(self, command: str) -> str:
        """Run a line and return its output; its folder and variables stay for the next line."""
        script = f"{command}\nstatus=$?\necho; echo @@; pwd; env -0 | base64 -w0; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
        printed, _, after = done.stdout.partition("\n@@\n")
        folder, encoded = after.splitlines()
        self.folder = Path(folder)
        self.environment = environment_of(encoded)
        return printed + done.stderr

    def save(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no\n{old}"
        self.save(name, text.replace(old, new))


def environment_of(encoded: str) -> dict[str, str]:
    rows = base64.b64decode(encoded).decode().split("\0")
    return dict(row.split("=", 1) for row in rows if "=" in row)


def code(language: str) -> list[str]:
    return [text for found, text in blocks(PAGE) if found == language]


def commands() -> list[list[str]]:
    """The lines of each shell block."""
    return [text.splitlines() for text in code("sh")]


def printed() -> list[str]:
    """The expected output on the page, block by block."""
    return [text.strip() for text in code("")]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    environment = os.environ | {"ODRADEK_RELEASE": "1"}
    subprocess.run(command, env=environment, capture_output=True, timeout=BUILD_LIMIT_S, check=True)
    return folder


def between(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end)]


@pytest.mark.slow
@pytest.mark.timeout(400)  # an installation alone may take 300 s
def test_every_command_works_as_on_the_page(tmp_path: Path, wheels: Path) -> None:
    (project,) = code("toml")
    plugin, contract, kept, hook, line = code("python")
    setup, first, second, third, install, verify, serve = commands()
    failing, why, still_failing, passing, listed, verdict = printed()
    (tmp_path / "reader").mkdir()
    reader = Reader(tmp_path / "reader", wheels)

    for command in setup:
        assert reader.run(command).strip() == ""
    reader.save(FILES["toml"], project)
    reader.save(FILES["odradek_census"], plugin)
    reader.save(FILES["test_census"], contract)
    shown = [reader.run(command) for command in first][-1]
    assert failing in shown
    assert all(row in shown for row in why.splitlines()), shown

    reader.replace(FILES["odradek_census"], between(plugin, "class Census", "\n\n@hookimpl"), kept)
    shown = reader.run(*second)
    assert still_failing in shown
    assert "1 failed" in shown

    reader.replace(FILES["odradek_census"], plugin[plugin.index("@hookimpl") :], hook)
    reader.replace(FILES["test_census"], contract.splitlines(keepends=True)[-1], line)
    shown = reader.run(*third)
    assert passing in shown, shown

    shown = [reader.run(command) for command in install][-1]
    assert shown.strip() == listed
    shown = reader.run(*verify)
    assert verdict in shown
    assert served(reader, *serve)


def served(reader: Reader, command: str) -> bool:
    """The plugin starts with the line and writes when it stops."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command} --set listeners=PLAINTEXT://127.0.0.1:0"],
        cwd=reader.folder,
        env=reader.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        ready = serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        serving.wait(30)
    return ready.startswith("odradek ready") and (reader.folder / "census.txt").exists()
