"""The command ``odradek spark``. Spark itself is imported by the commands that start it."""

from __future__ import annotations

import click

from odradek_spark.cli.ingest import ingest, run
from odradek_spark.cli.jobs import erase, replay, rewrite, verify
from odradek_spark.cli.query import query


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  odradek spark ingest --bootstrap-server localhost:9092 \\\n"
    "      --dataset telemetry-tables",
)
def spark() -> None:
    """Client metrics as tables: ingest, maintain and query them."""


for command in (run, ingest, query, verify, replay, erase, rewrite):
    spark.add_command(command)
