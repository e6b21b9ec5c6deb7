"""The option ``--json`` of all commands that list something: one JSON object per line, for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


def show(as_json: bool, objects: Iterable[Mapping[str, Any]], lines: Iterable[str]) -> None:
    """Print a listing.

    Args:
        as_json: Whether ``--json`` is given.
        objects: The listing for scripts; not iterated without ``--json``.
        lines: The listing for people; not iterated with ``--json``.
    """
    for line in map(json.dumps, objects) if as_json else lines:
        click.echo(line)
