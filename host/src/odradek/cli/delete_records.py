"""``odradek delete-records``: the options and output of kafka-delete-records.sh, for any broker.

Differs from the tool: an invalid file gives exit status 2 (the tool: 1), and a failure, even for only one of
several partitions, gives a line on stderr and exit status 1 (the tool: a line on stdout and status 0).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition, partition_text
from odradek.plugin.config import ConfigError

FAILING = "Error while executing delete records command :"
VERSION = 1
FIELDS = {"topic": str, "partition": int, "offset": int}
EPILOG = """\b
The file:
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}],
   "version": 1}
"""


@click.command("delete-records", epilog=EPILOG)
@cluster_options
@click.option(
    "--offset-json-file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="JSON file with the offset before which the records of each partition are deleted, -1 for all; - "
    "for standard input.",
)
@json_option
def delete_records(
    offset_json_file: Path, as_json: bool, bootstrap_server: str, command_config: Path | None
) -> None:
    """Delete the records of partitions before an offset."""
    before = read_offsets(offset_json_file)
    with connected(FAILING, bootstrap_server, command_config) as admin:
        outcomes = admin.delete_records_of_each(before)
    deleted = {at: low for at, low in outcomes.items() if not isinstance(low, RequestFailed)}
    heading = ["Executing records delete operation", "Records delete operation completed:"]
    show(
        as_json,
        ({"topic": at[0], "partition": at[1], "low_watermark": low} for at, low in deleted.items()),
        [
            *heading,
            *(f"partition: {partition_text(at)}\tlow_watermark: {low}" for at, low in deleted.items()),
        ],
    )
    failures = [str(outcome) for outcome in outcomes.values() if isinstance(outcome, RequestFailed)]
    if failures:
        raise CommandFailed(f"{FAILING} {'; '.join(failures)}")


def read_offsets(path: Path) -> dict[Partition, int]:
    """Read the offset of each partition.

    Raises:
        ConfigError: The file cannot be read, or does not have the format.
    """
    where = f"--offset-json-file {path}"
    try:
        with click.open_file(str(path), encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise ConfigError(where, f"is not valid JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        raise ConfigError(where, "expected an object with a list partitions")
    if content.get("version", VERSION) != VERSION:
        raise ConfigError(where, f"expected version {VERSION}, found {content['version']!r}")
    found: dict[Partition, int] = {}
    for row in content["partitions"]:
        partition, offset = offset_of(row, where)
        if partition in found:
            raise ConfigError(where, f"has {partition_text(partition)} more than once")
        found[partition] = offset
    return found


def offset_of(row: Any, where: str) -> tuple[Partition, int]:
    """One item of the list.

    Raises:
        ConfigError: A field is missing or has another type.
    """
    for name, kind in FIELDS.items():
        value = row.get(name) if isinstance(row, Mapping) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ConfigError(
                where, f"expected {', '.join(FIELDS)} in each partition, found {json.dumps(row)}"
            )
    return (row["topic"], row["partition"]), row["offset"]
