"""Writes tables of settings into Markdown pages, from their declarations.

    python -m odradek.settings.reference README.md            # writes the tables
    python -m odradek.settings.reference --check README.md    # exit status 1 if a table is out of date

Each table follows a line ``<!-- settings: my_package.settings:CmdbSettings -->``, which names a dataclass of
settings; further ones may follow with spaces. The rest of the page is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

from odradek.settings.kinds import TABLE
from odradek.settings.setting import Scope, Setting, walk

MARK = re.compile(r"(<!-- settings: (?P<name>[\w.: ]+) -->\n)(?:\|.*\n)*")
Cell = Callable[[Setting], str]


def shape(each: Setting) -> str:
    """The kind of value with its bounds, in its unit."""
    if not each.unit:
        return each.kind.shape
    return f"{each.kind.shape}{'' if ',' in each.kind.shape else ','} {each.unit}"


def default(each: Setting) -> str:
    """The default, or the words for none."""
    return each.unset or f"`{each.default_text}`"


def scope(each: Setting) -> str:
    """The owner of the setting at run time, and its key there."""
    if each.own_key:
        where = "topic" if each.scope is Scope.TOPIC and not each.in_file else each.scope
        return f"{where} `{each.own_key}`"
    if each.by_listener and each.scope is Scope.BROKER:
        return "broker, listener"
    return each.scope.value


def meaning(each: Setting) -> str:
    """The sentence, and where to read more."""
    return sentence(each) + (f" [More]({each.page})." if each.page else "")


def sentence(each: Setting) -> str:
    """The documentation of a setting, and the other places where it can be set."""
    only = " Not in the file." if not each.in_file else ""
    return each.documentation.rstrip(".") + "." + own_values(each) + only


def own_values(each: Setting) -> str:
    """A mark for a setting that listeners or their mechanisms can have own values of."""
    if each.by_mechanism:
        return " Per listener and mechanism."
    return " Per listener." if each.by_listener else ""


COLUMNS: dict[str, Cell] = {
    "key": lambda each: f"`{each.name}{'.NAME' if each.kind is TABLE else ''}`",
    "type": shape,
    "default": default,
    "meaning": meaning,
}


def table(settings: Iterable[Setting], columns: dict[str, Cell] = COLUMNS) -> str:
    """One table in Markdown, by key."""
    head = "".join(f"| {name} " for name in columns) + "|\n" + "|---" * len(columns) + "|\n"
    return head + "".join(row(each, columns) for each in sorted(settings, key=lambda each: each.name))


def row(each: Setting, columns: dict[str, Cell]) -> str:
    """One key."""
    return "".join(f"| {text} " if (text := cell(each)) else "| " for cell in columns.values()) + "|\n"


def settings_of(names: str) -> list[Setting]:
    """The settings of dataclasses.

    Args:
        names: ``package.module:Class``, several with spaces.
    """
    found = []
    for name in names.split():
        module, _, kind = name.partition(":")
        found += [each for _, each in walk(getattr(import_module(module), kind))]
    return found


def written(page: str) -> str:
    """The page with the tables of the declarations."""
    return MARK.sub(lambda match: match[1] + table(settings_of(match["name"])), page)


def main(arguments: Sequence[str]) -> int:
    """Write or compare; the exit status."""
    paths = [Path(argument) for argument in arguments if argument != "--check"]
    if not paths:
        sys.stderr.write("usage: python -m odradek.settings.reference [--check] PAGE...\n")
        return 2
    outdated = 0
    for path in paths:
        page = path.read_text(encoding="utf-8")
        wanted = written(page)
        if "--check" not in arguments:
            path.write_text(wanted, encoding="utf-8")
        elif page != wanted:
            outdated = 1
            sys.stderr.write(f"{path} is out of date: python -m odradek.settings.reference {path}\n")
    return outdated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
