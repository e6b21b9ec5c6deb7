"""Command-line rules that click does not have: exactly one action, and options that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

SPECIAL = {
    "list_names": "--list",
    "mechanisms": "--mechanism",
    "as_json": "--json",
    "properties": "--formatter-property",
    "list_acls": "--list",
    **{
        name: f"--{name.removesuffix('s').replace('_', '-')}"
        for name in ("operations", "allow_principals", "deny_principals", "allow_hosts", "deny_hosts")
    },
}
"""Parameters named unlike their option: ``list`` is a built-in, ``json`` a module, and a repeatable option
gets a plural."""


def flag(parameter: str) -> str:
    """The option of a parameter, as it is written on the command line."""
    return SPECIAL.get(parameter, f"--{parameter.replace('_', '-')}")


def is_given(value: object) -> bool:
    """Whether an option was on the command line. An empty string counts as given."""
    return value is not None and value is not False and value != ()


def one_action(options: Mapping[str, object], actions: Sequence[str]) -> str:
    """The action on the command line.

    Raises:
        click.UsageError: There is no action, or more than one.
    """
    given = [action for action in actions if is_given(options[action])]
    if len(given) != 1:
        *first, last = map(flag, actions)
        raise click.UsageError(f"command must include exactly one action: {', '.join(first)} or {last}")
    return given[0]


def only_with(options: Mapping[str, object], action: str, allowed: Mapping[str, Collection[str]]) -> None:
    """Check that each option may be combined with the action.

    Args:
        options: The command line.
        action: The one action.
        allowed: The permitted actions, by option. An option not listed is permitted with every action.

    Raises:
        click.UsageError: An option cannot be combined with the action.
    """
    for option, actions in allowed.items():
        if is_given(options[option]) and action not in actions:
            raise click.UsageError(f"option {flag(option)} can't be used with {flag(action)}")


def at_most_one(options: Mapping[str, object], names: Sequence[str]) -> str | None:
    """The option among these that is given; None if none is.

    Raises:
        click.UsageError: More than one is given.
    """
    given = [name for name in names if is_given(options[name])]
    if len(given) > 1:
        raise click.UsageError(f"option {flag(given[0])} can't be used with {flag(given[1])}")
    return given[0] if given else None


def topic_pattern(text: str, option: str) -> re.Pattern[str]:
    """A regular expression for names of topics, with a comma as alternation (TopicFilter.java).

    Raises:
        click.UsageError: The text is not a regular expression.
    """
    try:
        return re.compile(text.strip().replace(",", "|").replace(" ", "").strip("\"'"))
    except re.error as error:
        raise click.UsageError(f"option {option}: {text!r} is not a regular expression: {error}") from None


def options_of(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """A decorator that adds these options before the other ones of a command."""

    def added(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added
