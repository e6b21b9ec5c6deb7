"""``odradek spark java``: check whether this machine has a Java for Spark, without starting Spark."""

from __future__ import annotations

import click

from odradek_spark.cli.session import explained
from odradek_spark.ingest.session import check_java, java_command


@click.command()
def java() -> None:
    """Print the Java that Spark uses on this machine. Exit status 1 if there is none it can use."""
    with explained():
        version = check_java()
        click.echo(f"{java_command()} is Java {version}")
