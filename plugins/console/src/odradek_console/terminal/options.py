"""Options that the commands share, and how they connect."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.command_config import load_command_config
from odradek.client.errors import TimedOut
from odradek_console.engine.owners import read_owners
from odradek_console.engine.texts import printable
from odradek_console.rows import ClientRow
from odradek_console.view import TOPIC, View, ViewSettings

A_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])
Read = Callable[[click.Context, click.Parameter, Any], Any]
Made = TypeVar("Made")
UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
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
CATCH_UP_S: Final = 60.0
TOLD_S: Final = 1.0
"""A problem that is over within this time is not told."""
POLL_S: Final = 0.05


def milliseconds(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Read a duration such as ``15m``."""
    if value is None:
        return None
    found = DURATION.fullmatch(value)
    if found is None or not int(found[1]):
        raise click.BadParameter(f"expected a duration such as 30s, 15m or 12h, found {value!r}")
    return int(found[1]) * UNITS_MS[found[2]]


def number(name: str, default: int, unit: str, text: str) -> Any:
    """An option with a whole number of at least 1."""
    kind, metavar = click.IntRange(min=1), unit.upper()
    return click.option(name, type=kind, default=default, show_default=True, metavar=metavar, help=text)


def duration(name: str, default: str, text: str) -> Any:
    """An option with a duration, in milliseconds."""
    return click.option(
        name,
        name.removeprefix("--").replace("-", "_") + "_ms",
        default=default,
        show_default=True,
        metavar="TIME",
        callback=milliseconds,
        help=text,
    )


def a_file(name: str, text: str) -> Any:
    """An option with the path of a file that exists."""
    return click.option(name, type=A_FILE, metavar="FILE", help=text)


def a_text(name: str, metavar: str, text: str, default: str = "", read: Read | None = None) -> Any:
    """An option with a text."""
    return click.option(
        name, default=default, show_default=bool(default), metavar=metavar, callback=read, help=text
    )


def several(name: str, metavar: str, text: str, read: Read | None = None) -> Any:
    """An option that may be repeated; its parameter is the plural of its name."""
    word = name.removeprefix("--").replace("-", "_")
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return click.option(name, plural, multiple=True, metavar=metavar, callback=read, help=text)


def bootstrap(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Validate the list of addresses here, so that the error names the option."""
    addresses(value, "--bootstrap-server")
    return value


def cluster_options(command: Command) -> Command:
    """Add the options of the connection."""
    for option in (
        click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Properties file of the client: client.id, request.timeout.ms, security.protocol, sasl.* "
            "and ssl.*",
        ),
        click.option(
            "--bootstrap-server",
            required=True,
            metavar="HOST:PORT[,...]",
            callback=bootstrap,
            help="Brokers to connect to, tried in order.",
        ),
    ):
        command = option(command)
    return command


def reading_from(history: str) -> Callable[[Command], Command]:
    """Add the options of the topic.

    Args:
        history: How far back to begin, if the user does not say.
    """

    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                "--owners",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                help="TOML file of the teams that own clients.",
            ),
            click.option(
                "--history",
                "history_ms",
                default=history,
                show_default=True,
                metavar="TIME",
                callback=milliseconds,
                help="Read the topic from this long ago on.",
            ),
            click.option("--topic", default=TOPIC, show_default=True, help="The telemetry topic."),
        ):
            command = option(command)
        return cluster_options(command)

    return decorate


reading_options = reading_from("1h")
"""Add the options of the topic to a command that looks at the present."""


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


def connector(bootstrap_server: str, command_config: Path | None) -> Callable[[], AdminClient]:
    """A function that makes a client of the cluster.

    Raises:
        ConfigError: The file is not usable.
    """
    config = load_command_config(command_config)
    tls = config.context()
    timeout_s = config.request_timeout_ms / 1000
    return lambda: AdminClient(bootstrap_server, config.client_id, timeout_s, config.login, tls)


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


def given(kind: Callable[..., Made], options: Mapping[str, Any], prefix: str = "", **others: Any) -> Made:
    """Settings from the options of the same names, with a prefix; ``timeout_s`` is that of ``timeout_ms``.

    Args:
        kind: A dataclass.
        options: By name.
        prefix: Of the names of options.
        others: Values of fields that are called otherwise.
    """
    found: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        name = prefix + field.name
        if name in options:
            found[field.name] = options[name]
        elif field.name.endswith("_s") and f"{name[:-2]}_ms" in options:
            found[field.name] = options[f"{name[:-2]}_ms"] / 1000
    return kind(**found | others)
