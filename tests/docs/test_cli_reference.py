"""``reference/cli.md`` has every command with the options that ``--help`` prints, and nothing else.

Options that several commands share may be in the table of these alone.
"""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from odradek.cli import main
from odradek.cli.main import SUBCOMMANDS, cli
from support.reference_page import page, rows, sections

SECTIONS = sections("reference/cli.md")
OPTION = re.compile(r"^  (?:-h, )?(?P<option>--[a-z-]+(?: [^ \n]+)*?)(?=  |$)", re.MULTILINE)
WIDE = 200


def printed(*command: str) -> set[str]:
    """The options in a command's help, each with its argument."""
    result = CliRunner().invoke(cli, [*command, "--help"], terminal_width=WIDE, max_content_width=WIDE)
    assert result.exit_code == 0, result.output
    return {found["option"] for found in OPTION.finditer(result.output)}


def written(title: str) -> set[str]:
    """The options in a section's table."""
    return {name.replace("\\|", "|") for name in rows(SECTIONS[title]) if name.startswith("--")}


SHARED = written("Options of several commands")


def commands() -> list[str]:
    """All commands, those within others as ``cardinality estimate``."""
    found = []
    for name in SUBCOMMANDS:
        command = cli.get_command(click.Context(cli), name)
        within = command.commands if isinstance(command, click.Group) else ()
        found += [name, *(f"{name} {each}" for each in within)]
    return sorted(found)


@pytest.mark.parametrize("command", commands())
def test_a_command_has_exactly_the_options_of_its_help(command: str) -> None:
    options, own = printed(*command.split()), written(f"odradek {command}")

    assert own <= options
    assert options - own <= SHARED


def test_the_program_has_exactly_the_options_of_its_help() -> None:
    assert written("odradek") == printed() - {"--help"}


def test_a_shared_option_is_one_of_several_commands() -> None:
    options = [printed(*command.split()) for command in commands()]

    assert [each for each in SHARED if sum(each in found for found in options) < 2] == []


def test_every_command_and_no_other_is_on_the_page() -> None:
    titles = {title for title in SECTIONS if title.startswith("odradek ")}

    assert titles == {f"odradek {command}" for command in commands()}


def test_every_exit_status_is_on_the_page() -> None:
    statuses = {name for name in rows(page("reference/cli.md")) if name.isdigit()}

    assert statuses == {str(status) for status in (0, main.FAILED, main.UNUSABLE, main.INTERRUPTED)}
