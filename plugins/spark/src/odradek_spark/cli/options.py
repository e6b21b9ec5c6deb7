"""Options that several commands of ``odradek spark`` have, and the file that goes with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from odradek_spark.jobs.expire import KEPT_DAYS
from odradek_spark.source.options import DEFAULT_PAYLOAD_BYTES


def whole_path(_: click.Context, __: click.Parameter, dataset: str) -> str:
    """A dataset as every process finds it: the working directory of a worker is another one."""
    return dataset if "://" in dataset else str(Path(dataset).absolute())


dataset_option = click.option(
    "--dataset",
    required=True,
    metavar="URI",
    callback=whole_path,
    help="Where the tables are: a path, s3://, gs:// or abfss://.",
)


client_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A properties file with more options of librdkafka: security.protocol, sasl.*, ssl.*",
)
max_payload_option = click.option(
    "--max-payload-bytes",
    metavar="BYTES",
    type=click.IntRange(1),
    default=DEFAULT_PAYLOAD_BYTES,
    show_default=True,
    help="Larger pushes, decompressed, are dead letters.",
)
retention_option = click.option(
    "--retention-days",
    multiple=True,
    metavar="TABLE=DAYS",
    help="How many days a table keeps. May be repeated. Default: "
    + ", ".join(f"{table}={days}" for table, days in KEPT_DAYS.items()),
)


def kept_days(given: Iterable[str]) -> dict[str, int]:
    """How many days each table keeps: as given, else the default.

    Raises:
        click.UsageError: One is no pair, or names no table that is cut by days.
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
    """The pairs of a properties file.

    Raises:
        click.UsageError: A line is none.
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
