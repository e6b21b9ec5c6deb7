"""The commands of "How to set quotas", against ``odradek serve``."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from odradek.cli.main import run
from support.hosts import serving
from support.reference_page import blocks

PAGE = "howto/set-quotas.md"
ADDRESS = "localhost:9092"


def steps() -> list[tuple[list[str], str]]:
    """Each command of the page, without the program, and its output on the page."""
    found: list[tuple[list[str], str]] = []
    for _, text in blocks(PAGE):
        for part in text.split("$ odradek ")[1:]:
            command, _, printed = part.partition("\n")
            found.append((shlex.split(command), printed))
    return found


def test_each_command_prints_the_output_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, real = [], []

    with serving(tmp_path / "data") as serve:
        for arguments, printed in steps():
            here = [serve.bootstrap if argument == ADDRESS else argument for argument in arguments]
            status = run(here)
            shown.append((arguments, 0, printed))
            real.append((arguments, status, capsys.readouterr().out))

    assert len(shown) > 10
    assert real == shown
