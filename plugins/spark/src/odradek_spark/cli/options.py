"""Options that several commands of ``odradek spark`` share, and the properties file of librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from odradek.endpoints import Address, parsed_address
from odradek.settings import FILE, Whole
from odradek.settings.setting import walk
from odradek.topic import TopicFormat
from odradek_spark.cli.times import Moment
from odradek_spark.jobs.rules import Rule, RuleError, combined, parse_rules
from odradek_spark.jobs.rules import default_rules as shipped
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_tables.levels import CLIENT_METRICS, Levels
from odradek_tables.retention import KEPT_DAYS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


def adding(*options: Decorator) -> Decorator:
    """Adds options to a command, in their order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


KEYS: Final = {each.name: each for _, each in walk(PipelineSettings)}


def option_of(key: str) -> Decorator:
    """The option of a key of ``[plugins.spark]``, with its bounds, its default and its sentence."""
    each = KEYS[key]
    name, text = f"--{key.replace('.', '-')}", each.documentation.replace("`", "")
    kind: Any = None
    if isinstance(each.kind, Whole):
        kind = click.IntRange(each.kind.least, each.kind.bound)
    elif each.kind is FILE:
        kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    metavar = each.unit.upper() or None
    return click.option(
        name,
        type=kind,
        metavar=metavar,
        default=each.default,
        show_default=each.default is not None,
        help=text,
    )


def moment(name: str, text: str) -> Decorator:
    """An option for a time."""
    return click.option(name, type=Moment(), metavar="TIME", help=text)


def whole_path(_: click.Context, __: click.Parameter, dataset: str) -> str:
    """The absolute path of a dataset: workers have other working directories."""
    return dataset if "://" in dataset else str(Path(dataset).absolute())


dataset_option = click.option(
    "--dataset",
    required=True,
    metavar="URI",
    callback=whole_path,
    help="Root folder of the tables: a path, s3://, gs:// or abfss://.",
)
topic_options = adding(
    click.option("--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="The brokers."),
    option_of("command.config"),
    dataset_option,
    option_of("topic"),
    click.option(
        "--topic-format",
        type=click.Choice([each.value for each in TopicFormat]),
        default=TopicFormat.ODRADEK.value,
        callback=lambda _, __, name: TopicFormat(name),
        show_default=True,
        help=KEYS["topic.format"].documentation.replace("`", ""),
    ),
    option_of("topic.interval.ms"),
    option_of("max.payload.bytes"),
    click.option(
        "--allow-data-loss",
        is_flag=True,
        help="Continue if retention deleted records before they were read, instead of failing.",
    ),
)


def listener(_: click.Context, parameter: click.Parameter, url: str | None) -> Address | None:
    """The address of a listener for plain HTTP."""
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


def levels(client_metrics: Iterable[str], fleet_labels: Iterable[str]) -> Levels:
    """The levels of the rollups: as given, else the default."""
    return Levels(tuple(client_metrics) or CLIENT_METRICS, tuple(fleet_labels))


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
    """Read the pairs of a properties file."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines() if path else [], 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        key, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"{path}, line {number}: expected key=value")
        found[key.strip()] = value.strip()
    return found
