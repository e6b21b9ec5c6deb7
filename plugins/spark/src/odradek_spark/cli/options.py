"""Options that several commands of ``odradek spark`` have, and the file that goes with them."""

from __future__ import annotations

from pathlib import Path

import click

dataset_option = click.option(
    "--dataset", required=True, metavar="URI", help="Where the tables are: a path, s3://, gs:// or abfss://."
)


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
