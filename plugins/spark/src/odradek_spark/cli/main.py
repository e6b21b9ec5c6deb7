"""The command ``odradek spark``. Spark itself is imported by the commands that start it."""

from __future__ import annotations

import click

from odradek_spark.cli.query import query


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def spark() -> None:
    """Client metrics as tables: ingest them, keep them, ask them."""


spark.add_command(query)
