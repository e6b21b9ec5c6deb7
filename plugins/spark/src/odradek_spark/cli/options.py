"""Options that several commands of ``odradek spark`` have."""

from __future__ import annotations

import click

dataset_option = click.option(
    "--dataset", required=True, metavar="URI", help="Where the tables are: a path, s3://, gs:// or abfss://."
)
