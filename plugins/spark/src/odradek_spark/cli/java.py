"""``odradek spark java``: whether the pipeline can start here, said without starting it."""

from __future__ import annotations

import click

from odradek_spark.cli.session import explained
from odradek_spark.ingest.session import check_java, java_command


@click.command()
def java() -> None:
    """Say which Java Spark takes here. Exit status 1 if there is none that will do."""
    with explained():
        version = check_java()
        click.echo(f"{java_command()} is Java {version}")
