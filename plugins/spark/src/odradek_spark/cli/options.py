"""Options that several commands of ``odradek spark`` share, and the properties file of librdkafka."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from odradek.endpoints import Address, parsed_address
from odradek.settings.options import option_of
from odradek.settings.properties import properties as lines_of
from odradek.settings.setting import walk
from odradek_spark.jobs.rules import Rule, RuleError, combined, parse_rules
from odradek_spark.jobs.rules import default_rules as shipped
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_tables.retention import KEPT_DAYS

AGO = re.compile(r"-?(\d+)([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
"""Times are clamped to these, which leaves room for arithmetic; no push is older or newer."""
Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


def adding(*options: Decorator) -> Decorator:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


KEYS: Final = {each.name: each for _, each in walk(PipelineSettings)}


def setting_option(name: str, *, required: bool = False) -> Decorator:
    return option_of(KEYS[name], required=required)


class Moment(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``90s``, ``30m``, ``2h``, ``7d`` ago, or ``2026-05-17T10:00:00``, in UTC unless it has an offset."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        ago = AGO.fullmatch(value)
        if ago:
            now = datetime.now(UTC)
            seconds = min(int(ago[1]) * SECONDS[ago[2]], int((now - EARLIEST).total_seconds()))
            return now - timedelta(seconds=seconds)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"expected 90s, 30m, 2h, 7d or YYYY-MM-DDThh:mm:ss, found {value!r}", param, ctx)
        return min(max(found if found.tzinfo else found.replace(tzinfo=UTC), EARLIEST), LATEST)


def moment(name: str, text: str) -> Decorator:
    return click.option(name, type=Moment(), metavar="TIME", help=text)


dataset_option = setting_option("dataset", required=True)
data_loss_option = click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Continue if retention deleted records before they were read, instead of failing.",
)


retention_option = click.option(
    "--retention-days",
    multiple=True,
    metavar="TABLE=DAYS",
    help="Days that a table keeps. May be repeated. Default: "
    + ", ".join(f"{table}={days}" for table, days in KEPT_DAYS.items()),
)


def listener(_: click.Context, parameter: click.Parameter, url: str | None) -> Address | None:
    if url is None:
        return None
    found = parsed_address(url.removeprefix("http://").removesuffix("/"))
    if found is None or not url.startswith("http://"):
        raise click.UsageError(f"option {parameter.opts[0]}: expected http://HOST:PORT, found {url!r}")
    return found


def rules(rules_file: Path | None, *, default_rules: bool) -> list[Rule]:
    """The rules: the default ones and those of a file.

    Raises:
        RuleError: A rule of the file is invalid.
        OSError: The file cannot be read.
    """
    try:
        own = parse_rules(rules_file.read_text()) if rules_file is not None else []
    except RuleError as error:
        raise RuleError(f"{rules_file}: {error}") from error
    return combined(shipped() if default_rules else [], own)


def kept_days(given: Iterable[str]) -> dict[str, int]:
    """The retention of each table in days: as given, else the default."""
    found = dict(KEPT_DAYS)
    for each in given:
        table, _, days = each.partition("=")
        if table not in found or not days.isdigit():
            expected = f"TABLE=DAYS with one of {', '.join(found)}"
            raise click.UsageError(f"option --retention-days: expected {expected}, found {each!r}")
        found[table] = int(days)
    return found


def properties(path: Path | None) -> dict[str, str]:
    return {} if path is None else dict(lines_of(path.read_text()))
