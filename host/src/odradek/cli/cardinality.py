"""``odradek cardinality``: how many series clients have, and what a subscription would add."""

from __future__ import annotations

import click

from odradek.cli.cardinality_estimate import estimate
from odradek.cli.cardinality_top import top


@click.group("cardinality")
def cardinality() -> None:
    """Count the series of clients."""


cardinality.add_command(estimate)
cardinality.add_command(top)
