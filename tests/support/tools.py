"""The command line in this process, against a host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from odradek.cli.main import run


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    status: int
    out: list[str]
    err: list[str]


Tool = Callable[..., Done]


def command_line(bootstrap: str, command: str, capsys: pytest.CaptureFixture[str]) -> Tool:
    """Runs one command with these arguments."""

    def tool(*arguments: str) -> Done:
        capsys.readouterr()
        status = run([command, "--bootstrap-server", bootstrap, *arguments])
        streams = capsys.readouterr()
        return Done(status, streams.out.splitlines(), streams.err.splitlines())

    return tool
