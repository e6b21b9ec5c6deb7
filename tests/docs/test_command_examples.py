"""The help of every command says what it does, with an example that the command takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from odradek.cli.examples import EXAMPLES
from odradek.cli.main import SUBCOMMANDS, cli, installed_commands

ROOT = click.Context(cli)
EXAMPLE = re.compile(r"^ +odradek (?P<words>.+)$", re.MULTILINE)
WIDEST = 82


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the other words."""
    command: click.Command | None = cli.get_command(ROOT, words[0])
    rest = words[1:]
    while isinstance(command, click.Group) and rest:
        command, rest = command.commands[rest[0]], rest[1:]
    assert command is not None
    return command, rest


def names() -> Iterator[str]:
    """All commands, those within a command of the host as ``totals rebuild``."""
    for name in sorted({*SUBCOMMANDS, *installed_commands()}):
        yield name
        command = cli.get_command(ROOT, name)
        if name in SUBCOMMANDS and isinstance(command, click.Group):
            yield from (f"{name} {each}" for each in command.commands)


@pytest.mark.parametrize("name", list(names()))
def test_the_help_of_a_command_has_examples_that_it_takes(name: str) -> None:
    help_text = CliRunner().invoke(cli, [*name.split(), "--help"], max_content_width=WIDEST).output

    _, found, examples = help_text.partition("\n  Example")

    assert found
    assert max(map(len, examples.partition("All keys")[0].splitlines())) <= WIDEST
    written = [match["words"] for match in EXAMPLE.finditer(examples.replace("\\\n", " "))]
    assert written
    for each in written:
        command, words = command_of(shlex.split(each))
        options = {option for known in command.params for option in known.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
        assert given <= options
        assert {
            known.opts[0] for known in command.params if isinstance(known, click.Option) and known.required
        } <= given
        assert command.help


def test_examples_are_of_commands_that_exist() -> None:
    assert set(EXAMPLES) <= set(names())
