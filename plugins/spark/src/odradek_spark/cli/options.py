"""Options that several commands of ``odradek spark`` share, and the properties file of librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from odradek.endpoints import Address, parsed_address
from odradek.topic import TopicFormat
from odradek_spark.jobs.addresses import is_address
from odradek_spark.jobs.destinations import Alertmanager, Destination, Webhook
from odradek_spark.jobs.rules import Rule, RuleError, combined, parse_rules
from odradek_spark.jobs.rules import default_rules as shipped
from odradek_spark.source.options import (
    DEFAULT_INTERVAL_MS,
    DEFAULT_PAYLOAD_BYTES,
    MAX_INTERVAL_MS,
    TELEMETRY_TOPIC,
)
from odradek_tables.levels import BY_CLIENT, CLIENT_METRICS, Levels
from odradek_tables.retention import KEPT_DAYS

Command = TypeVar("Command", bound=Callable[..., Any])


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


client_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file with more options of librdkafka: security.protocol, sasl.*, ssl.*",
)
max_payload_option = click.option(
    "--max-payload-bytes",
    metavar="BYTES",
    type=click.IntRange(1),
    default=DEFAULT_PAYLOAD_BYTES,
    show_default=True,
    help="Limit of a decompressed push; larger pushes become dead letters.",
)
allow_data_loss_option = click.option(
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


def topic_options(command: Command) -> Command:
    """Add the options of the topic."""
    for option in (
        click.option(
            "--topic-interval-ms",
            metavar="MS",
            type=click.IntRange(1, MAX_INTERVAL_MS),
            default=DEFAULT_INTERVAL_MS,
            show_default=True,
            help="Time between the exports of a client, which OTLP does not tell.",
        ),
        click.option(
            "--topic-format",
            type=click.Choice([each.value for each in TopicFormat]),
            default=TopicFormat.ODRADEK.value,
            show_default=True,
            help="Format of its records. otlp_*: plain OTLP, as an OpenTelemetry collector writes it.",
        ),
        click.option(
            "--topic", metavar="NAME", default=TELEMETRY_TOPIC, show_default=True, help="The telemetry topic."
        ),
    ):
        command = option(command)
    return command


def address(_: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """An http or https URL."""
    if url is not None and not is_address(url):
        raise click.UsageError(f"option {parameter.opts[0]}: expected an http or https URL")
    return url


def listener(_: click.Context, parameter: click.Parameter, url: str | None) -> Address | None:
    """The address of a listener for plain HTTP."""
    if url is None:
        return None
    found = parsed_address(url.removeprefix("http://").removesuffix("/"))
    if found is None or not url.startswith("http://"):
        raise click.UsageError(f"option {parameter.opts[0]}: expected http://HOST:PORT, found {url!r}")
    return found


def alarm_options(command: Command) -> Command:
    """Add the options of rules and destinations."""
    for option in (
        click.option(
            "--alertmanager-url",
            metavar="URL",
            callback=address,
            help="Send each anomaly to this Alertmanager, by its API v2: http://HOST:9093.",
        ),
        click.option(
            "--webhook-url",
            metavar="URL",
            callback=address,
            help="Post each opening and closing of an anomaly to this URL, as JSON.",
        ),
        click.option(
            "--default-rules/--no-default-rules",
            default=True,
            show_default=True,
            help="Detect the troubles that the documentation lists.",
        ),
        click.option(
            "--rules-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="TOML file with more rules for anomalies. A rule with the id of a default rule replaces it.",
        ),
    ):
        command = option(command)
    return command


def rules(rules_file: Path | None, *, default_rules: bool) -> list[Rule]:
    """The rules: the default ones and those of a file.

    Raises:
        RuleError: A rule of the file is invalid.
        OSError: The file cannot be read.
    """
    own = read_rules(rules_file) if rules_file is not None else []
    return combined(shipped() if default_rules else [], own)


def read_rules(path: Path) -> list[Rule]:
    """Read the rules of a file.

    Raises:
        RuleError: A rule is invalid.
        OSError: The file cannot be read.
    """
    try:
        return parse_rules(path.read_text())
    except RuleError as error:
        raise RuleError(f"{path}: {error}") from error


def destinations(webhook_url: str | None, alertmanager_url: str | None) -> list[Destination]:
    """The destinations of alarms."""
    found: list[Destination] = [] if webhook_url is None else [Webhook(webhook_url)]
    return found if alertmanager_url is None else [*found, Alertmanager(alertmanager_url)]


def levels_options(command: Command) -> Command:
    """Add the options of the rollups' levels."""
    for option in (
        click.option(
            "--rollup-fleet-labels",
            multiple=True,
            type=click.Choice(BY_CLIENT),
            help="Keep this label in the rollups of the fleet, which grow with the number of its values. "
            "May be repeated.",
        ),
        click.option(
            "--rollup-client-metrics",
            multiple=True,
            metavar="PREFIX",
            help="Metrics that rollup_1h keeps by client; * for all. May be repeated. Default: the standard "
            "metrics of KIP-714, and those of errors, retries, rebalances, lag and volume.",
        ),
    ):
        command = option(command)
    return command


def levels(client_metrics: Iterable[str], fleet_labels: Iterable[str]) -> Levels:
    """The levels of the rollups: as given, else the default."""
    return Levels(tuple(client_metrics) or CLIENT_METRICS, tuple(fleet_labels))


def kept_days(given: Iterable[str]) -> dict[str, int]:
    """The retention of each table in days: as given, else the default.

    Raises:
        click.UsageError: An option is malformed, or names a table without retention.
    """
    found = dict(KEPT_DAYS)
    for each in given:
        table, _, days = each.partition("=")
        if table not in found or not days.isdigit():
            expected = f"TABLE=DAYS with one of {', '.join(found)}"
            raise click.UsageError(f"option --retention-days: expected {expected}, found {each!r}")
        found[table] = int(days)
    return found


def properties(path: Path | None) -> dict[str, str]:
    """Read the pairs of a properties file.

    Raises:
        click.UsageError: A line is malformed.
    """
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
