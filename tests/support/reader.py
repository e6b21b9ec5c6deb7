"""A person who follows the pages of the documentation, command by command."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from support.reference_page import ROOT, blocks

INSTALL_PAGE = "howto/install.md"
COMMAND_LIMIT_S = 600
# Pytest fits its summary to the terminal, except in what it takes for a CI build.
TERMINAL_COLUMNS = 80
NOT_A_READERS = ("PYTHON", "PYTEST", "CI", "BUILD_NUMBER", "VIRTUAL_ENV")


class Reader:
    """A reader who follows a page, from one folder to the next, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(NOT_A_READERS)},
            "HOME": str(folder),
            "PIP_CACHE_DIR": pip_cache(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",  # most of what is installed is never imported
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
        printed, _, after = done.stdout.rpartition("\n@@\n")
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


@cache
def pip_cache() -> str:
    """The folder of pip's cache, which a home in a test's folder would hide."""
    shown = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


def install_blocks() -> tuple[list[str], list[str], list[str]]:
    """The lines of "how to install": into a checkout, making wheels, installing from wheels."""
    checkout, build, install = [
        text.splitlines() for language, text in blocks(INSTALL_PAGE) if language == "sh"
    ]
    return checkout, build, install


def install_from_wheels(reader: Reader) -> None:
    """Follow the second part of the page, in a new virtual environment in the reader's folder."""
    checkout, build, install = install_blocks()
    folder = reader.folder
    for command in [*checkout[:2], f"cd {ROOT}", *build, f"cd {folder}", *install]:
        assert reader.run(command).strip() == ""
