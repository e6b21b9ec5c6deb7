"""Completion in bash, by the script that ``reference/cli.md`` installs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.reference_page import page

pytestmark = [pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"), pytest.mark.ci]
INSTALL = 'eval "$(_ODRADEK_COMPLETE=bash_source odradek)"'


def completed(tmp_path: Path, *words: str) -> list[str]:
    """The completions of the last word."""
    program = tmp_path / "odradek"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m odradek "$@"\n')
    program.chmod(0o755)
    script = "\n".join(
        [
            f'PATH="{tmp_path}:$PATH"',
            INSTALL,
            'COMP_WORDS=("$@")',
            "COMP_CWORD=$(($# - 1))",
            "_odradek_completion odradek",
            'printf "%s\\n" "${COMPREPLY[@]}"',
        ]
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", "odradek", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_the_reference_page_has_the_line_that_installs_it() -> None:
    assert INSTALL in page("reference/cli.md")


def test_commands_options_and_values_are_completed(tmp_path: Path) -> None:
    assert completed(tmp_path, "topi") == ["topics"]
    assert completed(tmp_path, "topics", "--des") == ["--describe"]
    assert completed(tmp_path, "configs", "--entity-type", "t") == ["topics"]
