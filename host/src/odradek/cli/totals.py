"""``odradek totals``: the files of destinations with totals."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.errors import CommandFailed
from odradek.temporality import BadState, StoreFailed
from odradek.temporality.rebuild import begin_again

FAILING = "Error while executing totals command :"


@click.group("totals")
def totals() -> None:
    """Maintain the totals of a destination."""


@totals.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def rebuild(file: Path) -> None:
    """Build totals again from the beginning of the log.

    FILE is the `totals.file` of the destination. Stop the host first, or start it again afterwards: it reads
    its whole log for the destination when it starts. The old file is kept, with the suffix `.old`.
    """
    if not file.parent.is_dir():
        raise click.UsageError(f"expected a file in an existing folder, found {str(file)!r}")
    try:
        old = begin_again(file)
    except (BadState, StoreFailed, OSError) as error:
        raise CommandFailed(f"{FAILING} {error}") from error
    click.echo(f"The next start of the host builds the totals in {file} again from the log.")
    if old is not None:
        click.echo(f"The old totals are in {old}.")
