"""Options that the commands share, and how they connect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from odradek.client.admin import AdminClient
from odradek.client.command_config import load_command_config
from odradek.client.errors import TimedOut
from odradek.settings.options import option_of
from odradek.settings.setting import Setting, walk
from odradek_console.engine.owners import read_owners
from odradek_console.engine.texts import printable
from odradek_console.reading_settings import ReadingSettings
from odradek_console.rows import ClientRow
from odradek_console.setting_kinds import MILLISECONDS
from odradek_console.view import View, ViewSettings

Command = TypeVar("Command", bound=Callable[..., Any])
KEYS: Final = {each.name: each for _, each in walk(ReadingSettings)}
FILTERS: Final = (
    "app",
    "address",
    "causes",
    "client_id",
    "client_instance_id",
    "cluster_id",
    "findings",
    "gateway",
    "group_id",
    "node_id",
    "notes",
    "owner",
    "principal",
    "software",
    "state",
    "version",
)
HISTORY_MS: Final = 3_600_000
CATCH_UP_S: Final = 60.0
TOLD_S: Final = 1.0
"""A problem that is over within this time is not told."""
POLL_S: Final = 0.05


def cluster_options(command: Command) -> Command:
    """Add the options of the connection."""
    command = option_of(KEYS["command.config"])(command)
    added: Command = option_of(KEYS["bootstrap.servers"], required=True)(command)
    return added


def reading_options(command: Command) -> Command:
    """Add the options of the topic to a command that looks at the present."""
    for each in (KEYS["owners"], replace(KEYS["history.ms"], default=HISTORY_MS), KEYS["topic"]):
        command = option_of(each)(command)
    return cluster_options(command)


def time_option(name: str, default_ms: int, text: str) -> Callable[[Command], Command]:
    """Add an option with a time, whose parameter is in milliseconds."""
    key, option = f"{name}.ms", f"--{name}"
    return option_of(
        Setting(name=key, kind=MILLISECONDS, default=default_ms, documentation=text, unit="ms", option=option)
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of a command: all must match."""

    patterns: tuple[tuple[str, str], ...]
    """Field and pattern."""

    @property
    def fields(self) -> set[str]:
        return {field for field, _ in self.patterns}

    def __call__(self, row: ClientRow) -> bool:
        return all(matches(row, field, pattern) for field, pattern in self.patterns)


def parse_filters(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Wanted:
    """Read filters of rows: all must match."""
    parsed = []
    for text in values:
        field, equals, pattern = text.partition("=")
        if not equals or field not in FILTERS:
            known = ", ".join(FILTERS)
            raise click.BadParameter(f"expected FIELD=PATTERN with a field of {known}; found {text!r}")
        parsed.append((field, pattern))
    return Wanted(tuple(parsed))


def matches(row: ClientRow, field: str, pattern: str) -> bool:
    """Whether a field of a row matches a pattern; of several values one is enough."""
    value = getattr(row, field)
    return any(fnmatchcase(str(each), pattern) for each in (value if isinstance(value, tuple) else (value,)))


filter_option = click.option(
    "--filter",
    "wanted",
    multiple=True,
    metavar="FIELD=PATTERN",
    callback=parse_filters,
    help="Only clients whose field matches; *, ? and [...] are wildcards. Repeat it for several conditions. "
    f"Fields: {', '.join(FILTERS)}.",
)


def show(lines: Iterable[str]) -> None:
    """Print lines. Nothing in them steers the terminal, whatever a client or a cluster is called."""
    for line in lines:
        click.echo(printable(line))


def connector(bootstrap_servers: str, command_config: Path | None) -> Callable[[], AdminClient]:
    """A function that makes a client of the cluster.

    Raises:
        ConfigError: The file is not usable.
    """
    config = load_command_config(command_config)
    tls = config.context()
    timeout_s = config.request_timeout_ms / 1000
    return lambda: AdminClient(bootstrap_servers, config.client_id, timeout_s, config.login, tls)


@contextmanager
def opened_view(
    connect: Callable[[], AdminClient], topic: str, history_ms: int, owners: Path | None
) -> Iterator[View]:
    """Yield a view that has caught up with its topic. Problems on the way are told on stderr.

    Raises:
        TimedOut: The topic cannot be read.
    """
    settings = ViewSettings(topic=topic, history_ms=history_ms, owners=read_owners(owners))
    with View(connect, settings) as view:
        begin_s, told, progress = time.monotonic(), "", view.reader.progress
        while not progress.is_caught_up:
            waited_s, problem = time.monotonic() - begin_s, progress.problem
            if waited_s > CATCH_UP_S:
                reason = problem or "there is more than can be read in a minute"
                raise TimedOut(f"{topic} was not read within {CATCH_UP_S:.0f} s: {reason}")
            if waited_s > TOLD_S and problem not in ("", told):
                told = problem
                click.echo(printable(f"Trying again: {problem}"), err=True)
            time.sleep(POLL_S)
        yield view
