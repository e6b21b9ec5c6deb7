"""Rules of a command line that click does not know: one action, and options that do not go with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import click

SPECIAL = {"list_names": "--list", "mechanisms": "--mechanism"}
"""Parameters that are not named like their option: ``list`` is Python's; what may be repeated is plural."""


def flag(parameter: str) -> str:
    """How an option is written on the command line."""
    return SPECIAL.get(parameter, f"--{parameter.replace('_', '-')}")


def is_given(value: object) -> bool:
    """Whether an option was on the command line; an empty text counts."""
    return value is not None and value is not False and value != ()


def one_action(options: Mapping[str, object], actions: Sequence[str]) -> str:
    """The action.

    Raises:
        click.UsageError: There is none, or more than one.
    """
    given = [action for action in actions if is_given(options[action])]
    if len(given) != 1:
        *first, last = map(flag, actions)
        raise click.UsageError(f"command must include exactly one action: {', '.join(first)} or {last}")
    return given[0]


def only_with(options: Mapping[str, object], action: str, allowed: Mapping[str, Collection[str]]) -> None:
    """Check that the options go with the action.

    Args:
        options: The command line.
        action: The one action.
        allowed: By option: the actions that it goes with. Others go with all.

    Raises:
        click.UsageError: One does not.
    """
    for option, actions in allowed.items():
        if is_given(options[option]) and action not in actions:
            raise click.UsageError(f"option {flag(option)} can't be used with {flag(action)}")


def at_most_one(options: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Which of the options is given.

    Raises:
        click.UsageError: More than one.
    """
    given = [name for name in names if is_given(options[name])]
    if len(given) > 1:
        raise click.UsageError(f"option {flag(given[0])} can't be used with {flag(given[1])}")
    return given[0] if given else None
