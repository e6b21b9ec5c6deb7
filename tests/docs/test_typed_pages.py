"""A plugin that is written from the pages passes ``mypy --strict``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.reference_page import ROOT, blocks

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]


def python(page: str) -> list[str]:
    return [text for language, text in blocks(page) if language == "python"]


def tutorial() -> dict[str, str]:
    """The files at the end of the tutorial."""
    plugin, contract, kept, hook, line = python("tutorial/first-plugin.md")
    head, body = plugin[: plugin.index("class Census")], "\n\n".join([kept, hook])
    last = contract.splitlines(keepends=True)[-1]
    return {"odradek_census.py": head + body, "test_census.py": contract.replace(last, line)}


def declared() -> dict[str, str]:
    """The declared settings of the reference, and a hook that reads them."""
    (settings,) = [text for text in python("reference/hooks.md") if "class CmdbSettings" in text]
    hook = (
        "from odradek.plugin import PluginConfig, hookimpl\nfrom odradek.settings import read_settings\n\n"
        "@hookimpl\ndef odradek_enricher(config: PluginConfig) -> None:\n"
        "    timeout_ms: int = read_settings(CmdbSettings, config).timeout_ms\n    print(timeout_ms)\n"
    )
    return {"odradek_cmdb.py": settings + hook}


def checked(folder: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--cache-dir",
            ROOT / ".mypy_cache/pages",
            *names,
        ],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT / "host/src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_plugins_of_the_pages_are_typed(tmp_path: Path) -> None:
    files = tutorial() | declared()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    found = checked(tmp_path, sorted(files))

    assert found.returncode == 0, found.stdout + found.stderr


def test_a_wrong_type_is_found(tmp_path: Path) -> None:
    source = declared()["odradek_cmdb.py"].replace("timeout_ms: int = read", "timeout_ms: str = read")
    (tmp_path / "odradek_cmdb.py").write_text(source, encoding="utf-8")

    found = checked(tmp_path, ["odradek_cmdb.py"])

    assert "Incompatible types in assignment" in found.stdout, found.stdout + found.stderr
